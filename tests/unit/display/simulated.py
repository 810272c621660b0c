"""Runs for the views to show, fed from plain events with a clock that a test sets."""

from __future__ import annotations

import math

from notebook_accel.contracts.errors import Frame, RankFailure
from notebook_accel.contracts.events import (
    Ended,
    Failed,
    Finished,
    Heartbeat,
    Hello,
    Launched,
    Metrics,
    Output,
    Progress,
)
from notebook_accel.progress import RunModel

START = 1_000.0


class Clock:
    """A clock that stands until a test moves it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def started(size: int, clock: Clock, *, name: str = "train") -> RunModel:
    """A run whose ranks are up."""
    model = RunModel(clock=clock)
    model.apply(Launched(clock.now, "run-1", name, size, f"{size} × CPU · gloo · fp32 · fork", ""))
    for rank in range(size):
        model.apply(Hello(rank, clock.now, 100 + rank))
    return model


def step(model: RunModel, clock: Clock, number: int, *, behind: dict[int, int] | None = None) -> None:
    """One training step of a tenth of a second on every rank; ``behind`` says by how many steps a rank lags."""
    clock.now += 0.1
    for rank in model.ranks:
        own = max(0, number - (behind or {}).get(rank, 0))
        model.apply(Progress(rank, clock.now, 1, "epoch 1 of 3", own, 200))
        model.apply(Metrics(rank, clock.now, own, {"loss": math.exp(-own / 50) + 0.01 * rank}))
        model.apply(Heartbeat(rank, clock.now, own, 9 * 2**30, 15 * 2**30))


def running(size: int = 2, steps: int = 40, *, behind: dict[int, int] | None = None) -> tuple[RunModel, Clock]:
    """A run that is under way."""
    clock = Clock()
    model = started(size, clock)
    for number in range(1, steps + 1):
        step(model, clock, number, behind=behind)
    for rank in model.ranks:
        model.apply(Output(rank, clock.now, "loaded 10 samples\n"))
    return model, clock


def finished(size: int = 2, steps: int = 40) -> RunModel:
    """A run that came to its end."""
    model, clock = running(size, steps)
    for rank in model.ranks:
        model.apply(Progress(rank, clock.now, 1, "epoch 1 of 3", 200, 200, done=True))
        model.apply(Finished(rank, clock.now))
    model.apply(Ended(clock.now, "finished"))
    return model


def failed(size: int = 4) -> RunModel:
    """A run in which rank 1 failed and took the others with it."""
    model, clock = running(size)
    frames = (Frame("cell [4]", 18, "train", "loss = f(x)"), Frame("/home/me/losses.py", 88, "f", "return x / 0"))
    cause = RankFailure(1, clock.now, 40, "ValueError", "bad batch", frames, hint="Use drop_last=True.")
    model.apply(Failed(1, clock.now, cause))
    for rank in model.ranks:
        if rank != 1:
            lost = RankFailure(rank, clock.now + 1, 40, "RuntimeError", "Connection closed", consequence=True)
            model.apply(Failed(rank, clock.now + 1, lost))
    model.apply(Ended(clock.now + 1, "failed", "rank 1 failed"))
    return model
