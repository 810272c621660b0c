"""A rank's end of the channel: training appends, one thread sends a few times a second and takes orders."""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from ..contracts.events import (
    Display,
    Event,
    Halted,
    Heartbeat,
    Hello,
    Metrics,
    Progress,
    Status,
    encode,
)
from ..contracts.reporting import Bar, Boundary, Pending, Value

_TICK = 0.1
_HEARTBEAT = 1.0
_Record = tuple[int, float, Mapping[str, Value]]


class Writer:
    """Reports to the kernel over the run's socket; a ``Reporter``.

    Args:
        address: path of the run's socket.
        rank: this process's rank.
        on_lost: called in the sending thread when the kernel is gone.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        address: str,
        rank: int,
        *,
        on_lost: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.rank = rank
        self.boundary: Boundary = _AgreedBoundary(self)
        self.memory: Callable[[], tuple[int, int]] | None = None
        self.leave = threading.Event()
        self.sending = False
        """Whether the training thread is inside here: an exception out of a signal handler would cut a line in two."""
        self._clock = clock
        self._on_lost = on_lost
        self._ids = itertools.count()
        self._bars: dict[int, tuple[Bar, tuple[Any, ...]]] = {}
        self._events: deque[Event] = deque()
        self._records: deque[tuple[int, float, Mapping[str, Value]]] = deque()
        self._next_heartbeat = 0.0
        self._stepped = False
        self._rest = b""
        self._sending = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(address)
        self._send([Hello(rank, clock(), os.getpid())])
        self._thread = threading.Thread(target=self._run, name="notebook_accel-channel", daemon=True)
        self._thread.start()

    # What training calls: an append each.

    def bar(self, description: str, total: float | None, unit: str = "it") -> Bar:
        bar = Bar(next(self._ids), description, total, unit)
        self._bars[bar.id] = (bar, ())
        return bar

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self._records.append((step, self._clock(), values))

    def status(self, text: str) -> None:
        self._events.append(Status(self.rank, self._clock(), text))

    def display(self, data: Mapping[str, str], display_id: str | None = None) -> None:
        self._events.append(Display(self.rank, self._clock(), data, display_id))

    def halted(self, step: int) -> None:
        """Tell at once that this rank waits at the boundary after ``step``."""
        self.sending = True
        self._send([Halted(self.rank, self._clock(), step)])
        self.sending = False

    def deliver(self, last: Event, *, wait_s: float = 30.0) -> None:
        """Send everything still here and then ``last``, waiting for values on their way from a device."""
        for bar, _ in list(self._bars.values()):
            bar.done = True
        deadline = time.monotonic() + wait_s
        self.sending = True
        with self._sending:
            self._flush(everything=True)
            self._socket.settimeout(max(0.1, deadline - time.monotonic()))
            self._write(encode(last))

    # The sending thread.

    def _run(self) -> None:
        while True:
            readable, _, _ = select.select([self._socket], [], [], _TICK)
            if readable and not self._take_orders():
                self._on_lost()
                return
            with self._sending:
                self._flush()

    def _take_orders(self) -> bool:
        try:
            chunk = self._socket.recv(4096)
        except OSError:
            return False
        if not chunk:
            return False
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["order"] == "leave":
                self.leave.set()
            elif isinstance(self.boundary, _AgreedBoundary):
                self.boundary.order(order["order"], order.get("step", 0))
        return True

    def _flush(self, *, everything: bool = False) -> None:
        now = self._clock()
        events: list[Event] = []
        while self._events:
            events.append(self._events.popleft())
        events += self._ready_records(everything)
        events += self._changed_bars(now)
        if now >= self._next_heartbeat or everything or (self.boundary.step and not self._stepped):
            self._next_heartbeat = now + _HEARTBEAT
            self._stepped = self.boundary.step > 0
            used, there = self.memory() if self.memory else (_resident(), 0)
            events.append(Heartbeat(self.rank, now, self.boundary.step, used, there))
        if events:
            self._write(b"".join(map(encode, events)))

    def _ready_records(self, everything: bool) -> list[Event]:
        """Records in order, up to the first whose values are still on a device."""
        found: list[Event] = []
        while self._records:
            step, at, values = self._records[0]
            late = (v for v in values.values() if not isinstance(v, int | float | str) and not _is_ready(v))
            if not everything and any(True for _ in late):
                break
            self._records.popleft()
            plain = {k: v if isinstance(v, int | float | str) else _value(v) for k, v in values.items()}
            found.append(Metrics(self.rank, at, step, plain))
        return found

    def _changed_bars(self, now: float) -> list[Event]:
        found: list[Event] = []
        for bar, before in list(self._bars.values()):
            state = (bar.description, bar.n, bar.total, bar.postfix, bar.done)
            if state == before:
                continue
            description, n, total, postfix, done = state
            found.append(Progress(self.rank, now, bar.id, description, n, total, bar.unit, postfix, done))
            if done:
                del self._bars[bar.id]
            else:
                self._bars[bar.id] = (bar, state)
        return found

    def _send(self, events: list[Event]) -> None:
        with self._sending:
            self._write(b"".join(map(encode, events)))

    def _write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            # The kernel is gone: the reading side of this thread notices and ends the rank.
            return


class _AgreedBoundary(Boundary):
    """A boundary that asks the supervisor: every rank waits until all are known to stand at the same step."""

    __slots__ = ("_changed", "_free_until", "_stop_at", "_writer")

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer
        self._changed = threading.Condition()
        self._free_until = 0
        self._stop_at: int | None = None

    def order(self, order: str, step: int) -> None:
        """Called by the channel's thread: "halt" at the next boundary, "go" on to one, or "stop" at one."""
        with self._changed:
            if order == "go":
                self._free_until = max(self._free_until, step)
            elif order == "stop":
                self._stop_at = step
            self.requested = True
            self._changed.notify_all()

    def reach(self) -> None:
        reported = False
        with self._changed:
            while True:
                if self._stop_at is not None and self.step >= self._stop_at:
                    self.requested = False
                    raise KeyboardInterrupt("the run was stopped")
                if self.step < self._free_until or self._stop_at is not None:
                    return
                if not reported:
                    self._writer.halted(self.step)
                    reported = True
                self._changed.wait()


def _is_ready(pending: Pending) -> bool:
    try:
        return pending.ready()
    except Exception:
        # The device has failed (after a CUDA assertion every call does): there is nothing to wait for.
        return True


def _value(pending: Pending) -> float:
    try:
        return pending.value()
    except Exception:
        return float("nan")


def _resident() -> int:
    """Resident memory of this process in bytes."""
    return int(psutil.Process().memory_info().rss)
