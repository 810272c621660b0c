"""The arithmetic of sharing, against HF Accelerate's and by its own laws."""

from __future__ import annotations

from itertools import product

import pytest
from accelerate.data_loader import BatchSamplerShard, IterableDatasetShard
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, IterableDataset, SequentialSampler

from notebook_accel.data.samplers import BatchShare, SampleShare, SizedStreamShare
from notebook_accel.data.sharding import Share, deal_stream, split_range

SIZES = range(19)
BATCHES = (1, 2, 3, 4, 6)
WORLDS = (2, 3, 4)


def batches_of(samples: int, batch_size: int, drop_last: bool = False) -> BatchSampler:
    return BatchSampler(SequentialSampler(range(samples)), batch_size, drop_last)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_are_those_of_accelerate(split: bool, even: bool, drop_last: bool) -> None:
    for samples, batch_size, size in product(SIZES, BATCHES, WORLDS):
        if split and batch_size % size:
            continue
        for rank in range(size):
            theirs = BatchSamplerShard(batches_of(samples, batch_size, drop_last), size, rank, split, even)
            share = Share(rank, size, even, drop_last)
            ours = BatchShare(batches_of(samples, batch_size, drop_last), batch_size, share, split)
            case = (samples, batch_size, size, rank)
            assert list(ours) == [list(batch) for batch in theirs], case
            assert len(ours) == len(theirs), case


@pytest.mark.parametrize("even", [False, True])
def test_batches_of_any_length_are_those_of_accelerate(even: bool) -> None:
    for count, size in product(range(9), WORLDS):
        batches = [list(range(i * 10, i * 10 + 1 + i % 3)) for i in range(count)]
        for rank in range(size):
            theirs = BatchSamplerShard(batches, size, rank, False, even)  # type: ignore[arg-type]  # a list will do
            ours = BatchShare(batches, None, Share(rank, size, even))
            assert list(ours) == list(theirs), (count, size, rank)


class Stream(IterableDataset[int]):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(range(self.samples))

    def __len__(self) -> int:
        return self.samples


@pytest.mark.parametrize("drop_last", [False, True])
def test_streams_are_those_of_accelerate(drop_last: bool) -> None:
    for samples, batch_size, size in product(SIZES, BATCHES, WORLDS):
        for rank in range(size):
            theirs = IterableDatasetShard(Stream(samples), batch_size, drop_last, size, rank)
            ours = SizedStreamShare(Stream(samples), batch_size, Share(rank, size, True, drop_last))
            assert list(ours) == list(theirs), (samples, batch_size, size, rank)
            assert len(ours) == len(theirs), (samples, batch_size, size, rank)


@given(
    samples=st.integers(0, 60),
    batch_size=st.integers(1, 7),
    size=st.integers(1, 6),
    even=st.booleans(),
    split=st.booleans(),
)
def test_the_remainder_cuts_the_gathered_samples_to_the_data(
    samples: int, batch_size: int, size: int, even: bool, split: bool
) -> None:
    own = batch_size * size if split else batch_size
    shares = [BatchShare(batches_of(samples, own), own, Share(rank, size, even), split) for rank in range(size)]
    columns = [list(share) for share in shares]
    steps = max(len(column) for column in columns)
    gathered: list[int] = []
    for step in range(steps):
        joined = [sample for column in columns if step < len(column) for sample in column[step]]
        last = step == steps - 1 and shares[0].remainder > 0
        gathered += joined[: shares[0].remainder] if last else joined
    assert gathered == list(range(samples))
    assert len({share.remainder for share in shares}) == 1
    if even:
        assert len({tuple(map(len, column)) for column in columns}) == 1


def test_a_short_batch_in_the_middle_loses_nothing() -> None:
    batches = [[0, 1], [2], [3, 4], [5, 6], [7, 8], [9]]
    dealt = [list(BatchShare(batches, 2, Share(rank, 2, even=False))) for rank in range(2)]
    assert dealt == [[[0, 1], [3, 4], [7, 8]], [[2], [5, 6], [9]]]


def test_single_samples_are_dealt_in_turns() -> None:
    assert [list(SampleShare(range(5), Share(rank, 2))) for rank in range(2)] == [[0, 2, 4], [1, 3, 0]]


def test_a_stream_is_not_read_ahead_of_its_turn() -> None:
    read: list[int] = []

    def source():  # type: ignore[no-untyped-def]
        for i in range(100):
            read.append(i)
            yield i

    own = deal_stream(source(), 2, Share(1, 2))
    assert [next(own), next(own)] == [2, 3]
    assert read == [0, 1, 2, 3]


@given(length=st.integers(0, 100), size=st.integers(1, 9))
def test_ranges_cover_everything_once(length: int, size: int) -> None:
    ranges = [split_range(length, rank, size) for rank in range(size)]
    assert [i for part in ranges for i in part] == list(range(length))
    lengths = [len(part) for part in ranges]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1
