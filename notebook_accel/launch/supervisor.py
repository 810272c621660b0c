"""Starts the ranks of a run and stays with them to the end: reads, reaps, stops, and keeps the screen current."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..channel.address import Address
from ..channel.reader import Reader
from ..channel.tail import Tail, last_lines
from ..contracts.errors import RankFailure, RunTimeout, first_failure
from ..contracts.events import Event, Failed, Finished, Halted, Heartbeat, Hello, Output
from ..contracts.plan import LaunchPlan, StartMethod
from ..display.display import Screen
from ..progress.model import RunModel
from . import preload
from .failure import describe_death, in_the_users_words, last_words, make_error
from .ranks import Rank, start_ranks
from .results import load_error, load_result
from .run import Run
from .rundir import RunDirectory
from .stopping import Action, Stopping, StopRequests
from .worker import RankJob

_TICK_S = 0.1
_OTHER_FAILURES_S = 0.25
_CULPRIT_S = 2.0
_LEAVE_S = 3.0
_HELLO_S = 120.0
_DOUBLE_CLICK_S = 1.0

MakeJobs = Callable[[str, StartMethod], Sequence[RankJob]]


class Supervisor:
    """Runs one world of ranks once; driven by ``run`` in the thread that may draw.

    Args:
        make_jobs: gives the jobs of all ranks for a channel's path and a start method.
        requests: wishes to stop, also those from before the ranks are there.
        started: called when all ranks have been started, or none will be.
        deadline: when the run has taken too long, by the monotonic clock (None: never).
        timeout: the seconds that were given to the run, for the message about it.
    """

    def __init__(
        self,
        *,
        plan: LaunchPlan,
        make_jobs: MakeJobs,
        run: Run,
        model: RunModel,
        directory: RunDirectory,
        screen: Screen,
        requests: StopRequests,
        started: Callable[[], None],
        deadline: float | None = None,
        timeout: float | None = None,
    ) -> None:
        self._plan, self._make_jobs, self._run = plan, make_jobs, run
        self._model, self._directory, self._screen = model, directory, screen
        self._requests, self._on_started = requests, started
        self._deadline, self._timeout = deadline, timeout
        self._ranks: dict[int, Rank] = {}
        self._tails: dict[int, Tail] = {}
        self._failures: dict[int, RankFailure] = {}
        self._error_files: dict[int, str] = {}
        self._stopping: Stopping | None = None
        self._timed_out = False
        self._handled_presses = screen.presses
        self._pressed_at = float("-inf")
        self._first_failure_at: float | None = None
        self._leave_sent_at: float | None = None
        self._first_step: tuple[float, int] | None = None
        self._steps_per_s = 0.0
        self._started = time.monotonic()

    def run(self) -> BaseException | None:
        """Start the ranks and stay until the last has gone.

        Returns:
            The error the run ended with, None when it finished or was stopped.
        """
        address = Address()
        self._reader = Reader(address)
        try:
            if not self._requests.count:
                self._start(address.path)
            self._on_started()
            while not all(rank.gone for rank in self._ranks.values()):
                self._turn()
            return self._conclude()
        finally:
            self._end_all()
            self._reader.close()
            address.close()

    def _start(self, address: str) -> None:
        method = self._plan.start_method
        jobs = self._make_jobs(address, method)
        # New: what the log has from before a restart has been shown.
        tails = {job.log_path: Tail(job.log_path, new=True) for job in jobs}
        for rank in start_ranks(jobs, method):
            self._ranks[rank.number] = rank
            self._tails[rank.number] = tails[rank.log_path]
            self._reader.watch(rank.sentinel)

    def _turn(self) -> None:
        for line, event in self._reader.poll(_TICK_S):
            self._take(line, event)
        self._reap()
        self._look_at_logs()
        self._decide(time.monotonic())
        self._directory.flush()
        self._screen.refresh(self._model)
        self._look_at_button(time.monotonic())

    def _look_at_button(self, now: float) -> None:
        if self._screen.presses == self._handled_presses:
            return
        self._handled_presses = self._screen.presses
        # A double click is one wish, not the wish to end the ranks at once.
        if now - self._pressed_at > _DOUBLE_CLICK_S:
            self._pressed_at = now
            self._requests.ask("stopped by the Stop button")

    # Events.

    def _take(self, line: bytes, event: Event) -> None:
        self._directory.write_line(line)
        rank = self._ranks.get(getattr(event, "rank", -1))
        if rank is None:
            return
        match event:
            case Hello():
                rank.said_hello = True
                if self._leave_sent_at is not None:
                    self._reader.send(rank.number, "leave")
            case Heartbeat():
                self._measure(rank, event)
            case Halted():
                rank.step = event.step
                if self._stopping is not None:
                    self._stopping.halted(rank.number, event.step, time.monotonic())
            case Finished():
                self._finished(rank, event)
            case Failed():
                self._show_rest(rank.number, event.log_size)
                self._failed(rank, in_the_users_words(event.failure), event.error)
                return
        self._model.apply(event)

    def _measure(self, rank: Rank, event: Heartbeat) -> None:
        rank.step = event.step
        if rank.number:
            return
        if self._first_step is None and event.step:
            self._first_step = event.time, event.step
        elif self._first_step is not None and event.time > self._first_step[0]:
            self._steps_per_s = (event.step - self._first_step[1]) / (event.time - self._first_step[0])

    def _finished(self, rank: Rank, event: Finished) -> None:
        rank.delivered = True
        preload.wanted.update(event.loaded)
        if event.interrupted and not self._requests.count:
            # Nobody asked for it, but the others may be waiting for this rank.
            self._requests.ask(f"stopped by a KeyboardInterrupt in rank {rank.number}")
        if event.note:
            self._model.say(f"rank {rank.number}: {event.note}")
        if event.result:
            path = self._directory.path / event.result
            self._run.returns[rank.number], note = load_result(str(path))
            path.unlink()
            if note:
                self._model.say(f"rank {rank.number}: {note}")

    def _failed(self, rank: Rank, failure: RankFailure, error_file: str) -> None:
        rank.delivered = True
        if self._stopping is not None and failure.consequence:
            return
        self._failures[rank.number] = failure
        self._error_files[rank.number] = error_file
        self._first_failure_at = self._first_failure_at or time.monotonic()
        self._model.apply(Failed(rank.number, failure.time, failure, error_file))

    def _reap(self) -> None:
        for rank in self._ranks.values():
            if rank.gone or rank.exit_code is None:
                continue
            for line, event in self._reader.poll(0):
                self._take(line, event)
            self._reader.unwatch(rank.sentinel)
            exit_code = rank.exit_code
            rank.reap()
            if not rank.delivered:
                self._died(rank, exit_code)

    def _died(self, rank: Rank, exit_code: int | None) -> None:
        if self._stopping is not None:
            return
        tail = last_words(last_lines(rank.log_path, 200))
        failure = describe_death(rank.number, exit_code, at=time.time(), step=rank.step, log_tail=tail)
        self._failed(rank, failure, "")

    def _look_at_logs(self) -> None:
        for number, tail in self._tails.items():
            text, skipped = tail.look()
            if text:
                self._model.apply(Output(number, time.time(), text, skipped))

    def _show_rest(self, number: int, log_size: int = -1) -> None:
        tail = self._tails.pop(number, None)
        text, skipped = tail.rest(log_size) if tail is not None else ("", 0)
        if text:
            self._model.apply(Output(number, time.time(), text, skipped))

    # Decisions.

    def _decide(self, now: float) -> None:
        alive = [rank for rank in self._ranks.values() if not rank.gone]
        working = [rank.number for rank in alive if not rank.delivered]
        if self._first_failure_at is not None and now - self._first_failure_at >= self._patience:
            self._end_all()
        elif not working:
            self._let_leave(alive, now)
        elif self._requests.count:
            self._stop(working, now)
        elif self._deadline is not None and now >= self._deadline:
            self._timed_out = True
            self._requests.ask(f"stopped because it took longer than timeout={self._timeout:g} s")
        elif now - self._started > _HELLO_S and not all(rank.said_hello for rank in alive):
            self._never_started([rank for rank in alive if not rank.said_hello])

    @property
    def _patience(self) -> float:
        """Seconds for other ranks to tell of their failure; longer while all we know are lost connections."""
        found_cause = any(not failure.consequence for failure in self._failures.values())
        return _OTHER_FAILURES_S if found_cause else _CULPRIT_S

    def _let_leave(self, alive: list[Rank], now: float) -> None:
        """All have delivered: they leave together, so that no rank loses a connection that it still uses."""
        if self._leave_sent_at is None:
            self._leave_sent_at = now
            for rank in alive:
                self._reader.send(rank.number, "leave")
        elif now - self._leave_sent_at > _LEAVE_S:
            self._end_all()

    def _stop(self, working: list[int], now: float) -> None:
        if self._stopping is None:
            step_s = 1 / self._steps_per_s if self._steps_per_s else 0.5 * any(r.step for r in self._ranks.values())
            self._stopping = Stopping(now, step_s)
            self._model.stopping("stopping: waiting for the ranks to reach the same step")
        if self._requests.count > 1:
            self._model.stopping("ending the processes")
            self._end_all()
            return
        for action in self._stopping.advance(working, now):
            self._act(action)

    def _act(self, action: Action) -> None:
        rank = self._ranks[action.rank]
        if action.order in ("halt", "go", "stop"):
            self._reader.send(action.rank, action.order, step=action.step)
            return
        self._model.stopping(f"stopping: rank {action.rank} does not answer, ending its process")
        if action.order == "interrupt":
            rank.signal(signal.SIGINT)
        else:
            rank.signal_tree(signal.SIGTERM if action.order == "terminate" else signal.SIGKILL)

    def _never_started(self, ranks: list[Rank]) -> None:
        for rank in ranks:
            message = f"the process did not get as far as reporting back within {_HELLO_S:g} s"
            tail = last_lines(rank.log_path, 5)
            self._failed(rank, RankFailure(rank.number, time.time(), -1, "RankDied", message, log_tail=tail), "")

    def _end_all(self) -> None:
        """End every rank that is still there, with all it started, and collect them."""
        for rank in self._ranks.values():
            rank.signal_tree(signal.SIGKILL)
        for rank in self._ranks.values():
            if not rank.gone:
                self._reader.unwatch(rank.sentinel)
                rank.reap()

    # The end.

    def _conclude(self) -> BaseException | None:
        for number in list(self._tails):
            self._show_rest(number)
        return self._error()

    def _error(self) -> BaseException | None:
        if self._failures:
            failures = list(self._failures.values())
            first = first_failure(failures)
            name = self._error_files.get(first.rank, "")
            original: Any = load_error(os.path.join(self._directory.path, name)) if name else None
            log = self._directory.log_path(first.rank)
            returned = [
                rank.number for rank in self._ranks.values() if rank.delivered and rank.number not in self._failures
            ]
            return make_error(failures, original, size=self._plan.processes, log_path=log, returned=returned)
        if self._timed_out:
            return RunTimeout(
                f"The run was {self._requests.reason}; its history and logs are in {self._directory.path}."
            )
        return None
