"""What differs from one kind of device to the next; each kind is one file beside this one."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import torch

    from ..contracts.reporting import Value
    from ..contracts.world import World
    from .group import Group, GroupOptions


class Backend(abc.ABC):
    """One kind of device, bound to one rank."""

    kind: ClassVar[str]
    group_backend: ClassVar[str]
    """The torch.distributed backend for its collectives ("gloo", "nccl")."""
    distributed_type: ClassVar[str]
    """What several ranks of this kind are called in Accelerate's vocabulary ("MULTI_CPU", "MULTI_GPU")."""
    host_memory: ClassVar[bool] = False
    """Whether the device computes on the host's memory, so that a batch need not be moved to it."""

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
    def join(self, options: GroupOptions) -> Group:
        """The group of all ranks; made now unless the process has one already."""

    @abc.abstractmethod
    def read_later(self, tensor: torch.Tensor) -> Value:
        """The value of a one-element tensor as of now, without waiting for the device."""

    @abc.abstractmethod
    def memory(self) -> Callable[[], tuple[int, int]] | None:
        """A function giving (bytes used, bytes there are), or None for the process's resident memory."""

    @abc.abstractmethod
    def release_memory(self) -> None:
        """Give cached memory of the device back."""

    @abc.abstractmethod
    def refuse_precision(self, precision: str) -> str:
        """Why this device cannot train in ``precision`` and what to use instead; "" when it can."""

    @abc.abstractmethod
    def ddp_device_ids(self) -> list[int] | None:
        """``device_ids`` for DistributedDataParallel."""
