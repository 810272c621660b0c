"""A real Jupyter kernel in a test: run cells in it, interrupt it, watch what it sends, and end it for sure.

    with Kernel(tmp_path) as kernel:
        cell = kernel.run("print('hello')")
        assert cell.stdout == "hello\\n"

        running = kernel.start("import time; print('here'); time.sleep(60)")
        kernel.wait_for(running, lambda cell: "here" in cell.stdout)
        kernel.interrupt()
        assert kernel.finish(running).error.name == "KeyboardInterrupt"

``run_cells([...])`` is the short form: one kernel, these cells, their results.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
from jupyter_client.manager import KernelManager
from jupyter_client.utils import run_sync

ROOT = Path(__file__).parents[1]
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
Message = dict[str, Any]


async def _nothing() -> None: ...


run_sync(_nothing)()  # jupyter_client keeps one event loop for good; made here, no test is blamed for it


@dataclass(frozen=True)
class Error:
    """The exception that a cell ended with, as the front end shows it (colours removed)."""

    name: str
    value: str
    traceback: str


@dataclass
class Cell:
    """What one cell has sent so far."""

    id: str
    stdout: str = ""
    stderr: str = ""
    displays: list[Message] = field(default_factory=list)
    """Contents of display_data and execute_result; one with a ``display_id`` holds its newest data."""
    updates: list[Message] = field(default_factory=list)
    """Contents of update_display_data, in order."""
    comms: list[Message] = field(default_factory=list)
    """comm_open, comm_msg and comm_close messages in full, in order (``header.msg_type`` tells them apart)."""
    error: Error | None = None
    idle: bool = False
    replied: bool = False

    @property
    def done(self) -> bool:
        return self.idle and self.replied

    @property
    def result(self) -> str:
        """text/plain of the last display; what the last expression of a cell shows."""
        return str(self.displays[-1]["data"].get("text/plain", "")) if self.displays else ""

    def add(self, message: Message) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "stream":
            setattr(self, content["name"], getattr(self, content["name"]) + content["text"])
        elif kind in ("display_data", "execute_result"):
            self.displays.append(content)
        elif kind == "update_display_data":
            self.updates.append(content)
            for shown in self.displays:
                if _display_id(shown) == _display_id(content):
                    shown.update(content)
        elif kind == "error":
            trace = ANSI.sub("", "\n".join(content["traceback"]))
            self.error = Error(content["ename"], content["evalue"], trace)
        elif kind.startswith("comm_"):
            self.comms.append(message)
        elif kind == "status":
            self.idle = content["execution_state"] == "idle"


def _display_id(content: Message) -> object:
    return content.get("transient", {}).get("display_id", object())


class Kernel:
    """An IPython kernel of this interpreter; leave the ``with`` block and it is gone with all its processes."""

    def __init__(self, folder: Path, *, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
        self._manager = KernelManager(connection_file=str(folder / "kernel.json"), kernel_name="python3")
        self._options = {
            "cwd": str(cwd),
            "env": {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "PYTHONPATH": str(ROOT), **(env or {})},
        }
        self._cells: dict[str, Cell] = {}
        self.pid = -1

    def __enter__(self) -> Kernel:
        self._manager.start_kernel(**self._options)
        self.client = self._manager.blocking_client()
        self.client.start_channels()
        try:
            self.client.wait_for_ready(timeout=60)
            self.pid = int(self.run("import os; os.getpid()").result)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the kernel and every process that descends from it."""
        family = self.family()
        self.client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        for process in family:
            if process.is_running():
                process.kill()
        psutil.wait_procs(family, timeout=10)
        self._manager.cleanup_resources()
        for context in (self.client.context, self._manager.context):
            context.destroy(linger=0)

    def family(self) -> list[psutil.Process]:
        """The processes that descend from the kernel; the ranks of a launch are among them."""
        if not psutil.pid_exists(self.pid):
            return []
        return psutil.Process(self.pid).children(recursive=True)

    def start(self, code: str) -> Cell:
        """Send a cell and return at once."""
        id = self.client.execute(code, allow_stdin=True, stop_on_error=False)
        cell = self._cells[id] = Cell(id)
        return cell

    def run(self, code: str, timeout: float = 60) -> Cell:
        """Send a cell and wait for its end, error or not."""
        return self.finish(self.start(code), timeout)

    def finish(self, cell: Cell, timeout: float = 60) -> Cell:
        return self.wait_for(cell, lambda cell: cell.done, timeout)

    def wait_for(self, cell: Cell, condition: Callable[[Cell], object], timeout: float = 60) -> Cell:
        """Read what the kernel sends until ``condition`` holds for the cell."""
        deadline = time.monotonic() + timeout
        while not condition(cell):
            if cell.done:
                raise AssertionError(f"the cell ended before it came true: {cell}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {timeout} s: {cell}")
            self._read()
        return cell

    def _read(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._deliver(self.client.get_iopub_msg(timeout=0.1))
        with contextlib.suppress(queue.Empty):
            reply = self.client.get_shell_msg(timeout=0)
            cell = self._cells.get(reply["parent_header"].get("msg_id"))
            if cell and reply["header"]["msg_type"] == "execute_reply":
                assert reply["content"]["status"] != "aborted", cell
                cell.replied = True

    def _deliver(self, message: Message) -> None:
        cell = self._cells.get(message["parent_header"].get("msg_id"))
        if cell:
            cell.add(message)

    def interrupt(self) -> None:
        """What the front end's interrupt button does: SIGINT to the kernel's process group."""
        self._manager.interrupt_kernel()

    def send_comm(self, comm_id: str, data: Mapping[str, object]) -> None:
        """Send what a widget in the page would: {"method": "custom", "content": {"event": "click"}} is a click."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": dict(data)})
        self.client.shell_channel.send(message)


def run_cells(cells: Sequence[str], *, timeout: float = 60, env: Mapping[str, str] | None = None) -> list[Cell]:
    """Run these cells in one new kernel; a cell that fails does not keep the next from running."""
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder, Kernel(Path(folder), env=env) as kernel:
        return [kernel.run(code, timeout) for code in cells]
