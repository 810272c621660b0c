"""When gradients are complete: the state that optimizers, schedulers and the Accelerator share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from ..contracts.reporting import Boundary
from ..data.loader import LoadersInUse, PreparedLoader
from .options import GradientAccumulationPlugin


class Accumulation:
    """Counts backward passes and optimizer steps, and knows whether this pass completes a window.

    ``sync_gradients``: optimizers step and ranks exchange gradients. ``num_steps``: passes in a window.
    """

    def __init__(self, plugin: GradientAccumulationPlugin, boundary: Boundary, in_use: LoadersInUse) -> None:
        self.num_steps = plugin.num_steps or 1
        self.adjust_scheduler = plugin.adjust_scheduler
        self.sync_with_dataloader = plugin.sync_with_dataloader
        self.sync_each_batch = plugin.sync_each_batch
        self.sync_gradients = True
        self.step = 0
        self.backwards = 0
        self._boundary = boundary
        self._in_use = in_use

    @property
    def active_dataloader(self) -> PreparedLoader | None:
        """The loader of the innermost running loop."""
        return self._in_use.active

    @property
    def in_dataloader(self) -> bool:
        """Whether a prepared loader is being iterated."""
        return self._in_use.active is not None

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the batch in use is the last of its loader."""
        return self._in_use.at_end

    @property
    def remainder(self) -> int:
        """The real samples of the last turn over all ranks, once it is reached (0: all of them, -1: not known)."""
        active = self._in_use.active
        return -1 if active is None else active.remainder

    def begin_pass(self) -> None:
        """Decide whether the coming backward pass completes a window."""
        if self.sync_with_dataloader and self._in_use.at_end:
            self.step = 0
            self.sync_gradients = True
        else:
            self.step += 1
            self.sync_gradients = self.step % self.num_steps == 0

    def count_step(self) -> None:
        """An optimizer has stepped: the place where a rank may be asked to stop."""
        boundary = self._boundary
        boundary.step += 1
        if boundary.requested:
            boundary.reach()

    @contextmanager
    def window(self, models: tuple[torch.nn.Module, ...]) -> Iterator[None]:
        """One backward pass; the models' gradients stay on their ranks unless it completes a window."""
        self.begin_pass()
        if self.sync_gradients or self.sync_each_batch:
            yield
            return
        with ExitStack() as stack:
            for model in models:
                stack.enter_context(no_sync(model))
            yield


@contextmanager
def no_sync(model: torch.nn.Module) -> Iterator[None]:
    """Backward passes in the block leave the model's gradients on their ranks; nothing for a model on one rank."""
    own = getattr(model, "no_sync", None)
    if own is None:
        yield
        return
    with own():
        yield
