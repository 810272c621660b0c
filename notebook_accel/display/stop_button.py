"""The Stop button of a cell that blocks.

A click is a message that a kernel puts behind the running cell. We look for it where it waits, and leave it there:
nothing is dispatched, so the order of queued cells stays as it is. Where the kernel works differently the button
still works by its handler (JupyterLab runs handlers beside the cell when the kernel can), or after the cell.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

DELIMITER = b"<IDS|MSG>"
TOOLTIP = "Stop all ranks at the same step; the cell then returns what there is"
BLIND_TOOLTIP = "May wait for the cell to end: the notebook's own interrupt button stops the run at once"


class Peek(Protocol):
    """A way to see the messages that wait for the kernel."""

    def look(self) -> None:
        """Look now."""

    def close(self) -> None:
        """Leave everything as it was found."""


class StopButton:
    """Counts the presses of a button widget."""

    def __init__(self, button: Any, kernel: Any = None) -> None:
        self._clicks = 0
        self._button = button
        self._peeked: set[str] = set()
        self._peek: Peek | None = None
        button.on_click(self._clicked)
        button.tooltip = TOOLTIP
        with contextlib.suppress(Exception):
            self._peek = make_peek(kernel if kernel is not None else running_kernel(), self._see)
        if self._peek is None:
            button.tooltip = BLIND_TOOLTIP

    @property
    def presses(self) -> int:
        """How often the button was pressed."""
        # One click may be seen both ways.
        return max(self._clicks, len(self._peeked))

    def look(self) -> None:
        """Look for presses that wait behind the running cell."""
        if self._peek is None:
            return
        try:
            self._peek.look()
        except Exception:  # another kernel than the ones we know
            self.close()
            self._button.tooltip = BLIND_TOOLTIP

    def close(self) -> None:
        """Stop looking."""
        peek, self._peek = self._peek, None
        if peek is not None:
            with contextlib.suppress(Exception):
                peek.close()

    def _clicked(self, _: Any) -> None:
        self._clicks += 1

    def _see(self, frames: Sequence[Any]) -> None:
        message = click_in(frames, self._button.model_id)
        if message:
            self._peeked.add(message)


def running_kernel() -> Any:
    """The kernel of this process, None if it is not one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None)


def click_in(frames: Sequence[Any], comm_id: str) -> str:
    """The id of the message in ``frames`` if it is a click on the button of ``comm_id``, else ""."""
    try:
        parts = [frame if isinstance(frame, bytes) else bytes(frame.bytes) for frame in frames]
        start = parts.index(DELIMITER)
        if comm_id.encode() not in parts[start + 5]:
            return ""
        header, content = json.loads(parts[start + 2]), json.loads(parts[start + 5])
        clicked = content["data"]["content"]["event"] == "click"
        right = header["msg_type"] == "comm_msg" and content["comm_id"] == comm_id
        return str(header["msg_id"]) if clicked and right else ""
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def make_peek(kernel: Any, see: Callable[[Sequence[Any]], None]) -> Peek | None:
    """The way that fits the kernel, None if there is none."""
    if getattr(kernel, "shell_channel_thread", None) is not None:
        return ChannelTap(kernel, see)
    return QueuePeek(kernel, see) if hasattr(kernel, "msg_queue") else None


class QueuePeek:
    """ipykernel 6: messages are read by the main thread, which is ours while the cell blocks, into a queue."""

    def __init__(self, kernel: Any, see: Callable[[Sequence[Any]], None]) -> None:
        self._kernel = kernel
        self._see = see
        self._seen = -1

    def look(self) -> None:
        """Let the socket's messages into the queue and look at the new ones."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._kernel.shell_stream.flush()
        for number, _, args in list(self._kernel.msg_queue._queue):
            if number > self._seen:
                self._seen = number
                self._see(args[0])

    def close(self) -> None:
        """Nothing was changed."""


class ChannelTap:
    """ipykernel 7: a thread of the kernel reads the messages; we look at each as it passes by."""

    def __init__(self, kernel: Any, see: Callable[[Sequence[Any]], None]) -> None:
        self._kernel = kernel
        self._see = see
        self._open = True
        kernel.shell_channel_thread.io_loop.add_callback(self._install)

    def _install(self) -> None:
        if self._open:
            self._kernel.shell_stream.on_recv(self._tap, copy=False)

    async def _tap(self, frames: Sequence[Any]) -> None:
        with contextlib.suppress(Exception):
            self._see(frames)
        await self._kernel.shell_channel_thread_main(frames)

    def look(self) -> None:
        """Every message is seen as it comes."""

    def close(self) -> None:
        """Give the kernel its own callback back."""
        self._open = False
        kernel = self._kernel
        kernel.shell_channel_thread.io_loop.add_callback(
            lambda: kernel.shell_stream.on_recv(kernel.shell_channel_thread_main, copy=False)
        )
