"""Bars around the user's own loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch

from ..contracts.reporting import Bar, Reporter
from ..data.loader import PreparedLoader

T = TypeVar("T")


class Tracked(Generic[T]):
    """An iterable under a bar; a new bar each time it is iterated.

    A prepared loader has a bar already, which takes the description and total instead.
    """

    def __init__(self, iterable: Iterable[T], description: str | None, total: float | None, reporter: Reporter) -> None:
        self._iterable = iterable
        self._description = description
        self._total = total
        self._reporter = reporter

    def __iter__(self) -> Iterator[T]:
        if isinstance(self._iterable, PreparedLoader):
            return self._iterable.iterate(self._description, self._total)
        return self._run()

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]  # a TypeError where there is no length is right

    def _run(self) -> Iterator[T]:
        bar = self._reporter.bar(self._description or "loop", self._total or _length(self._iterable))
        try:
            for n, item in enumerate(self._iterable, 1):
                yield item
                bar.n = n
        finally:
            bar.done = True


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None


class LoaderBars:
    """Names the bars of prepared loaders: "epoch 1", "epoch 2", … while training, "eval" otherwise.

    It is training when gradients are recorded and one of the prepared models, if any, is in training mode.
    """

    def __init__(self, reporter: Reporter, models: list[torch.nn.Module]) -> None:
        self._reporter = reporter
        self._models = models

    def show(self, description: str | None, epoch: int, total: float | None) -> Bar:
        """The bar of one iteration of a loader; ``epoch`` counts from 0, ``total`` in batches."""
        return self._reporter.bar(description or self._describe(epoch), total, "batch")

    def _describe(self, epoch: int) -> str:
        training = not self._models or any(model.training for model in self._models)
        return f"epoch {epoch + 1}" if training and torch.is_grad_enabled() else "eval"
