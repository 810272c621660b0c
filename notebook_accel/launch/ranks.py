"""The processes of the ranks: how they are started, and how they are ended with everything they started."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any

from ..contracts.plan import StartMethod
from .worker import RankJob, run_rank

_PRELOAD = ["notebook_accel.launch.template"]
_NOT_KNOWN = 255


class Rank:
    """One rank's process, as the supervisor sees it."""

    def __init__(self, job: RankJob, process: BaseProcess) -> None:
        self.number = job.context.world.rank
        self.log_path = job.log_path
        self._process = process
        self.step = 0
        self.said_hello = False
        self.delivered = False
        self.gone = False

    @property
    def sentinel(self) -> int:
        """A descriptor that becomes readable when the process has ended."""
        return self._process.sentinel

    @property
    def exit_code(self) -> int | None:
        """None while it lives; negative: the signal that ended it; 255: nobody knows."""
        code = self._process.exitcode
        if code is None and self._is_lost():
            popen: Any = self._process
            popen._popen.returncode = code = _NOT_KNOWN
        return code

    def _is_lost(self) -> bool:
        """Whether it ended and somebody else took note: the kernel ignores SIGCHLD, or waits for any child."""
        if isinstance(self._process, ForkServerProcess):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid or 0

    def signal(self, number: int) -> None:
        """Send a signal to the rank alone."""
        if not self.gone:
            _quietly(os.kill, self.pid, number)

    def signal_tree(self, number: int) -> None:
        """Send a signal to the rank and all it started (it leads a process group of its own)."""
        if not self.gone:
            _quietly(os.killpg, self.pid, number)
            _quietly(os.kill, self.pid, number)

    def reap(self) -> None:
        """Take note that the process has ended, and end what it left behind."""
        self._process.join()
        _quietly(os.killpg, self.pid, signal.SIGKILL)
        self.gone = True
        # Looked at once more: a process whose end was lost cannot be closed before.
        if self.exit_code is not None:
            self._process.close()


def _quietly(function: Callable[[int, int], None], pid: int, number: int) -> None:
    try:
        function(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def start_ranks(jobs: Sequence[RankJob], method: StartMethod) -> Iterator[Rank]:
    """Start one process per job; yields each as soon as it exists, so that none is lost if a later one fails."""
    name = {"fork": "fork", "template": "forkserver", "spawn": "spawn"}[method]
    context: Any = multiprocessing.get_context(name)
    if method == "template":
        context.set_forkserver_preload(_PRELOAD)
        # Before: where it is started it unblocks the signal again.
        resource_tracker.ensure_running()
        with _no_main_module(), _sigint_blocked():
            forkserver.ensure_running()
    for job in jobs:
        # Daemonic for the kernel, which must not wait for ranks when it exits; run_rank makes itself an ordinary one.
        process = context.Process(target=run_rank, args=(job,), name=f"rank {job.context.world.rank}", daemon=True)
        with _no_main_module() if method != "fork" else _fork_knowingly():
            process.start()
        yield Rank(job, process)


@contextmanager
def _fork_knowingly() -> Iterator[None]:
    """Python warns of forking with threads alive; what makes that safe here is checked before and done in the rank."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
        yield


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """What is started in here is deaf to the interrupts that Jupyter sends to the kernel's whole process group."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep multiprocessing from running the user's script again: its functions travel by value."""
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    vars(main)["__spec__"] = None
    try:
        yield
    finally:
        vars(main).update(hidden)


def template_is_warm() -> bool:
    """Whether the clean template process is already there."""
    server: Any = forkserver._forkserver
    return server._forkserver_pid is not None
