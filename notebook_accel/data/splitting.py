"""Inputs cut into one part for each rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .sharding import split_range


def split_inputs(inputs: Any, rank: int, size: int, pad: bool = False) -> Any:
    """The part of one rank of a list, tuple or tensor, or of each value of a mapping.

    The first ranks get one more where the number does not divide; ``pad`` repeats the last input so that all ranks get
    as many. Raises ValueError for mapping values of different lengths, TypeError for what cannot be cut.
    """
    if size == 1:
        return inputs
    if isinstance(inputs, Mapping):
        lengths = {key: len(value) for key, value in inputs.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The values of a mapping are cut alike, so they need one length; yours have {lengths}.")
        return {key: split_inputs(value, rank, size, pad) for key, value in inputs.items()}
    if not isinstance(inputs, list | tuple | torch.Tensor) and not hasattr(inputs, "select"):
        raise TypeError(
            f"split_between_processes cuts lists, tuples, tensors and mappings of them; you passed {inputs!r:.60} "
            f"({type(inputs).__name__}). Use list(...) of it."
        )
    return _cut(inputs, split_range(len(inputs), rank, size), -(-len(inputs) // size) if pad else 0)


def _cut(inputs: Any, positions: range, at_least: int) -> Any:
    missing = max(at_least - len(positions), 0)
    if isinstance(inputs, list | tuple):
        kind = list if isinstance(inputs, list) else tuple
        return kind([*inputs[positions.start : positions.stop], *inputs[-1:] * missing])
    chosen = [*positions, *[len(inputs) - 1] * missing]
    if isinstance(inputs, torch.Tensor):
        return inputs[chosen] if missing else inputs[positions.start : positions.stop]
    return inputs.select(chosen)  # a Dataset of the datasets library
