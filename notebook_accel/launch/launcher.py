"""``notebook_launcher``: from one call in a cell to ranks that train."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..contracts.errors import CallError, LaunchError, SettingsError
from ..contracts.plan import HostFacts
from ..contracts.settings import Settings
from ..contracts.world import current_context
from ..display.display import make_screen
from ..host.fork_safety import fork_hazards, release_openmp_pool
from ..host.frontend import detect_front_end
from ..host.hardware import cpu_count, visible_gpus
from . import preload
from .injection import Call, bind
from .launching import Launch
from .planner import make_plan
from .run import Run, remember
from .steady import SteadyScreen


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
    launch = Launch(call, settings, plan, screen)
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
