"""Seeing a click that waits behind a blocked cell, with kernels that are only played."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from notebook_accel.display.stop_button import BLIND_TOOLTIP, DELIMITER, TOOLTIP, StopButton, click_in, make_peek

Frames = list[bytes]


def message(
    comm_id: str = "abc", event: str = "click", kind: str = "comm_msg", msg_id: str = "m1", before: Sequence[bytes] = ()
) -> Frames:
    content = {"comm_id": comm_id, "data": {"method": "custom", "content": {"event": event}}}
    parts: list[object] = [{"msg_type": kind, "msg_id": msg_id}, {}, {}, content]
    return [*before, DELIMITER, b"signature", *(json.dumps(part).encode() for part in parts)]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (message(), "m1"),
        (message(before=[b"identity", b"more"]), "m1"),
        ([SimpleNamespace(bytes=frame) for frame in message()], "m1"),
        (message(comm_id="other"), ""),
        (message(event="hover"), ""),
        (message(kind="comm_close"), ""),
        (message()[:-1], ""),
        ([], ""),
        ([b"x" * 10] * 9, ""),
        ([DELIMITER, *[b"[1]"] * 5], ""),
        ([DELIMITER, b"s", b"{}", b"{}", b"{}", b'{"comm_id": "abc"}'], ""),
        ([DELIMITER, b"s", b"\xff", b"", b"", b'{"abc": 1}'], ""),
        ([None, 3], ""),
    ],
)
def test_click_in(frames: Any, expected: str) -> None:
    assert click_in(frames, "abc") == expected


def test_no_bytes_make_it_raise() -> None:
    rng = random.Random(0)
    for _ in range(2_000):
        frames = message()
        place = rng.randrange(len(frames))
        frames[place] = bytes(rng.choice([frames[place], b"abc"])[: rng.randrange(60)]) + rng.randbytes(
            rng.randrange(3)
        )
        assert click_in(frames, "abc") in ("", "m1") or place == 2


class Button:
    """A button widget as far as it matters."""

    model_id = "abc"
    tooltip = ""

    def on_click(self, handler: Callable[[Any], None]) -> None:
        self.click = handler


class Kernel6:
    """ipykernel 6: flushing the stream moves the waiting messages into a queue of (number, dispatch, args)."""

    def __init__(self) -> None:
        self.waiting: list[Frames] = []
        self.shell_stream = SimpleNamespace(flush=self._flush)
        self.msg_queue = SimpleNamespace(_queue=[])

    def _flush(self) -> None:
        for frames in self.waiting:
            self.msg_queue._queue.append((len(self.msg_queue._queue), print, (frames,)))
        self.waiting.clear()


class Kernel7:
    """ipykernel 7: a thread with a loop hands each message to a callback."""

    shell_channel_thread: Any

    def __init__(self) -> None:
        self.passed: list[Frames] = []
        self.callback: Any = self.shell_channel_thread_main
        self.shell_channel_thread = SimpleNamespace(io_loop=SimpleNamespace(add_callback=lambda call: call()))
        self.shell_stream = SimpleNamespace(on_recv=self._on_recv)

    def _on_recv(self, callback: Any, copy: bool) -> None:
        assert not copy
        self.callback = callback

    async def shell_channel_thread_main(self, frames: Frames) -> None:
        self.passed.append(frames)

    def receive(self, frames: Frames) -> None:
        asyncio.run(self.callback(frames))


def test_ipykernel_6() -> None:
    kernel, widget = Kernel6(), Button()
    button = StopButton(widget, kernel)
    assert widget.tooltip == TOOLTIP
    kernel.waiting = [message(kind="execute_request"), message(msg_id="m1"), message(comm_id="slider")]
    button.look()
    button.look()
    assert button.presses == 1
    kernel.waiting = [message(msg_id="m2")]
    button.look()
    assert button.presses == 2
    assert len(kernel.msg_queue._queue) == 4, "everything stays where it waits"


def test_ipykernel_6_is_left_alone_by_other_threads() -> None:
    kernel = Kernel6()
    button = StopButton(Button(), kernel)
    kernel.waiting = [message()]
    thread = threading.Thread(target=button.look)
    thread.start()
    thread.join()
    assert len(kernel.waiting) == 1


def test_ipykernel_7() -> None:
    kernel = Kernel7()
    button = StopButton(Button(), kernel)
    kernel.receive(message(comm_id="slider"))
    kernel.receive(message())
    button.look()
    assert button.presses == 1
    assert len(kernel.passed) == 2, "every message goes on to the kernel"
    button.close()
    assert kernel.callback == kernel.shell_channel_thread_main
    kernel.receive(message(msg_id="m2"))
    assert (button.presses, len(kernel.passed)) == (1, 3)


def test_ipykernel_7_gets_its_messages_whatever_happens_to_us() -> None:
    kernel = Kernel7()

    def broken(_: Sequence[Any]) -> None:
        raise RuntimeError

    make_peek(kernel, broken)
    kernel.receive(message())
    assert len(kernel.passed) == 1


def test_a_click_seen_both_ways_counts_once() -> None:
    kernel, widget = Kernel7(), Button()
    button = StopButton(widget, kernel)
    kernel.receive(message())
    widget.click(None)
    assert button.presses == 1
    widget.click(None)
    assert button.presses == 2


@pytest.mark.parametrize("kernel", [None, SimpleNamespace(), SimpleNamespace(shell_channel_thread=object())])
def test_an_unknown_kernel_switches_it_off_and_says_so(kernel: Any) -> None:
    widget = Button()
    button = StopButton(widget, kernel)
    button.look()
    assert widget.tooltip == BLIND_TOOLTIP
    widget.click(None)
    assert button.presses == 1, "the handler still counts"


def test_a_kernel_that_turns_out_to_be_different() -> None:
    widget = Button()
    button = StopButton(widget, SimpleNamespace(msg_queue=object()))
    assert widget.tooltip == TOOLTIP
    button.look()
    assert widget.tooltip == BLIND_TOOLTIP
    button.look()
    button.close()
