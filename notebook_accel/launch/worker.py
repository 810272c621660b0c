"""What runs in a rank, from its first instruction to its last."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..capture.displays import capture_displays
from ..capture.matplotlib_hook import capture_figures, show_open_figures
from ..capture.tqdm_bars import capture_tqdm
from ..channel.writer import Writer
from ..contracts.events import Failed, Finished
from ..contracts.world import RankContext, current_context
from . import prologue
from .cargo import Cargo
from .describe import describe_exception
from .injection import Call
from .results import leave_process, save_error, save_result
from .store import number_process_groups

_LEAVE_TOGETHER_S = 30.0
SLOW_MODULES = ("torch._dynamo",)
"""Loaded by the first DistributedDataParallel of a process: about a second, in every rank that was forked without."""


@dataclass(frozen=True, slots=True)
class RankJob:
    """Everything one rank is told; ``call`` is the call itself under fork, its cargo otherwise.

    ``parent`` is the process that must live for the rank to live (0: whoever started it), ``environ`` replaces the
    whole environment (None: the inherited one stays) before ``variables`` are added.
    """

    context: RankContext
    call: Call | Cargo
    address: str
    folder: str
    log_path: str
    variables: Mapping[str, str]
    threads: int
    parent: int = 0
    environ: Mapping[str, str] | None = None
    cwd: str | None = None


def run_rank(job: RankJob) -> None:
    """Be one rank: run the function, deliver what came of it, leave; never returns."""
    rank = job.context.world.rank
    # Daemonic only so that the kernel never waits for it; its DataLoaders may start workers.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    prologue.become_own_session(job.parent or os.getppid())
    prologue.redirect_output(job.log_path)
    prologue.leave_kernel()
    if job.environ is not None:
        os.environ.clear()
        os.environ.update(job.environ)
    if job.cwd is not None:
        os.chdir(job.cwd)
    prologue.set_environment(job.variables, job.threads)
    prologue.settle_memory()
    writer = Writer(job.address, rank, on_lost=_end_with_kernel)
    signal.signal(signal.SIGINT, lambda *_: _interrupt(writer))
    code = 1
    try:
        code = _run(job, writer)
        _flush_output()
        writer.leave.wait(_LEAVE_TOGETHER_S)
    except BaseException as error:
        _log_traceback(error, job)
    finally:
        leave_process(code)


def _run(job: RankJob, writer: Writer) -> int:
    rank = job.context.world.rank
    path = os.path.join(job.folder, f"rank-{rank}")
    started = False
    slow = [name for name in SLOW_MODULES if name not in sys.modules]
    try:
        call = _prepare(job, writer)
        started = True
        value = call(_accelerator() if call.target is not None else None)
        _let_nothing_interrupt()
        show_open_figures()
        note = save_result(value, path + ".result") if value is not None else ""
        result = "" if value is None else os.path.basename(path) + ".result"
        loaded = tuple(name for name in slow if name in sys.modules)
        writer.deliver(Finished(rank, time.time(), result, note, loaded=loaded))
        return 0
    except KeyboardInterrupt:
        writer.deliver(Finished(rank, time.time(), interrupted=True))
        return 0
    except SystemExit as exit:
        if exit.code in (None, 0):
            writer.deliver(Finished(rank, time.time()))
            return 0
        return _fail(exit, job, path, writer, started)
    except BaseException as error:
        return _fail(error, job, path, writer, started)


def _fail(error: BaseException, job: RankJob, path: str, writer: Writer, started: bool) -> int:
    _let_nothing_interrupt()
    rank, failed_at = job.context.world.rank, time.time()
    _flush_output()
    log_size = os.path.getsize(job.log_path) if os.path.exists(job.log_path) else -1
    failure = describe_exception(error, rank=rank, at=failed_at, step=writer.boundary.step)
    if not started:
        failure = dataclasses.replace(failure, hint="It failed while the rank was being set up.")
    name = os.path.basename(path) + ".error" if save_error(error, path + ".error") else ""
    writer.deliver(Failed(rank, failed_at, failure, name, log_size))
    # Only now, so that the screen, which has the short form, never shows the long one as well.
    _log_traceback(error, job)
    return 1


def _let_nothing_interrupt() -> None:
    """What came of the function is not lost to an interrupt that comes too late, nor to torch's handler for SIGCHLD.

    That one raises in the main thread, whatever it does, when a DataLoader's worker has died.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        # The function may have closed or replaced them.
        with contextlib.suppress(Exception):
            stream.flush()


def _log_traceback(error: BaseException, job: RankJob) -> None:
    with contextlib.suppress(Exception), open(job.log_path, "a", encoding="utf-8", errors="replace") as log:
        traceback.print_exception(error, file=log)


def _prepare(job: RankJob, writer: Writer) -> Call:
    """The call to make; loads nothing the function does not need beyond torch."""
    capture_tqdm(writer)
    capture_figures()
    current_context.set(dataclasses.replace(job.context, reporter=writer))
    call = job.call if isinstance(job.call, Call) else job.call.open()
    capture_displays()
    groups = importlib.import_module("notebook_accel.backends.torch_group")
    groups.keep_process_groups()
    number_process_groups()
    if job.context.seed is not None:
        importlib.import_module("notebook_accel.training.randomness").set_seed(job.context.seed)
    return call


def _accelerator() -> Any:
    return importlib.import_module("notebook_accel.training.accelerator").Accelerator()


def _interrupt(writer: Writer) -> None:
    """The supervisor's second word after an unanswered "stop"; anybody else's SIGINT is not for this rank."""
    if writer.boundary.requested and not writer.sending:
        raise KeyboardInterrupt("the run was stopped")


def _end_with_kernel() -> None:
    """The kernel is gone: nobody will ever look at this rank again, nor at the processes it started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
