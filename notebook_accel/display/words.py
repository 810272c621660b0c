"""Numbers and names as the screen writes them."""

from __future__ import annotations

import html
import math
import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_GIB, _MIB = 1024**3, 1024**2


def esc(text: object) -> str:
    """Any text, safe inside HTML text and quoted attributes."""
    return html.escape(_UNPRINTABLE.sub("�", str(text)))


def clock(seconds: float) -> str:
    """A duration as 0:07, 2:41 or 1:02:03."""
    whole = int(max(0.0, seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def roughly(seconds: float) -> str:
    """A duration in one plain word or two: 40 s, 6 min, 2 h 10 min."""
    if seconds < 90:
        return f"{math.ceil(seconds) if seconds < 20 else 5 * round(seconds / 5)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = minutes // 60, minutes % 60 // 5 * 5
    return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"


def span(seconds: float) -> str:
    """A measured duration: 0.8 s, 12 s, 2:41 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{clock(seconds)} {'min' if seconds < 3600 else 'h'}"


def value(number: float | str) -> str:
    """A metric in about four digits."""
    if isinstance(number, str):
        return number if len(number) <= 24 else number[:23] + "…"
    if not math.isfinite(number):
        return str(number)
    size = abs(number)
    if size and (size < 1e-3 or size >= 1e6):
        mantissa, exponent = f"{number:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if number == 0 or (number == int(number) and size >= 10):
        return f"{int(number)}"
    digits = 4 if size < 1 else 3 if size < 10 else 2 if size < 100 else 1 if size < 10_000 else 0
    return f"{number:.{digits}f}"


def tick(number: float) -> str:
    """A number beside an axis: 0.001, 1e-5, 2e6."""
    mantissa, _, exponent = f"{number:g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def amount(number: float, unit: str = "it") -> str:
    """A count of ``unit``s: whole where it is whole, bytes in binary units."""
    if unit in ("B", "iB", "byte", "bytes"):
        return memory(int(number))
    if number != number or abs(number) == math.inf:
        return str(number)
    return f"{int(number)}" if number == int(number) else f"{number:.1f}"


def rate(per_second: float | None, unit: str = "it") -> str:
    """A speed: 14.2/s, or 3.1 s each when slower than one in two seconds."""
    if per_second is None or per_second <= 0 or not math.isfinite(per_second):
        return ""
    if unit in ("B", "iB", "byte", "bytes"):
        return f"{memory(int(per_second))}/s"
    if per_second < 0.5:
        return f"{span(1 / per_second)} each"
    return f"{per_second:.1f}/s" if per_second < 100 else f"{per_second:.0f}/s"


def memory(size: int, total: int = 0) -> str:
    """Bytes used and there: 9.1 / 15 GB."""
    if size <= 0:
        return ""
    if max(size, total) >= _GIB:
        used = size / _GIB
        return f"{used:.1f} / {total / _GIB:.0f} GB" if total else f"{used:.1f} GB"
    return f"{size / _MIB:.0f} / {total / _MIB:.0f} MB" if total else f"{size / _MIB:.0f} MB"


def some_ranks(numbers: list[int]) -> str:
    """Who, in a badge: "2" for one rank, "×4" for several."""
    return str(numbers[0]) if len(numbers) == 1 else f"×{len(numbers)}"


def ranks(numbers: list[int]) -> str:
    """Ranks in words: rank 2, ranks 0-3 and 7."""
    runs: list[str] = []
    for number in sorted(numbers):
        if runs and int(runs[-1].split("–")[-1]) == number - 1:
            runs[-1] = f"{runs[-1].split('–')[0]}–{number}"
        else:
            runs.append(str(number))
    return f"rank {runs[0]}" if len(numbers) == 1 else f"ranks {', '.join(runs)}"
