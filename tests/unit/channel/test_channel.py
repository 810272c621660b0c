"""A rank's end and the kernel's end of the channel, over a real socket."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notebook_accel.channel.address import Address
from notebook_accel.channel.reader import Reader
from notebook_accel.channel.tail import Tail, last_lines
from notebook_accel.channel.writer import Writer
from notebook_accel.contracts.events import Event, Finished, Halted, Heartbeat, Hello, Metrics, Progress, Status, encode


@contextmanager
def both_ends() -> Iterator[tuple[Reader, Writer, Callable[..., list[Event]]]]:
    address = Address()
    reader = Reader(address)
    lost = threading.Event()
    writer = Writer(address.path, 3, on_lost=lost.set)
    got: list[Event] = []

    def read_until(condition: Callable[[list[Event]], Any]) -> list[Event]:
        deadline = time.monotonic() + 30
        while not condition(got):
            assert time.monotonic() < deadline, got
            got.extend(event for _, event in reader.poll(0.05))
        return got

    try:
        yield reader, writer, read_until
    finally:
        reader.close()
        address.close()
        assert lost.wait(10), "a rank must learn that its kernel is gone"
        writer._thread.join()
        writer._socket.close()


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_rank_says_hello_first_and_lives() -> None:
    with both_ends() as (_, _, read_until):
        events = read_until(lambda got: of(Heartbeat, got))
        assert isinstance(events[0], Hello)
        assert (events[0].rank, events[0].pid) == (3, os.getpid())
        assert of(Heartbeat, events)[0].memory > 0


def test_every_record_arrives_in_order_and_before_the_last_word() -> None:
    with both_ends() as (_, writer, read_until):
        for step in range(5000):
            writer.log(step, {"loss": step / 2})
        thread = threading.Thread(target=writer.deliver, args=(Finished(3, 0.0),))
        thread.start()
        events = read_until(lambda got: of(Finished, got))
        thread.join()
        records = of(Metrics, events)
        assert [(r.step, r.values["loss"]) for r in records] == [(i, i / 2) for i in range(5000)]
        assert isinstance(events[-1], Finished)


class Late:
    """A number that is on its way from a device."""

    def __init__(self) -> None:
        self.here = threading.Event()

    def ready(self) -> bool:
        return self.here.is_set()

    def value(self) -> float:
        self.here.set()
        return 7.0


def test_a_value_on_its_way_holds_back_what_was_logged_after_it_and_nothing_else() -> None:
    late = Late()
    with both_ends() as (_, writer, read_until):
        writer.log(0, {"loss": late})
        writer.log(1, {"loss": 1.0})
        writer.status("compiling")
        assert not of(Metrics, read_until(lambda got: of(Status, got)))
        late.here.set()
        records = of(Metrics, read_until(lambda got: len(of(Metrics, got)) == 2))
        assert [record.values for record in records] == [{"loss": 7.0}, {"loss": 1.0}]


def test_the_last_word_waits_for_values_on_their_way() -> None:
    late = Late()
    with both_ends() as (_, writer, read_until):
        writer.log(0, {"loss": late})
        writer.deliver(Finished(3, 0.0))
        assert [r.values for r in of(Metrics, read_until(lambda got: of(Finished, got)))] == [{"loss": 7.0}]


def test_a_bar_is_sent_when_it_moved_and_at_its_end() -> None:
    with both_ends() as (_, writer, read_until):
        bar = writer.bar("epoch 1", 100_000, "batch")
        for i in range(100_001):
            bar.n = i
        bar.done = True
        bars = of(Progress, read_until(lambda got: any(p.done for p in of(Progress, got))))
        assert len(bars) < 100, "bars are looked at a few times a second, not at every step"
        assert (bars[-1].n, bars[-1].total, bars[-1].description, bars[-1].unit) == (
            100_000,
            100_000,
            "epoch 1",
            "batch",
        )


def test_orders_reach_the_boundary() -> None:
    with both_ends() as (reader, writer, read_until):
        read_until(lambda got: of(Hello, got))
        reader.send(3, "halt")
        deadline = time.monotonic() + 30
        while not writer.boundary.requested and time.monotonic() < deadline:
            time.sleep(0.005)
        writer.boundary.step = 12
        outcome: list[BaseException] = []

        def reach() -> None:
            try:
                writer.boundary.reach()
            except KeyboardInterrupt as error:
                outcome.append(error)

        thread = threading.Thread(target=reach)
        thread.start()
        assert of(Halted, read_until(lambda got: of(Halted, got)))[0].step == 12
        reader.send(3, "stop", step=12)
        thread.join(30)
        assert len(outcome) == 1


@pytest.mark.parametrize("pieces", [1, 2, 7, 1000])
def test_lines_may_arrive_in_pieces(pieces: int) -> None:
    address = Address()
    reader = Reader(address)
    sent: list[Event] = [
        Hello(0, 1.0, 1),
        Metrics(0, 2.0, 1, {"ä": float("inf"), "s": "text"}),
        Status(0, 3.0, "«done»"),
    ]
    data = b"".join(map(encode, sent)) + b"not json\n" + encode(Finished(0, 4.0))
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(address.path)
    got: list[Event] = []
    for start in range(0, len(data), max(1, len(data) // pieces)):
        peer.sendall(data[start : start + max(1, len(data) // pieces)])
        got += [event for _, event in reader.poll(0.2)]
    while not of(Finished, got):
        got += [event for _, event in reader.poll(0.2)]
    peer.close()
    reader.close()
    address.close()
    assert got == [*sent, Finished(0, 4.0)]
    assert reader.garbled == 1


def test_the_folder_of_the_socket_goes_with_it() -> None:
    address = Address()
    folder = Path(address.path).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    address.close()
    assert not folder.exists()


def test_a_log_is_followed_without_cutting_characters(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(str(path))
    assert tail.look() == ("", 0)
    data = "größer\n".encode()
    text = ""
    with open(path, "wb", buffering=0) as file:
        for i in range(len(data)):
            file.write(data[i : i + 1])
            text += tail.look()[0]
    assert text == "größer\n"
    assert tail.rest() == ("", 0)


def test_a_log_that_grows_too_fast_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3_000_000 + b"\nend\n")
    tail = Tail(str(path))
    text, skipped = tail.look()
    assert text.endswith("end\n")
    assert len(text) + skipped == 3_000_005


def test_of_a_failed_rank_the_log_is_shown_up_to_the_traceback(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\nTraceback\n")
    assert Tail(str(path)).rest(7) == ("before\n", 0)
    assert last_lines(str(path), 1) == ("Traceback",)
    assert last_lines(str(tmp_path / "none"), 3) == ()


def test_what_a_killed_kernel_left_is_removed_and_what_lives_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    alive, killed = Address(), Address()
    killed.listener.close()  # as the system does for a process that is gone; the folder stays
    for address in (alive, killed):
        os.utime(Path(address.path).parent, (0, 0))
    new = Address()
    assert Path(alive.path).exists()
    assert not Path(killed.path).parent.exists()
    for address in (alive, new):
        address.close()
