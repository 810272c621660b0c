"""What a test may not leave behind: processes, threads, file descriptors, environment variables, signal handlers."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

# What may outlive a test, and why. This is the only place that makes allowances.
ALLOWED_PROCESSES = (
    r"multiprocessing\.forkserver",  # the warm template that ranks are started from, kept for the next launch
    r"multiprocessing\.resource_tracker",  # comes with the template
)
ALLOWED_THREADS = (
    r"IPythonHistorySavingThread",
    r"tqdm_monitor|Thread-\d+ \(tqdm_monitor\)|TMonitor",
)
ALLOWED_FILES = (
    r"/dev/(null|urandom|nvidia.*)",
    r".*\.(so|py|pyc|json|ttf|afm)(\.[\d.]+)?",  # being read by an import in an allowed thread
)
ALLOWED_VARIABLES = (
    r"PYTEST_CURRENT_TEST",
    r"CUDA_MODULE_LOADING",  # set by torch when it looks at a GPU
    r"KMP_.*",  # set by OpenMP when torch is imported
    r"PYTORCH_NVML_BASED_CUDA_CHECK",  # set by Lightning when it is imported
    r"PYDEVD_USE_FRAME_EVAL",  # set by ipykernel when it is imported
)
PATIENCE = 5.0  # seconds a thread or process may take to finish what it was told to finish

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def _allowed(text: str, patterns: tuple[str, ...]) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


@dataclass(frozen=True)
class Belongings:
    """What the test process has at one moment."""

    processes: dict[int, psutil.Process]
    threads: dict[int, threading.Thread]
    files: dict[int, str]
    variables: dict[str, str]
    handlers: dict[signal.Signals, object]

    @classmethod
    def now(cls) -> Belongings:
        return cls(
            _children(),
            {id(thread): thread for thread in threading.enumerate()},
            _open_files(),
            dict(os.environ),
            {number: signal.getsignal(number) for number in SIGNALS},
        )

    def leaks(self) -> list[str]:
        """What is there now that was not there then."""
        return [*self._processes(), *self._threads(), *self._files(), *self._variables(), *self._handlers()]

    def _processes(self) -> Iterator[str]:
        new = [process for pid, process in _children().items() if pid not in self.processes]
        _gone, alive = psutil.wait_procs([process for process in new if not _is_template(process)], timeout=PATIENCE)
        for process in alive:
            yield f"process {process.pid} is still there: {_command(process)}"

    def _threads(self) -> Iterator[str]:
        for thread in threading.enumerate():
            if id(thread) in self.threads or _allowed(thread.name, ALLOWED_THREADS):
                continue
            thread.join(PATIENCE)
            if thread.is_alive():
                yield f"thread {thread.name!r} is still running"

    def _files(self) -> Iterator[str]:
        spared = _template_files()
        for number, target in _open_files().items():
            if self.files.get(number) != target and number not in spared and not _allowed(target, ALLOWED_FILES):
                yield f"file descriptor {number} is still open: {target}"

    def _variables(self) -> Iterator[str]:
        for name in sorted(self.variables.keys() | os.environ.keys()):
            before, after = self.variables.get(name), os.environ.get(name)
            if before != after and not _allowed(name, ALLOWED_VARIABLES):
                yield f"environment variable {name} was {before!r}, is {after!r}"

    def _handlers(self) -> Iterator[str]:
        for number, before in self.handlers.items():
            after = signal.getsignal(number)
            if after != before:
                yield f"handler of {number.name} was {before!r}, is {after!r}"

    def restore(self) -> None:
        """Put back what can be put back, so that the next test is judged on its own."""
        for pid, process in _children().items():
            if pid not in self.processes and not _is_template(process):
                process.kill()
        for name in os.environ.keys() - self.variables.keys():
            del os.environ[name]
        os.environ.update(self.variables)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return "(gone)"


def _is_template(process: psutil.Process) -> bool:
    """Whether it is one of the allowed processes; what those start themselves is not."""
    try:
        return process.ppid() == os.getpid() and any(re.search(p, _command(process)) for p in ALLOWED_PROCESSES)
    except psutil.NoSuchProcess:
        return False


def _children() -> dict[int, psutil.Process]:
    """Every descendant, by pid."""
    return {process.pid: process for process in psutil.Process().children(recursive=True)}


def _open_files() -> dict[int, str]:
    targets = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets[int(entry.name)] = os.readlink(entry)
        except OSError:  # the descriptor of this very listing
            continue
    return targets


def _template_files() -> set[int]:
    """The two descriptors by which multiprocessing keeps the allowed processes alive."""
    from multiprocessing import forkserver, resource_tracker

    tracker = getattr(resource_tracker._resource_tracker, "_fd", None)
    template = getattr(forkserver._forkserver, "_forkserver_alive_fd", None)
    return {number for number in (tracker, template) if number is not None}
