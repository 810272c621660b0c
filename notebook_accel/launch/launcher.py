"""``notebook_launcher``: from one call in a cell to ranks that train."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..contracts.errors import CallError, LaunchError, RunInterrupted, SettingsError
from ..contracts.events import Ended, Launched
from ..contracts.plan import HostFacts, LaunchPlan, StartMethod
from ..contracts.settings import Settings
from ..contracts.world import RankContext, World, current_context
from ..display.display import Screen, make_screen
from ..host.fork_safety import fork_hazards, release_openmp_pool
from ..host.frontend import detect_front_end
from ..host.hardware import cpu_count, visible_gpus
from ..progress.model import RunModel
from . import preload
from .cargo import pack
from .injection import Call, bind
from .planner import make_plan
from .ranks import template_is_warm
from .run import Run, remember
from .rundir import RunDirectory
from .steady import SteadyScreen
from .store import MeetingPoint
from .supervisor import Supervisor
from .worker import RankJob


def notebook_launcher(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    num_processes: int | None = None,
    mixed_precision: str | None = None,
    use_port: int | str | None = None,
    master_addr: str = "127.0.0.1",
    node_rank: int = 0,
    num_nodes: int = 1,
    *,
    kwargs: Mapping[str, Any] | None = None,
    device: str | None = None,
    start_method: str = "auto",
    blocking: bool = True,
    ui: str = "auto",
    gradient_accumulation_steps: int = 1,
    seed: int | None = None,
    timeout: float | None = None,
    max_restarts: int = 0,
    project_dir: str | None = None,
    run_dir: str | None = None,
    setup: Callable[[], Any] | None = None,
) -> Run:
    """Run a training function on every accelerator of this machine and show it live.

    Args:
        function: the training function. A parameter named ``accelerator`` (or annotated ``Accelerator``) receives a
            prepared Accelerator; ``args`` and ``kwargs`` fill the others.
        args: positional arguments, without the accelerator.
        num_processes: how many ranks; None: one per GPU, or 1 on a machine without. On a CPU any number goes.
        mixed_precision: "no", "fp16" or "bf16"; None is "no".
        use_port: port of the ranks' meeting point on the loopback interface; None, or a port that is taken: any free.
        master_addr, node_rank, num_nodes: as in Accelerate; this version runs on one machine (``num_nodes=1``).
        kwargs: keyword arguments of the function.
        device: "cpu" or "cuda"; None: GPUs if there are any.
        start_method: "fork", "template" (a clean process that has loaded torch) or "spawn" (a new interpreter);
            "auto": fork where that is safe, template where it is not.
        blocking: whether the call returns when the run is over (True) or at once.
        ui: "widget", "html", "text" or "none"; "auto" picks by front end.
        gradient_accumulation_steps: of the injected Accelerator.
        seed: seeds Python, NumPy and torch in every rank, and shuffling.
        timeout: seconds the whole run may take; then it is stopped and RunTimeout raised. None: no limit.
        max_restarts: how often all ranks are started again after a failure.
        project_dir: of the injected Accelerator.
        run_dir: folder in which the run makes its own; None: the user's cache directory.
        setup: called once in this process, before the ranks (downloads, preprocessing).

    Returns:
        The run: its results, history and logs, and a handle while it goes on (``blocking=False``).

    Raises:
        SettingsError: an argument is not valid on this machine.
        CallError: ``args`` and ``kwargs`` do not fit the function.
        RankError: a rank failed; also of the type of the rank's own exception.
        RunTimeout: the run took longer than ``timeout``.
        KeyboardInterrupt: the kernel was interrupted; ``last_run()`` is the run as far as it came.
    """
    _refuse_inside_a_rank()
    if not callable(function):
        raise CallError(f"notebook_launcher takes a function; you passed {function!r}. Write train, not train().")
    if not isinstance(args, tuple | list):
        raise CallError(f"args is a tuple of arguments; you passed {args!r}. Write args=({args!r},) for one argument.")
    _one_machine(num_nodes, node_rank, master_addr)
    call = bind(function, tuple(args), dict(kwargs or {}))
    settings = Settings(
        num_processes=num_processes,
        mixed_precision=mixed_precision,  # type: ignore[arg-type]
        device=device,
        start_method=start_method,
        ui=ui,
        blocking=blocking,
        gradient_accumulation_steps=gradient_accumulation_steps,
        seed=seed,
        timeout=timeout,
        max_restarts=max_restarts,
        project_dir=None if project_dir is None else os.fspath(project_dir),
        run_dir=None if run_dir is None else os.fspath(run_dir),
        use_port=use_port,  # type: ignore[arg-type]
        setup=setup,
    )
    return _launch(call, settings)


def debug_launcher(function: Callable[..., Any], args: Sequence[Any] = (), num_processes: int = 2) -> Run:
    """Run a training function on CPU ranks, whatever accelerators there are.

    Args:
        function: the training function, as for ``notebook_launcher``.
        args: its positional arguments.
        num_processes: how many ranks.
    """
    return notebook_launcher(function, args, num_processes, device="cpu")


def _launch(call: Call, settings: Settings) -> Run:
    preload.load_torch()
    plan = make_plan(settings, gather_facts(settings))
    if plan.start_method == "fork":
        preload.load_for_forked_ranks(call, plan.processes)
    if settings.setup is not None:
        settings.setup()
    screen = SteadyScreen(make_screen(settings.ui, detect_front_end()))
    launch = _Launch(call, settings, plan, screen)
    remember(launch.run)
    if settings.blocking:
        return launch.in_this_thread()
    return launch.in_background()


def gather_facts(settings: Settings) -> HostFacts:
    """What the planner needs to know of this machine and kernel; touches no device."""
    gpus = visible_gpus() if settings.device != "cpu" and _torch_has_cuda() else ()
    fork_may_be_used = settings.start_method in ("auto", "fork")
    return HostFacts(
        cpus=cpu_count(),
        gpus=tuple(gpu.name for gpu in gpus),
        gpu_bf16=all(gpu.bf16 for gpu in gpus),
        platform=sys.platform,
        fork_hazards=fork_hazards() if fork_may_be_used else (),
        thread_hazard=release_openmp_pool() if fork_may_be_used else "",
    )


def _torch_has_cuda() -> bool:
    return sys.modules["torch"].version.cuda is not None


def _refuse_inside_a_rank() -> None:
    if current_context.get() is not None:
        raise LaunchError("notebook_launcher was called inside a rank: call it once, in the notebook.")


def _one_machine(num_nodes: int, node_rank: int, master_addr: str) -> None:
    if num_nodes != 1 or node_rank != 0:
        raise SettingsError(
            f"num_nodes={num_nodes}, node_rank={node_rank}: this version runs on one machine (1 and 0)."
        )
    if master_addr not in ("127.0.0.1", "localhost"):
        raise SettingsError(f"master_addr={master_addr!r}: on one machine the ranks meet at 127.0.0.1; leave it out.")


class _Launch:
    """One launch on its way: what the supervisor needs, made once, and again for every restart."""

    def __init__(self, call: Call, settings: Settings, plan: LaunchPlan, screen: Screen) -> None:
        self._call, self._settings, self._plan, self._screen = call, settings, plan, screen
        self._cargo = pack(call) if plan.start_method != "fork" else None
        self._directory = RunDirectory(settings.run_dir)
        self._model = RunModel()
        self._supervisor: Supervisor | None = None
        self.run = Run(self._directory, self._model, plan.processes)
        name = getattr(call.function, "__name__", type(call.function).__name__)
        launched = Launched(time.time(), self._directory.run_id, name, plan.processes, plan.line, plan.why)
        self._model.apply(launched)
        self._directory.write(launched)
        if plan.start_method == "template" and not template_is_warm():
            self._model.say("The first start of the clean process takes a second or two; later ones do not.")

    def in_this_thread(self) -> Run:
        """Run to the end, drawing from this thread; an interrupt of the kernel asks the ranks to stop."""
        with _own_interrupt(self._request_stop) as interrupts:
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
        return self.run

    def _request_stop(self) -> None:
        if self._supervisor is not None:
            self._supervisor.request_stop("stopped by an interrupt of the kernel")

    def _to_the_end(self) -> None:
        try:
            self.run.error = self._with_restarts()
        except BaseException as error:
            self.run.error = error
            raise
        finally:
            self._end()
            self._screen.close(self._model)
            self._directory.close()
            self.run.finish()

    def _end(self) -> None:
        stopped = self._supervisor is not None and self._supervisor.stopped
        status = "failed" if self.run.error is not None else "stopped" if stopped else "finished"
        reason = self._supervisor.stop_reason if self._supervisor is not None else ""
        ended = Ended(time.time(), status, reason)
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
            self._supervisor = self._make_supervisor(meeting_point)
            self.run.attach_supervisor(self._supervisor)
            try:
                error = self._supervisor.run()
            finally:
                meeting_point.close()
            if error is None or self._supervisor.stopped or left == 0:
                return error
            left -= 1
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
def _own_interrupt(request_stop: Callable[[], None]) -> Iterator[list[float]]:
    """Turn the kernel's SIGINT into a request while the cell blocks; the list holds the time of each.

    An exception out of a signal handler would tear a widget update or a half-read event in two.
    """
    interrupts: list[float] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return

    def handle(number: int, frame: Any) -> None:
        interrupts.append(time.time())
        request_stop()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
