"""The learning rate scheduler that ``prepare`` returns: it moves when the optimizer does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from .accumulation import Accumulation
from .optimizer import AcceleratedOptimizer


class AcceleratedScheduler:
    """Steps a scheduler once for each rank and optimizer step, so that its length is counted in the user's own batches.

    With ``split_batches`` a batch is that of all ranks, and one step is one step. A scheduler that watches a metric
    (ReduceLROnPlateau) counts metrics, not batches, and steps once.
    """

    def __init__(
        self,
        scheduler: LRScheduler,
        optimizers: Sequence[AcceleratedOptimizer],
        accumulation: Accumulation,
        repeat: int,
        with_optimizer: bool = True,
    ) -> None:
        self.scheduler = scheduler
        self.optimizers = list(optimizers)
        self._accumulation = accumulation
        self._repeat = 1 if isinstance(scheduler, ReduceLROnPlateau) else repeat
        self._with_optimizer = with_optimizer
        self._adjust = accumulation.adjust_scheduler and hasattr(scheduler, "_step_count")
        # Batches that fill up the last turn would step OneCycleLR beyond its end, where it rises again, then raises.
        # Alone, its very last step is left to torch; the rate after it is not trained with.
        total = getattr(scheduler, "total_steps", None)
        self._last = total if total is None or self._repeat == 1 else total - 1

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Move on if the optimizer did; arguments are those of the scheduler's own ``step``."""
        scheduler = self.scheduler
        if not self._with_optimizer:
            scheduler.step(*args, **kwargs)
            return
        if not self._accumulation.sync_gradients:
            if self._adjust:
                scheduler._step_count += 1
            return
        for optimizer in self.optimizers:
            if optimizer.step_was_skipped:
                return
        for _ in range(self._repeat):
            if self._last is None or scheduler._step_count <= self._last:
                scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each parameter group."""
        return list(self.scheduler.get_last_lr())

    def __getattr__(self, name: str) -> Any:
        if name == "scheduler":
            raise AttributeError(name)
        return getattr(self.scheduler, name)
