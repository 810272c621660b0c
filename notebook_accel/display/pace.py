"""How often something may be drawn."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 15.0
LONGEST = 3.0


class Pace:
    """Lets a drawing happen at most once in ``period`` seconds, and less often when drawing itself is slow.

    Never less often than once in three seconds, unless that were a third of the time.
    """

    __slots__ = ("_clock", "_first", "_next", "_period")

    def __init__(self, period: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._period = period
        self._clock = clock
        self._next = float("-inf")
        self._first = True

    def due(self) -> bool:
        """Whether it is time to draw."""
        return self._clock() >= self._next

    def run(self, draw: Callable[[], None]) -> None:
        """Draw now; the next time is due so that drawing takes a small share of the time."""
        start = self._clock()
        try:
            draw()
        finally:
            took = self._clock() - start
            # The first drawing pays for imports and caches, and says nothing about the next.
            rest = 0.0 if self._first else min(SHARE * took, max(LONGEST - took, 2 * took))
            self._next = start + took + max(self._period - (0.0 if self._first else took), rest)
            self._first = False
