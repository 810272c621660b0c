"""The screen in a terminal: bars drawn in place, or a line now and then where nothing can be drawn in place."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from ..progress.model import RunModel
from . import words
from .pace import Pace
from .rows import Row, Table, make_table
from .summary import row_text, summary_text, title

LIVE, PLAIN = 0.25, 5.0
FOLD_WAIT = 0.4
BAR = 24


class TextScreen:
    """Writes to ``out`` (standard output by default)."""

    stop_requested = False
    presses = 0

    def __init__(
        self, out: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic, width: int = 0
    ) -> None:
        self._out = out if out is not None else sys.stdout
        self._tty = self._out.isatty()
        self._clock = clock
        self._width = width
        self._pace = Pace(LIVE if self._tty else PLAIN, clock)
        self._lines = LogLines()
        self._drawn = 0
        self._last = ""

    def open(self, model: RunModel) -> None:
        """Say what starts."""
        self._write(title(model) + "\n" + (f"{model.why}\n" if model.why else ""))

    def refresh(self, model: RunModel) -> None:
        """Print new output of the ranks, and the bars when it is time to."""
        lines = self._lines.new(model, wait=FOLD_WAIT)
        due = self._pace.due()
        if not lines and not due:
            return
        self._pace.run(lambda: self._draw(model, lines, due))

    def _draw(self, model: RunModel, lines: list[str], due: bool) -> None:
        rows = live_lines(model, self._columns) if self._tty else (plain_lines(model) if due else [])
        text = "".join(f"{line}\n" for line in lines)
        self._write(self._erase() + text + "".join(f"{row}\n" for row in rows))
        self._drawn = len(rows) if self._tty else 0

    def close(self, model: RunModel) -> None:
        """Print what is left and the summary."""
        with contextlib.suppress(Exception):
            lines = self._lines.new(model, wait=0.0)
            self._write(self._erase() + "".join(f"{line}\n" for line in lines) + summary_text(model) + "\n")
            self._drawn = 0

    def _erase(self) -> str:
        return f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""

    @property
    def _columns(self) -> int:
        return self._width or shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class LogLines:
    """Gives every line of the log once for every rank that wrote it."""

    def __init__(self) -> None:
        self._next = 0
        self._told: dict[int, set[int]] = {}

    def new(self, model: RunModel, *, wait: float) -> list[str]:
        """The lines not given yet; a line waits ``wait`` seconds for other ranks to say the same."""
        lines = []
        for entry in model.log:
            told = self._told.get(entry.number, set())
            fresh = [rank for rank in entry.ranks if rank not in told]
            if not fresh or (not told and model.now - entry.time < wait):
                continue
            self._told[entry.number] = told | set(fresh)
            lines.append(f"{_badge(fresh)} {entry.text}")
        return lines


def _badge(ranks: list[int]) -> str:
    return f"[{ranks[0]}]" if len(ranks) == 1 else f"[×{len(ranks)}]"


def live_lines(model: RunModel, columns: int) -> list[str]:
    """The bars, each cut to ``columns`` characters."""
    table = make_table(model)
    left = model.remaining()
    head = title(model) + (f" · about {words.roughly(left)} left" if left is not None else "")
    return [line[: columns - 1] for line in (head, *(_bar_line(row, table) for row in table.rows))]


def _bar_line(row: Row, table: Table) -> str:
    filled = round(BAR * (row.fraction or 0))
    bar = "█" * filled + "░" * (BAR - filled)
    return f"  {row.rank:>3} {row.doing[:28]:<28} {bar} {row.count:>11} {row.rate:>9} {row.metric:>9} {row.memory:>13}"


def plain_lines(model: RunModel) -> list[str]:
    """One line for each rank that is shown."""
    table = make_table(model)
    return [row_text(row, table.metric) for row in table.rows]
