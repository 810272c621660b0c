"""One launch on its way: from the plan to the run's end, through restarts and interrupts."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..contracts.errors import RunInterrupted
from ..contracts.events import Ended, Launched
from ..contracts.plan import LaunchPlan, StartMethod
from ..contracts.settings import Settings
from ..contracts.world import RankContext, World
from ..display.display import Screen
from ..progress.model import RunModel
from .cargo import pack
from .injection import Call
from .ranks import template_is_warm
from .run import Run
from .rundir import RunDirectory
from .stopping import StopRequests
from .store import MeetingPoint
from .supervisor import Supervisor
from .worker import RankJob

_EXIT_S = 5.0


class Launch:
    """One launch on its way: what the supervisor needs, made once, and again for every restart."""

    def __init__(self, call: Call, settings: Settings, plan: LaunchPlan, screen: Screen) -> None:
        self._call, self._settings, self._plan, self._screen = call, settings, plan, screen
        self._cargo = pack(call) if plan.start_method != "fork" else None
        self._directory = RunDirectory(settings.run_dir)
        self._model = RunModel()
        self._requests = StopRequests()
        self._started = threading.Event()
        self._deadline = None if settings.timeout is None else time.monotonic() + settings.timeout
        self.run = Run(self._directory, self._model, plan.processes)
        self.run.stops_through(self._requests.ask)
        name = getattr(call.function, "__name__", type(call.function).__name__)
        launched = Launched(time.time(), self._directory.run_id, name, plan.processes, plan.line, plan.why)
        self._model.apply(launched)
        self._directory.write(launched)
        if plan.start_method == "template" and not template_is_warm():
            self._model.say("The first start of the clean process takes a second or two; later ones do not.")

    def in_this_thread(self) -> Run:
        """Run to the end, drawing from this thread; an interrupt of the kernel asks the ranks to stop."""
        with _own_interrupt(self._requests) as interrupts:
            self._screen.open(self._model)
            self._to_the_end()
        if self.run.error is not None:
            raise self.run.error
        if interrupts:
            raise RunInterrupted("the run was stopped; last_run() is the run as far as it came.")
        return self.run

    def in_background(self) -> Run:
        """Run to the end in a thread of its own; what it draws belongs to this cell."""
        self._screen.open(self._model)
        thread = threading.Thread(target=self._to_the_end, name="notebook_accel-run", daemon=True)
        thread.start()
        # A fork while the next cell imports would leave a rank with a module lock that nobody releases.
        self._started.wait()
        return self.run

    def _to_the_end(self) -> None:
        atexit.register(self._end_with_this_process)
        try:
            self.run.error = self._with_restarts()
        except BaseException as error:
            self.run.error = error
            raise
        finally:
            self._end()
            self._screen.close(self._model)
            self._directory.close()
            self._started.set()
            self.run.finish()
            atexit.unregister(self._end_with_this_process)

    def _end_with_this_process(self) -> None:
        """Before multiprocessing waits for the ranks, which may not listen to its SIGTERM."""
        for _ in range(2):
            self._requests.ask("stopped by the end of the kernel")
        self.run.is_over(_EXIT_S)

    def _end(self) -> None:
        stopped = self._requests.count > 0
        status = "failed" if self.run.error is not None else "stopped" if stopped else "finished"
        ended = Ended(time.time(), status, self._requests.reason)
        self._model.apply(ended)
        self._directory.write(ended)

    def _with_restarts(self) -> BaseException | None:
        left = self._settings.max_restarts
        while True:
            meeting_point = MeetingPoint(self._settings.use_port)
            if not meeting_point.wished_for:
                self._model.say(
                    f"Port {self._settings.use_port} is taken: the ranks meet at port {meeting_point.port}."
                )
            try:
                error = self._make_supervisor(meeting_point).run()
            finally:
                meeting_point.close()
            if error is None or self._requests.count or left == 0:
                return error
            left -= 1
            self.run.returns[:] = [None] * self._plan.processes
            summary = str(error).splitlines()[0]
            self._model.say(f"Starting all ranks again ({left} restarts left) after: {summary}")

    def _make_supervisor(self, meeting_point: MeetingPoint) -> Supervisor:
        def make_jobs(address: str, method: StartMethod) -> list[RankJob]:
            return [self._job(rank, address, meeting_point) for rank in range(self._plan.processes)]

        return Supervisor(
            plan=self._plan,
            make_jobs=make_jobs,
            run=self.run,
            model=self._model,
            directory=self._directory,
            screen=self._screen,
            requests=self._requests,
            started=self._started.set,
            deadline=self._deadline,
            timeout=self._settings.timeout,
        )

    def _job(self, rank: int, address: str, meeting_point: MeetingPoint) -> RankJob:
        size = self._plan.processes
        world = World(rank, size, rank, size, 0, 1, self._plan.kind)
        settings = self._settings
        fork = self._cargo is None
        return RankJob(
            context=RankContext(
                world,
                self._plan.precision,
                settings.gradient_accumulation_steps,
                settings.seed,
                settings.project_dir,
            ),
            call=self._cargo or self._call,
            address=address,
            folder=str(self._directory.path),
            log_path=self._directory.log_path(rank),
            variables={**world.as_env(), **meeting_point.as_env(), **_for_accelerate(self._plan, settings)},
            threads=self._plan.threads,
            parent=os.getpid() if fork else 0,
            environ=None if fork else dict(os.environ),
            cwd=None if fork else os.getcwd(),
        )


def _for_accelerate(plan: LaunchPlan, settings: Settings) -> dict[str, str]:
    """What an ``accelerate.Accelerator()`` inside the function goes by; on a CPU it would not see the other ranks."""
    variables = {"ACCELERATE_USE_CPU": "true"} if plan.kind == "cpu" else {}
    if plan.precision != "no":
        variables["ACCELERATE_MIXED_PRECISION"] = plan.precision
    if settings.gradient_accumulation_steps != 1:
        variables["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] = str(settings.gradient_accumulation_steps)
    return variables


@contextmanager
def _own_interrupt(requests: StopRequests) -> Iterator[list[float]]:
    """Turn the kernel's SIGINT into a request while the cell blocks; the list holds the time of each.

    An exception out of a signal handler would tear a widget update or a half-read event in two.
    """
    interrupts: list[float] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return

    def handle(number: int, frame: Any) -> None:
        interrupts.append(time.time())
        requests.ask("stopped by an interrupt of the kernel")

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
