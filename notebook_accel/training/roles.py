"""Who does what: functions that only some ranks call, and turns that ranks take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from ..backends.group import Group

P = ParamSpec("P")
R = TypeVar("R")


def only_if(here: bool, function: Callable[P, R]) -> Callable[P, R | None]:
    """The function where ``here`` is true; elsewhere one that does nothing and returns None."""

    @functools.wraps(function)
    def elsewhere(*args: P.args, **kwargs: P.kwargs) -> None:
        return None

    return function if here else elsewhere


def decorator(here: bool, function: Callable[..., Any] | None) -> Any:
    """``only_if`` as a decorator, used with or without parentheses."""
    return functools.partial(only_if, here) if function is None else only_if(here, function)


@contextmanager
def goes_first(here: bool, group: Group) -> Iterator[None]:
    """A block that the other ranks enter when those where ``here`` is true have left it, whether or not it raised."""
    if not here:
        group.barrier()
        yield
        return
    try:
        yield
    finally:
        group.barrier()
