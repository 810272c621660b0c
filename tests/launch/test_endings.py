"""Every way a run can end other than well, and that nothing is left behind (the guards of conftest see to that)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from notebook_accel import RankDied, RankError, RunTimeout, last_run, notebook_launcher


class OwnError(Exception):
    def __init__(self, code: int, *, place: str) -> None:
        super().__init__(f"code {code} at {place}")
        self.code = code


def wait_until(condition, timeout=30.0):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


@pytest.mark.parametrize("start_method", ["fork", "template"])
def test_an_exception_keeps_its_type_and_says_where(start_method: str) -> None:
    def train(accelerator):
        accelerator.log({"loss": 1.0})
        if accelerator.process_index == 1:
            raise ValueError("bad batch")
        accelerator.wait_for_everyone()

    with pytest.raises(ValueError, match="bad batch") as raised:
        notebook_launcher(train, num_processes=3, start_method=start_method, ui="none")
    error = raised.value
    assert isinstance(error, RankError)
    assert (error.rank, error.failure.type_name) == (1, "ValueError")
    assert error.failure.frames[-1].function == "train"
    assert error.failure.frames[-1].source == 'raise ValueError("bad batch")'
    run = last_run()
    assert run is not None
    assert run.status == "failed"
    assert run.error is error
    assert "Traceback" in run.logs(1)
    assert list(run.history["loss"].by_rank[0].values) == [1.0]


def test_an_exception_of_the_notebooks_own_class() -> None:
    def train():
        raise OwnError(3, place="here")

    with pytest.raises(OwnError, match="code 3 at here"):
        notebook_launcher(train, num_processes=1, ui="none")


def test_the_cause_is_named_not_its_consequence() -> None:
    def train():
        dist.init_process_group()
        if dist.get_rank() == 1:
            time.sleep(0.2)
            raise KeyError("the cause")
        dist.all_reduce(torch.ones(1))

    with pytest.raises(KeyError) as raised:
        notebook_launcher(train, num_processes=2, ui="none")
    assert raised.value.rank == 1


@pytest.mark.parametrize(
    ("die", "words"),
    [
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL.*(?s:.)*memory"),
        (lambda: ctypes.string_at(0), "SIGSEGV"),
    ],
)
def test_a_rank_that_dies_without_a_word(die, words: str) -> None:
    def train(accelerator):
        print("last words", flush=True)
        if accelerator.process_index == 1:
            die()
        accelerator.wait_for_everyone()

    with pytest.raises(RankDied, match=words) as raised:
        notebook_launcher(train, num_processes=2, ui="none")
    assert raised.value.rank == 1
    assert "last words" in str(raised.value)


@pytest.mark.parametrize("code", [None, 0])
def test_sys_exit_without_an_error_is_a_return(code: int | None) -> None:
    assert notebook_launcher(lambda: sys.exit(code), num_processes=1, ui="none").status == "finished"


def test_sys_exit_with_an_error_is_a_failure() -> None:
    with pytest.raises(RankError, match="2") as raised:
        notebook_launcher(lambda: sys.exit(2), num_processes=1, ui="none")
    assert not isinstance(raised.value, SystemExit)
    assert raised.value.failure.type_name == "SystemExit"


def test_children_of_a_rank_end_with_it(tmp_path: Path) -> None:
    def train():
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
        (tmp_path / "pid").write_text(str(pid))
        raise ValueError("leaves a child")

    with pytest.raises(ValueError, match="leaves a child"):
        notebook_launcher(train, num_processes=1, ui="none")
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_data_loader_workers_may_be_started_in_a_rank() -> None:
    def train(accelerator):
        data = torch.utils.data.TensorDataset(torch.arange(8.0))
        loader = accelerator.prepare(torch.utils.data.DataLoader(data, batch_size=2, num_workers=1))
        return sum(float(batch.sum()) for (batch,) in loader)

    run = notebook_launcher(train, num_processes=2, ui="none")
    assert sum(run.returns) == 28.0


def steps_until_stopped(accelerator, path):
    model = torch.nn.Linear(2, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
    done = 0
    try:
        while True:
            accelerator.backward(model(torch.ones(1, 2)).sum())
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            accelerator.log({"loss": done})
            if done == 5:
                Path(f"{path}-{accelerator.process_index}").touch()
    except KeyboardInterrupt:
        return done


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_all_ranks_stop_at_the_same_step_and_what_they_return_comes_back(tmp_path: Path, processes: int) -> None:
    path = tmp_path / "going"
    run = notebook_launcher(steps_until_stopped, (str(path),), processes, blocking=False, ui="none")
    wait_until(lambda: all(Path(f"{path}-{rank}").exists() for rank in range(processes)))
    assert run.status == "running"
    run.stop(30)
    assert run.status == "stopped"
    assert len(set(run.returns)) == 1
    assert run.value >= 5
    assert list(run.history["loss"].by_rank[0].values)[-1] in (run.value, run.value - 1)


def test_a_function_without_steps_is_interrupted_where_it_stands(tmp_path: Path) -> None:
    def wait_for_ever():
        (tmp_path / "here").touch()
        try:
            time.sleep(1000)
        except KeyboardInterrupt:
            return "left"

    run = notebook_launcher(wait_for_ever, num_processes=1, blocking=False, ui="none")
    wait_until((tmp_path / "here").exists)
    run.stop(30)
    assert (run.status, run.value) == ("stopped", "left")


def test_who_does_not_listen_is_ended_by_the_second_word(tmp_path: Path) -> None:
    def deaf(accelerator):
        (tmp_path / f"here-{accelerator.process_index}").touch()
        while True:
            try:
                time.sleep(1000)
            except KeyboardInterrupt:
                continue

    run = notebook_launcher(deaf, num_processes=2, blocking=False, ui="none")
    wait_until(lambda: (tmp_path / "here-0").exists() and (tmp_path / "here-1").exists())
    with pytest.raises(TimeoutError, match="again"):
        run.stop(0.2)
    run.stop(10)
    assert run.status == "stopped"


@pytest.mark.parametrize("wait", [time.sleep, lambda seconds: signal.pause()], ids=["sleep", "pause"])
def test_an_interrupt_stops_the_run_and_halts_the_cell(tmp_path: Path, wait) -> None:
    def train():
        (tmp_path / "here").touch()
        wait(1000)

    def interrupt():
        wait_until((tmp_path / "here").exists)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="last_run"):
        notebook_launcher(train, num_processes=1, ui="none")
    thread.join()
    run = last_run()
    assert run is not None
    assert run.status == "stopped"
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_run_that_takes_too_long() -> None:
    with pytest.raises(RunTimeout, match=r"timeout=0\.5 s") as raised:
        notebook_launcher(lambda: time.sleep(1000), num_processes=1, timeout=0.5, ui="none")
    assert isinstance(raised.value, TimeoutError)


def test_all_ranks_are_started_again_after_a_failure(tmp_path: Path) -> None:
    def train(accelerator):
        (tmp_path / f"try-{accelerator.process_index}-{time.time_ns()}").touch()
        accelerator.wait_for_everyone()
        tries = len(list(tmp_path.glob("try-0-*")))
        if tries < 3 and accelerator.process_index == 1:
            raise ValueError(f"try {tries}")
        accelerator.wait_for_everyone()
        return tries

    run = notebook_launcher(train, num_processes=2, max_restarts=2, ui="none")
    assert (run.status, run.returns) == ("finished", [3, 3])
    for path in tmp_path.glob("try-*"):
        path.unlink()
    with pytest.raises(ValueError, match="try 2"):
        notebook_launcher(train, num_processes=2, max_restarts=1, ui="none")


def test_a_failing_setup_starts_nothing() -> None:
    known = last_run()

    def setup():
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        notebook_launcher(print, num_processes=2, setup=setup, ui="none")
    assert last_run() is known


def test_a_group_destroyed_by_its_own_function_does_not_hang_the_rank() -> None:
    """ProcessGroupGloo's destructor can wait for ever for a thread that needs the GIL it holds."""

    def train():
        dist.init_process_group()
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        model(torch.ones(1, 4)).sum().backward()
        dist.destroy_process_group()
        return dist.get_rank() if dist.is_initialized() else "destroyed"

    for _ in range(5):
        run = notebook_launcher(train, num_processes=2, ui="none", timeout=60)
        assert run.returns == ["destroyed"] * 2


