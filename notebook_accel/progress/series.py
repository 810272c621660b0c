"""One metric: what every rank logged under a name, and the mean over the ranks."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Columns(NamedTuple):
    """The mean series with its spread, as arrays of one length; ``sums`` over ``counts`` is the mean."""

    steps: array[int]
    times: array[float]
    sums: array[float]
    counts: array[int]
    low: array[float]
    high: array[float]


class Samples:
    """What one rank logged under one name, in order."""

    __slots__ = ("_steps", "_values", "went_back")

    def __init__(self) -> None:
        self._steps = array("q")
        self._values = array("d")
        self.went_back = False

    def append(self, step: int, value: float) -> None:
        """Keep one value."""
        if self._steps and step < self._steps[-1]:
            self.went_back = True
        self._steps.append(step)
        self._values.append(value)

    @property
    def steps(self) -> list[int]:
        """The step of every value."""
        return self._steps.tolist()

    @property
    def values(self) -> list[float]:
        """Every value."""
        return self._values.tolist()

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{len(self)} values, last {self._values[-1]:.4g}>" if self._values else "<no values>"


class _Cursor:
    """Where a rank stands on the shared path of steps (``place``); once off it, how often it logged each step."""

    __slots__ = ("highest", "place", "seen")

    def __init__(self) -> None:
        self.place = 0
        self.highest: int | None = None
        self.seen: Counter[int] | None = None

    def occurrence(self, step: int, samples: Samples) -> int:
        """How often the rank logged ``step`` before."""
        if self.highest is None:
            self.highest = max(samples.steps, default=step - 1)
        if self.seen is None and step > self.highest:
            self.highest = step
            return 0
        if self.seen is None:
            self.seen = Counter(samples.steps)
        self.seen[step] += 1
        return self.seen[step] - 1


class Series:
    """Values of one metric: ``steps`` and ``values`` are the mean over the ranks, ``by_rank[r]`` is what rank r logged.

    The k-th value of a rank at a step lines up with the k-th value of the other ranks at that step, so steps may repeat
    or start again; entries stand in the order in which they were first logged.
    """

    __slots__ = ("_by_rank", "_counts", "_cursors", "_high", "_low", "_steps", "_sums", "_times", "_where", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._by_rank: dict[int, Samples] = {}
        self._cursors: dict[int, _Cursor] = {}
        self._steps, self._counts = array("q"), array("I")
        self._times, self._sums, self._low, self._high = array("d"), array("d"), array("d"), array("d")
        self._where: dict[int, list[int]] | None = None

    def add(self, rank: int, step: int, value: float, time: float) -> None:
        """Append one value of one rank."""
        samples = self._by_rank.get(rank)
        if samples is None:
            samples = Samples()
            self._cursors[rank] = _Cursor()
            self._by_rank = {**self._by_rank, rank: samples}
        place = self._place(self._cursors[rank], step, samples)
        samples.append(step, value)
        if place == len(self._counts):
            self._append(step, value, time)
        else:
            self._merge(place, value)

    def _place(self, cursor: _Cursor, step: int, samples: Samples) -> int:
        """Index of the entry for a rank's next value at ``step``."""
        # Ranks nearly always log the same steps in the same order; then a position is all there is to remember.
        if cursor.place >= 0:
            if cursor.place == len(self._counts) or self._steps[cursor.place] == step:
                cursor.place += 1
                return cursor.place - 1
            cursor.place = -1
        if self._where is None:
            self._where = {}
            for index, known in enumerate(self._steps):
                self._where.setdefault(known, []).append(index)
        places = self._where.get(step, [])
        occurrence = cursor.occurrence(step, samples)
        return places[occurrence] if occurrence < len(places) else len(self._counts)

    def _append(self, step: int, value: float, time: float) -> None:
        if self._where is not None:
            self._where.setdefault(step, []).append(len(self._counts))
        self._steps.append(step)
        self._times.append(time)
        self._sums.append(value)
        self._low.append(value)
        self._high.append(value)
        self._counts.append(1)  # last: its length is the length of the series

    def _merge(self, place: int, value: float) -> None:
        self._sums[place] += value
        self._counts[place] += 1
        low, high = self._low[place], self._high[place]  # NaN, which differs from itself, gives way to any number
        if value < low or low != low:
            self._low[place] = value
        if value > high or high != high:
            self._high[place] = value

    @property
    def by_rank(self) -> Mapping[int, Samples]:
        """Every value of each rank, in the order it was logged."""
        return MappingProxyType(self._by_rank)

    @property
    def steps(self) -> list[int]:
        """The step of every entry of the mean."""
        return self._steps.tolist()[: len(self)]

    @property
    def values(self) -> list[float]:
        """The mean over the ranks that logged the entry so far."""
        return [total / count for total, count in zip(self._sums, self._counts, strict=False)]

    @property
    def went_back(self) -> bool:
        """Whether some rank's steps ever went back (an epoch that counts from zero again)."""
        return any(samples.went_back for samples in self._by_rank.values())

    @property
    def last(self) -> float:
        """The newest entry of the mean, NaN when there is none."""
        return self._sums[-1] / self._counts[-1] if self._counts else float("nan")

    @property
    def first_time(self) -> float:
        """When the first value was logged, in seconds since the epoch."""
        return self._times[0] if self._times else 0.0

    @property
    def last_time(self) -> float:
        """When the last entry was begun, in seconds since the epoch."""
        return self._times[-1] if self._times else 0.0

    def columns(self) -> Columns:
        """A copy of the mean series and its spread across ranks, for plotting."""
        n = len(self)
        low, high = self._low[:n], self._high[:n]
        return Columns(self._steps[:n], self._times[:n], self._sums[:n], self._counts[:n], low, high)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        ranks = len(self._by_rank)
        last = f", last {self.last:.4g}" if len(self) else ""
        return f"<{self.name}: {len(self)} values, {ranks} rank{'' if ranks == 1 else 's'}{last}>"
