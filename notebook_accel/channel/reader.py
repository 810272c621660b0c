"""The kernel's end of the channel: accepts ranks, cuts the stream into events, sends orders back."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
from collections.abc import Iterator

from ..contracts.events import Event, Hello, decode
from .address import Address

_CHUNK = 1 << 18


class _Peer:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rank: int | None = None
        self.rest = b""


class Reader:
    """Reads what the ranks send; single-threaded, driven by ``poll``."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._selector.register(address.listener, selectors.EVENT_READ)
        self._peers: dict[int, _Peer] = {}
        self.garbled = 0

    def watch(self, descriptor: int) -> None:
        """Wake ``poll`` also when this descriptor becomes readable (a process's sentinel)."""
        self._selector.register(descriptor, selectors.EVENT_READ, descriptor)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor given to ``watch``."""
        self._selector.unregister(descriptor)

    def poll(self, timeout: float) -> Iterator[tuple[bytes, Event]]:
        """Wait up to ``timeout`` seconds, then yield each complete event with its line."""
        for key, _ in self._selector.select(timeout):
            if key.fileobj is self._address.listener:
                self._accept()
            elif isinstance(key.data, _Peer):
                yield from self._read(key.data)

    def send(self, rank: int, order: str, **details: int) -> None:
        """Send an order to a rank that is connected; one that is gone is left to its sentinel."""
        peer = self._peers.get(rank)
        if peer is None:
            return
        with contextlib.suppress(OSError):
            peer.connection.send(json.dumps({"order": order, **details}).encode() + b"\n")

    def close(self) -> None:
        """Close every connection."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Peer):
                key.data.connection.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._address.listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, _Peer(connection))

    def _read(self, peer: _Peer) -> Iterator[tuple[bytes, Event]]:
        try:
            chunk = peer.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._selector.unregister(peer.connection)
            peer.connection.close()
            if peer.rank is not None:
                self._peers.pop(peer.rank, None)
            return
        *lines, peer.rest = (peer.rest + chunk).split(b"\n")
        for line in lines:
            try:
                event = decode(line)
            except ValueError:
                self.garbled += 1
                continue
            if isinstance(event, Hello):
                peer.rank = event.rank
                self._peers[event.rank] = peer
            yield line, event
