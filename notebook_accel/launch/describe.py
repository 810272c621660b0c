"""Puts an exception into words and numbers, in the rank where it was raised."""

from __future__ import annotations

import os
import sysconfig
import traceback

from ..contracts.errors import Frame, RankFailure

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_MOST_FRAMES = 6
_CONSEQUENCES = (
    "connection closed by peer",
    "connection reset by peer",
    "broken pipe",
    "connection refused",
    "socket is not connected",
    "read error",
    "remote process exited",
    "nccl communicator was aborted",
)


def describe_exception(error: BaseException, *, rank: int, at: float, step: int) -> RankFailure:
    """Put an exception into words and numbers; never raises, whatever the exception does."""
    message = _text_of(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return RankFailure(
        rank=rank,
        time=at,
        step=step,
        type_name=type(error).__name__,
        message=message,
        frames=user_frames(error),
        consequence=is_consequence(message),
        hint=f"It was raised from {type(cause).__name__}: {_text_of(cause)}" if cause is not None else "",
    )


def is_consequence(message: str) -> bool:
    """Whether an error only says that another rank has gone."""
    low = message.lower()
    return any(phrase in low for phrase in _CONSEQUENCES)


def user_frames(error: BaseException) -> tuple[Frame, ...]:
    """The frames of the user's own code, outermost first, and the place where a library raised, if one did."""
    summary = traceback.extract_tb(error.__traceback__)
    frames = [Frame(f.filename, f.lineno or 0, f.name, f.line or "") for f in summary]
    frames = [f for f in frames if not f.file.startswith(_PACKAGE)] or frames[-3:]
    own = [f for f in frames if not _in_library(f.file)]
    if len(own) > _MOST_FRAMES:
        own = [*own[:2], *own[-(_MOST_FRAMES - 2) :]]
    last = frames[-1:] if frames and frames[-1] not in own else []
    return tuple(own + last)


def _in_library(path: str) -> bool:
    return "site-packages" in path or "dist-packages" in path or path.startswith((_STDLIB, "<frozen"))


def _text_of(error: BaseException | None) -> str:
    try:
        return str(error)[:4000]
    except Exception as broken:
        return f"(its text cannot be had: {type(broken).__name__})"
