"""A run as the screen sees it: events go in, plain data is read out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from ..contracts import events
from ..contracts.errors import RankFailure, first_failure
from .history import History
from .log import LogBook
from .rank import RankState
from .shelf import Shelf

_MOST_NOTICES = 20


class RunModel:
    """State of one run; ``clock`` gives seconds since the epoch.

    ``status`` is "starting", "running", "stopping", "finished", "stopped" or "failed". ``plot_version``,
    ``log_version`` and ``shelf.version`` change when there is something new to draw.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.status = "starting"
        self.status_text = ""
        self.name = ""
        self.line = ""
        self.why = ""
        self.run_id = ""
        self.world_size = 0
        self.started: float | None = None
        self.ended: float | None = None
        self.reason = ""
        self.ranks: dict[int, RankState] = {}
        self.failures: list[RankFailure] = []
        self.history = History()
        self.log = LogBook()
        self.shelf = Shelf()
        self.notice: list[str] = []
        self.plot_version = 0

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self.ended is not None

    @property
    def log_version(self) -> int:
        """Changes with every new output."""
        return self.log.version

    @property
    def now(self) -> float:
        """The present while the run goes on, its end afterwards, in seconds since the epoch."""
        return self.clock() if self.ended is None else self.ended

    @property
    def elapsed(self) -> float:
        """Seconds since the launch."""
        return max(0.0, self.now - self.started) if self.started is not None else 0.0

    @property
    def failure(self) -> RankFailure | None:
        """The failure that came first and does not merely follow from another."""
        return first_failure(self.failures) if self.failures else None

    def remaining(self) -> float | None:
        """Seconds to the end of the slowest rank's work, None when not known."""
        known = [rank.remaining(self.now) for rank in self.ranks.values() if rank.active]
        return max((seconds for seconds in known if seconds is not None), default=None) if not self.over else None

    def say(self, line: str) -> None:
        """Show one line of the launcher's own."""
        if line and line not in self.notice:
            self.notice = [*self.notice, line][-_MOST_NOTICES:]

    def stopping(self, text: str) -> None:
        """A stop was asked for; ``text`` says what happens next."""
        if not self.over:
            self.status, self.status_text = "stopping", text

    def apply(self, event: events.Event) -> None:
        """Take in one event."""
        rank = getattr(event, "rank", None)
        state = self._rank(rank) if isinstance(rank, int) else None
        if state is not None:
            state.news = self.clock()
        take = self._takers.get(type(event))
        if take is not None:
            take(self, event, state)

    def _rank(self, rank: int) -> RankState:
        state = self.ranks.get(rank)
        if state is None:
            now = self.clock()
            state = RankState(rank, news=now, moved=now)
            if rank >= 0:  # below 0: a process that helps the ranks, which has output but no row
                self.ranks = dict(sorted({**self.ranks, rank: state}.items()))
        return state

    def _launched(self, event: events.Launched, _: None) -> None:
        self.run_id, self.name, self.line, self.why = event.run_id, event.name, event.line, event.why
        self.world_size, self.started = event.world_size, event.time
        for rank in range(event.world_size):
            self._rank(rank)

    def _hello(self, event: events.Hello, rank: RankState) -> None:
        if not rank.active:  # started again after a failure
            self.failures = [failure for failure in self.failures if failure.rank != rank.rank]
            rank = self.ranks[rank.rank] = RankState(rank.rank, news=self.clock(), moved=self.clock())
            self.status, self.status_text = "running", ""
        rank.pid = event.pid
        self._lives(rank)

    def _lives(self, rank: RankState) -> None:
        if rank.phase == "waiting":
            rank.phase, rank.moved = "running", self.clock()
        if self.status == "starting":
            self.status = "running"

    def _moves(self, rank: RankState, moved: bool) -> None:
        self._lives(rank)
        if moved:
            rank.moved = self.clock()
            if rank.phase == "halted":
                rank.phase = "running"

    def _said(self, event: events.Status, rank: RankState) -> None:
        self._moves(rank, event.text != rank.text)
        if event.text != rank.text:
            rank.text, rank.text_since = event.text, event.time

    def _progress(self, event: events.Progress, rank: RankState) -> None:
        self._moves(rank, rank.progress(event))

    def _metrics(self, event: events.Metrics, rank: RankState) -> None:
        self._moves(rank, True)
        rank.metrics.update(event.values)
        self.history.add(event)
        self.plot_version += 1

    def _output(self, event: events.Output, rank: RankState) -> None:
        self.log.write(event.rank, event.time, event.text, event.skipped)

    def _display(self, event: events.Display, rank: RankState) -> None:
        self.shelf.put(event)

    def _heartbeat(self, event: events.Heartbeat, rank: RankState) -> None:
        rank.memory, rank.memory_total = event.memory, event.memory_total or rank.memory_total
        self._moves(rank, rank.advance(event.time, event.step))

    def _halted(self, event: events.Halted, rank: RankState) -> None:
        if rank.active:
            rank.phase, rank.step = "halted", event.step

    def _finished(self, event: events.Finished, rank: RankState) -> None:
        rank.phase = "interrupted" if event.interrupted else "finished"
        rank.note, rank.text = event.note, ""
        if event.note:
            self.say(f"rank {event.rank}: {event.note}")

    def _failed(self, event: events.Failed, rank: RankState) -> None:
        rank.phase, rank.failure, rank.text = "failed", event.failure, ""
        others = [failure for failure in self.failures if failure.rank != event.rank]
        self.failures = sorted([*others, event.failure], key=lambda failure: failure.time)

    def _ended(self, event: events.Ended, _: None) -> None:
        self.status, self.reason, self.ended = event.status, event.reason, event.time
        self.status_text = ""
        self.log.flush(event.time)

    _takers: ClassVar[dict[type, Callable[..., Any]]] = {
        events.Launched: _launched,
        events.Hello: _hello,
        events.Status: _said,
        events.Progress: _progress,
        events.Metrics: _metrics,
        events.Output: _output,
        events.Display: _display,
        events.Heartbeat: _heartbeat,
        events.Halted: _halted,
        events.Finished: _finished,
        events.Failed: _failed,
        events.Ended: _ended,
    }
