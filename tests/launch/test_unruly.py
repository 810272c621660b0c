"""Training functions that do what they should not: the verdict is still theirs, and nothing waits for them."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tqdm.auto import tqdm

from notebook_accel import RankDied, RankError, RunTimeout, last_run, notebook_launcher
from notebook_accel.contracts.world import current_context
from notebook_accel.launch.results import Unreturnable


def close_stdout() -> None:
    sys.stdout.close()


def close_descriptors() -> None:
    os.close(1)
    os.close(2)


def lose_streams() -> None:
    vars(sys).update(stdout=None, stderr=None)


@pytest.mark.parametrize("tamper", [close_stdout, close_descriptors, lose_streams])
def test_an_error_after_the_streams_were_closed(tamper: Any) -> None:
    def train():
        tamper()
        raise KeyError("the real one")

    with pytest.raises(KeyError, match="the real one"):
        notebook_launcher(train, num_processes=1, ui="none")
    run = last_run()
    assert run is not None
    assert "KeyError: 'the real one'" in run.logs(0)


class NotToBeReduced(Exception):
    def __reduce__(self) -> Any:
        raise SystemExit(3)


class NotToBePrinted(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("kind", [NotToBeReduced, NotToBePrinted])
def test_an_exception_that_resists_being_told(kind: type[Exception]) -> None:
    def train():
        raise kind("x")

    with pytest.raises(kind) as raised:
        notebook_launcher(train, num_processes=1, ui="none")
    assert isinstance(raised.value, RankError)
    assert raised.value.failure.type_name == kind.__name__


class SlowToTell(Exception):
    def __str__(self) -> str:
        self.args[0].touch()
        time.sleep(1)
        return "slow to tell"


def test_an_interrupt_does_not_turn_a_failure_into_a_death(tmp_path: Path) -> None:
    def train():
        raise SlowToTell(tmp_path / "told")

    run = notebook_launcher(train, num_processes=1, blocking=False, ui="none")
    deadline = time.monotonic() + 30
    while not (tmp_path / "told").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    run.stop(30)
    with pytest.raises(SlowToTell, match="slow to tell"):
        run.wait()


class Restless(Exception):
    def __str__(self) -> str:
        os.kill(os.getpid(), signal.SIGCHLD)
        return "the first error"


def test_a_handler_that_raises_when_a_child_dies_does_not_hide_the_error() -> None:
    """torch's own does so when a DataLoader's worker dies, in the middle of whatever the rank does."""

    def train():
        def fail(number, frame):
            raise RuntimeError("a worker died")

        signal.signal(signal.SIGCHLD, fail)
        raise Restless

    with pytest.raises(Restless, match="the first error"):
        notebook_launcher(train, num_processes=1, ui="none")


def test_what_kills_a_rank_is_shown_in_lines_of_bearable_length() -> None:
    def train():
        print("x" * 50_000, end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RankDied) as raised:
        notebook_launcher(train, num_processes=1, ui="none")
    assert len(str(raised.value)) < 2_000


class Fragile:
    def __reduce__(self) -> Any:
        return eval, ("1 / 0",)


class Refusing:
    def __reduce__(self) -> Any:
        raise OSError("I stay here")


def test_a_value_that_cannot_be_rebuilt_costs_nothing_else() -> None:
    def train(accelerator):
        return Fragile() if accelerator.process_index else "fine"

    run = notebook_launcher(train, num_processes=2, ui="none")
    assert (run.status, run.value) == ("finished", "fine")
    assert isinstance(run[1], Unreturnable)
    assert "ZeroDivisionError" in repr(run[1])


def test_a_value_that_refuses_to_be_pickled_costs_nothing_else() -> None:
    run = notebook_launcher(lambda: [Refusing(), 1], num_processes=1, ui="none")
    assert run.status == "finished"
    assert "I stay here" in repr(run.value[0])
    assert run.value[1] == 1


def test_bars_counted_in_numbers_of_other_libraries() -> None:
    def train():
        with tqdm(total=np.int64(6)) as bar:
            bar.update(np.int64(2))
            bar.update(torch.tensor(1))
        return "done"

    assert notebook_launcher(train, num_processes=1, ui="none").value == "done"


class Broken:
    def ready(self) -> bool:
        raise RuntimeError("CUDA error: device-side assert triggered")

    def value(self) -> float:
        raise RuntimeError("CUDA error: device-side assert triggered")


def test_values_on_a_device_that_has_failed_do_not_hide_the_error() -> None:
    """MARKED SEAM: no GPU here; after a device-side assertion every call on the device raises."""

    def train():
        current_context.get().reporter.log(0, {"loss": Broken()})
        raise ValueError("the cause")

    with pytest.raises(ValueError, match="the cause"):
        notebook_launcher(train, num_processes=1, ui="none")


def test_a_keyboard_interrupt_of_one_rank_stops_the_others(tmp_path: Path) -> None:
    def train(accelerator):
        if accelerator.process_index == 0:
            raise KeyboardInterrupt
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(1000)
        return "left"

    run = notebook_launcher(train, num_processes=2, ui="none")
    assert (run.status, run.returns) == ("stopped", [None, "left"])


def test_a_rank_that_waits_for_one_that_has_returned_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_accel.launch.worker._LEAVE_TOGETHER_S", 0.2)

    def train(accelerator):
        if accelerator.process_index == 1:
            accelerator.wait_for_everyone()

    with pytest.raises(RankError, match="rank 0, whose function had returned"):
        notebook_launcher(train, num_processes=2, start_method="fork", ui="none")


class Samples(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        if index == 5:
            raise ValueError("sample 5 is damaged")
        return index


def test_an_error_in_a_data_loaders_worker_names_the_users_line() -> None:
    def train():
        for _ in torch.utils.data.DataLoader(Samples(), num_workers=1):
            pass

    with pytest.raises(ValueError, match="sample 5 is damaged") as raised:
        notebook_launcher(train, num_processes=1, ui="none")
    assert [frame.function for frame in raised.value.failure.frames] == ["train", "__getitem__"]
    assert raised.value.failure.message == "sample 5 is damaged (in DataLoader worker process 0)"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_the_errors_of_a_group_are_named() -> None:
    def inner():
        raise TypeError("two")

    def train():
        try:
            inner()
        except TypeError as error:
            raise ExceptionGroup("several", [error, ValueError("three")]) from None

    with pytest.raises(ExceptionGroup, match="several") as raised:
        notebook_launcher(train, num_processes=1, ui="none")
    assert "TypeError: two" in str(raised.value)
    assert "ValueError: three" in str(raised.value)
    assert raised.value.failure.frames[-1].function == "inner"


def test_the_timeout_is_that_of_the_whole_run_not_of_each_start(tmp_path: Path) -> None:
    def train():
        with open(tmp_path / "starts", "a") as file:
            file.write("x")
        time.sleep(0.3)
        raise ValueError("again")

    # An error while it is being stopped is not hidden by the timeout.
    with pytest.raises((RunTimeout, ValueError)):
        notebook_launcher(train, num_processes=1, timeout=1, max_restarts=20, ui="none")
    assert len((tmp_path / "starts").read_text()) < 10


def test_a_restart_forgets_what_the_last_one_returned_and_shows_no_output_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def train(accelerator):
        first = not (tmp_path / "tried").exists()
        accelerator.wait_for_everyone()
        if accelerator.process_index == 0:
            print("first words" if first else "later words", flush=True)
            return "stale" if first else None
        if first:
            while '"finished"' not in (last_run().dir / "events.jsonl").read_text():
                time.sleep(0.01)
            (tmp_path / "tried").touch()
            raise ValueError("again")
        return "fresh"

    run = notebook_launcher(train, num_processes=2, max_restarts=1, ui="text")
    assert run.returns == [None, "fresh"]
    shown = capfd.readouterr().out
    assert (shown.count("first words"), shown.count("later words")) == (1, 1)


def test_a_stop_from_before_the_ranks_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The screen takes its time to open, and its user presses the kernel's interrupt."""
    monkeypatch.setattr(
        "notebook_accel.launch.steady.SteadyScreen.open", lambda self, model: os.kill(os.getpid(), signal.SIGINT)
    )
    with pytest.raises(KeyboardInterrupt):
        notebook_launcher((tmp_path / "ran").touch, num_processes=1, ui="none")
    run = last_run()
    assert run is not None
    assert run.status == "stopped"
    assert not (tmp_path / "ran").exists()


def test_a_run_that_goes_on_is_not_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    from notebook_accel.launch.rundir import RunDirectory

    numbers = itertools.count()
    monkeypatch.setattr("secrets.token_hex", lambda size: f"{next(numbers):06}")
    going = RunDirectory()
    for _ in range(55):
        RunDirectory().close()
    assert going.path.exists()
    going.close()
    RunDirectory().close()
    assert not going.path.exists()


def test_a_background_launch_returns_when_its_ranks_have_been_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank forked while the next cell imports something would wait for ever for that module's lock."""
    import multiprocessing.context as contexts

    forking = threading.Event()
    start = contexts.ForkProcess.start

    def slow(self):
        forking.wait(0.3)
        start(self)

    monkeypatch.setattr(contexts.ForkProcess, "start", slow)
    run = notebook_launcher(time.sleep, (0.2,), 2, blocking=False, start_method="fork", ui="none")
    assert not forking.is_set()
    import multiprocessing

    assert len(multiprocessing.active_children()) == 2
    forking.set()
    assert run.wait(60).status == "finished"
