"""``prepare``: each object made ready by its kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from ..data.loader import LoadersInUse, PreparedLoader
from ..data.rebuild import Agree, Sharing, rebuild
from ..tensors.nested import move
from .accumulation import Accumulation
from .joining import Place
from .optimizer import AcceleratedOptimizer
from .options import DataLoaderConfiguration, DistributedDataParallelKwargs
from .precision import Precision
from .progress import LoaderBars
from .randomness import draw_seed
from .replicate import replicate
from .scheduler import AcceleratedScheduler


@dataclass(frozen=True, slots=True)
class Choices:
    """What the Accelerator was told about preparing."""

    device_placement: bool
    loaders: DataLoaderConfiguration
    ddp: DistributedDataParallelKwargs
    step_scheduler_with_optimizer: bool


class Preparation:
    """Makes objects ready for the rank and remembers them; what is ready already is left as it is."""

    def __init__(
        self, place: Place, precision: Precision, accumulation: Accumulation, in_use: LoadersInUse, choices: Choices
    ) -> None:
        self.models: list[torch.nn.Module] = []
        self.optimizers: list[AcceleratedOptimizer] = []
        self.schedulers: list[AcceleratedScheduler] = []
        self.loaders: list[PreparedLoader] = []
        self.choices = choices
        self._place = place
        self._precision = precision
        self._accumulation = accumulation
        self._in_use = in_use
        self._bars = LoaderBars(place.context.reporter, self.models)

    def all(self, objects: Sequence[Any], placements: Sequence[bool | None]) -> list[Any]:
        """The objects in order; schedulers come last because they look for their optimizer among the prepared ones."""
        first = [self._one(item, placed) for item, placed in zip(objects, placements, strict=True)]
        return [self.scheduler(item) if isinstance(item, LRScheduler) else item for item in first]

    def _one(self, item: Any, placed: bool | None) -> Any:
        if isinstance(item, DataLoader):
            return self.loader(item, placed)
        if isinstance(item, torch.nn.Module):
            return self.model(item, placed)
        if isinstance(item, torch.optim.Optimizer):
            return self.optimizer(item, placed)
        return item

    def model(self, model: torch.nn.Module, placed: bool | None = None, evaluation: bool = False) -> torch.nn.Module:
        if _among(model, self.models):
            return model
        self._precision.wrap_forward(model)
        if self._places(placed):
            model = model.to(self._place.backend.device)
        if not evaluation:
            model = replicate(model, self._place.backend, self.choices.ddp)
        self.models.append(model)
        return model

    def optimizer(self, optimizer: torch.optim.Optimizer, placed: bool | None = None) -> AcceleratedOptimizer:
        if isinstance(optimizer, AcceleratedOptimizer):
            if not _among(optimizer, self.optimizers):
                self.optimizers.append(optimizer)
            return optimizer
        if optimizer.state and self._places(placed) and not self._place.backend.host_memory:
            optimizer.load_state_dict(optimizer.state_dict())  # which moves it to where the parameters are now
        prepared = AcceleratedOptimizer(optimizer, self._accumulation, self._precision.scaling)
        self.optimizers.append(prepared)
        return prepared

    def scheduler(self, scheduler: LRScheduler) -> AcceleratedScheduler:
        own = [item for item in self.optimizers if scheduler.optimizer in (item, item.optimizer)]
        prepared = AcceleratedScheduler(
            scheduler,
            own or self.optimizers,
            self._accumulation,
            repeat=1 if self.choices.loaders.split_batches else self._place.world.size,
            with_optimizer=self.choices.step_scheduler_with_optimizer,
        )
        self.schedulers.append(prepared)
        return prepared

    def loader(self, loader: DataLoader[Any], placed: bool | None = None) -> PreparedLoader:
        if isinstance(loader, PreparedLoader):
            if not _among(loader, self.loaders):
                self.loaders.append(loader)
            return loader
        options, world = self.choices.loaders, self._place.world
        sharing = Sharing(world.rank, world.size, options.split_batches, options.even_batches)
        place: Callable[[Any], Any] | None = None
        if self._places(placed) and not self._place.backend.host_memory:
            place = partial(move, device=self._place.backend.device, non_blocking=options.non_blocking)
        shared = rebuild(loader, sharing, self._seeding(loader))
        prepared = PreparedLoader(shared, place, self._in_use, self._bars.show)
        self.loaders.append(prepared)
        return prepared

    def _seeding(self, loader: DataLoader[Any]) -> Agree | None:
        """How the seed of a loader's shuffling is found; None: torch shuffles as it does without an Accelerator."""
        options, default = self.choices.loaders, self._place.context.seed
        if options.data_seed is not None:
            return lambda _: options.data_seed or 0
        if options.use_seedable_sampler:
            return lambda _: self._of_rank_0(torch.initial_seed())
        if default is not None and loader.generator is None:
            return lambda _: default
        if self._place.world.size == 1:
            return None
        return lambda generator: self._of_rank_0(draw_seed(generator))

    def _of_rank_0(self, seed: int) -> int:
        seeds = [seed]
        self._place.group.broadcast_objects(seeds, 0)
        return seeds[0]

    def _places(self, placed: bool | None) -> bool:
        return self.choices.device_placement if placed is None else placed

    def unscaled(self, parameters: Any) -> list[torch.Tensor]:
        """The parameters in a list, the fp16 loss scale divided out of the gradients of their optimizers."""
        chosen = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        if self._precision.scaling is not None:
            known = {id(parameter) for parameter in chosen}
            for optimizer in self.optimizers:
                groups = optimizer.param_groups
                if any(id(parameter) in known for group in groups for parameter in group["params"]):
                    optimizer.unscale()
        return chosen

    def forget(self) -> None:
        """Let go of everything that was prepared."""
        for kept in (self.models, self.optimizers, self.schedulers, self.loaders):
            kept.clear()


def _among(item: object, items: Sequence[object]) -> bool:
    return any(item is known for known in items)
