"""Loss scaling: fp16 gradients kept within what fp16 can hold."""

from __future__ import annotations

from typing import Any

import torch


class Scaling:
    """The loss scaling of an Accelerator, shared by its optimizers."""

    def __init__(self, scaler: torch.amp.GradScaler) -> None:
        self.scaler = scaler
        self.optimizers = 0
        self._update_due = False

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to call ``backward`` on."""
        if self._update_due:
            self._update_due = False
            self.scaler.update()
        return self.scaler.scale(loss)

    def step(self, optimizer: torch.optim.Optimizer) -> Any:
        """Step unless the gradients overflowed.

        ``update`` forgets which optimizers are unscaled. So with several it waits until all had their turn: until the
        next backward pass.
        """
        result = self.scaler.step(optimizer)
        if self.optimizers > 1:
            self._update_due = True
        else:
            self.scaler.update()
        return result
