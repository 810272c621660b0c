"""Loaders made again for ranks, seen without starting any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from parity.starting import run_ranks
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from notebook_accel.contracts.reporting import Bar
from notebook_accel.data.loader import LoadersInUse, PreparedLoader
from notebook_accel.data.rebuild import Sharing, rebuild


def numbers(batch: list[int]) -> list[int]:
    return list(batch)


class Numbers(Dataset[Any]):
    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.epochs: list[int] = []

    def __getitem__(self, index: Any) -> Any:
        return index

    def __len__(self) -> int:
        return self.samples

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)


class Stream(IterableDataset[int]):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.samples))


class Screen:
    def __init__(self) -> None:
        self.bars: list[Bar] = []

    def show(self, description: str | None, epoch: int, total: float | None) -> Bar:
        self.bars.append(Bar(0, description or f"epoch {epoch}", total, "batch"))
        return self.bars[-1]


def prepared(
    loader: DataLoader[Any], rank: int = 0, size: int = 1, seed: int | None = 7, **sharing: Any
) -> PreparedLoader:
    agree = None if seed is None else lambda _generator: seed
    return PreparedLoader(rebuild(loader, Sharing(rank, size, **sharing), agree), None, LoadersInUse(), Screen().show)


def dealt(loader: DataLoader[Any], size: int, **sharing: Any) -> list[list[list[int]]]:
    return [list(prepared(loader, rank, size, **sharing)) for rank in range(size)]


def loader_of(samples: int, batch_size: int = 2, **options: Any) -> DataLoader[Any]:
    return DataLoader(Numbers(samples), batch_size=batch_size, collate_fn=numbers, **options)


def test_two_ranks_take_turns() -> None:
    assert dealt(loader_of(7), 2) == [[[0, 1], [4, 5]], [[2, 3], [6, 0]]]


def test_split_batches() -> None:
    assert dealt(loader_of(6, 4), 2, split=True) == [[[0, 1], [4, 5]], [[2, 3], [0, 1]]]


def test_split_batches_needs_a_batch_size_that_divides() -> None:
    with pytest.raises(ValueError, match=r"cut into 2 equal parts.*is 3\. Use a batch size that is a multiple of 2"):
        prepared(loader_of(6, 3), 0, 2, split=True)


def test_sizes() -> None:
    own = prepared(loader_of(8), 0, 2)
    assert (own.batch_size, own.total_batch_size, own.total_dataset_length, len(own)) == (2, 4, 8, 2)
    split = prepared(loader_of(8, 4), 0, 2, split=True)
    assert (split.batch_size, split.total_batch_size, len(split)) == (2, 4, 2)


@pytest.mark.parametrize(
    "sampler",
    [
        RandomSampler(range(10)),
        RandomSampler(range(10), replacement=True, num_samples=13),
        SubsetRandomSampler([1, 3, 5, 7, 9]),
        WeightedRandomSampler([1.0] * 10, 9),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_ranks_share_one_permutation_and_draw_another_each_epoch(sampler: Any) -> None:
    loaders = [prepared(loader_of(10, sampler=sampler), rank, 2) for rank in range(2)]
    epochs = []
    for _ in range(3):
        torch.manual_seed(torch.seed())  # ranks need not have one global state
        turns = [batch for pair in zip(*loaders, strict=True) for batch in pair]
        epochs.append([sample for batch in turns for sample in batch][: len(sampler)])
    assert len({tuple(epoch) for epoch in epochs}) == 3
    expected = torch.Generator()
    for number, epoch in enumerate(epochs):
        own = type(sampler).__new__(type(sampler))
        own.__dict__.update(sampler.__dict__, generator=expected.manual_seed(7 + number))
        assert epoch == list(own)
    assert sampler.generator is None


def test_set_epoch_chooses_the_permutation() -> None:
    loader = prepared(loader_of(10, shuffle=True))
    first, second = list(loader), list(loader)
    loader.set_epoch(0)
    assert [list(loader), list(loader)] == [first, second]


def test_an_epoch_that_is_left_early_counts() -> None:
    loader = prepared(loader_of(10, shuffle=True))
    next(iter(loader))
    second = list(loader)
    loader.set_epoch(1)
    assert list(loader) == second


def test_the_dataset_and_samplers_hear_of_the_epoch() -> None:
    loader = loader_of(4)
    own = prepared(loader)
    list(own)
    list(own)
    own.set_epoch(8)
    list(own)
    assert loader.dataset.epochs == [0, 1, 8]  # type: ignore[attr-defined]  # Numbers has it


def test_alone_and_without_a_seed_torch_draws_as_ever() -> None:
    plain = loader_of(10, shuffle=True)
    torch.manual_seed(3)
    expected = [list(plain), torch.rand(1).item(), list(plain)]
    torch.manual_seed(3)
    own = prepared(plain, seed=None)
    assert [list(own), torch.rand(1).item(), list(own)] == expected


def test_one_rank_sees_the_order_that_several_share() -> None:
    alone = list(prepared(loader_of(8, shuffle=True)))
    both = dealt(loader_of(8, shuffle=True), 2)
    assert alone == [both[0][0], both[1][0], both[0][1], both[1][1]]


def test_one_rank_is_not_given_a_filled_up_batch() -> None:
    assert [len(batch) for batch in prepared(loader_of(5, shuffle=True))] == [2, 2, 1]


def test_streams() -> None:
    loader: DataLoader[Any] = DataLoader(Stream(7), batch_size=2, collate_fn=numbers)
    assert dealt(loader, 2) == [[[0, 1], [4, 5]], [[2, 3], [6, 0]]]
    own = prepared(loader, 1, 2)
    list(own)
    assert own.remainder == 3
    with pytest.raises(TypeError):
        len(own)


def test_a_stream_that_batches_itself() -> None:
    loader: DataLoader[Any] = DataLoader(Stream(3), batch_size=None)
    assert dealt(loader, 2) == [[0, 2], [1, 0]]
    own = prepared(loader, 0, 2)
    list(own)
    assert own.remainder == -1


def test_batch_samplers_of_the_user() -> None:
    loader: DataLoader[Any] = DataLoader(Numbers(9), batch_sampler=[[0, 1, 2], [3], [4, 5]], collate_fn=numbers)
    assert dealt(loader, 2) == [[[0, 1, 2], [4, 5]], [[3], [0, 1, 2]]]
    assert dealt(loader, 2, even=False) == [[[0, 1, 2], [4, 5]], [[3]]]


def test_a_batch_sampler_as_sampler() -> None:
    sampler = BatchSampler(SequentialSampler(range(6)), 2, False)
    loader: DataLoader[Any] = DataLoader(Numbers(6), sampler=sampler, batch_size=None)
    assert dealt(loader, 2) == [[[0, 1], [4, 5]], [[2, 3], [0, 1]]]


def test_a_distributed_sampler_is_not_shared_again() -> None:
    data = Numbers(6)
    loaders = [
        DataLoader(data, batch_size=2, sampler=DistributedSampler(data, 2, rank, shuffle=False), collate_fn=numbers)
        for rank in range(2)
    ]
    own = [list(prepared(loader, rank, 2)) for rank, loader in enumerate(loaders)]
    assert own == [[[0, 2], [4]], [[1, 3], [5]]]


def test_options_are_kept() -> None:
    generator = torch.Generator()
    options: dict[str, Any] = {
        "num_workers": 1,
        "timeout": 3,
        "worker_init_fn": print,
        "multiprocessing_context": "fork",
        "generator": generator,
        "prefetch_factor": 3,
        "persistent_workers": True,
    }
    own = prepared(loader_of(6, **options), 0, 2)
    assert own.collate_fn is numbers
    assert own.generator is generator
    assert own.multiprocessing_context.get_start_method() == "fork"
    for name in ("num_workers", "timeout", "worker_init_fn", "prefetch_factor", "persistent_workers"):
        assert getattr(own, name) == options[name], name


def with_workers() -> tuple[list[Any], int]:
    own = prepared(loader_of(9, shuffle=True, num_workers=2, persistent_workers=True), 1, 2)
    return [list(own), list(own)], own.remainder


def test_worker_processes_load_the_same_batches() -> None:
    plain = prepared(loader_of(9, shuffle=True), 1, 2)
    expected = [list(plain), list(plain)]
    # In a process of its own: torch leaves a signal handler behind.
    assert run_ranks(with_workers, 1) == [(expected, 1)]


def test_it_stands_for_a_data_loader() -> None:
    loader = loader_of(4)
    own = prepared(loader)
    assert isinstance(own, DataLoader)
    assert own.dataset is loader.dataset
    assert own.drop_last is False
    with pytest.raises(AttributeError):
        _ = own.nothing_of_the_kind


def test_the_last_batch_is_known() -> None:
    in_use = LoadersInUse()
    own = PreparedLoader(rebuild(loader_of(6), Sharing(0, 1), None), None, in_use, Screen().show)
    assert [in_use.at_end for _ in own] == [False, False, True]
    assert not in_use.at_end
    assert in_use.active is None


def test_loops_inside_one_another() -> None:
    in_use = LoadersInUse()
    outer = PreparedLoader(rebuild(loader_of(4), Sharing(0, 1), None), None, in_use, Screen().show)
    inner = PreparedLoader(rebuild(loader_of(2), Sharing(0, 1), None), None, in_use, Screen().show)
    seen = []
    for _ in outer:
        seen.append((in_use.active is outer, in_use.at_end))
        for _ in inner:
            seen.append((in_use.active is inner, in_use.at_end))
        seen.append((in_use.active is outer, in_use.at_end))
    assert seen == [(True, False), (True, True), (True, False), (True, True), (True, True), (True, True)]


def test_a_loop_that_is_left_is_over() -> None:
    in_use, screen = LoadersInUse(), Screen()
    own = PreparedLoader(rebuild(loader_of(8), Sharing(0, 1), None), None, in_use, screen.show)
    for _ in own:
        break
    assert in_use.active is None
    assert [(bar.n, bar.total, bar.done) for bar in screen.bars] == [(0, 4, True)]


def test_the_bar_counts_batches_that_are_done() -> None:
    screen = Screen()
    own = PreparedLoader(rebuild(loader_of(6), Sharing(0, 1), None), None, LoadersInUse(), screen.show)
    assert [screen.bars[-1].n for _ in own] == [0, 1, 2]
    assert (screen.bars[0].n, screen.bars[0].total, screen.bars[0].done) == (3, 3, True)


def test_nothing_to_load() -> None:
    assert list(prepared(DataLoader(Stream(0), batch_size=2))) == []


def test_a_batch_is_placed_before_the_next_is_used() -> None:
    placed: list[Any] = []

    def place(batch: Any) -> Any:
        placed.append(batch)
        return [-sample for sample in batch]

    own = PreparedLoader(rebuild(loader_of(4), Sharing(0, 1), None), place, LoadersInUse(), Screen().show)
    iterator = iter(own)
    assert next(iterator) == [0, -1]
    assert placed == [[0, 1]]
    assert next(iterator) == [-2, -3]
