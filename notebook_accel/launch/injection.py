"""Which parameter of the training function receives the accelerator, and whether the other arguments fit."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..contracts.errors import CallError

_NAME = "accelerator"
_NOT_RUN_BY_A_CALL = (
    (inspect.iscoroutinefunction, "an async function"),
    (inspect.isgeneratorfunction, "a generator function (it contains yield)"),
    (inspect.isasyncgenfunction, "an async generator function"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the training function, complete but for the accelerator.

    ``target`` names the parameter that receives it (None: the function takes none), ``index`` its place among the
    positional parameters (past any number of arguments: it is passed by keyword).
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    target: str | None = None
    index: int = 0

    def __call__(self, accelerator: Any = None) -> Any:
        """Call the function, with the accelerator where it belongs."""
        if self.target is None:
            return self.function(*self.args, **self.kwargs)
        if self.index <= len(self.args):
            args = (*self.args[: self.index], accelerator, *self.args[self.index :])
            return self.function(*args, **self.kwargs)
        return self.function(*self.args, **{**self.kwargs, self.target: accelerator})


def bind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """Check the arguments against the function's signature.

    Raises:
        CallError: the arguments do not fit; says which the function takes.
    """
    for is_one, kind in _NOT_RUN_BY_A_CALL:
        if is_one(function) or is_one(type(function).__call__):
            name = getattr(function, "__name__", repr(function))
            raise CallError(f"{name} is {kind}: calling it would not run it. Pass an ordinary function.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return Call(function, args, kwargs)
    target = next((p for p in signature.parameters.values() if _wants_accelerator(p)), None)
    if target is not None and target.name in kwargs:
        target = None
    rest = [p for p in signature.parameters.values() if p is not target]
    try:
        _bindable(rest).bind(*args, **kwargs)
    except TypeError as error:
        raise CallError(_misfit(function, rest, args, kwargs, target is not None, error)) from None
    if target is None:
        return Call(function, args, kwargs)
    by_keyword = target.kind is target.KEYWORD_ONLY
    index = sys.maxsize if by_keyword else list(signature.parameters).index(target.name)
    return Call(function, args, kwargs, target.name, index)


def _wants_accelerator(parameter: inspect.Parameter) -> bool:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return False
    note = parameter.annotation
    if isinstance(note, str):
        return parameter.name == _NAME or note.strip("'\"").rsplit(".", 1)[-1] == "Accelerator"
    ours = getattr(note, "__name__", "") == "Accelerator" and note.__module__.startswith("notebook_accel.")
    return parameter.name == _NAME or ours


def _bindable(parameters: list[inspect.Parameter]) -> inspect.Signature:
    """A signature of these parameters; order by kind is kept, defaults before required ones are allowed for."""
    try:
        return inspect.Signature(parameters)
    except ValueError:
        # Once the target is out, a required parameter may follow one with a default.
        return inspect.Signature([p.replace(default=inspect.Parameter.empty) for p in parameters])


def _misfit(
    function: Callable[..., Any],
    rest: list[inspect.Parameter],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    injected: bool,
    error: TypeError,
) -> str:
    name = getattr(function, "__name__", repr(function))
    takes = ", ".join(str(p) for p in rest) or "nothing"
    passed = f"args={args!r}" + (f", kwargs={dict(kwargs)!r}" if kwargs else "")
    besides = " besides the accelerator, which is passed for you," if injected else ""
    advice = f"{name}(){besides} takes: {takes}."
    return f"{name}() cannot be called with {_shorten(passed)}: {error}. {advice}"


def _shorten(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
