"""Starts functions on ranks the plainest way there is: fork, environment, gloo."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # DDP imports it: once here rather than in every rank
import torch.distributed as dist

from notebook_accel.contracts.reporting import Bar, Boundary, Value
from notebook_accel.contracts.world import RankContext, World, current_context

DEADLINE = 120.0


class Recorder:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.boundary = Boundary()
        self.memory: Callable[[], tuple[int, int]] | None = None
        self.bars: list[Bar] = []
        self.records: list[tuple[int, dict[str, Value]]] = []

    def bar(self, description: str, total: float | None, unit: str = "it") -> Bar:
        self.bars.append(Bar(len(self.bars), description, total, unit))
        return self.bars[-1]

    def log(self, step: int, values: Mapping[str, Value]) -> None:
        self.records.append((step, dict(values)))

    def status(self, text: str) -> None:
        return None

    def display(self, data: Mapping[str, str], display_id: str | None = None) -> None:
        return None


def run_ranks(body: Callable[..., Any], size: int, *args: Any, **launcher: Any) -> list[Any]:
    """What ``body(*args)`` returns on each of ``size`` ranks; ``launcher`` fills a RankContext, which it then has."""
    with tempfile.TemporaryDirectory() as folder:
        context = get_context("fork")
        ports = context.SimpleQueue()
        ranks = [
            context.Process(target=_rank, args=(rank, size, ports, folder, body, args, launcher))
            for rank in range(size)
        ]
        for process in ranks:
            process.start()
        # Only now: the store's thread takes a lock of the resolver, which a rank forked meanwhile would wait for.
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=False)
        try:
            for _ in ranks:
                ports.put(store.port)
            _wait(ranks, Path(folder))
        finally:
            ports.close()
            for process in ranks:
                process.kill()
                process.join()
                process.close()
        return [torch.load(Path(folder, f"{rank}.pt"), weights_only=False) for rank in range(size)]


def _wait(ranks: list[Any], folder: Path) -> None:
    left = {process.sentinel: rank for rank, process in enumerate(ranks)}
    while left:
        ended = connection.wait(list(left), DEADLINE)
        assert ended, f"ranks {list(left.values())} are still running"
        for sentinel in ended:
            rank = left.pop(sentinel)  # type: ignore[call-overload]  # sentinels are integers here
            ranks[rank].join()
            failure = folder / f"{rank}.txt"
            assert not failure.exists(), f"rank {rank}:\n{failure.read_text()}"
            assert ranks[rank].exitcode == 0, f"rank {rank} ended with {ranks[rank].exitcode}"


def _rank(rank: int, size: int, ports: Any, folder: str, body: Callable[..., Any], args: Any, launcher: Any) -> None:
    world = World(rank, size, rank, size)
    os.environ.update(world.as_env())
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(ports.get()), TORCHELASTIC_USE_AGENT_STORE="True")
    torch.set_num_threads(1)
    if launcher:
        current_context.set(RankContext(world, **launcher))
    code = 1
    try:
        torch.save(body(*args), Path(folder, f"{rank}.pt"))
        if dist.is_initialized():
            dist.barrier()  # a rank that leaves early can break another's connection
        code = 0
    except BaseException:
        Path(folder, f"{rank}.txt").write_text(traceback.format_exc())
    finally:
        os._exit(code)
