"""A user's DataLoader made again for one rank."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, IterableDataset

from .samplers import UNKNOWN, BatchShare, SampleShare, SizedStreamShare, StreamShare
from .sharding import Share

_KEPT_OPTIONS = (
    "num_workers",
    "collate_fn",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
    "in_order",
)


class CountsRemainder(Protocol):
    """A sampler or stream that counts the real samples of its last turn."""

    remainder: int
    share: Share


@dataclass(frozen=True, slots=True)
class Sharing:
    """How loaders are shared: among whom, and whether a batch is what one rank gets (or, ``split``, all together)."""

    rank: int
    size: int
    split: bool = False
    even: bool = True


@dataclass(frozen=True, slots=True)
class RankLoader:
    """A loader of one rank's batches.

    ``batch_size`` is what the rank gets, ``total_batch_size`` what all get together (None: varying). Before each epoch
    ``generators`` are seeded with ``seed + epoch``: so every rank draws the same permutation without asking another,
    and the same that HF Accelerate's seedable sampler draws.
    """

    base: DataLoader[Any]
    batch_size: int | None
    total_batch_size: int | None
    counted: CountsRemainder | None = None
    seed: int = 0
    generators: list[torch.Generator] = field(default_factory=list)

    @property
    def remainder(self) -> int:
        """The real samples of the last turn over all ranks, once it is reached (0: all of them, -1: not known)."""
        return UNKNOWN if self.counted is None else self.counted.remainder

    def begin_epoch(self, epoch: int) -> None:
        """Set generators, samplers and the dataset to epoch ``epoch`` (from 0)."""
        for generator in self.generators:
            generator.manual_seed((self.seed + epoch) % 2**63)
        for part in _parts(self.base):
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)


Agree = Callable[[torch.Generator | None], int]
"""Gives a shuffling seed that is the same on all ranks, from the user's own generator if there is one."""


def rebuild(loader: DataLoader[Any], sharing: Sharing, agree: Agree | None) -> RankLoader:
    """The loader of one rank; ``agree`` None leaves shuffling to torch, which only a rank that is alone may do.

    Raises ValueError when a batch is to be split and its size is no multiple of the number of ranks.
    """
    total = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    own = total
    if sharing.split:
        own = _split_size(total, sharing.size)
    elif total is not None:
        total *= sharing.size
    seeds: list[torch.Generator] = []
    source = _source(loader) if agree is None else _with_own_generator(_source(loader), seeds)
    if _shared_already(loader, sharing) or (source is _source(loader) and sharing.size == 1):
        return RankLoader(loader, own, total)
    if sharing.size > 1:
        source = _share(loader, source, own, sharing)
    counted = source if isinstance(source, BatchShare) or (isinstance(source, StreamShare) and own) else None
    seed = agree(_user_generator(loader)) if agree and seeds else 0
    return RankLoader(_load(loader, source, own), own, total, counted, seed, seeds)


def _split_size(total: int | None, size: int) -> int:
    if total is None or total % size:
        raise ValueError(
            f"With split_batches=True a batch is cut into {size} equal parts, one for each rank; this loader's batch "
            f"size is {total}. Use a batch size that is a multiple of {size}."
        )
    return total // size


def _source(loader: DataLoader[Any]) -> Any:
    """What decides the order: the iterable dataset, the batch sampler, or the sampler of a loader without batches."""
    if isinstance(loader.dataset, IterableDataset):
        return loader.dataset
    return loader.sampler if loader.batch_sampler is None else loader.batch_sampler


def _shared_already(loader: DataLoader[Any], sharing: Sharing) -> bool:
    sampler = loader.sampler
    return isinstance(sampler, DistributedSampler) and sampler.num_replicas == sharing.size > 1


def _user_generator(loader: DataLoader[Any]) -> torch.Generator | None:
    found = [getattr(part, "generator", None) for part in _parts(loader)]
    return next((generator for generator in found if isinstance(generator, torch.Generator)), None)


def _parts(loader: DataLoader[Any]) -> list[Any]:
    """The loader's dataset and samplers, those inside others included."""
    parts: list[Any] = [loader.dataset, loader.batch_sampler, loader.sampler]
    for part in parts:
        inner = [getattr(part, name, None) for name in ("sampler", "batch_sampler")]
        parts += [item for item in inner if not any(item is known for known in parts)]
    return [part for part in parts if part is not None]


def _with_own_generator(source: Any, made: list[torch.Generator]) -> Any:
    """The source, or a copy that draws from a generator of its own, which is added to ``made``."""
    stream = isinstance(source, IterableDataset)
    inner = None if stream else getattr(source, "sampler", None)
    own_inner = None if inner is None else _with_own_generator(inner, made)
    draws = isinstance(getattr(source, "generator", 0), torch.Generator if stream else torch.Generator | None)
    if own_inner is inner and not draws:
        return source
    result = copy.copy(source)
    if own_inner is not inner:
        result.sampler = own_inner
    if draws:
        made.append(torch.Generator())
        result.generator = made[-1]
    return result


def _share(loader: DataLoader[Any], source: Any, own_size: int | None, sharing: Sharing) -> Any:
    """One rank's share of what decides the order."""
    if isinstance(source, IterableDataset):
        share = Share(sharing.rank, sharing.size, sharing.even, loader.drop_last)
        kind = SizedStreamShare if hasattr(source, "__len__") else StreamShare
        return kind(source, own_size or 1, share)
    share = Share(sharing.rank, sharing.size, sharing.even, bool(getattr(source, "drop_last", False)))
    if loader.batch_sampler is None and not isinstance(source, BatchSampler):
        return SampleShare(source, share)
    return BatchShare(source, getattr(source, "batch_size", None), share, sharing.split)


def _load(loader: DataLoader[Any], source: Any, own_size: int | None) -> DataLoader[Any]:
    """A loader with the options of ``loader`` over another dataset stream, batch sampler or sampler."""
    options = {name: getattr(loader, name) for name in _KEPT_OPTIONS if hasattr(loader, name)}
    if isinstance(source, IterableDataset):
        return DataLoader(source, batch_size=own_size, drop_last=loader.drop_last, **options)
    if loader.batch_sampler is None:
        return DataLoader(loader.dataset, batch_size=None, sampler=source, **options)
    return DataLoader(loader.dataset, batch_sampler=source, **options)
