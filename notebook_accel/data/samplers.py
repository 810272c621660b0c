"""Samplers and streams that give one rank its share."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from torch.utils.data import BatchSampler, IterableDataset, Sampler

from .sharding import Share, deal_batches, deal_stream, dealt_length, split_batches

UNKNOWN = -1


class BatchShare(BatchSampler):
    """One rank's batches of indices.

    ``remainder`` is known once the samples are exhausted: how many of the last turn's are real, over all ranks
    (0: all of them).
    """

    def __init__(self, batches: Iterable[list[Any]], batch_size: int | None, share: Share, split: bool = False) -> None:
        self.batch_sampler = batches
        self.sampler: Any = getattr(batches, "sampler", batches)
        self.batch_size = batch_size  # type: ignore[assignment]  # None: batches of any length
        self.drop_last = share.drop_last
        self.split = split
        self.share = share
        self.remainder = UNKNOWN

    def __iter__(self) -> Iterator[list[Any]]:
        self.remainder = UNKNOWN
        self.remainder = yield from self._deal()

    def _deal(self) -> Generator[list[Any], None, int]:
        if self.split:
            return split_batches(self.batch_sampler, self.batch_size, self.share)
        return deal_batches(self.batch_sampler, self.batch_size, self.share)

    def __len__(self) -> int:
        batches = len(self.batch_sampler)  # type: ignore[arg-type]  # a TypeError where there is no length is right
        return batches if self.split else dealt_length(batches, self.share)


class SampleShare(Sampler[Any]):
    """One rank's indices, one at a time, for a loader that does not batch."""

    def __init__(self, samples: Iterable[Any], share: Share) -> None:
        self.sampler = samples
        self.share = share
        self.remainder = UNKNOWN

    def __iter__(self) -> Iterator[Any]:
        self.remainder = yield from deal_stream(self.sampler, 1, self.share)

    def __len__(self) -> int:
        return dealt_length(len(self.sampler), self.share)  # type: ignore[arg-type]  # as above


class StreamShare(IterableDataset[Any]):
    """One rank's samples of an iterable dataset.

    Every rank reads the whole stream and keeps its part, so the stream has to be the same on all of them.
    ``remainder`` stays unknown where worker processes do the reading, each with a copy of this object.
    """

    def __init__(self, dataset: Iterable[Any], batch_size: int, share: Share) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.share = share
        self.remainder = UNKNOWN

    def __iter__(self) -> Iterator[Any]:
        self.remainder = UNKNOWN
        self.remainder = yield from deal_stream(self.dataset, self.batch_size, self.share)

    def __getattr__(self, name: str) -> Any:
        if name == "dataset":
            raise AttributeError(name)
        return getattr(self.dataset, name)


class SizedStreamShare(StreamShare):
    """A stream of a dataset that knows its length."""

    def __len__(self) -> int:
        samples = len(self.dataset)  # type: ignore[arg-type]  # made only for one with a length
        whole, rest = divmod(samples, self.batch_size)
        batches = whole if self.share.drop_last or rest == 0 else whole + 1
        return dealt_length(batches, self.share) * self.batch_size
