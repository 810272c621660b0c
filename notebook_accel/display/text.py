"""The screen in a terminal: bars drawn in place, or a line now and then where nothing can be drawn in place."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from ..progress.lines import visible_text
from ..progress.model import RunModel
from ..progress.shelf import Shown
from . import words
from .pace import Pace
from .rows import Row, make_table, pick
from .summary import row_text, summary_text, title

LIVE = 0.25
CHANGE, PLAIN = 1.0, 5.0
PLAIN_RANKS = 4
FOLD_WAIT = 0.4
BAR = 16


class TextScreen:
    """Writes to ``out`` (standard output by default); ``width`` in characters, 0: the terminal's."""

    stop_requested = False
    presses = 0

    def __init__(
        self, out: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic, width: int = 0
    ) -> None:
        self._out = out if out is not None else sys.stdout
        self._width = width
        self._tty = self._out.isatty()
        self._log = LogLines()
        self._bars = LiveBars(clock) if self._tty else PlainBars(clock)
        self._drawn = 0

    def open(self, model: RunModel) -> None:
        """Say what starts."""
        self._write(title(model) + "\n" + (f"{model.why}\n" if model.why else ""))

    def refresh(self, model: RunModel) -> None:
        """Print new output of the ranks, and the bars when it is time to."""
        lines = self._log.new(model, wait=FOLD_WAIT)
        bars = self._bars.lines(model, force=self._tty and bool(lines))
        if lines or bars:
            width = self._width or shutil.get_terminal_size().columns
            bars = [cut(bar, width - 1) for bar in bars] if self._tty else bars
            self._write(self._erased() + "".join(f"{line}\n" for line in [*lines, *bars]))
            self._drawn = len(bars) if self._tty else 0

    def close(self, model: RunModel) -> None:
        """Print what is left and the summary."""
        with contextlib.suppress(Exception):
            lines = [*self._log.new(model, wait=0.0), summary_text(model, frames=False)]
            self._write(self._erased() + "".join(f"{line}\n" for line in lines))
            self._drawn = 0

    def _erased(self) -> str:
        return f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""

    def _write(self, text: str) -> None:
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()


class LogLines:
    """Gives every line of the log once for every rank that wrote it."""

    def __init__(self) -> None:
        self._told: dict[int, set[int]] = {}
        self._next = 0
        self._shown: list[Shown] = []

    def new(self, model: RunModel, *, wait: float) -> list[str]:
        """The lines not given yet; a line waits ``wait`` seconds for other ranks to say the same."""
        return [*self._written(model, wait), *self._displayed(model)]

    def _displayed(self, model: RunModel) -> list[str]:
        before, self._shown = self._shown, list(model.shelf)
        fresh = [item for item in self._shown if not any(item is known for known in before)]
        return [f"[{item.rank}] {plain(item)}" for item in fresh]

    def _written(self, model: RunModel, wait: float) -> list[str]:
        lines = []
        entries = list(model.log)
        if entries and (missed := entries[0].number - self._next) > 0:
            lines.append(f"… {missed} lines are only in the log files")
        for entry in entries:
            told = self._told.get(entry.number, set())
            fresh = [rank for rank in entry.ranks if rank not in told]
            if fresh and (told or model.now - entry.time >= wait):
                self._told[entry.number] = told | set(fresh)
                lines.append(f"[{words.some_ranks(fresh)}] {entry.text}")
                self._next = max(self._next, entry.number + 1)
        oldest = entries[0].number if entries else 0
        self._told = {number: told for number, told in self._told.items() if number >= oldest}
        return lines


class LiveBars:
    """The bars of a terminal, four times a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._pace = Pace(LIVE, clock)
        self._lines: list[str] = []

    def lines(self, model: RunModel, *, force: bool) -> list[str]:
        """The bars when they are due or must be drawn again, else none."""
        if self._pace.due():
            self._pace.run(lambda: self._make(model))
            return self._lines
        return self._lines if force else []

    def _make(self, model: RunModel) -> None:
        table = make_table(model)
        left = model.remaining()
        head = title(model) + (f" · about {words.roughly(left)} left" if left is not None else "")
        self._lines = [head, *bar_lines(table.rows, table.metric)]


class PlainBars:
    """A line for each rank now and then, and when a rank starts something new."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self._doing: list[str] = []

    def lines(self, model: RunModel, *, force: bool) -> list[str]:
        """The lines when they are due, else none."""
        doing = [rank.bar.description for rank in model.ranks.values() if rank.bar]
        waited = self._clock() - self._last
        # A long run says less often how far it is, so that its log stays readable.
        due = waited >= max(CHANGE, min(PLAIN, model.elapsed / 4), model.elapsed / 60) or (
            doing != self._doing and waited >= CHANGE
        )
        if not due:
            return []
        self._last, self._doing = self._clock(), doing
        table = make_table(model)
        rows = table.all_rows or table.rows
        return [row_text(row, table.metric) for row in (rows if len(rows) <= PLAIN_RANKS else pick(rows, PLAIN_RANKS))]


def plain(item: Shown) -> str:
    """What a rank displayed, as far as text can say it."""
    text = visible_text(str(item.data.get("text/plain", "")))
    return text or f"showed {', '.join(item.data) or 'nothing'}"


def bar_lines(rows: list[Row], metric: str) -> list[str]:
    """One line with a bar for each rank; columns are as wide as they must be, and left out when they are empty."""
    columns = list(zip(*(_cells(row, metric) for row in rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for cells in zip(*columns, strict=True):
        padded = [f"{cells[0]:>{widths[0]}}", f"{cells[1]:<{widths[1]}}"]
        padded += [f"{cell:>{width}}" for cell, width in zip(cells[2:], widths[2:], strict=True) if width]
        lines.append("  ".join(padded))
    return lines


def _cells(row: Row, metric: str) -> tuple[str, ...]:
    filled = round(BAR * (row.fraction or 0))
    bar = "█" * filled + "░" * (BAR - filled)
    left = f"{row.left} left" if row.left else ""
    shown = f"{metric} {row.metric}" if row.metric else ""
    return (str(row.rank), cut(row.doing, 26), bar, row.count, row.rate, left, shown, row.memory)


def cut(line: str, width: int) -> str:
    """The line in at most ``width`` characters."""
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
