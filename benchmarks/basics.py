"""What a launch, a prepared loop and a logged number cost, against the same done by hand and by HF Accelerate.

Contestants take turns within one run; medians and ratios are printed, absolute times only for orientation:

    python benchmarks/basics.py [rounds]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from notebook_accel import notebook_launcher
from notebook_accel.launch.store import MeetingPoint

DATA = TensorDataset(torch.randn(8000, 16), torch.randn(8000, 1))


def first_all_reduce() -> float:
    """In a rank: the time at which its first all-reduce is done."""
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    return time.time()


def by_bare_fork(rank: int, folder: str, environ: dict[str, str]) -> None:
    os.environ.update(environ, RANK=str(rank), WORLD_SIZE="2")
    Path(folder, str(rank)).write_text(str(first_all_reduce()))


def launch_bare() -> tuple[float, float]:
    meeting_point = MeetingPoint()
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        mp.start_processes(by_bare_fork, (folder, meeting_point.as_env()), 2, start_method="fork")
        end = time.time()
        reduced = max(float(Path(folder, str(rank)).read_text()) for rank in range(2))
    meeting_point.close()
    return reduced - start, end - start


def launch_ours() -> tuple[float, float]:
    start = time.time()
    run = notebook_launcher(first_all_reduce, num_processes=2, device="cpu", ui="none")
    return max(run.returns) - start, time.time() - start


def launch_ours_to_a_ddp_step() -> tuple[float, float]:
    def step(accelerator: Any) -> float:
        model = accelerator.prepare(nn.Linear(4, 4))
        accelerator.backward(model(torch.ones(2, 4)).sum())
        return time.time()

    start = time.time()
    run = notebook_launcher(step, num_processes=2, device="cpu", ui="none")
    return max(run.returns) - start, time.time() - start


def train(prepare: Callable[..., Iterable[Any]], backward: Callable[[torch.Tensor], Any]) -> float:
    """Seconds for an epoch of a tiny MLP, 500 steps."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    model, optimizer, loader = prepare(
        model, torch.optim.SGD(model.parameters(), 0.01), DataLoader(DATA, batch_size=16)
    )
    start = time.perf_counter()
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    return time.perf_counter() - start


def loops(accelerator: Any, rounds: int) -> dict[str, list[float]]:
    """In a rank: the same epoch by hand, by our Accelerator and by Accelerate's, in turn; and what a log call costs."""
    from accelerate import Accelerator

    theirs, found = Accelerator(), {"hand": [], "ours": [], "accelerate": [], "log": []}  # type: ignore[var-annotated]
    loss = torch.tensor(0.5)
    for _ in range(rounds):
        found["hand"].append(train(lambda *objects: objects, torch.Tensor.backward))
        found["ours"].append(train(accelerator.prepare, accelerator.backward))
        found["accelerate"].append(train(theirs.prepare, theirs.backward))
        start = time.perf_counter()
        for _ in range(5000):
            accelerator.log({"loss": loss})
        found["log"].append((time.perf_counter() - start) / 5000)
    return found


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    launch_ours_to_a_ddp_step()  # what the first launch of a process loads once
    turns = [(launch_bare(), launch_ours(), launch_ours_to_a_ddp_step()) for _ in range(rounds)]
    bare, ours = [turn[0] for turn in turns], [turn[1] for turn in turns]
    for index, what in enumerate(("first all-reduce", "return")):
        a, b = median(turn[index] for turn in ours), median(turn[index] for turn in bare)
        print(f"launch of 2 ranks to {what:17} {a * 1e3:6.0f} ms   bare fork {b * 1e3:6.0f} ms   ratio {a / b:.2f}")
    print(f"launch of 2 ranks to a DDP step       {median(turn[2][0] for turn in turns) * 1e3:6.0f} ms")
    found = notebook_launcher(loops, (rounds,), 1, device="cpu", ui="none").value
    hand = median(found["hand"])
    for name in ("ours", "accelerate"):
        ratio = median(a / b for a, b in zip(found[name], found["hand"], strict=True))
        times = f"{median(found[name]) * 1e3:6.0f} ms   by hand {hand * 1e3:6.0f} ms"
        print(f"500 steps of a tiny MLP, {name:10} {times}   ratio {ratio:.2f}")
    print(f"accelerator.log({{'loss': tensor}})      {median(found['log']) * 1e6:6.1f} µs a call")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
