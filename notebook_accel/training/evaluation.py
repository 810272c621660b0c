"""Gathering what every rank predicted, without the samples that filled up the last batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..backends.group import Group
from ..tensors.collective import gather, gather_object, only_tensors
from ..tensors.nested import convert


def gather_real(group: Group, data: Any, real: int, as_objects: bool = False) -> Any:
    """The ranks' results in the order of the data, cut to the first ``real`` (0 or less: all of them).

    Tensors are joined as tensors, lists of other objects as lists, in mappings each value by itself.
    """
    if as_objects:
        return _cut(gather_object(group, data), real)
    if only_tensors(data):
        return convert(gather(group, data), lambda tensor: _cut(tensor, real))
    if isinstance(data, Mapping):
        return {key: gather_real(group, value, real) for key, value in data.items()}
    if isinstance(data, list | tuple) and any(isinstance(item, torch.Tensor) for item in data):
        return type(data)([gather_real(group, item, real) for item in data])
    return _cut(gather_object(group, data), real)


def _cut(joined: Any, real: int) -> Any:
    return joined[:real] if real > 0 else joined
