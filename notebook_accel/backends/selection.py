"""Which backend a rank gets, and which rank this process is when no launcher said so."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..contracts.errors import NotebookAccelError
from ..contracts.world import World
from .base import Backend
from .cpu import CpuBackend
from .cuda import CudaBackend

_KINDS: dict[str, type[Backend]] = {backend.kind: backend for backend in (CpuBackend, CudaBackend)}


def make_backend(world: World) -> Backend:
    """The backend of ``world.kind``; raises NotebookAccelError for a kind there is none of."""
    backend = _KINDS.get(world.kind)
    if backend is None:
        raise NotebookAccelError(f"There is no device kind {world.kind!r}. Use one of {', '.join(map(repr, _KINDS))}.")
    return backend(world)


def world_from(environ: Mapping[str, str], cpu: bool = False) -> World:
    """The world that torchrun's variables describe (RANK, WORLD_SIZE, LOCAL_RANK, ...), or that of a process alone.

    ``cpu`` keeps the rank off a GPU. Raises NotebookAccelError when only one of RANK and WORLD_SIZE is set.
    """
    kind = "cuda" if not cpu and torch.cuda.is_available() else "cpu"
    if "RANK" not in environ and "WORLD_SIZE" not in environ:
        return World(kind=kind)
    try:
        rank, size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
    except KeyError as missing:
        raise NotebookAccelError(
            f"{missing.args[0]} is not in the environment although its partner is: set both RANK and WORLD_SIZE "
            "(torchrun does), or neither for a process alone."
        ) from None
    local_size = int(environ.get("LOCAL_WORLD_SIZE", size))
    return World(
        rank=rank,
        size=size,
        local_rank=int(environ.get("LOCAL_RANK", rank % local_size)),
        local_size=local_size,
        node_rank=int(environ.get("GROUP_RANK", rank // local_size)),
        num_nodes=size // local_size,
        kind=kind,
    )
