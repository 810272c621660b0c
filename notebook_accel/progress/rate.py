"""How fast a counter moves, from its recent samples."""

from __future__ import annotations

from collections import deque

WINDOW = 10.0
STALE = 2.0


class Meter:
    """Speed of one counter over the last ``window`` seconds."""

    __slots__ = ("_samples", "_window")

    def __init__(self, window: float = WINDOW) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=256)
        self._window = window

    def add(self, time: float, n: float) -> None:
        """The counter stood at ``n`` at ``time`` (seconds)."""
        samples = self._samples
        if samples and (n < samples[-1][1] or time < samples[-1][0]):
            samples.clear()
        samples.append((time, n))
        # Two samples are always kept, so that a step of a minute still has a speed.
        while len(samples) > 2 and time - samples[0][0] > self._window:
            samples.popleft()

    def rate(self, now: float | None = None) -> float | None:
        """Counts per second, None when not known yet; ``now`` lets a counter that stands still slow down."""
        if len(self._samples) < 2:
            return None
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        # Until the next count is due, silence says nothing.
        patience = max(STALE, 2 * (end - start) / max(last - first, 1e-12)) if last > first else STALE
        if now is not None and now - end > patience:
            end = now
        return (last - first) / (end - start) if end > start else None
