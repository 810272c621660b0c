"""What the training half may tell the screen, without knowing how it gets there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class Pending(Protocol):
    """A number still on its way from a device."""

    def ready(self) -> bool:
        """Whether ``value()`` returns without waiting for the device."""

    def value(self) -> float:
        """The number; waits for the device when it is not ready."""


Value = float | str | Pending


class Bar:
    """A progress bar: the loop sets ``n``, the reporter's thread looks at it a few times a second.

    ``n`` and ``total`` count ``unit``s (``total`` None: unknown); ``done`` is set once, at the end.
    """

    __slots__ = ("id", "description", "n", "total", "unit", "postfix", "done")

    def __init__(self, id: int, description: str, total: float | None, unit: str = "it") -> None:
        self.id = id
        self.description = description
        self.n: float = 0
        self.total = total
        self.unit = unit
        self.postfix = ""
        self.done = False


class Boundary:
    """The place between two training steps where a rank may be asked to stop.

    The loop writes ``step`` (optimizer steps done so far) and calls ``reach()`` only when ``requested`` is true.
    """

    __slots__ = ("requested", "step")

    def __init__(self) -> None:
        self.requested = False
        self.step = 0

    def reach(self) -> None:
        """Settle with the supervisor what happens at this boundary; raises KeyboardInterrupt if the run stops here."""


class Reporter(Protocol):
    """Where a rank reports to. Nothing here blocks, waits for a device or raises on a lost connection."""

    boundary: Boundary
    memory: Callable[[], tuple[int, int]] | None
    """Gives (bytes used, bytes there are); looked at about once a second. None: the process's resident memory."""

    def bar(self, description: str, total: float | None, unit: str = "it") -> Bar:
        """A new bar, shown until its ``done`` is set."""

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        """Append one record to the history; the caller gives the mapping away."""

    def status(self, text: str) -> None:
        """Say in a few words what the rank is doing ("compiling (first step)"); "" for nothing special."""

    def display(self, data: Mapping[str, str], display_id: str | None = None) -> None:
        """Show a MIME bundle (binary values base64-encoded) with the rank's log; a known ``display_id`` is replaced."""


class NullReporter:
    """Reports to nobody: for an Accelerator outside any launch."""

    def __init__(self) -> None:
        self.boundary = Boundary()
        self.memory: Callable[[], tuple[int, int]] | None = None

    def bar(self, description: str, total: float | None, unit: str = "it") -> Bar:
        return Bar(0, description, total, unit)

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        return None

    def status(self, text: str) -> None:
        return None

    def display(self, data: Mapping[str, str], display_id: str | None = None) -> None:
        return None
