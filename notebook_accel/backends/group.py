"""The ranks as a group: what they can do together, and the group of one."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch

ReduceOp = Literal["sum", "max"]


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """How a group is made: ``backend`` None is that of the device kind, ``timeout`` None that of torch."""

    backend: str | None = None
    init_method: str | None = None
    timeout: timedelta | None = None


class Group(abc.ABC):
    """All ranks of the run; every method is called by all of them, in the same order."""

    @abc.abstractmethod
    def barrier(self) -> None:
        """Wait until every rank is here."""

    @abc.abstractmethod
    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """The ranks' tensors, all of the same shape, one after the other along dimension 0."""

    @abc.abstractmethod
    def all_reduce(self, tensor: torch.Tensor, op: ReduceOp) -> torch.Tensor:
        """A new tensor: the ranks' tensors combined element by element."""

    @abc.abstractmethod
    def broadcast(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        """``tensor`` itself, overwritten with that of rank ``source``."""

    @abc.abstractmethod
    def gather_objects(self, item: Any) -> list[Any]:
        """Every rank's object, in the order of ranks."""

    @abc.abstractmethod
    def broadcast_objects(self, items: list[Any], source: int) -> None:
        """Overwrite the items of the list with those of rank ``source``."""


class OneRank(Group):
    """The group of a rank that is alone."""

    def barrier(self) -> None:
        return None

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def all_reduce(self, tensor: torch.Tensor, op: ReduceOp) -> torch.Tensor:
        return tensor.clone()

    def broadcast(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        return tensor

    def gather_objects(self, item: Any) -> list[Any]:
        return [item]

    def broadcast_objects(self, items: list[Any], source: int) -> None:
        return None
