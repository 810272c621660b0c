"""The loader that ``prepare`` returns: one rank's batches, on its device, with a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch.utils.data import DataLoader

from ..contracts.reporting import Bar
from .rebuild import RankLoader

ShowBar = Callable[[str | None, int, float | None], Bar]
"""Gives the bar of one iteration from a description (None: choose one), the epoch from 0 and the number of batches."""


class LoadersInUse:
    """The prepared loaders that are being iterated; the innermost is the active one."""

    def __init__(self) -> None:
        self._loaders: list[PreparedLoader] = []

    @property
    def active(self) -> PreparedLoader | None:
        """The loader of the innermost running loop, or None."""
        return self._loaders[-1] if self._loaders else None

    @property
    def at_end(self) -> bool:
        """Whether the active loader has given its last batch."""
        return bool(self._loaders) and self._loaders[-1].end_of_dataloader

    def begin(self, loader: PreparedLoader) -> None:
        self._loaders.append(loader)

    def end(self, loader: PreparedLoader) -> None:
        # The innermost entry of this loader; a loader may be iterated inside its own loop.
        for index in range(len(self._loaders) - 1, -1, -1):
            if self._loaders[index] is loader:
                del self._loaders[index]
                return


class PreparedLoader(DataLoader[Any]):
    """A rank's view of a DataLoader, which it stands for: attributes it does not have are those of ``base``.

    It fetches one batch ahead, so that ``end_of_dataloader`` is true while the last batch is in use.
    """

    def __init__(  # the base class is not initialised: ``base`` is the loader that loads
        self, loader: RankLoader, place: Callable[[Any], Any] | None, in_use: LoadersInUse, show: ShowBar
    ) -> None:
        self.base = loader.base
        self.batch_size = loader.batch_size
        self.total_batch_size = loader.total_batch_size
        self.end_of_dataloader = False
        self.epoch = 0
        self._loader = loader
        self._place = place or _as_it_is
        self._in_use = in_use
        self._show = show

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # torch names its own iterator class
        return self.iterate()

    def iterate(self, description: str | None = None, total: float | None = None) -> Iterator[Any]:
        """One epoch of batches under a bar of this description (None: one is chosen) and total in batches."""
        epoch, self.epoch = self.epoch, self.epoch + 1
        self._loader.begin_epoch(epoch)
        bar = self._show(description, epoch, self._length() if total is None else total)
        self.end_of_dataloader = False
        self._in_use.begin(self)
        try:
            yield from self._look_ahead(bar)
        finally:
            self._in_use.end(self)
            bar.done = True

    def _look_ahead(self, bar: Bar) -> Iterator[Any]:
        place = self._place
        batch: Any = None
        fetched = 0
        for following in self.base:
            if fetched:
                yield batch
                bar.n = fetched
            batch = place(following)
            fetched += 1
        if fetched:
            self.end_of_dataloader = True
            yield batch
            bar.n = fetched

    @property
    def remainder(self) -> int:
        """The real samples of the last turn over all ranks, once it is reached (0: all of them, -1: not known)."""
        return self._loader.remainder

    @property
    def total_dataset_length(self) -> int:
        """The number of samples in the dataset."""
        return len(self.base.dataset)  # type: ignore[arg-type]  # a TypeError where there is no length is right

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration that of epoch ``epoch`` (from 0), which decides its permutation."""
        self.epoch = epoch

    @contextmanager
    def evened(self, even: bool) -> Iterator[None]:
        """In the block the ranks' batches are made even, or not."""
        counted = self._loader.counted
        if counted is None:
            yield
            return
        before = counted.share
        counted.share = replace(before, even=even)
        try:
            yield
        finally:
            counted.share = before

    def __len__(self) -> int:
        return len(self.base)

    def _length(self) -> int | None:
        try:
            return len(self.base)
        except TypeError:
            return None

    @property
    def multiprocessing_context(self) -> Any:
        return self.base.multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self.base.multiprocessing_context = context

    def __getattr__(self, name: str) -> Any:
        if name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)


def _as_it_is(batch: Any) -> Any:
    return batch
