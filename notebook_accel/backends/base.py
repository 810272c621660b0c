"""What differs from one kind of device to the next; each kind is one file beside this one."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import torch

    from ..contracts.reporting import Value
    from ..contracts.world import World


class Backend(abc.ABC):
    """One kind of device, bound to one rank."""

    kind: ClassVar[str]
    group_backend: ClassVar[str]
    """The torch.distributed backend for its collectives ("gloo", "nccl")."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    @abc.abstractmethod
    def device(self) -> torch.device:
        """The device of this rank."""

    @abc.abstractmethod
    def start(self) -> None:
        """Claim the device; called once, in the rank, before anything is placed on it."""

    @abc.abstractmethod
    def read_later(self, tensor: torch.Tensor) -> Value:
        """The value of a one-element tensor as of now, without waiting for the device."""

    @abc.abstractmethod
    def memory(self) -> Callable[[], tuple[int, int]] | None:
        """A function giving (bytes used, bytes there are), or None for the process's resident memory."""

    @abc.abstractmethod
    def refuse_precision(self, precision: str) -> str:
        """Why this device cannot train in ``precision`` and what to use instead; "" when it can."""

    @abc.abstractmethod
    def ddp_device_ids(self) -> list[int] | None:
        """``device_ids`` for DistributedDataParallel."""
