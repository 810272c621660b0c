"""The guards of conftest.py find what they are for."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading

import guards
import pytest
from guards import Belongings


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "PATIENCE", 0.05)


def test_nothing_is_no_leak() -> None:
    assert Belongings.now().leaks() == []


def test_process() -> None:
    before = Belongings.now()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        leaks = before.leaks()
        process.kill()
    assert any(f"process {process.pid} is still there" in line for line in leaks)


def test_thread() -> None:
    before = Belongings.now()
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="forgotten")
    thread.start()
    leaks = before.leaks()
    end.set()
    thread.join()
    assert leaks == ["thread 'forgotten' is still running"]


def test_file_descriptor() -> None:
    before = Belongings.now()
    with socket.socket() as left_open:
        (leak,) = before.leaks()
        assert leak.startswith(f"file descriptor {left_open.fileno()} is still open: socket:")
    assert before.leaks() == []


def test_environment_variable() -> None:
    before = Belongings.now()
    os.environ["LEFT_BEHIND"] = "1"
    leaks = before.leaks()
    before.restore()
    assert leaks == ["environment variable LEFT_BEHIND was None, is '1'"]
    assert "LEFT_BEHIND" not in os.environ


def test_signal_handler() -> None:
    before = Belongings.now()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    leaks = before.leaks()
    before.restore()
    assert len(leaks) == 1
    assert leaks[0].startswith("handler of SIGUSR1 was")
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_the_template_may_stay_but_not_what_it_started() -> None:
    before = Belongings.now()
    context = multiprocessing.get_context("forkserver")
    end = context.Event()
    process = context.Process(target=end.wait)
    process.start()
    pid = process.pid
    leaks = before.leaks()
    end.set()
    process.join()
    process.close()
    del end
    started = [line for line in leaks if line.startswith("process")]
    assert [line.split()[1] for line in started] == [str(pid)]
    assert not [line for line in before.leaks() if line.startswith("process")]
