"""What happens in a run, as lines of JSON: rank → kernel on the channel, and the run directory's events.jsonl.

Each event is a frozen dataclass; ``encode`` and ``decode`` are inverse. ``time`` is seconds since the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

from .errors import Frame, RankFailure


@dataclass(frozen=True, slots=True)
class Launched:
    """The first event of a run; ``line`` is the device line ("2 × CPU, gloo, fp32, fork")."""

    time: float
    run_id: str
    name: str
    world_size: int
    line: str
    why: str


@dataclass(frozen=True, slots=True)
class Hello:
    """A rank's process is up and connected."""

    rank: int
    time: float
    pid: int


@dataclass(frozen=True, slots=True)
class Status:
    """What a rank says it is doing; "" for nothing special."""

    rank: int
    time: float
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """State of one bar of a rank; only the newest matters."""

    rank: int
    time: float
    bar: int
    description: str
    n: float
    total: float | None
    unit: str = "it"
    postfix: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Metrics:
    """One call of ``accelerator.log``."""

    rank: int
    time: float
    step: int
    values: Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class Output:
    """New text of a rank's log file; ``skipped`` bytes were left out before it. Not in events.jsonl."""

    rank: int
    time: float
    text: str
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Display:
    """A MIME bundle shown in a rank; the same ``display_id`` replaces the earlier one."""

    rank: int
    time: float
    data: Mapping[str, str]
    display_id: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A rank lives: training steps done, memory used and there, in bytes (0: not known)."""

    rank: int
    time: float
    step: int
    memory: int = 0
    memory_total: int = 0


@dataclass(frozen=True, slots=True)
class Halted:
    """A rank waits at the boundary after ``step`` to learn whether the run stops there."""

    rank: int
    time: float
    step: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A rank's function returned; ``result`` names the file in the run directory ("": it returned None).

    ``note`` is a sentence about what could not be sent back, ``loaded`` names slow modules that the rank had to load.
    """

    rank: int
    time: float
    result: str = ""
    note: str = ""
    interrupted: bool = False
    loaded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A rank failed; ``error`` names the pickled exception in the run directory ("": none could be made).

    ``log_size`` is how long the rank's log was before the traceback (-1: not known): the screen shows no more of it.
    """

    rank: int
    time: float
    failure: RankFailure
    error: str = ""
    log_size: int = -1


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of a run; ``status`` is "finished", "stopped" or "failed"."""

    time: float
    status: str
    reason: str = ""


RankEvent = Hello | Status | Progress | Metrics | Output | Display | Heartbeat | Halted | Finished | Failed
Event = Launched | RankEvent | Ended

_TYPES: dict[str, type[Any]] = {cls.__name__.lower(): cls for cls in get_args(Event)}


def _plain(value: Any) -> Any:
    if isinstance(value, RankFailure):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Frame):
        return [value.file, value.line, value.function, value.source]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _number(value: Any) -> Any:
    """What JSON does not know: a NumPy number or a tensor as its number, anything else as its text."""
    try:
        return float(value)
    except Exception:
        return str(value)


def encode(event: Event) -> bytes:
    """One line of JSON, newline included; NaN and infinities as Python's json writes them."""
    body: dict[str, Any] = {"event": type(event).__name__.lower()}
    for f in fields(event):
        body[f.name] = _plain(getattr(event, f.name))
    return (
        json.dumps(body, separators=(",", ":"), ensure_ascii=False, default=_number).encode("utf-8", "backslashreplace")
        + b"\n"
    )


def decode(line: bytes | str) -> Event:
    """The event of one line; raises ValueError for anything else."""
    try:
        body = json.loads(line)
        cls = _TYPES[body.pop("event")]
        if cls is Finished:
            body["loaded"] = tuple(body.get("loaded", ()))
        if cls is Failed:
            body["failure"] = _failure(body["failure"])
        event: Event = cls(**body)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an event: {line[:200]!r}") from error
    return event


def _failure(body: dict[str, Any]) -> RankFailure:
    frames = tuple(Frame(*frame) for frame in body.pop("frames", ()))
    tail = tuple(body.pop("log_tail", ()))
    return RankFailure(**body, frames=frames, log_tail=tail)
