"""Options of the Accelerator, under the names that Accelerate gave them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar


class DistributedType(StrEnum):
    """What kind of world a rank is in."""

    NO = "NO"
    MULTI_CPU = "MULTI_CPU"
    MULTI_GPU = "MULTI_GPU"


@dataclass
class DataLoaderConfiguration:
    """How prepared loaders share their data.

    ``split_batches``: a loader's batch size is that of all ranks together. ``even_batches``: every rank gets the same
    number of equal batches, filled up from the start of the data. ``use_seedable_sampler``: shuffle by arithmetic from
    ``data_seed`` (default: torch's initial seed) on a single rank too. ``non_blocking``: batches are copied to the
    device while the host goes on.
    """

    split_batches: bool = False
    even_batches: bool = field(default=True, kw_only=True)
    use_seedable_sampler: bool = field(default=False, kw_only=True)
    data_seed: int | None = field(default=None, kw_only=True)
    non_blocking: bool = field(default=False, kw_only=True)


@dataclass
class GradientAccumulationPlugin:
    """How gradients are accumulated.

    ``num_steps``: backward passes for one optimizer step. ``adjust_scheduler``: a scheduler counts the passes between
    as steps it has seen, without moving (Accelerate says True by default but acts as with False).
    ``sync_with_dataloader``: the last batch of a loader ends a window.
    ``sync_each_batch``: ranks exchange gradients at every pass (more traffic, less memory).
    """

    num_steps: int | None = None
    adjust_scheduler: bool = False
    sync_with_dataloader: bool = True
    sync_each_batch: bool = False


@dataclass
class DistributedDataParallelKwargs:
    """Arguments of torch's DistributedDataParallel."""

    dim: int = 0
    broadcast_buffers: bool = True
    bucket_cap_mb: int = 25
    find_unused_parameters: bool = False
    check_reduction: bool = False
    gradient_as_bucket_view: bool = False
    static_graph: bool = False


@dataclass
class GradScalerKwargs:
    """Arguments of torch.amp.GradScaler, used with ``mixed_precision="fp16"``."""

    init_scale: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000
    enabled: bool = True


@dataclass
class InitProcessGroupKwargs:
    """Arguments of torch.distributed.init_process_group; ``backend`` None is that of the device."""

    backend: str | None = None
    init_method: str | None = None
    timeout: timedelta | None = None


@dataclass
class AutocastKwargs:
    """Arguments of torch.autocast; ``cache_enabled`` None is torch's default."""

    enabled: bool = True
    cache_enabled: bool | None = None


def changed(options: Any) -> dict[str, Any]:
    """The fields of an options object that are not at their defaults, so that torch's own defaults stay torch's."""
    return {f.name: getattr(options, f.name) for f in fields(options) if getattr(options, f.name) != f.default}


_KINDS = (DistributedDataParallelKwargs, GradScalerKwargs, InitProcessGroupKwargs, AutocastKwargs)
H = TypeVar("H")


class Handlers:
    """The ``kwargs_handlers`` of an Accelerator, one of each kind at most.

    Raises TypeError for an unknown kind, ValueError for two of the same.
    """

    def __init__(self, handlers: list[Any] | None) -> None:
        self._by_kind: dict[type, Any] = {}
        for handler in handlers or []:
            kind = type(handler)
            if kind not in _KINDS:
                names = ", ".join(known.__name__ for known in _KINDS)
                raise TypeError(f"kwargs_handlers takes {names}; you passed {handler!r:.100}.")
            if kind in self._by_kind:
                raise ValueError(f"kwargs_handlers holds two {kind.__name__}. Pass one of them.")
            self._by_kind[kind] = handler

    def get(self, kind: type[H]) -> H:
        """The handler of this kind, or one with the defaults."""
        found: H = self._by_kind.get(kind) or kind()
        return found


def loader_options(config: DataLoaderConfiguration | None, split_batches: bool) -> DataLoaderConfiguration:
    """The configuration, a copy of the user's, with ``split_batches`` if either says so."""
    config = config or DataLoaderConfiguration()
    return replace(config, split_batches=config.split_batches or split_batches)


def accumulation_plugin(
    plugin: GradientAccumulationPlugin | None, steps: int | None, default: int
) -> GradientAccumulationPlugin:
    """The plugin with its number of steps: its own, else ``steps``, else ``default``.

    Raises ValueError when both the plugin and ``steps`` give one, or when it is no positive whole number.
    """
    plugin = plugin or GradientAccumulationPlugin()
    if plugin.num_steps is not None and steps not in (None, 1):
        raise ValueError(
            f"gradient_accumulation_steps={steps} and a plugin with num_steps={plugin.num_steps} were passed. "
            "Pass one of them."
        )
    chosen = plugin.num_steps or steps or default
    if type(chosen) is not int or chosen < 1:
        raise ValueError(f"gradient_accumulation_steps is a whole number, 1 or more; you passed {chosen!r}.")
    return replace(plugin, num_steps=chosen)
