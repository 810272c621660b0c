"""What is known of one rank."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from ..contracts.errors import RankFailure
from ..contracts.events import Progress
from .rate import Meter

Phase = Literal["waiting", "running", "halted", "finished", "interrupted", "failed"]

_EPOCH = re.compile(r"\bepoch\s+(\d+)\s*(?:of|/)\s*(\d+)", re.IGNORECASE)
_MOST_BARS = 16


@dataclass(slots=True)
class Laps:
    """Counts of a bar around other bars: when the first began (at ``first``) and the last ended (at ``n``)."""

    began: float
    first: float
    n: float
    turned: float
    inside: float = 0.0

    def turn(self, time: float, n: float) -> None:
        """The bar counted on."""
        self.n, self.turned, self.inside = n, time, 0.0

    def remaining(self, now: float, total: float) -> float | None:
        """Seconds until the bar stands at ``total``, by its own counts, in the first one by the bar inside it."""
        if self.n > self.first:
            lap = (self.turned - self.began) / (self.n - self.first)
            return max(0.0, (total - self.n) * lap - min(lap, now - self.turned))
        if not self.inside:
            return None
        return (now - self.began) * max(0.0, (total - self.n) / self.inside - 1)


@dataclass(slots=True)
class BarState:
    """One bar of a rank, as last reported; ``started`` is in seconds since the epoch."""

    id: int
    started: float
    description: str = ""
    n: float = 0
    total: float | None = None
    unit: str = "it"
    postfix: str = ""
    done: bool = False
    meter: Meter = field(default_factory=Meter)
    laps: Laps | None = None

    def update(self, event: Progress) -> bool:
        """Take over what a rank reported; True if the count moved."""
        moved = event.n != self.n
        if self.laps is not None and event.n > self.laps.n:
            self.laps.turn(event.time, event.n)
        elif self.laps is not None and event.n < self.laps.n:  # counts anew
            self.laps = Laps(event.time, event.n, event.n, event.time)
        self.description, self.n, self.total = event.description, event.n, event.total
        self.unit, self.postfix, self.done = event.unit, event.postfix, event.done
        self.meter.add(event.time, event.n)
        return moved

    @property
    def fraction(self) -> float | None:
        """Part done, 0 to 1; None when the total is not known."""
        return min(1.0, max(0.0, self.n / self.total)) if self.total and self.total > 0 else None

    def remaining(self, now: float | None = None) -> float | None:
        """Seconds to the end of this bar, None when not known."""
        rate = self.meter.rate(now)
        return max(0.0, self.total - self.n) / rate if self.total and rate else None


@dataclass(slots=True)
class RankState:
    """One rank.

    ``news`` and ``moved`` are the clock's times of its last event and of its last progress; ``nested`` says whether
    its bars ever had more to say than one bar's count.
    """

    rank: int
    news: float
    moved: float
    phase: Phase = "waiting"
    pid: int = 0
    text: str = ""
    text_since: float = 0.0
    step: int = -1
    memory: int = 0
    memory_total: int = 0
    note: str = ""
    failure: RankFailure | None = None
    metrics: dict[str, float | str] = field(default_factory=dict)
    bars: dict[int, BarState] = field(default_factory=dict)
    last_bar: BarState | None = None
    nested: bool = False
    steps: Meter = field(default_factory=Meter)

    @property
    def active(self) -> bool:
        """Whether the rank has not ended."""
        return self.phase in ("waiting", "running", "halted")

    @property
    def bar(self) -> BarState | None:
        """The bar to show: the newest that runs, else the last that ended."""
        return next(reversed(self.bars.values()), None) or self.last_bar

    @property
    def outer_bars(self) -> list[BarState]:
        """The bars around the newest one, outermost first."""
        return list(self.bars.values())[:-1]

    def progress(self, event: Progress) -> bool:
        """Take over the state of a bar; True if it moved."""
        bar = self.bars.get(event.bar)
        if bar is None:
            if event.done and self.last_bar is not None and self.last_bar.id == event.bar:
                return False
            bar = self.bars[event.bar] = BarState(event.bar, event.time)
        moved = bar.update(event)
        self._lap(bar)
        self.nested = self.nested or len(self.bars) > 1 or bool(event.postfix)
        if bar.done:
            self.last_bar = self.bars.pop(event.bar)
        while len(self.bars) > _MOST_BARS:
            del self.bars[next(iter(self.bars))]
        return moved

    def _lap(self, bar: BarState) -> None:
        """Note how far the bar inside the outermost one is; a second one after it (an evaluation) sets nothing back."""
        outer, inner = (*self.bars.values(), None, None)[:2]
        if outer is None or inner is not bar or bar.fraction is None:
            return
        if outer.laps is None:
            outer.laps = Laps(outer.started, outer.n, outer.n, outer.started)
        outer.laps.inside = max(outer.laps.inside, bar.fraction)

    def advance(self, time: float, step: int) -> bool:
        """The rank reported ``step``; True if it moved."""
        self.steps.add(time, step)
        moved = step != self.step
        self.step = step
        return moved

    def remaining(self, now: float) -> float | None:
        """Seconds to the end of the rank's work, None unless its bars say how much work there is."""
        bars = [bar for bar in self.bars.values() if bar.total]
        if bars and bars[0].laps is not None:
            return bars[0].laps.remaining(now, bars[0].total or 0)
        if bars and (epoch := _EPOCH.search(bars[0].description)):
            rate, total = bars[0].meter.rate(now), bars[0].total or 0
            later = max(0, int(epoch[2]) - int(epoch[1])) * total
            return (max(0, total - bars[0].n) + later) / rate if rate else None
        return None
