"""From raw terminal text to the lines a reader would see."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b.?", re.DOTALL
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_OPEN_LIMIT = 20_000
LINE_LIMIT = 2_000


def visible(line: str) -> str:
    """What stays visible of one line: the text after the last carriage return, without escape sequences."""
    line = line.rstrip("\r").rpartition("\r")[2]
    line = _CONTROLS.sub("", _ESCAPES.sub("", line)).rstrip()
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"


def visible_text(text: str) -> str:
    """What stays visible of several lines."""
    return "\n".join(visible(line) for line in text.split("\n")).rstrip("\n")


class LineSplitter:
    """Cuts a stream of text chunks into visible lines; ``rest`` is the line that has not ended yet."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open = ""

    def feed(self, text: str) -> list[str]:
        """The lines that ended in ``text``."""
        *ended, self._open = (self._open + text).split("\n")
        if len(self._open) > _OPEN_LIMIT:
            self._open = self._open.rstrip("\r").rpartition("\r")[2][:_OPEN_LIMIT]
        return [visible(line) for line in ended]

    @property
    def rest(self) -> str:
        """The visible part of the line that has not ended yet."""
        return visible(self._open)

    def flush(self) -> str:
        """End the open line and return it."""
        line, self._open = self.rest, ""
        return line
