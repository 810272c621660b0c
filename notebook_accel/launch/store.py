"""The meeting point of the ranks' process groups: a store that the kernel hosts on a port nobody had to choose."""

from __future__ import annotations

import importlib
import itertools
import socket
import sys
from typing import Any


class MeetingPoint:
    """A ``torch.distributed.TCPStore`` on the loopback interface, bound before any rank starts.

    Ranks reach it through the environment, so ``init_process_group()``, HF Accelerate and Lightning Fabric find it
    like one that torchrun hosts (``TORCHELASTIC_USE_AGENT_STORE``: every rank is a client).

    Args:
        port: the port wished for (None or 0: any free one); one that is taken is replaced by a free one.
    """

    def __init__(self, port: int | None = None) -> None:
        from torch._C._distributed_c10d import TCPStore

        listener = _listen(port or 0)
        self.port: int = listener.getsockname()[1]
        self.wished_for = not port or port == self.port
        self._store: Any = TCPStore(
            "127.0.0.1", self.port, None, True, master_listen_fd=listener.detach(), wait_for_workers=False
        )

    def as_env(self) -> dict[str, str]:
        """The variables that lead a rank here; gloo and NCCL stay on the loopback interface too."""
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        return {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            # By this Lightning Fabric knows that its ranks have been started already.
            "TORCHELASTIC_RUN_ID": "notebook_accel",
            "GLOO_SOCKET_IFNAME": loopback,
            "NCCL_SOCKET_IFNAME": loopback,
        }

    def close(self) -> None:
        """Stop serving."""
        self._store = None


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def number_process_groups() -> None:
    """In a rank: let ``init_process_group()`` work again after ``destroy_process_group()``.

    The store outlives the group, so a second group would read the addresses of the first; each gets keys of its own.
    """
    from torch._C._distributed_c10d import PrefixStore

    # By its module name: torch.distributed.rendezvous, the attribute, is a function of the same name.
    handlers = importlib.import_module("torch.distributed.rendezvous")._rendezvous_handlers
    plain = handlers["env"]
    count = itertools.count()

    def numbered(*args: Any, **kwargs: Any) -> Any:
        for store, rank, size in plain(*args, **kwargs):
            yield PrefixStore(f"group{next(count)}", store), rank, size

    handlers["env"] = numbered
