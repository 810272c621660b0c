"""Mixed precision: autocast around forward passes, and loss scaling for fp16."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from ..backends.base import Backend
from ..contracts.errors import SettingsError
from ..tensors.nested import to_fp32
from .options import AutocastKwargs, GradScalerKwargs, changed
from .scaling import Scaling

_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Precision:
    """float32 throughout; subclasses compute some operations in fewer bits."""

    name = "no"
    scaling: Scaling | None = None

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to call ``backward`` on."""
        return loss

    def autocast(self, options: AutocastKwargs | None = None) -> AbstractContextManager[Any]:
        """A context in which operations choose their precision; ``options`` None: those of the Accelerator."""
        return nullcontext()

    def wrap_forward(self, model: torch.nn.Module) -> None:
        """Make the model's forward pass run under autocast and return float32."""


class MixedPrecision(Precision):
    """Operations in fp16 or bf16 where torch.autocast allows it, results in float32."""

    def __init__(self, name: str, backend: Backend, autocast: AutocastKwargs, scaling: GradScalerKwargs) -> None:
        self.name = name
        self._device_type = backend.device.type
        self._options = autocast
        if name == "fp16":
            self.scaling = Scaling(torch.amp.GradScaler(self._device_type, **changed(scaling)))
            self.scale = self.scaling.scale  # type: ignore[method-assign]  # decided once, not at every pass

    def autocast(self, options: AutocastKwargs | None = None) -> AbstractContextManager[Any]:
        return _autocast(self._device_type, _DTYPES[self.name], options or self._options)

    def wrap_forward(self, model: torch.nn.Module) -> None:
        if not isinstance(model.__dict__.get("forward"), MixedForward):
            model.forward = MixedForward(model.forward, self._device_type, _DTYPES[self.name], self._options)


class MixedForward:
    """A forward pass under autocast, its float16 and bfloat16 results as float32.

    It is an object rather than a closure so that a prepared model can be copied and pickled.
    """

    def __init__(
        self, original: Callable[..., Any], device_type: str, dtype: torch.dtype, options: AutocastKwargs
    ) -> None:
        self.original = original
        self._device_type = device_type
        self._dtype = dtype
        self._options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _autocast(self._device_type, self._dtype, self._options):
            return to_fp32(self.original(*args, **kwargs))


def _autocast(device_type: str, dtype: torch.dtype, options: AutocastKwargs) -> torch.autocast:
    return torch.autocast(device_type, dtype, enabled=options.enabled, cache_enabled=options.cache_enabled)


def unwrap_forward(model: torch.nn.Module) -> None:
    """Give the model its own forward pass back."""
    wrapped = model.__dict__.get("forward")
    if isinstance(wrapped, MixedForward):
        del model.forward
        if model.forward != wrapped.original:
            model.forward = wrapped.original


def choose_precision(name: str, backend: Backend, autocast: AutocastKwargs, scaling: GradScalerKwargs) -> Precision:
    """The precision of this name ("no", "fp16", "bf16").

    Raises SettingsError for another name, and when the device cannot train in it.
    """
    if name == "no":
        return Precision()
    if name not in _DTYPES:
        raise SettingsError(f'mixed_precision={name!r} is not known. Use one of "no", "fp16", "bf16".')
    if refusal := backend.refuse_precision(name):
        raise SettingsError(refusal)
    return MixedPrecision(name, backend, autocast, scaling)
