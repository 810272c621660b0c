"""Who a rank is, and what it was told at its start."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from .reporting import NullReporter, Reporter


@dataclass(frozen=True, slots=True)
class World:
    """Place of one rank among all ranks; ``kind`` is the backend's name ("cpu", "cuda", ...)."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    node_rank: int = 0
    num_nodes: int = 1
    kind: str = "cpu"

    def as_env(self) -> dict[str, str]:
        """The variables that torch.distributed, HF Accelerate and Lightning Fabric read."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size),
            "GROUP_RANK": str(self.node_rank),
            "NODE_RANK": str(self.node_rank),
        }


@dataclass(frozen=True, slots=True)
class RankContext:
    """What the launcher decided for a rank: its world, the defaults of its Accelerator and where it reports to."""

    world: World
    mixed_precision: str = "no"
    gradient_accumulation_steps: int = 1
    seed: int | None = None
    project_dir: str | None = None
    reporter: Reporter = field(default_factory=NullReporter)


current_context: ContextVar[RankContext | None] = ContextVar("notebook_accel_rank", default=None)
"""Set while a launched rank runs; a context variable because ranks may be threads of one process."""
