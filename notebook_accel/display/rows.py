"""The table of rank bars as words and fractions, for every view."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import Literal

from ..progress.model import RunModel
from ..progress.rank import RankState
from . import words

RowTone = Literal["busy", "quiet", "warn", "bad", "off"]

SHOWN_RANKS = 8
SILENT = 8.0
STUCK = 30.0
NEWS_AGE = 1.5
NOTHING = "\xa0"  # keeps the height of a line that has nothing to say just now


@dataclass(frozen=True, slots=True)
class Row:
    """One rank as it is shown; ``fraction`` is the filled part of its bar (None: no length known)."""

    rank: int
    tone: RowTone
    doing: str
    fraction: float | None
    count: str
    rate: str
    left: str
    metric: str
    memory: str
    around: str = ""
    moving: bool = False
    speed: float = 0.0
    position: float = 0.0
    role: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The rows to show at once, the title of the metric column, and all rows when that is more (else empty)."""

    metric: str
    rows: list[Row]
    all_rows: list[Row]


def make_table(model: RunModel) -> Table:
    """The table for the present state of the run."""
    metric = headline(model)
    newest = max((rank.moved for rank in model.ranks.values()), default=0.0)
    rows = [make_row(model, rank, metric, newest) for rank in list(model.ranks.values())]
    if model.over and not any(row.around.strip() for row in rows):
        rows = [replace(row, around="") for row in rows]
    if len(rows) <= SHOWN_RANKS:
        return Table(metric, rows, [])
    return Table(metric, pick(rows), rows)


def headline(model: RunModel) -> str:
    """Name of the metric worth a column: a loss if there is one, else the first that was logged."""
    names = list(model.history)
    losses = [name for name in names if "loss" in name.lower()]
    for name in ("loss", "train_loss", "train/loss"):
        if name in losses:
            return name
    return next(iter(losses or names), "")


def make_row(model: RunModel, rank: RankState, metric: str, newest: float) -> Row:
    """The row of one rank; ``newest`` is when any rank last moved."""
    tone, doing = _doing(model, rank, newest)
    live = rank.active and not model.over
    bar = rank.bar
    now = model.now if live and not (bar and bar.done) else None
    speed = bar.meter.rate(now) if bar else rank.steps.rate(now)
    left = bar.remaining(now) if bar and now is not None else None
    position, pace = _position(rank, now)
    shown = rank.metrics.get(metric)
    # Of a rank that has finished its training, the whole of it says more than its last bar, an evaluation mostly.
    trained = rank.phase == "finished" and rank.step > 0
    return Row(
        rank=rank.rank,
        tone=tone,
        doing=doing,
        fraction=1.0 if trained else bar.fraction if bar else (1.0 if rank.phase == "finished" else None),
        count=f"{rank.step} steps" if trained else _count(rank),
        rate="" if trained else words.rate(speed, bar.unit if bar else "it"),
        left=words.clock(math.ceil(left - 0.1)) if left is not None else "",
        metric=words.value(shown) if shown is not None else "",
        memory=words.memory(rank.memory, rank.memory_total),
        around=_around(rank) or (NOTHING if rank.nested and model.status != "finished" else ""),
        moving=live and rank.phase == "running",
        speed=pace,
        position=position,
    )


def _doing(model: RunModel, rank: RankState, newest: float) -> tuple[RowTone, str]:
    if rank.phase == "failed":
        return _failed(model, rank)
    if rank.phase == "finished":
        return ("off" if model.failure else "quiet"), "finished"
    if rank.phase == "interrupted":
        return "warn", f"stopped{_at_step(rank)}"
    if model.over:
        return _ended(model, rank)
    silence = model.now - rank.news
    if silence >= SILENT and rank.phase != "waiting":
        return "warn", f"no news for {words.span(silence)}"
    if rank.phase == "waiting":
        return "quiet", f"starting, {words.span(model.elapsed)}" if model.elapsed >= 2 else "starting"
    if rank.phase == "halted":
        return "quiet", f"waits to stop{_at_step(rank)}"
    if rank.text:
        return "busy", f"{rank.text}, {words.span(max(0.0, model.now - rank.text_since))}"
    stood = model.now - rank.moved
    if stood >= STUCK and newest - rank.moved >= STUCK / 2:
        return "warn", f"not moving for {words.span(stood)}"
    bar = rank.bar
    return "busy", (bar.description.strip(" :") if bar else "") or "running"


