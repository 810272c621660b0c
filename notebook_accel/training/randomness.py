"""Seeds: the same numbers in every run."""

from __future__ import annotations

import os
import random
import sys

import torch

from ..contracts.world import current_context


def set_seed(seed: int, device_specific: bool = False, deterministic: bool = False) -> None:
    """Seed Python's random, numpy if it is loaded, and torch on all devices.

    ``device_specific`` adds the rank, so that ranks draw different numbers; ``deterministic`` makes torch refuse
    algorithms whose results vary. Same as Accelerate's ``set_seed``.
    """
    if device_specific:
        context = current_context.get()
        seed += context.world.rank if context else int(os.environ.get("RANK", 0))
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if deterministic:
        torch.use_deterministic_algorithms(True)


def draw_seed(generator: torch.Generator | None = None) -> int:
    """A random seed from ``generator`` (None: torch's own), the way torch's samplers draw theirs."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
