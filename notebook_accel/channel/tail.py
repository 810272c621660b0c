"""Follows a rank's log file, so that its output reaches the screen although nothing but the file receives it.

A file as the target of descriptors 1 and 2 never blocks a rank, keeps every byte (C++ output and the last words of a
killed process too) and needs no thread in the rank.
"""

from __future__ import annotations

import codecs
import os

_PER_LOOK = 1 << 16
_BEHIND = 1 << 20


class Tail:
    """New text of a growing file; skips ahead, and counts it, when the file grows faster than it can be shown.

    Args:
        new: leave out what is there already.
    """

    def __init__(self, path: str, *, new: bool = False) -> None:
        self._path = path
        self._at = self._size() if new else 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def look(self) -> tuple[str, int]:
        """Text added since the last look (at most 64 KiB) and the number of bytes skipped before it."""
        size = self._size()
        if size <= self._at:
            return "", 0
        skipped = size - _PER_LOOK - self._at if size - self._at > _BEHIND else 0
        if skipped:
            self._at += skipped
            self._decoder.reset()
        return self._decoder.decode(self._read(_PER_LOOK)), skipped

    def rest(self, end: int = -1) -> tuple[str, int]:
        """What is left at the end: at most the last 64 KiB, and the bytes skipped before it.

        Args:
            end: size in bytes up to which the file is of interest; -1: all of it.
        """
        left = (self._size() if end < 0 else end) - self._at
        skipped = max(0, left - _PER_LOOK)
        self._at += skipped
        return self._decoder.decode(self._read(left - skipped), True), skipped

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def _read(self, count: int) -> bytes:
        if count <= 0:
            return b""
        with open(self._path, "rb") as file:
            file.seek(self._at)
            data = file.read(count)
        self._at += len(data)
        return data


def last_lines(path: str, count: int, limit: int = 1 << 16) -> tuple[str, ...]:
    """The last non-empty lines of a file (of its last ``limit`` bytes)."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - limit))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return tuple(line.rstrip() for line in lines if line.strip())[-count:]
