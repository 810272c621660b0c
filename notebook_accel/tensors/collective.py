"""What ranks exchange: nested structures of tensors, and lists of any objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

import torch

from ..backends.group import Group
from .nested import convert, leaves

Reduction = Literal["sum", "mean", "max", "none"]


def gather(group: Group, data: Any) -> Any:
    """Every tensor of ``data`` with those of the other ranks appended along dimension 0, in the order of ranks.

    A tensor without dimensions counts as one of length 1. Raises TypeError for anything that is not a tensor.
    """
    _check_tensors("gather", data)
    return convert(data, lambda tensor: group.all_gather(tensor[None] if tensor.ndim == 0 else tensor))


def gather_object(group: Group, items: Any) -> list[Any]:
    """The ranks' lists of picklable objects as one list; raises TypeError when ``items`` is not a list or tuple."""
    if not isinstance(items, list | tuple):
        raise TypeError(
            f"gather_object takes a list, which it joins with the other ranks' lists; you passed "
            f"{_name(items)}. Pass [value] to gather one object from each rank."
        )
    return [item for of_rank in group.gather_objects(list(items)) for item in of_rank]


def broadcast(group: Group, data: Any, from_process: int = 0) -> Any:
    """``data`` with every tensor overwritten in place by that of rank ``from_process``."""
    _check_tensors("broadcast", data)
    return convert(data, lambda tensor: group.broadcast(tensor, from_process))


def broadcast_object_list(group: Group, items: list[Any], from_process: int = 0) -> list[Any]:
    """The list itself, its picklable items overwritten by those of rank ``from_process``."""
    group.broadcast_objects(items, from_process)
    return items


def reduce(group: Group, size: int, data: Any, reduction: Reduction, scale: float) -> Any:
    """Copies of the tensors of ``data``, combined element by element over the ``size`` ranks and times ``scale``.

    "none" combines nothing. Raises ValueError for another ``reduction``, TypeError for what is not a tensor.
    """
    if reduction not in get_args(Reduction):
        choices = ", ".join(map(repr, get_args(Reduction)))
        raise ValueError(f"reduction={reduction!r} is not known. Use one of {choices}.")
    _check_tensors("reduce", data)

    def combined(tensor: torch.Tensor) -> torch.Tensor:
        if reduction == "none":
            result = tensor.clone()
        else:
            result = group.all_reduce(tensor, "max" if reduction == "max" else "sum")
        if reduction == "mean" and size > 1:
            result = result / size
        return result if scale == 1 else result * scale

    return convert(data, combined)


def pad_across_processes(group: Group, data: Any, dim: int = 0, pad_index: float = 0, pad_first: bool = False) -> Any:
    """The tensors of ``data``, in dimension ``dim`` as long as the longest among the ranks, filled with ``pad_index``.

    A tensor without such a dimension stays as it is. ``pad_first`` puts the filling before the values.
    """
    _check_tensors("pad_across_processes", data)

    def padded(tensor: torch.Tensor) -> torch.Tensor:
        if not -tensor.ndim <= dim < tensor.ndim:
            return tensor
        length = tensor.shape[dim]
        longest = int(group.all_reduce(torch.tensor(length, device=tensor.device), "max"))
        if longest == length:
            return tensor
        shape = list(tensor.shape)
        shape[dim] = longest
        result = tensor.new_full(shape, pad_index)
        result.narrow(dim, longest - length if pad_first else 0, length).copy_(tensor)
        return result

    return convert(data, padded)


def concatenate(data: list[Any], dim: int = 0) -> Any:
    """Structures of the same form as one, their tensors joined along ``dim``."""
    first = data[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(data, dim=dim)
    if isinstance(first, list | tuple | Mapping):
        joined = (concatenate(list(parts), dim) for parts in zip(*map(_children, data), strict=True))
        return _refill(first, joined)
    raise TypeError(f"Only tensors can be joined, in lists, tuples and mappings; you passed {_name(first)}.")


def _children(data: Any) -> Iterator[Any]:
    return iter(data.values() if isinstance(data, Mapping) else data)


def _refill(like: Any, children: Iterator[Any]) -> Any:
    """A container like ``like`` around new children."""
    return convert(like, lambda _: next(children), whole=lambda item: item is not like)


def only_tensors(data: Any) -> bool:
    """Whether everything in a structure is a tensor."""
    return all(isinstance(leaf, torch.Tensor) for leaf in leaves(data))


def _check_tensors(name: str, data: Any) -> None:
    for leaf in leaves(data):
        if not isinstance(leaf, torch.Tensor):
            raise TypeError(
                f"{name} takes tensors, alone or in lists, tuples and mappings; there is {_name(leaf)} among what you "
                "passed. Turn numbers into tensors with torch.tensor(...), or use gather_object for other objects."
            )


def _name(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})"
