"""Puts an exception into words and numbers, in the rank where it was raised."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback

from ..contracts.errors import Frame, RankFailure

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_MOST_FRAMES = 6
_RELAYED = re.compile(r"Caught (\w+) (.+)\.\nOriginal (Traceback \(most recent call last\):\n(?s:.+))")
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)(?:\n    (\S.*))?', re.MULTILINE)
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
    message, frames = _text_of(error), user_frames(error)
    relayed = _RELAYED.fullmatch(message)
    if relayed is not None:
        message, frames = _by_worker(relayed, frames)
    parts = getattr(error, "exceptions", ())
    if parts and isinstance(parts, tuple):
        message, frames = _of_group(message, parts), (*frames, *user_frames(_leaves(parts)[0]))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return RankFailure(
        rank=rank,
        time=at,
        step=step,
        type_name=type(error).__name__,
        message=message,
        frames=frames,
        consequence=is_consequence(message),
        hint=f"It was raised from {type(cause).__name__}: {_text_of(cause)}" if cause is not None else "",
    )


def _by_worker(relayed: re.Match[str], caller: tuple[Frame, ...]) -> tuple[str, tuple[Frame, ...]]:
    """The message and frames of an exception that torch carried over from a DataLoader's worker as text."""
    kind, where, trace = relayed.groups()
    newest = trace.rpartition("Traceback (most recent call last):\n")[2]
    found = list(_FRAME.finditer(newest))
    frames = [Frame(m[1], int(m[2]), m[3], m[4] or "") for m in found]
    words = [line for line in newest[found[-1].end() if found else 0 :].splitlines() if line.strip(" ^~")]
    message = "\n".join(words).removeprefix(f"{kind}: ")
    own = [frame for frame in frames if not _in_library(frame.file)] or frames[-1:]
    return f"{message} ({where})", (*(f for f in caller if not _in_library(f.file)), *own)


def _leaves(parts: tuple[BaseException, ...]) -> list[BaseException]:
    found = []
    for part in parts:
        inner = getattr(part, "exceptions", ())
        found += _leaves(inner) if inner and isinstance(inner, tuple) else [part]
    return found


def _of_group(message: str, parts: tuple[BaseException, ...]) -> str:
    return "\n".join([message, *(f"  {type(leaf).__name__}: {_text_of(leaf)}" for leaf in _leaves(parts))])


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
    except BaseException as broken:
        return f"(its text cannot be had: {type(broken).__name__})"
