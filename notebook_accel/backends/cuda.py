"""NVIDIA GPUs, one for each rank; ranks talk over NCCL."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..contracts.reporting import Value
from .base import Backend
from .group import Group, GroupOptions
from .torch_group import join_group


class CudaBackend(Backend):
    kind = "cuda"
    group_backend = "nccl"
    distributed_type = "MULTI_GPU"

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.world.local_rank)

    def start(self) -> None:
        torch.cuda.set_device(self.device)

    def join(self, options: GroupOptions) -> Group:
        return join_group(self, options)

    def read_later(self, tensor: torch.Tensor) -> Value:
        if tensor.is_cuda:
            return _Read(tensor)
        value: Value = tensor.item()
        return value

    def memory(self) -> Callable[[], tuple[int, int]] | None:
        device = self.device

        def used_and_there() -> tuple[int, int]:
            torch.cuda.set_device(device)  # a thread begins on GPU 0, where it would open a context of its own
            free, there = torch.cuda.mem_get_info(device)
            return there - free, there

        return used_and_there

    def release_memory(self) -> None:
        torch.cuda.empty_cache()

    def refuse_precision(self, precision: str) -> str:
        if precision != "bf16" or torch.cuda.is_bf16_supported(including_emulation=False):
            return ""
        name = torch.cuda.get_device_name(self.device)
        return (
            f'mixed_precision="bf16" needs a GPU of compute capability 8.0 or newer; this one is a {name}. '
            'Use mixed_precision="fp16".'
        )

    def ddp_device_ids(self) -> list[int] | None:
        return [self.world.local_rank]


class _Read:
    """A number that is being copied to the host.

    The copy is queued on the current stream, so what is done to the tensor afterwards comes after it.
    """

    __slots__ = ("_device", "_event", "_host")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._host = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        self._host.copy_(tensor.detach().reshape(()), non_blocking=True)
        self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch has no types here
        self._event.record(torch.cuda.current_stream(tensor.device))
        self._device = tensor.device

    def ready(self) -> bool:
        torch.cuda.set_device(self._device)  # asked by the reporting thread, which begins on GPU 0
        return bool(self._event.query())  # type: ignore[no-untyped-call]

    def value(self) -> float:
        self._event.synchronize()
        return self._host.item()
