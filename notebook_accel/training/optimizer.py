"""The optimizer that ``prepare`` returns: it steps when the gradients are complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .accumulation import Accumulation
from .scaling import Scaling


class AcceleratedOptimizer(torch.optim.Optimizer):
    """Stands for a torch optimizer; ``step`` and ``zero_grad`` do nothing while gradients are being accumulated.

    ``step_was_skipped``: the last step did not happen because fp16 gradients overflowed.
    """

    def __init__(  # the base class is not initialised: ``optimizer`` holds the state
        self, optimizer: torch.optim.Optimizer, accumulation: Accumulation, scaling: Scaling | None = None
    ) -> None:
        self.optimizer = optimizer
        self.step_was_skipped = False
        self._accumulation = accumulation
        self._scaling = scaling
        self._unscaled = False
        if scaling is not None:
            scaling.optimizers += 1
            optimizer.register_step_post_hook(self._note_step)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step if the gradients are complete; the closure's loss, if there is one.

        Raises TypeError for a closure with fp16, whose loss scaling needs the gradients before the step.
        """
        if not self._accumulation.sync_gradients:
            return None
        if self._scaling is None:
            result = self.optimizer.step(closure)
            self._accumulation.count_step()
            return result
        return self._scaled_step(self._scaling, closure)

    def _scaled_step(self, scaling: Scaling, closure: Callable[[], Any] | None) -> Any:
        if closure is not None:
            raise TypeError('optimizer.step(closure) does not work with mixed_precision="fp16". Use "bf16" or "no".')
        self.step_was_skipped = True
        result = scaling.step(self.optimizer)
        self._unscaled = False
        if not self.step_was_skipped:
            self._accumulation.count_step()
        return result

    def _note_step(self, *_: Any) -> None:
        self.step_was_skipped = False

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clear the gradients if they have been used; arguments are those of the optimizer's own ``zero_grad``."""
        if self._accumulation.sync_gradients:
            self.optimizer.zero_grad(*args, **kwargs)

    def unscale(self) -> None:
        """Divide the loss scale out of the gradients, once before each step; nothing without fp16."""
        if self._scaling is not None and not self._unscaled:
            self._scaling.scaler.unscale_(self.optimizer)
            self._unscaled = True

    @property
    def state(self) -> Any:
        return self.optimizer.state

    @state.setter
    def state(self, state: Any) -> None:
        self.optimizer.state = state

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.optimizer.param_groups = groups

    @property
    def defaults(self) -> dict[str, Any]:
        return self.optimizer.defaults

    @defaults.setter
    def defaults(self, defaults: dict[str, Any]) -> None:
        self.optimizer.defaults = defaults

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def __repr__(self) -> str:
        return repr(self.optimizer)
