"""Starts functions on ranks, and keeps what an accelerator reports."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import torch._dynamo  # noqa: F401 - DDP imports it: once here rather than in every rank

from notebook_accel import notebook_launcher
from notebook_accel.contracts.reporting import Bar, Boundary, Value

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
    """What ``body(*args)`` returns on each of ``size`` ranks; ``launcher`` goes to notebook_launcher."""
    with tempfile.TemporaryDirectory() as folder:
        run = notebook_launcher(body, args, size, device="cpu", ui="none", timeout=DEADLINE, run_dir=folder, **launcher)
        return run.returns