def _failed(model: RunModel, rank: RankState) -> tuple[RowTone, str]:
    if rank.failure is None or not rank.failure.consequence:
        return "bad", f"failed: {rank.failure.type_name}" if rank.failure else "failed"
    return "off", _stopped_with(model, rank)


def _ended(model: RunModel, rank: RankState) -> tuple[RowTone, str]:
    if model.failure:
        return "off", _stopped_with(model, rank)
    return "warn" if model.status == "stopped" else "off", f"ended{_at_step(rank)}"


def _stopped_with(model: RunModel, rank: RankState) -> str:
    first = model.failure
    return f"stopped, rank {first.rank} failed" if first and first.rank != rank.rank else "stopped with the others"


def _at_step(rank: RankState) -> str:
    return f" at step {rank.step}" if rank.step > 0 else ""


def _count(rank: RankState) -> str:
    bar = rank.bar
    if bar is None:
        return f"step {rank.step}" if rank.step > 0 else ""
    n = words.amount(bar.n, bar.unit)
    return f"{n}/{words.amount(bar.total, bar.unit)}" if bar.total else n


def _around(rank: RankState) -> str:
    """Outer bars in short, and what the newest bar says of itself."""
    outer = [
        f"{bar.description.strip(' :')} {words.amount(bar.n, bar.unit)}"
        + (f"/{words.amount(bar.total, bar.unit)}" if bar.total else "")
        for bar in rank.outer_bars
    ]
    postfix = [rank.bar.postfix.strip(" ,")] if rank.bar and rank.bar.postfix else []
    return " · ".join(part.strip() for part in [*outer, *postfix] if part.strip())


def _position(rank: RankState, now: float | None) -> tuple[float, float]:
    """How far a rank is and how fast, in training steps, without them in counts of its outermost bar."""
    if rank.step > 0:
        return float(rank.step), rank.steps.rate(now) or 0.0
    bar = next(iter(rank.bars.values()), rank.bar)
    return (bar.n, bar.meter.rate(now) or 0.0) if bar else (0.0, 0.0)


def pick(rows: list[Row], shown: int = SHOWN_RANKS) -> list[Row]:
    """Of many ranks: those in trouble, then the slowest, the median and the fastest, in order of rank."""
    chosen: dict[int, str] = {row.rank: "" for row in rows if row.tone == "bad"}
    strange = [row.rank for row in rows if row.tone == "warn"]
    chosen |= {rank: "" for rank in strange if 2 * len(strange) < len(rows)}
    chosen = dict(list(chosen.items())[: shown - 3])
    ranked = sorted(rows, key=lambda row: (row.position, row.speed))
    ends = (("slowest", 0), ("median", len(ranked) // 2), ("fastest", -1))
    # Ranks tell their step once a second: those that seem that much apart may well be at the same one.
    gap = ranked[-1].position - ranked[0].position
    apart = gap > max(1.0, NEWS_AGE * ranked[-1].speed) or (gap > 0 and ranked[0].speed < 0.9 * ranked[-1].speed)
    for role, index in ends if apart else ():
        chosen[ranked[index].rank] = chosen.get(ranked[index].rank) or (role if ranked[index].moving else "")
    chosen |= {rank: "" for rank in _outliers(rows) if rank not in chosen and len(chosen) < shown}
    for row in rows:
        if len(chosen) < min(shown, 4):
            chosen.setdefault(row.rank, "")
    return [_with_role(row, chosen[row.rank]) for row in rows if row.rank in chosen]


def _outliers(rows: list[Row]) -> list[int]:
    speeds = [row.speed for row in rows if row.speed > 0]
    if len(speeds) < 3:
        return []
    middle = statistics.median(speeds)
    return [row.rank for row in rows if row.speed > 0 and abs(row.speed - middle) > 0.25 * middle]


def _with_role(row: Row, role: str) -> Row:
    return Row(**{**{name: getattr(row, name) for name in Row.__slots__}, "role": role})
