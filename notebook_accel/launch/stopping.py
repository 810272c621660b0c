"""How a run is brought to an end before its time: agree on a step, then insist. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

Order = Literal["halt", "go", "stop", "interrupt", "terminate", "kill"]
_PATIENCE_S = 0.4
_AGREE_S = 2.0
_INSIST_S = 5.0
_LAST_WORDS_S = 30.0
_TERMINATE_S = 2.0


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to one rank; ``step`` belongs to "go" (run on to this boundary) and "stop" (leave at it)."""

    order: Order
    rank: int
    step: int = 0


@dataclass(slots=True)
class StopRequests:
    """The wishes to stop a run; ``reason`` is the first one's, more than one ends the ranks at once."""

    reason: str = ""
    count: int = 0

    def ask(self, reason: str) -> None:
        """Ask for a stop, from any thread or a signal handler, whether ranks are there yet or not."""
        self.reason = self.reason or reason
        self.count += 1


@dataclass(slots=True)
class Stopping:
    """Brings all ranks to the same boundary and stops them there; escalates when one does not answer.

    Every rank is asked to halt at its next boundary. Ranks in a collective with a rank that has halted cannot get to
    theirs: then the halted ones run on for one more step, until all have met. The last resort is a signal.

    Args:
        now: seconds, from any fixed point; later calls use the same clock.
        step_s: seconds that a training step takes (0: no step was seen, so there may be no boundary to wait for).
    """

    now: float
    step_s: float = 0.5
    agreed: int | None = None
    _halted: dict[int, int] = field(default_factory=dict)
    _asked: bool = False
    _news_at: float = 0.0
    _insisted_at: float | None = None
    _terminated_at: float | None = None
    _agreed_at: float = 0.0

    def halted(self, rank: int, step: int, now: float) -> None:
        """A rank waits at the boundary after ``step``."""
        self._halted[rank] = step
        self._news_at = now

    def advance(self, alive: Collection[int], now: float) -> Iterator[Action]:
        """What is to be done now; call a few times a second with the ranks that have not delivered yet."""
        if not self._asked:
            self._asked, self._news_at = True, now
            yield from (Action("halt", rank) for rank in sorted(alive))
            return
        if self.agreed is None:
            yield from self._agree(alive, now)
        yield from self._insist(alive, now)

    def _agree(self, alive: Collection[int], now: float) -> Iterator[Action]:
        waiting = {rank: step for rank, step in self._halted.items() if rank in alive}
        if waiting and len(waiting) == len(alive):
            self.agreed, self._agreed_at = max(waiting.values()), now
            self._insisted_at = self._terminated_at = None
            yield from (Action("stop", rank, self.agreed) for rank in sorted(alive))
        elif waiting and now - self._news_at >= max(_PATIENCE_S, 1.5 * self.step_s):
            self._news_at = now
            step = max(waiting.values()) + 1
            for rank in sorted(waiting):
                del self._halted[rank]
                yield Action("go", rank, step)

    def _insist(self, alive: Collection[int], now: float) -> Iterator[Action]:
        patience = max(_AGREE_S, min(_LAST_WORDS_S, 4 * self.step_s)) if self.step_s else _PATIENCE_S
        if self._insisted_at is None:
            due = now - self.now >= patience if self.agreed is None else now - self._agreed_at >= _LAST_WORDS_S
            if due:
                self._insisted_at = now
                yield from (Action("interrupt", rank) for rank in sorted(alive))
        elif self._terminated_at is None:
            if now - self._insisted_at >= _INSIST_S:
                self._terminated_at = now
                yield from (Action("terminate", rank) for rank in sorted(alive))
        elif now - self._terminated_at >= _TERMINATE_S:
            yield from (Action("kill", rank) for rank in sorted(alive))
