"""A call of the training function as bytes, for ranks that are not forked from the kernel."""

from __future__ import annotations

import pickle
import random
import sys
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from ..contracts.errors import LaunchError
from .injection import Call
from .pickling import can_pickle, dumps
from .prologue import nothing


@dataclass(frozen=True, slots=True)
class Cargo:
    """A pickled call, and the kernel's random state, so that a fresh process draws the numbers a forked one would."""

    data: bytes
    random_state: dict[str, Any] = field(default_factory=dict)

    def open(self) -> Call:
        """The call, in the rank."""
        call: Call = pickle.loads(self.data)
        _name_classes()
        _set_random_state(self.random_state)
        return call


def _name_classes() -> None:
    """Put the notebook's classes where pickle looks for them by name, for results and for ``torch.save`` of a model."""
    main = sys.modules["__main__"]
    for cls in list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.values()):
        if cls.__module__ == "__main__" and "." not in cls.__qualname__:
            setattr(main, cls.__name__, cls)


def pack(call: Call) -> Cargo:
    """Pickle a call by value.

    Raises:
        LaunchError: something the function uses cannot be sent to another process; names it.
    """
    try:
        return Cargo(dumps(call, _Pickler), _random_state())
    except Exception as error:
        raise LaunchError(_explain(call, error)) from error


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """By value, but for ``get_ipython``, which every notebook has and which gives None in a rank."""

    def reducer_override(self, obj: Any) -> Any:
        if getattr(obj, "__name__", "") == "get_ipython":
            return _no_ipython, ()
        return super().reducer_override(obj)


def _no_ipython() -> Any:
    return nothing


def _explain(call: Call, error: Exception) -> str:
    name = getattr(call.function, "__name__", repr(call.function))
    culprits = ", ".join(
        f"{where} ({type(value).__name__})" for where, value in _parts(call) if not can_pickle(value, _Pickler)
    )
    uses = f" because of {culprits}" if culprits else ""
    return (
        f"{name} cannot be sent to a fresh process{uses}: {error}. Make it inside {name} instead of outside, "
        "or use start_method='fork' if this kernel can still be forked."
    )


def _parts(call: Call) -> list[tuple[str, Any]]:
    """What the call carries, by name: arguments, closure variables and the globals its code mentions."""
    parts: list[tuple[str, Any]] = [(f"argument {i}", value) for i, value in enumerate(call.args)]
    parts += [(f"argument {key!r}", value) for key, value in call.kwargs.items()]
    code = getattr(call.function, "__code__", None)
    if code is not None:
        cells = getattr(call.function, "__closure__", None) or ()
        parts += [
            (f"the variable {name!r}", cell.cell_contents) for name, cell in zip(code.co_freevars, cells, strict=True)
        ]
        scope = call.function.__globals__
        parts += [(f"the variable {name!r}", scope[name]) for name in code.co_names if name in scope]
    return parts


def _random_state() -> dict[str, Any]:
    state: dict[str, Any] = {"random": random.getstate()}
    if "numpy" in sys.modules:
        state["numpy"] = sys.modules["numpy"].random.get_state()
    if "torch" in sys.modules:
        state["torch"] = sys.modules["torch"].get_rng_state().numpy().tobytes()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    random.setstate(state["random"])
    if "numpy" in state:
        sys.modules["numpy"].random.set_state(state["numpy"])
    if "torch" in state:
        import torch

        torch.set_rng_state(torch.frombuffer(bytearray(state["torch"]), dtype=torch.uint8))
