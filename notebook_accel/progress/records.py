"""Every logged call, exactly, in as little memory as numbers take."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One call of ``accelerator.log``: ``time`` in seconds since the epoch, ``values`` by metric name."""

    rank: int
    step: int
    time: float
    values: Mapping[str, float | str]


class Records:
    """Append-only store of records; calls with the same names share one layout."""

    __slots__ = ("_layout_ids", "_layouts", "_names", "_numbers", "_ranks", "_steps", "_texts", "_times")

    def __init__(self) -> None:
        self._ranks, self._steps, self._times = array("i"), array("q"), array("d")
        self._layout_ids, self._numbers = array("I"), array("d")
        self._texts: list[str] = []
        self._names: dict[tuple[tuple[str, bool], ...], int] = {}
        self._layouts: list[tuple[tuple[str, bool], ...]] = []

    def add(self, rank: int, step: int, time: float, values: Mapping[str, float | str]) -> None:
        """Keep one call."""
        layout = tuple((name, isinstance(value, str)) for name, value in values.items())
        known = self._names.get(layout)
        if known is None:
            known = self._names[layout] = len(self._layouts)
            self._layouts.append(layout)
        for value in values.values():
            if isinstance(value, str):
                self._numbers.append(len(self._texts))
                self._texts.append(value)
            else:
                self._numbers.append(value)
        self._ranks.append(rank)
        self._steps.append(step)
        self._times.append(time)
        self._layout_ids.append(known)  # last: its length is the number of records

    def __len__(self) -> int:
        return len(self._layout_ids)

    def __iter__(self) -> Iterator[Record]:
        at = 0
        for index in range(len(self)):
            layout = self._layouts[self._layout_ids[index]]
            values: dict[str, float | str] = {}
            for offset, (name, is_text) in enumerate(layout):
                number = self._numbers[at + offset]
                values[name] = self._texts[int(number)] if is_text else number
            at += len(layout)
            yield Record(self._ranks[index], self._steps[index], self._times[index], values)
