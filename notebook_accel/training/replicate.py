"""Models on several ranks: DistributedDataParallel around them, and out of it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

from ..backends.base import Backend
from .options import DistributedDataParallelKwargs, changed
from .precision import unwrap_forward


def replicate(model: torch.nn.Module, backend: Backend, options: DistributedDataParallelKwargs) -> torch.nn.Module:
    """The model, whose gradients are averaged over the ranks; itself on one rank or when nothing in it is trained."""
    if backend.world.size == 1 or isinstance(model, DistributedDataParallel):
        return model
    if not any(parameter.requires_grad for parameter in model.parameters()):
        return model
    return DistributedDataParallel(model, device_ids=backend.ddp_device_ids(), **changed(options))


def unwrap(model: torch.nn.Module, keep_fp32_wrapper: bool = True, keep_torch_compile: bool = True) -> torch.nn.Module:
    """The user's own model inside what ``prepare`` and ``torch.compile`` put around it."""
    compiled = _compiled(model)
    inner = model if compiled is None else compiled._orig_mod
    while isinstance(inner, DistributedDataParallel | DataParallel):
        inner = inner.module
    if not keep_fp32_wrapper:
        unwrap_forward(inner)
    if compiled is None or not keep_torch_compile:
        return inner
    compiled._orig_mod = inner
    return model


def _compiled(model: torch.nn.Module) -> Any:
    """The model if torch.compile made it; asked without importing the compiler, which takes a second."""
    return model if "_orig_mod" in model._modules else None


@contextmanager
def sync_in_next_backward(model: torch.nn.Module) -> Iterator[None]:
    """Backward passes in the block exchange gradients although the forward pass ran under ``no_sync``."""
    if not isinstance(model, DistributedDataParallel):
        yield
        return
    before = (model.require_backward_grad_sync, model.require_forward_param_sync)
    model.require_backward_grad_sync = model.require_forward_param_sync = True
    model.reducer.prepare_for_backward([])
    try:
        yield
    finally:
        model.require_backward_grad_sync, model.require_forward_param_sync = before
