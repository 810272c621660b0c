"""How fast a counter moves."""

from __future__ import annotations

import pytest

from notebook_accel.progress.rate import Meter


def metered(*samples: tuple[float, float]) -> Meter:
    meter = Meter(window=10.0)
    for time, n in samples:
        meter.add(time, n)
    return meter


@pytest.mark.parametrize(
    ("samples", "now", "expected"),
    [
        ([], None, None),
        ([(0, 0)], None, None),
        ([(0, 0), (2, 10)], None, 5.0),
        ([(0, 0), (2, 10)], 2.5, 5.0),  # silence shorter than the patience changes nothing
        ([(0, 0), (2, 10)], 20, 0.5),  # a counter that stands still slows down
        ([(0, 0), (40, 1)], 60, 1 / 40),  # the next count of a slow one is not due yet
        ([(0, 0), (40, 1)], 200, 1 / 200),
        ([(0, 0), (34, 1), (34.5, 2)], None, 2.0),  # the first step's compilation is forgotten
        ([(0, 50), (1, 60), (2, 0), (3, 7)], None, 7.0),  # a counter that starts again
        ([(5, 1), (5, 2)], None, None),  # no time has passed
        ([(0, 3), (4, 3)], None, 0.0),
    ],
)
def test_rate(samples: list[tuple[float, float]], now: float | None, expected: float | None) -> None:
    rate = metered(*samples).rate(now)
    assert rate == (None if expected is None else pytest.approx(expected))


def test_only_the_last_seconds_count() -> None:
    slow_then_fast = [(t, t) for t in range(100)] + [(100 + t, 99 + 10 * t) for t in range(1, 20)]
    assert metered(*slow_then_fast).rate() == pytest.approx(10.0)
