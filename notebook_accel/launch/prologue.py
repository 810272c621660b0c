"""The first things a rank does: cut every tie to the kernel it came from.

A forked rank is a copy of the notebook's kernel: same sockets, same streams, same signal handlers. Nothing of that may
be used again, or the rank writes into the kernel's conversation with the browser.
"""

from __future__ import annotations

import builtins
import ctypes
import faulthandler
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

_PR_SET_PDEATHSIG = 1


def become_own_session(parent: int) -> None:
    """Leave the kernel's process group (Jupyter interrupts the whole of it), and die when the parent dies.

    Args:
        parent: process id of the process that must be alive for this rank to live.
    """
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGALRM"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def redirect_output(log_path: str) -> None:
    """Send everything this process prints, from Python or C++, to its log file; standard input is empty."""
    kernel_streams = [sys.stdout, sys.stderr, *_kernel_streams()]
    target = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(source, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(source)
    os.close(target)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    # A crash in a native library then leaves the Python stack in this rank's log.
    faulthandler.enable(file=2, all_threads=False)
    _divert(kernel_streams[::2], sys.stdout)
    _divert(kernel_streams[1::2], sys.stderr)


def _kernel_streams() -> Iterator[Any]:
    """The kernel's streams for stdout and stderr, where somebody else has replaced them since."""
    ipykernel = sys.modules.get("ipykernel.kernelapp")
    app = ipykernel.IPKernelApp._instance if ipykernel else None
    shell = getattr(getattr(app, "kernel", None), "shell", None)
    if shell is not None:
        yield getattr(app, "_stdout", None) or sys.stdout
        yield getattr(app, "_stderr", None) or sys.stderr


def _divert(streams: list[Any], target: Any) -> None:
    """References to the kernel's streams (logging handlers, captured variables) lead to the rank's own stream."""
    for stream in streams:
        if stream is None or stream is target or not hasattr(stream, "pub_thread"):
            continue
        stream.write, stream.flush, stream.writelines = target.write, target.flush, target.writelines
    for handler in _stream_handlers():
        if handler.stream in streams:
            handler.stream = target


def _stream_handlers() -> Iterator[Any]:
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    for logger in loggers:
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.StreamHandler):
                yield handler


def leave_kernel() -> None:
    """Make this copy of the kernel mute: no message reaches the browser, ``get_ipython()`` is None."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell._instance if interactive else None
    if shell is None:
        return
    session = getattr(getattr(shell, "kernel", None), "session", None)
    if session is not None:
        session.send = lambda *args, **kwargs: None
    type(shell).clear_instance()
    shell.user_ns["get_ipython"] = nothing
    if hasattr(builtins, "get_ipython"):
        builtins.get_ipython = nothing
    sys.excepthook = sys.__excepthook__
    sys.displayhook = sys.__displayhook__


def nothing() -> None:
    """What ``get_ipython()`` is in a rank."""


def set_environment(variables: Mapping[str, str], threads: int) -> None:
    """Set what libraries read: the rank's place, and a fair number of threads unless the user has chosen one."""
    os.environ.update(variables)
    os.environ.pop("JPY_PARENT_PID", None)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    chosen = os.environ.get("OMP_NUM_THREADS")
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(int(chosen) if chosen and chosen.isdigit() else threads)


def settle_memory() -> None:
    """Keep inherited objects out of the collector, so that their pages stay shared with the kernel."""
    gc.collect(0)
    gc.freeze()
