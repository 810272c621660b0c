"""Numbers as the screen writes them."""

from __future__ import annotations

import pytest

from notebook_accel.display import words

GIB = 2**30


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (0.25, "0.25"), (1e-5, "1e-5"), (2.5e7, "2.5e7"), (-3, "-3")])
def test_tick(number: float, text: str) -> None:
    assert words.tick(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.9, "0:07"), (161, "2:41"), (3723, "1:02:03"), (-1, "0:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert words.clock(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (12, "12 s"),
        (42, "40 s"),
        (90, "2 min"),
        (370, "6 min"),
        (5400, "1 h 30 min"),
        (7200, "2 h"),
        (90_000, "25 h"),
    ],
)
def test_roughly(seconds: float, text: str) -> None:
    assert words.roughly(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.33104, "0.3310"),
        (0, "0"),
        (1.0, "1.000"),
        (15.26, "15.26"),
        (470.0, "470"),
        (123.456, "123.5"),
        (12345.6, "12346"),
        (4.18e-4, "4.18e-4"),
        (-2.5e7, "-2.50e7"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("warm", "warm"),
        ("x" * 50, "x" * 23 + "…"),
    ],
)
def test_value(number: float | str, text: str) -> None:
    assert words.value(number) == text


@pytest.mark.parametrize(
    ("speed", "unit", "text"),
    [
        (None, "it", ""),
        (0.0, "it", ""),
        (14.21, "it", "14.2/s"),
        (1234.5, "it", "1234/s"),
        (0.25, "it", "4.0 s each"),
        (1 / 90, "it", "1:30 min each"),
        (2.5 * GIB, "B", "2.5 GB/s"),
    ],
)
def test_rate(speed: float | None, unit: str, text: str) -> None:
    assert words.rate(speed, unit) == text


@pytest.mark.parametrize(
    ("used", "there", "text"),
    [(0, 0, ""), (0, GIB, ""), (int(9.1 * GIB), 15 * GIB, "9.1 / 15 GB"), (3 * 2**20, 0, "3 MB"), (GIB, 0, "1.0 GB")],
)
def test_memory(used: int, there: int, text: str) -> None:
    assert words.memory(used, there) == text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([2], "rank 2"), ([0, 1], "ranks 0–1"), ([0, 2, 3, 4, 9], "ranks 0, 2–4, 9"), ([5, 1], "ranks 1, 5")],
)
def test_ranks(numbers: list[int], text: str) -> None:
    assert words.ranks(numbers) == text


def test_escaping_covers_quotes_and_what_cannot_be_sent() -> None:
    assert words.esc("<a href=\"x\" title='y'>&\x00\ud800") == "&lt;a href=&quot;x&quot; title=&#x27;y&#x27;&gt;&amp;��"
    words.esc("".join(map(chr, range(0x300)))).encode()
