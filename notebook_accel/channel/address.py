"""Where the channel of a run is: a Unix socket that only this user can reach."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile


class Address:
    """A listening Unix socket, mode 0600, in a folder of its own, mode 0700; bound before any rank starts."""

    def __init__(self) -> None:
        # Not in the run directory: a socket's path has at most about 100 characters.
        self._folder = tempfile.mkdtemp(prefix="nba-")
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
