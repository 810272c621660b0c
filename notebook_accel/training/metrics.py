"""``accelerator.log``: every value of every step reaches the history, and the device is not waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..contracts.reporting import Reporter, Value
from .accumulation import Accumulation

Read = Callable[[torch.Tensor], Value]


class MetricLog:
    """Sends records to the history.

    A record without a step belongs to the newest backward pass (from 0), or to the step after the last one that any of
    its keys has had in this way: so each key's automatic steps rise.
    """

    def __init__(self, reporter: Reporter, accumulation: Accumulation, read_later: Read) -> None:
        self._reporter = reporter
        self._accumulation = accumulation
        self._read_later = read_later
        self._last: dict[str, int] = {}
        self._readers: dict[type, Callable[[str, Any], Value]] = {
            float: _as_is,
            int: _as_is,
            str: _as_is,
            bool: _as_float,
            torch.Tensor: self._read_tensor,
            torch.nn.Parameter: self._read_tensor,
        }

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Append one record; see Accelerator.log."""
        record: dict[str, Value] = {}
        self._fill(record, "", values)
        if step is None:
            step = self._next_step(record)
        elif type(step) is not int:
            step = _whole(step)
        if record:
            self._reporter.log(step, record)

    def _fill(self, record: dict[str, Value], prefix: str, values: Mapping[str, Any]) -> None:
        readers = self._readers
        for key, value in values.items():
            name = prefix + key if type(key) is str else _refuse_key(key)
            read = readers.get(type(value))
            if read is not None:
                record[name] = read(name, value)
            elif isinstance(value, Mapping):
                self._fill(record, name + "/", value)
            else:
                record[name] = self._read_other(name, value)

    def _next_step(self, record: dict[str, Value]) -> int:
        step = max(self._accumulation.backwards - 1, 0)
        last = self._last
        for name in record:
            if last.get(name, -1) >= step:
                step = last[name] + 1
        for name in record:
            last[name] = step
        return step

    def _read_tensor(self, name: str, tensor: torch.Tensor) -> Value:
        if tensor.numel() != 1:
            raise ValueError(
                f"log keeps single numbers; {name!r} is a tensor of shape {tuple(tensor.shape)}. "
                f"Log a number made from it, such as {name}.mean()."
            )
        if tensor.is_complex():
            raise TypeError(f"log keeps real numbers; {name!r} is a tensor of {tensor.dtype}. Log its abs().")
        return self._read_later(tensor.float() if tensor.dtype is torch.bool else tensor)

    def _read_other(self, name: str, value: Any) -> Value:
        """Kinds that are too rare to look for first: numpy's numbers, subclasses, fractions."""
        if isinstance(value, torch.Tensor):
            return self._read_tensor(name, value)
        if isinstance(value, str):
            return str(value)
        if getattr(value, "size", 0) == 1 and hasattr(value, "item"):
            value = value.item()
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"log keeps numbers, one-element tensors and strings; {name!r} is {value!r:.60} "
                f"({type(value).__name__}). Log a number made from it, or str(...) of it."
            ) from None


def _as_is(name: str, value: Any) -> Any:
    return value


def _as_float(name: str, value: Any) -> float:
    return float(value)


def _whole(step: Any) -> int:
    try:
        whole = int(step)
        if whole == step and not isinstance(step, bool):
            return whole
    except (TypeError, ValueError):
        pass
    raise TypeError(f"step is a whole number, or None for the newest backward pass; you passed {step!r}.")


def _refuse_key(key: Any) -> str:
    raise TypeError(f"log takes a dict of names and values; {key!r} ({type(key).__name__}) is no name. Use str(...).")
