"""What comes back from a launch: values, history, logs."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from notebook_accel import (
    Accelerator,
    CallError,
    LaunchError,
    Run,
    SettingsError,
    debug_launcher,
    last_run,
    notebook_launcher,
)


@dataclass
class Answer:
    rank: int
    text: str


@pytest.mark.parametrize("start_method", ["fork", "template", "spawn"])
def test_values_come_back_from_every_rank(start_method: str) -> None:
    offset = 10

    def train(accelerator, factor, *, text):
        total = accelerator.reduce(torch.tensor(float(accelerator.process_index + 1)))
        print("rank", accelerator.process_index)
        return {"answer": Answer(accelerator.process_index * factor + offset, text), "total": total}

    run = notebook_launcher(train, (2,), 2, kwargs={"text": "hi"}, start_method=start_method, ui="none")
    assert run.status == "finished"
    assert [value["answer"] for value in run.returns] == [Answer(10, "hi"), Answer(12, "hi")]
    assert run.value is run[0]
    assert run[1]["total"] == 3.0
    assert run.logs(1).endswith("rank 1\n")
    assert last_run() is run
    with pytest.raises(IndexError, match="ranks 0 to 1"):
        run.logs(2)


def test_a_function_without_the_parameter_builds_its_own_accelerator() -> None:
    def train(text):
        accelerator = Accelerator()
        return accelerator.num_processes, accelerator.mixed_precision, accelerator.gradient_accumulation_steps, text

    run = notebook_launcher(train, ("x",), 2, "bf16", gradient_accumulation_steps=3, ui="none")
    assert run.returns == [(2, "bf16", 3, "x")] * 2


def test_one_rank_is_a_process_of_its_own_too() -> None:
    run = notebook_launcher(lambda: (os.getpid(), dist.is_initialized()), num_processes=1, ui="none")
    pid, initialised = run.value
    assert pid != os.getpid()
    assert not initialised
    assert not psutil.pid_exists(pid)


def test_debug_launcher_takes_the_cpu() -> None:
    run = debug_launcher(lambda accelerator: accelerator.device.type, num_processes=3)
    assert run.returns == ["cpu"] * 3


def test_history_is_exact(tmp_path: Path) -> None:
    def train(accelerator):
        for i in range(500):
            accelerator.log({"loss": torch.tensor(i * 0.5 + accelerator.process_index), "lr": 0.1, "note": f"step {i}"})
        accelerator.log({"accuracy": 0.5}, step=499)

    run = notebook_launcher(train, num_processes=2, ui="none", run_dir=str(tmp_path / "mine"))
    loss = run.history["loss"]
    assert list(loss.by_rank[1].values) == [i * 0.5 + 1 for i in range(500)]
    assert list(loss.values) == [i * 0.5 + 0.5 for i in range(500)]
    assert list(loss.steps) == list(range(500))
    assert list(run.history["accuracy"].steps) == [499]
    records = [record for record in run.history.records() if record.rank == 0]
    assert [record.values.get("note") for record in records] == [f"step {i}" for i in range(500)] + [None]
    assert run.dir.parent == tmp_path / "mine"
    assert run.plot().axes


def test_a_result_of_200_mb_per_rank() -> None:
    run = notebook_launcher(lambda accelerator: torch.full((50_000_000,), float(accelerator.process_index)),
                            num_processes=2, ui="none")  # fmt: skip
    assert [len(value) for value in run.returns] == [50_000_000] * 2
    assert [float(value[-1]) for value in run.returns] == [0.0, 1.0]
    assert not list(run.dir.glob("*.result*"))


def test_a_value_that_cannot_travel_costs_nothing_else() -> None:
    import threading

    run = notebook_launcher(lambda: {"lock": threading.Lock(), "weights": [1.0]}, num_processes=1, ui="none")
    assert run.status == "finished"
    assert run.value["weights"] == [1.0]
    assert "not sent back" in repr(run.value["lock"])


def test_seeds_make_runs_equal_whatever_the_start_method() -> None:
    def draw(accelerator):
        import random

        return float(torch.rand(())), random.random()

    torch.manual_seed(7)
    forked = notebook_launcher(draw, num_processes=1, start_method="fork", ui="none").value
    torch.manual_seed(7)
    fresh = notebook_launcher(draw, num_processes=1, start_method="template", ui="none").value
    seeded = [notebook_launcher(draw, num_processes=2, seed=3, ui="none").returns for _ in range(2)]
    assert forked[0] == fresh[0]
    assert seeded[0] == seeded[1]


def test_setup_runs_once_in_this_process(tmp_path: Path) -> None:
    def setup():
        with open(tmp_path / "downloads", "a") as file:
            file.write(f"{os.getpid()}\n")

    run = notebook_launcher(lambda: (tmp_path / "downloads").read_text(), num_processes=2, setup=setup, ui="none")
    assert run.returns == [f"{os.getpid()}\n"] * 2


def test_only_this_user_and_this_machine_can_reach_a_run() -> None:
    def look():
        dist.init_process_group()
        connections = [c for pid in (os.getpid(), os.getppid()) for c in _listening(pid)]
        folders = list(Path(tempfile.gettempdir()).glob("nba-*"))
        modes = [(stat.S_IMODE(p.stat().st_mode), stat.S_IMODE((p / "channel").stat().st_mode)) for p in folders]
        dist.barrier()
        return connections, modes

    run = notebook_launcher(look, num_processes=2, ui="none")
    for connections, modes in run.returns:
        assert connections
        assert all(address == "127.0.0.1" for address in connections), connections
        assert modes
        assert set(modes) == {(0o700, 0o600)}
    assert stat.S_IMODE(run.dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((run.dir / "rank-0.log").stat().st_mode) == 0o600


def _listening(pid: int) -> list[str]:
    process = psutil.Process(pid)
    connections = process.net_connections if hasattr(process, "net_connections") else process.connections
    return [c.laddr.ip for c in connections(kind="inet") if c.status == psutil.CONN_LISTEN]


def test_a_taken_port_means_nothing() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = notebook_launcher(_rank_and_port, num_processes=2, use_port=str(port), ui="none")
    assert [rank for rank, _ in run.returns] == [0, 1]
    assert all(other != str(port) for _, other in run.returns)


def test_a_free_port_that_was_asked_for_is_used() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run = notebook_launcher(_rank_and_port, num_processes=2, use_port=port, ui="none")
    assert run.returns == [(0, str(port)), (1, str(port))]


def _rank_and_port() -> tuple[int, str]:
    dist.init_process_group()
    dist.all_reduce(torch.ones(1))
    return dist.get_rank(), os.environ["MASTER_PORT"]


def test_the_environment_and_the_process_are_as_before() -> None:
    before = dict(os.environ)
    notebook_launcher(lambda: os.environ.update(MARK="1"), num_processes=2, ui="none")
    assert dict(os.environ) == before
    assert not dist.is_initialized()


def test_a_rank_has_its_share_of_threads_and_its_place_in_the_environment() -> None:
    def look():
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR")
        return (
            torch.get_num_threads(),
            [os.environ[name] for name in names],
            sys.stdin.read(),
            os.getpgrp() == os.getpid(),
        )

    run = notebook_launcher(look, num_processes=2, ui="none")
    cores = len(os.sched_getaffinity(0))
    assert run.returns == [(max(1, cores // 2), [str(r), str(r), "2", "127.0.0.1"], "", True) for r in range(2)]


async def _asynchronous() -> None: ...


def _generator() -> Any:
    yield


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: notebook_launcher("train"), CallError, ["takes a function", "'train'"]),
        (lambda: notebook_launcher(len, 3), CallError, ["tuple", "(3,)"]),
        (lambda: notebook_launcher(lambda accelerator, lr: 0, ()), CallError, ["lr"]),
        (lambda: notebook_launcher(_asynchronous), CallError, ["async function"]),
        (lambda: notebook_launcher(_generator), CallError, ["generator function"]),
        (lambda: notebook_launcher(print, (), 0), SettingsError, ["num_processes"]),
        (lambda: notebook_launcher(print, (), 2, "fp64"), SettingsError, ["mixed_precision='fp64'", "'bf16'"]),
        (lambda: notebook_launcher(print, (), 2, num_nodes=2), SettingsError, ["num_nodes=2", "one machine"]),
        (lambda: notebook_launcher(print, (), 2, master_addr="10.0.0.1"), SettingsError, ["10.0.0.1"]),
        (lambda: notebook_launcher(print, (), 2, device="cuda"), SettingsError, ["no NVIDIA GPU", "'cpu'"]),
    ],
)
def test_bad_calls_are_refused_before_anything_starts(call: Any, error: type[Exception], words: list[str]) -> None:
    known = last_run()
    with pytest.raises(error) as raised:
        call()
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert isinstance(raised.value, LaunchError)
    assert last_run() is known


def test_a_launch_inside_a_rank_is_refused() -> None:
    with pytest.raises(LaunchError, match="inside a rank"):
        notebook_launcher(lambda: notebook_launcher(print, num_processes=1), num_processes=1, ui="none")


def test_what_cannot_be_sent_to_a_fresh_process_is_named() -> None:
    import threading

    guard = threading.Lock()

    def train():
        return guard

    with pytest.raises(LaunchError, match=r"the variable 'guard' \(lock\)"):
        notebook_launcher(train, num_processes=1, start_method="template", ui="none")


def test_a_background_run_can_be_waited_for() -> None:
    run = notebook_launcher(lambda accelerator: accelerator.process_index, num_processes=2, blocking=False, ui="none")
    assert isinstance(run, Run)
    assert run.wait(60) is run
    assert run.returns == [0, 1]
    assert "finished" in repr(run)
    assert "finished" in run._repr_html_()


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = notebook_launcher(lambda: 1, num_processes=1, ui="none")
    assert run.dir.is_relative_to(tmp_path)


def test_old_runs_are_pruned_in_the_cache_only(tmp_path: Path) -> None:
    from notebook_accel.launch.rundir import RunDirectory, default_parent

    for _ in range(55):
        RunDirectory().close()
    assert len(list(default_parent().iterdir())) == 50
    for _ in range(55):
        RunDirectory(str(tmp_path / "own")).close()
    assert len(list((tmp_path / "own").iterdir())) == 55
