"""The group of ranks over torch.distributed: how it is joined, used and kept."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ..contracts.errors import NotebookAccelError
from .base import Backend
from .group import Group, GroupOptions, OneRank, ReduceOp

_OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


def join_group(backend: Backend, options: GroupOptions) -> Group:
    """The default process group of this rank, made from the environment unless there is one already.

    Raises NotebookAccelError when the group that is there is not that of the rank's world.
    """
    world = backend.world
    if not dist.is_initialized():
        if world.size == 1:
            return OneRank()
        dist.init_process_group(
            options.backend or backend.group_backend,
            init_method=options.init_method,
            rank=world.rank,
            world_size=world.size,
            timeout=options.timeout,
        )
    there = (dist.get_rank(), dist.get_world_size())
    if there != (world.rank, world.size):
        raise NotebookAccelError(
            f"This process is rank {world.rank} of {world.size}, but its torch.distributed group says rank {there[0]} "
            f"of {there[1]}. Leave init_process_group to the Accelerator, or call it with rank={world.rank} and "
            f"world_size={world.size}."
        )
    return TorchGroup(backend) if world.size > 1 else OneRank()


class TorchGroup(Group):
    """The default process group; tensors travel on the backend's device."""

    def __init__(self, backend: Backend) -> None:
        self._device = backend.device
        self._device_ids = backend.ddp_device_ids()
        self._size = backend.world.size
        self._compare = backend.host_memory

    def barrier(self) -> None:
        dist.barrier(device_ids=self._device_ids)

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        own = tensor.detach().to(self._device).contiguous()
        if self._compare:
            self._refuse_unequal(own)
        parts = [torch.empty_like(own) for _ in range(self._size)]
        dist.all_gather(parts, own)
        return torch.cat(parts)

    def _refuse_unequal(self, tensor: torch.Tensor) -> None:
        """Raise ValueError on every rank when their tensors differ in shape or type: gloo would abort the process."""
        form = f"{tuple(tensor.shape)} {tensor.dtype}"
        own = torch.tensor(crc32(form.encode()))
        forms = [torch.empty_like(own) for _ in range(self._size)]
        dist.all_gather(forms, own)
        if any(int(other) != int(own) for other in forms):
            raise ValueError(
                f"The ranks' tensors differ: {', '.join(self.gather_objects(form))} on ranks 0 to {self._size - 1}. "
                "Make them equal first with accelerator.pad_across_processes(tensor), or use gather_object."
            )

    def all_reduce(self, tensor: torch.Tensor, op: ReduceOp) -> torch.Tensor:
        result = tensor.detach().clone().to(self._device).contiguous()
        dist.all_reduce(result, _OPS[op])
        return result

    def broadcast(self, tensor: torch.Tensor, source: int) -> torch.Tensor:
        dist.broadcast(tensor, src=source)
        return tensor

    def gather_objects(self, item: Any) -> list[Any]:
        items: list[Any] = [None] * self._size
        dist.all_gather_object(items, item)
        return items

    def broadcast_objects(self, items: list[Any], source: int) -> None:
        dist.broadcast_object_list(items, src=source)


class _KeptGroups(dict[Any, Any]):
    """c10d's table of process groups, which never lets go of a group once it has held it."""

    def __init__(self, groups: dict[Any, Any]) -> None:
        super().__init__(groups)
        self.kept = list(groups)

    def __setitem__(self, group: Any, value: Any) -> None:
        self.kept.append(group)
        super().__setitem__(group, value)


def keep_process_groups() -> None:
    """Hold a reference to every process group of this process, present and future, until it ends by ``os._exit``.

    The destructor of ProcessGroupGloo waits for its thread while it holds the GIL, and that thread may need the GIL:
    a function that calls ``destroy_process_group()`` and then drops the last reference, its DDP model, hangs for ever.
    """
    groups = c10d._pg_map
    if not isinstance(groups, _KeptGroups):
        c10d._pg_map = _KeptGroups(groups)
