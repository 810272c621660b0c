"""The ranks' output as one log: identical lines of several ranks are one entry."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .lines import LineSplitter

Tone = Literal["plain", "warning", "error", "note"]

KEPT = 1_000
FOLD_WINDOW = 200
_WARNING = re.compile(r"Warning\b|\bwarn(ing)?\b|\bWARN(ING)?\b")
# What libraries print of themselves at every start; it stays in the log file.
_NOISE = re.compile(r"\[Gloo\] Rank \d+ is connected to \d+ peer ranks")
_ERROR = re.compile(r"^Traceback \(most|^\s*(\w+\.)*\w*(Error|Exception|Interrupt)(:|$)|\b(ERROR|CRITICAL|FATAL)\b")


@dataclass(slots=True, eq=False)
class LogEntry:
    """One line and the ranks that wrote it; ``number`` counts from 0, ``time`` is the first writer's."""

    number: int
    time: float
    text: str
    ranks: list[int]
    tone: Tone = "plain"


def tone_of(line: str) -> Tone:
    """Whether a line reads like a warning or an error."""
    if _ERROR.search(line):
        return "error"
    return "warning" if _WARNING.search(line) else "plain"


class LogBook:
    """The last ``kept`` entries; a line folds into the same line of another rank among the last ``window`` ones."""

    def __init__(self, kept: int = KEPT, window: int = FOLD_WINDOW) -> None:
        self._entries: deque[LogEntry] = deque(maxlen=kept)
        self._window: deque[LogEntry] = deque()
        self._window_size = window
        self._recent: dict[str, deque[LogEntry]] = {}
        self._splitters: dict[int, LineSplitter] = {}
        self.total = 0
        self.version = 0

    def write(self, rank: int, time: float, text: str, skipped: int = 0) -> None:
        """New output of a rank; ``skipped`` bytes before it were left out."""
        splitter = self._splitters.setdefault(rank, LineSplitter())
        if skipped:
            self._add(rank, time, splitter.flush())
            self._append(LogEntry(self.total, time, f"… {skipped:,} bytes are only in the log file", [rank], "note"))
        for line in splitter.feed(text):
            self._add(rank, time, line)
        self.version += 1

    def flush(self, time: float) -> None:
        """End every open line."""
        for rank, splitter in self._splitters.items():
            self._add(rank, time, splitter.flush())
        self.version += 1

    def _add(self, rank: int, time: float, line: str) -> None:
        if not line or _NOISE.match(line):
            return
        for entry in self._recent.get(line, ()):
            if rank not in entry.ranks:
                entry.ranks.append(rank)
                entry.ranks.sort()
                return
        self._append(LogEntry(self.total, time, line, [rank], tone_of(line)))

    def _append(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        self._window.append(entry)
        self._recent.setdefault(entry.text, deque()).append(entry)
        self.total += 1
        if len(self._window) > self._window_size:
            self._close(self._window.popleft())

    def _close(self, entry: LogEntry) -> None:
        """No later line folds into this entry."""
        same = self._recent[entry.text]
        same.popleft()
        if not same:
            del self._recent[entry.text]

    def tail(self, count: int) -> list[LogEntry]:
        """The last ``count`` entries, oldest first."""
        entries = list(self._entries)
        return entries[-count:] if count > 0 else []

    def open_lines(self) -> Iterator[tuple[int, str]]:
        """The lines that have not ended yet, by rank."""
        for rank, splitter in sorted(self._splitters.items()):
            if rest := splitter.rest:
                yield rank, rest

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(list(self._entries))
