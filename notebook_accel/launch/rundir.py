"""The folder of a run: its events, a log file per rank, what the ranks gave back. The screen is a view of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from ..contracts.events import Event, encode

_KEPT = 50
_EVENTS = "events.jsonl"


class RunDirectory:
    """A new folder, mode 0700, below ``parent`` (None: the user's cache, where the newest 50 are kept)."""

    def __init__(self, parent: str | None = None) -> None:
        above = _made(Path(parent).expanduser().absolute()) if parent is not None else _cache()
        self.run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self.path = above / self.run_id
        self.path.mkdir(mode=0o700)
        self._events: IO[bytes] = open(self.path / _EVENTS, "ab")  # noqa: SIM115 - open as long as the run
        # As long as this kernel or a rank has the file open, nobody prunes the run; not every network folder has locks.
        with contextlib.suppress(OSError):
            _lock(self._events)

    def log_path(self, rank: int) -> str:
        """The file with everything that a rank printed."""
        return str(self.path / f"rank-{rank}.log")

    def write_line(self, line: bytes) -> None:
        """Append one encoded event."""
        self._events.write(line + b"\n")

    def write(self, event: Event) -> None:
        """Append one event."""
        self._events.write(encode(event))

    def flush(self) -> None:
        """Hand what was written to the operating system."""
        self._events.flush()

    def close(self) -> None:
        """Close the event file."""
        self._events.close()


def default_parent() -> Path:
    """Where runs are kept unless ``run_dir`` says otherwise: below the user's cache directory."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "notebook_accel" / "runs"


def _cache() -> Path:
    try:
        parent = _made(default_parent())
    except OSError:
        # A home that cannot be written to, as in some containers.
        parent = _made(Path(tempfile.gettempdir()) / f"notebook_accel-{os.getuid()}")
    _prune(parent)
    return parent


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _prune(parent: Path) -> None:
    """Remove the oldest runs, by name, which begins with the time of the launch; not those that go on."""
    runs = sorted(path for path in parent.iterdir() if (path / _EVENTS).exists())
    for path in runs[: -_KEPT + 1]:
        with contextlib.suppress(OSError), open(path / _EVENTS, "rb") as events:
            _lock(events)
            shutil.rmtree(path, ignore_errors=True)


def _lock(file: IO[bytes]) -> None:
    """Raises OSError (BlockingIOError) when another run, of any kernel, has it."""
    import fcntl  # not on Windows, where the launch is refused in plain words

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
