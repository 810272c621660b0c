"""How an Accelerator finds its place: the launcher's word, the environment, or a process alone."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from ..backends.base import Backend
from ..backends.group import Group, GroupOptions
from ..backends.selection import make_backend, world_from
from ..contracts.world import RankContext, World, current_context


@dataclass(frozen=True, slots=True)
class Place:
    """A rank's place in the world, and what the launcher told it."""

    world: World
    backend: Backend
    group: Group
    context: RankContext


def take_place(cpu: bool, options: GroupOptions) -> Place:
    """Claim the rank's device and join the other ranks; ``cpu`` keeps off a GPU that is there."""
    context = current_context.get() or RankContext(world_from(os.environ, cpu))
    world = replace(context.world, kind="cpu") if cpu else context.world
    backend = make_backend(world)
    backend.start()
    group = backend.join(options)
    context.reporter.memory = backend.memory()
    return Place(world, backend, group, context)
