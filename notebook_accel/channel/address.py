"""Where the channel of a run is: a Unix socket that only this user can reach."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

_PREFIX = "nba-"
_STALE_S = 60


class Address:
    """A listening Unix socket, mode 0600, in a folder of its own, mode 0700; bound before any rank starts."""

    def __init__(self) -> None:
        _remove_stale()
        # Not in the run directory: a socket's path has at most about 100 characters.
        self._folder = tempfile.mkdtemp(prefix=_PREFIX)
        self.path = os.path.join(self._folder, "channel")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self.listener.listen(128)
        self.listener.setblocking(False)

    def close(self) -> None:
        """Stop listening and remove the folder."""
        self.listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _remove_stale() -> None:
    """Remove what kernels that were killed left behind: folders of this user whose socket nobody listens to."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            known = folder.stat()
            # One that was made just now may not listen yet.
            if known.st_uid != os.getuid() or time.time() - known.st_mtime < _STALE_S:
                continue
            try:
                probe.connect(str(folder / "channel"))
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)
