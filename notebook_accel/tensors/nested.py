"""Functions over nested structures: lists, tuples, named tuples, mappings and dataclasses, to any depth."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import torch

Leaf = Callable[[Any], Any]


def convert(data: Any, leaf: Leaf, whole: Callable[[Any], bool] | None = None) -> Any:
    """The same structure with ``leaf`` applied to everything in it that is not a container.

    ``whole`` says which containers are not entered but given to ``leaf`` as they are.
    """
    if type(data) is torch.Tensor or (whole is not None and whole(data)):
        return leaf(data)
    if isinstance(data, list | tuple):
        return _like(data, [convert(item, leaf, whole) for item in data])
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: convert(value, leaf, whole) for key, value in data.items()})
    if _is_dataclass(data):
        return _like_dataclass(data, {name: convert(value, leaf, whole) for name, value in _fields(data)})
    return leaf(data)


def leaves(data: Any) -> Iterator[Any]:
    """Everything in a structure that is not a container, in order."""
    if isinstance(data, list | tuple):
        children: Iterable[Any] = data
    elif isinstance(data, Mapping):
        children = data.values()
    elif _is_dataclass(data):
        children = (value for _, value in _fields(data))
    else:
        yield data
        return
    for child in children:
        yield from leaves(child)


def _is_dataclass(data: Any) -> bool:
    return dataclasses.is_dataclass(data) and not isinstance(data, type)


def _fields(data: Any) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(data, field.name)) for field in dataclasses.fields(data))


def _like(data: Any, items: list[Any]) -> Any:
    """A list or tuple of the type of ``data``; a named tuple takes its items one by one."""
    return type(data)(*items) if hasattr(data, "_fields") else type(data)(items)


def _like_mapping(data: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    if type(data) is dict:
        return items
    if isinstance(data, MutableMapping):
        # A copy keeps what the constructor would not know, such as the factory of a defaultdict.
        result = copy.copy(data)
        for key, value in items.items():
            result[key] = value
        return result
    return type(data)(items)  # type: ignore[call-arg]  # mappings are built from mappings, though the protocol is silent


def _like_dataclass(data: Any, values: dict[str, Any]) -> Any:
    result = copy.copy(data)
    for name, value in values.items():
        object.__setattr__(result, name, value)  # also right for a frozen one
    return result


def move(data: Any, device: torch.device, non_blocking: bool = False) -> Any:
    """The same structure with every tensor on ``device``; a container with a ``to`` of its own moves itself."""
    return convert(data, lambda item: _send(item, device, non_blocking) if _moves(item) else item, whole=_moves)


def _moves(item: Any) -> bool:
    return hasattr(item, "to")


def _send(item: Any, device: torch.device, non_blocking: bool) -> Any:
    try:
        return item.to(device, non_blocking=non_blocking)
    except TypeError:  # a ``to`` that takes the device alone
        return item.to(device)


_HALF = (torch.float16, torch.bfloat16)


def to_fp32(data: Any) -> Any:
    """The same structure with float16 and bfloat16 tensors as float32."""
    if type(data) is torch.Tensor:
        return data.float() if data.dtype in _HALF else data
    return convert(data, lambda item: item.float() if getattr(item, "dtype", None) in _HALF else item)
