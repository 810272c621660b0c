"""The host's processors; ranks talk over gloo."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..contracts.reporting import Value
from .base import Backend
from .group import Group, GroupOptions
from .torch_group import join_group


class CpuBackend(Backend):
    kind = "cpu"
    group_backend = "gloo"
    distributed_type = "MULTI_CPU"
    host_memory = True

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def start(self) -> None:
        return None

    def join(self, options: GroupOptions) -> Group:
        return join_group(self, options)

    def read_later(self, tensor: torch.Tensor) -> Value:
        value: Value = tensor.item()
        return value

    def memory(self) -> Callable[[], tuple[int, int]] | None:
        return None

    def release_memory(self) -> None:
        return None

    def refuse_precision(self, precision: str) -> str:
        return ""

    def ddp_device_ids(self) -> list[int] | None:
        return None
