"""The mean over the ranks against a plain calculation."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest

from notebook_accel.progress.series import Series

Log = list[tuple[int, int, float]]


def series_of(log: Log) -> Series:
    series = Series("loss")
    for time, (rank, step, value) in enumerate(log):
        series.add(rank, step, value, float(time))
    return series


def brute_force(log: Log) -> list[tuple[int, float, float, float]]:
    """Step, mean, low and high of every (step, k-th time), in order of first arrival."""
    entries: dict[tuple[int, int], list[float]] = {}
    seen: dict[tuple[int, int], int] = defaultdict(int)
    for rank, step, value in log:
        key = (step, seen[rank, step])
        seen[rank, step] += 1
        entries.setdefault(key, []).append(value)
    return [(step, sum(v) / len(v), min(v), max(v)) for (step, _), v in entries.items()]


def lockstep(rng: random.Random) -> Log:
    return [(rank, step, rng.random()) for step in range(50) for rank in range(4)]


def epochs(rng: random.Random) -> Log:
    return [(rank, batch, rng.random()) for _ in range(6) for batch in range(9) for rank in range(3)]


def run_ahead(rng: random.Random) -> Log:
    """Ranks at their own speeds, through two epochs."""
    left = {rank: [batch for _ in range(2) for batch in range(20)] for rank in range(3)}
    log: Log = []
    while any(left.values()):
        rank = rng.choice([rank for rank, steps in left.items() if steps])
        log.append((rank, left[rank].pop(0), rng.random()))
    return log


def thinned(rng: random.Random) -> Log:
    """Rank 0 logs every step, rank 1 every third, rank 2 from the middle on."""
    log: Log = []
    for step in range(60):
        log.append((0, step, rng.random()))
        if step % 3 == 0:
            log.append((1, step, rng.random()))
        if step > 30:
            log.append((2, step, rng.random()))
    return log


def chaos(rng: random.Random) -> Log:
    return [(rng.randrange(4), rng.randrange(-3, 8), rng.random()) for _ in range(400)]


@pytest.mark.parametrize("make", [lockstep, epochs, run_ahead, thinned, chaos])
@pytest.mark.parametrize("seed", range(8))
def test_mean_is_that_of_a_plain_calculation(make: object, seed: int) -> None:
    log = make(random.Random(seed))  # type: ignore[operator]
    series, expected = series_of(log), brute_force(log)
    assert series.steps == [step for step, *_ in expected]
    assert series.values == pytest.approx([mean for _, mean, *_ in expected])
    columns = series.columns()
    assert list(columns.low) == [low for *_, low, _ in expected]
    assert list(columns.high) == [high for *_, high in expected]


@pytest.mark.parametrize("seed", range(4))
def test_every_value_of_every_rank_is_kept_in_order(seed: int) -> None:
    log = chaos(random.Random(seed))
    series = series_of(log)
    for rank, samples in series.by_rank.items():
        assert list(zip(samples.steps, samples.values, strict=True)) == [(s, v) for r, s, v in log if r == rank]
    assert sum(map(len, series.by_rank.values())) == len(log)


def test_values_that_are_no_numbers_are_kept() -> None:
    series = series_of([(0, 0, math.nan), (1, 0, 2.0), (0, 1, math.inf), (1, 1, 1.0)])
    assert math.isnan(series.values[0])
    assert series.values[1] == math.inf
    assert math.isnan(series.by_rank[0].values[0])
    columns = series.columns()
    assert (columns.low[0], columns.high[0]) == (2.0, 2.0), "the spread is that of the numbers"


@pytest.mark.parametrize(
    ("steps", "expected"), [([0, 1, 2], False), ([0, 0, 1], False), ([0, 1, 0], True), ([5], False), ([], False)]
)
def test_went_back(steps: list[int], expected: bool) -> None:
    assert series_of([(0, step, 1.0) for step in steps]).went_back is expected


def test_ranks_that_interleave_did_not_go_back() -> None:
    assert not series_of([(0, 0, 1.0), (0, 2, 1.0), (1, 1, 1.0), (1, 3, 1.0)]).went_back


def test_a_reader_cannot_change_it() -> None:
    series = series_of([(0, 0, 1.0)])
    series.steps.append(7)
    series.values.append(7.0)
    with pytest.raises(TypeError):
        series.by_rank[1] = series.by_rank[0]  # type: ignore[index]
    assert (len(series), series.steps, series.values) == (1, [0], [1.0])


def test_repr_is_short() -> None:
    assert repr(series_of([(0, 0, 1.0), (1, 0, 3.0)])) == "<loss: 1 values, 2 ranks, last 2>"
    assert repr(Series("loss")) == "<loss: 0 values, 0 ranks>"


def test_memory_is_that_of_the_numbers() -> None:
    import tracemalloc

    tracemalloc.start()
    series = Series("loss")
    for step in range(20_000):
        for rank in range(4):
            series.add(rank, step, 0.5, 0.0)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 40 * 80_000, "less than 40 bytes a value"
