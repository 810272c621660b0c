"""What can go wrong, as one tree.

NotebookAccelError
├── LaunchError          a launch that cannot start as asked (nothing was started)
│   ├── SettingsError    an argument that makes no sense; also a ValueError
│   └── CallError        arguments that do not fit the training function; also a TypeError
├── RankError            a rank failed; the raised instance is also of the user's own exception type
│   └── RankDied         a rank's process ended without a Python exception (signal, os._exit)
└── RunTimeout           the run took longer than ``timeout=``; also a TimeoutError

RunInterrupted           the kernel was interrupted while the cell ran; a KeyboardInterrupt
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class _Brief:
    """Shown in a notebook by its text alone: the frames between the cell and the raise tell its reader nothing."""

    def _render_traceback_(self) -> list[str]:
        return f"{type(self).__name__}: {self}".splitlines()


class NotebookAccelError(_Brief, Exception):
    """Base class of every error this package raises on its own account."""


class LaunchError(NotebookAccelError):
    """A launch cannot start as asked; nothing was started."""


class SettingsError(LaunchError, ValueError):
    """An argument of the launch is not valid."""


class CallError(LaunchError, TypeError):
    """The arguments do not fit the training function."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a rank's traceback: file, line number (from 1), function name and source text ("" if unknown)."""

    file: str
    line: int
    function: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class RankFailure:
    """Why one rank ended.

    ``step`` is the last training step the rank had begun (-1: none), ``time`` seconds since the epoch, ``consequence``
    whether the failure only follows from another rank's (a lost connection).
    """

    rank: int
    time: float
    step: int
    type_name: str
    message: str
    frames: tuple[Frame, ...] = ()
    consequence: bool = False
    hint: str = ""
    log_tail: tuple[str, ...] = field(default=())

    def is_like(self, other: RankFailure) -> bool:
        """Whether two ranks failed with the same error."""
        return (self.type_name, self.message) == (other.type_name, other.message)


def first_failure(failures: Sequence[RankFailure]) -> RankFailure:
    """The failure that came first in time, leaving aside those that only follow from another."""
    return min(failures, key=lambda failure: (failure.consequence, failure.time))


class RankError(NotebookAccelError):
    """A rank failed.

    ``rank`` and ``step`` say where, ``failure`` holds the details, ``others`` the failures of other ranks and
    ``report`` the text shown in the cell (about twenty lines at most), which begins with the exception's own message.
    """

    rank: int = -1
    step: int = -1
    failure: RankFailure | None = None
    others: tuple[RankFailure, ...] = ()
    report: str = ""

    def __str__(self) -> str:
        return self.report or super().__str__()


class RankDied(RankError):
    """A rank's process ended without raising a Python exception."""


class RunTimeout(NotebookAccelError, TimeoutError):
    """The run took longer than its ``timeout``."""


class RunInterrupted(_Brief, KeyboardInterrupt):
    """The kernel was interrupted while the cell waited for a run; ``last_run()`` is the run as far as it came."""


# What a front end shows as the error's name, and what people look for.
RunInterrupted.__name__ = "KeyboardInterrupt"
