"""Models on several ranks: DistributedDataParallel around them, and out of it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.distributed.algorithms.join import Join, Joinable
from torch.nn.parallel import DataParallel, DistributedDataParallel

from ..backends.base import Backend
from ..data.loader import PreparedLoader
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
    """The user's own model inside what ``prepare`` put around it, and torch.compile too if that is not kept.

    What was compiled around DDP includes DDP's own code, so there the model comes back as it was before.
    """
    compiled = _compiled(model)
    inner = model if compiled is None else compiled._orig_mod
    while isinstance(inner, DistributedDataParallel | DataParallel):
        inner = inner.module
    inside = _compiled(inner)
    own = inner if inside is None else inside._orig_mod
    if not keep_fp32_wrapper:
        unwrap_forward(inner)
        unwrap_forward(own)
    if not keep_torch_compile:
        return own
    return model if compiled is not None and compiled._orig_mod is inner else inner


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


@contextmanager
def joined(joinables: Sequence[Joinable], loaders: Sequence[PreparedLoader], even: bool) -> Iterator[None]:
    """A loop whose ranks may have different numbers of batches: one that is done goes on taking part for the others.

    ``even`` is what the loaders are in the block; where it is true there is nothing to wait for.
    """
    with ExitStack() as stack:
        for loader in loaders:
            stack.enter_context(loader.evened(even))
        with Join(list(joinables), enable=not even, throw_on_early_termination=False):
            yield
