"""A rank among the others: who it is, what only some ranks do, and the turns they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from ..data.splitting import split_inputs
from . import roles
from .joining import Place
from .options import DistributedType


class Rank:
    """One of the ranks that train together."""

    def __init__(self, place: Place) -> None:
        self._world, self._backend, self._group = place.world, place.backend, place.group

    @property
    def device(self) -> torch.device:
        """The rank's device."""
        return self._backend.device

    @property
    def num_processes(self) -> int:
        """How many ranks there are."""
        return self._world.size

    @property
    def process_index(self) -> int:
        """This rank, from 0."""
        return self._world.rank

    @property
    def local_process_index(self) -> int:
        """This rank among those of its machine, from 0."""
        return self._world.local_rank

    @property
    def is_main_process(self) -> bool:
        """Whether this is rank 0."""
        return self._world.rank == 0

    @property
    def is_local_main_process(self) -> bool:
        """Whether this is the first rank of its machine."""
        return self._world.local_rank == 0

    @property
    def is_last_process(self) -> bool:
        """Whether this is the last rank."""
        return self._world.rank == self._world.size - 1

    @property
    def use_distributed(self) -> bool:
        """Whether there is more than one rank."""
        return self._world.size > 1

    @property
    def distributed_type(self) -> DistributedType:
        """What kind of world this is; ``NO`` for a rank that is alone."""
        return DistributedType(self._backend.distributed_type) if self.use_distributed else DistributedType.NO

    def wait_for_everyone(self) -> None:
        """Wait until every rank is here."""
        self._group.barrier()

    def main_process_first(self) -> AbstractContextManager[None]:
        """A block that rank 0 goes through before the others enter it."""
        return roles.goes_first(self.is_main_process, self._group)

    def local_main_process_first(self) -> AbstractContextManager[None]:
        """A block that the first rank of each machine goes through before the others enter it."""
        return roles.goes_first(self.is_local_main_process, self._group)

    def on_main_process(self, function: Callable[..., Any] | None = None) -> Any:
        """Decorator: only rank 0 calls the function, the others get None."""
        return roles.decorator(self.is_main_process, function)

    def on_local_main_process(self, function: Callable[..., Any] | None = None) -> Any:
        """Decorator: only the first rank of each machine calls the function."""
        return roles.decorator(self.is_local_main_process, function)

    def on_last_process(self, function: Callable[..., Any] | None = None) -> Any:
        """Decorator: only the last rank calls the function."""
        return roles.decorator(self.is_last_process, function)

    def on_process(self, function: Callable[..., Any] | None = None, process_index: int | None = None) -> Any:
        """Decorator: only rank ``process_index`` calls the function (a rank that is alone always does)."""
        return roles.decorator(self._world.rank == process_index or not self.use_distributed, function)

    def on_local_process(
        self, function: Callable[..., Any] | None = None, local_process_index: int | None = None
    ) -> Any:
        """Decorator: only this rank of each machine calls the function (a rank that is alone always does)."""
        return roles.decorator(self._world.local_rank == local_process_index or not self.use_distributed, function)

    def print(self, *args: Any, **kwargs: Any) -> None:
        """``print`` once for each machine."""
        if self.is_local_main_process:
            print(*args, **kwargs)  # noqa: T201  # printing is what it is for

    @contextmanager
    def split_between_processes(self, inputs: Any, apply_padding: bool = False) -> Iterator[Any]:
        """This rank's part of a list, tuple, tensor or mapping; padded, every rank gets as many."""
        yield split_inputs(inputs, self._world.rank, self._world.size, apply_padding)