def test_a_group_can_be_made_twice_in_one_rank() -> None:
    def train():
        sums = []
        for _ in range(2):
            dist.init_process_group()
            total = torch.ones(1)
            dist.all_reduce(total)
            sums.append(float(total))
            dist.destroy_process_group()
        return sums

    assert notebook_launcher(train, num_processes=2, ui="none", timeout=60).returns == [[2.0, 2.0]] * 2


@pytest.mark.parametrize(("leave", "status"), [(lambda: None, "finished"), (lambda: os._exit(3), "failed")])
def test_a_kernel_that_ignores_its_children_still_sees_the_end_of_a_rank(leave, status: str) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run = notebook_launcher(leave, num_processes=1, start_method="fork", blocking=False, ui="none")
        with contextlib.suppress(RankDied):
            run.wait(60)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert run.status == status


def test_ranks_leave_together(tmp_path: Path) -> None:
    """A rank that returns early keeps its connections until the others have returned, too."""

    def train(accelerator):
        if accelerator.process_index == 1:
            (tmp_path / "pid").write_text(str(os.getpid()))
            return None
        wait_until((tmp_path / "pid").exists)
        time.sleep(0.3)
        return psutil.Process(int((tmp_path / "pid").read_text())).status() != psutil.STATUS_ZOMBIE

    assert notebook_launcher(train, num_processes=2, ui="none").value is True


def test_what_ddp_imports_is_loaded_before_the_ranks_are_forked() -> None:
    def look(accelerator):
        return "torch._dynamo" in sys.modules

    assert notebook_launcher(look, num_processes=2, start_method="fork", ui="none").returns == [True, True]
    assert notebook_launcher(look, num_processes=2, start_method="template", ui="none").returns == [True, True]
