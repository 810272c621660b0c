"""A series made small enough to draw: at most 2000 points, with every spike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..progress.series import Series

Floats = NDArray[np.float64]

MOST_POINTS = 2_000
LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class Curve:
    """The mean line (``x``, ``mean``) and the band from ``low`` to ``high`` across ranks (``band_x``)."""

    x: Floats
    mean: Floats
    band_x: Floats
    low: Floats
    high: Floats
    last: float
    first_bad: float | None
    spread: bool

    def limits(self) -> tuple[float, float] | None:
        """Smallest and largest finite value, None when there is none."""
        values = np.concatenate([self.mean, self.low, self.high])
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if values.size else None


def make_curve(
    series: Series, *, by_time: bool = False, start: float = 0.0, scale: float = 1.0, most: int = MOST_POINTS
) -> Curve:
    """The curve of a series over its steps, or over the time since ``start`` in units of ``scale`` seconds."""
    columns = series.columns()
    steps, times = _array(columns.steps, np.int64), _array(columns.times, np.float64)
    x = (times - start) / scale if by_time else steps.astype(np.float64)
    low, high = _array(columns.low, np.float64), _array(columns.high, np.float64)
    with np.errstate(all="ignore"):
        mean = _array(columns.sums, np.float64) / _array(columns.counts, np.uint32)
    if np.any(np.diff(x) < 0):
        order = np.argsort(x, kind="stable")
        x, mean, low, high = x[order], mean[order], low[order], high[order]
    bad = np.flatnonzero(~np.isfinite(mean))
    keep = thin(mean, most)
    band_x, band_low, band_high = envelope(x, low, high, most // 2)
    return Curve(
        x=x[keep],
        mean=_drawable(mean[keep]),
        band_x=band_x,
        low=_drawable(band_low),
        high=_drawable(band_high),
        last=float(mean[-1]) if mean.size else float("nan"),
        first_bad=float(x[bad[0]]) if bad.size else None,
        spread=bool(np.any(low < high)),
    )


def _drawable(values: Floats) -> Floats:
    """Values with which matplotlib can still calculate."""
    return np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), np.nan)


def _array(column: Any, kind: Any) -> Any:
    return np.frombuffer(column.tobytes(), dtype=np.dtype(kind)) if len(column) else np.empty(0, dtype=kind)


def thin(values: Floats, most: int) -> NDArray[np.int64]:
    """Indices of about ``most`` values: the first, the last, and the extremes of equal buckets."""
    n = len(values)
    if n <= most:
        return np.arange(n)
    starts = np.linspace(0, n, most // 2, dtype=np.int64)[:-1]
    picked = [0, n - 1]
    for indices in (
        _extremes(values, starts, np.nan_to_num(values, nan=-np.inf), False),
        _extremes(values, starts, np.nan_to_num(values, nan=np.inf), True),
    ):
        picked.extend(indices)
    return np.unique(np.asarray(picked, dtype=np.int64))


def _extremes(values: Floats, starts: NDArray[np.int64], keys: Floats, smallest: bool) -> list[int]:
    """Index of the largest (or smallest) key of every bucket."""
    pick = np.minimum if smallest else np.maximum
    best = np.repeat(pick.reduceat(keys, starts), np.diff(np.append(starts, len(values))))
    hits = np.flatnonzero(keys == best)
    bucket = np.searchsorted(starts, hits, side="right")
    return [int(hit) for hit in hits[np.unique(bucket, return_index=True)[1]]]


def envelope(x: Floats, low: Floats, high: Floats, most: int) -> tuple[Floats, Floats, Floats]:
    """The band over at most ``most`` buckets: its lowest low and highest high, at the middle of each bucket."""
    n = len(x)
    if n <= most:
        return x, low, high
    starts = np.linspace(0, n, most + 1, dtype=np.int64)[:-1]
    middles = np.append(starts[1:], n) + starts >> 1
    return x[middles], np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts)
