"""Every logged metric of a run: ``run.history``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..contracts.events import Metrics
from .records import Record, Records
from .series import Series

if TYPE_CHECKING:
    from pandas import DataFrame

_LARGEST = 2**63 - 1


class History(Mapping[str, Series]):
    """The logged metrics by name; ``history["loss"]`` has ``.steps``, ``.values`` (the mean) and ``.by_rank``."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}
        self._records = Records()

    def add(self, metrics: Metrics) -> None:
        """Append one logged call."""
        step = max(-_LARGEST, min(_LARGEST, int(metrics.step)))
        values: dict[str, float | str] = {str(name): _plain(value) for name, value in metrics.values.items()}
        self._records.add(metrics.rank, step, metrics.time, values)
        for name, value in values.items():
            if isinstance(value, str):
                continue
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = Series(name)
            series.add(metrics.rank, step, value, metrics.time)

    def records(self) -> Iterator[Record]:
        """Every logged call with its rank, step, time and values, in the order of arrival."""
        return iter(self._records)

    def to_pandas(self) -> DataFrame:
        """One row per logged call: rank, step, time and a column per metric ("step_" for a metric named step)."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            advice = "pip install pandas, or use history.records()"
            raise ImportError(f"history.to_pandas() needs pandas: {advice}.") from error
        taken = ("rank", "step", "time")
        rows: list[dict[str, float | str]] = []
        for record in self.records():
            row: dict[str, float | str] = {"rank": record.rank, "step": record.step, "time": record.time}
            rows.append(row | {f"{name}_" if name in taken else name: value for name, value in record.values.items()})
        return DataFrame(rows, columns=None if rows else list(taken))

    def __getitem__(self, name: str) -> Series:
        try:
            return self._series[name]
        except KeyError:
            known = f"logged were {', '.join(map(repr, self))}" if self else "nothing was logged"
            raise KeyError(f"no metric {name!r}; {known}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._series

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._series))

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        return f"<History: {', '.join(f'{name} ({len(self[name])})' for name in self) or 'empty'}>"


def _plain(value: object) -> float | str:
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return str(value)
    return value if isinstance(value, str) else str(value)
