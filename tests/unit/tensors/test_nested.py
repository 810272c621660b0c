"""Walking nested structures."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from notebook_accel.tensors.nested import convert, leaves, move, to_fp32

Pair = namedtuple("Pair", "left right")


@dataclass
class Plain:
    first: Any
    second: Any = field(init=False, default=0)


@dataclass(frozen=True, slots=True)
class Frozen:
    only: Any


def add_one(leaf: Any) -> Any:
    return leaf + 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (1, 2),
        ([1, [2]], [2, [3]]),
        ((1, (2,)), (2, (3,))),
        (Pair(1, [2]), Pair(2, [3])),
        ({"a": 1, "b": {"c": 2}}, {"a": 2, "b": {"c": 3}}),
        (OrderedDict(b=1, a=2), OrderedDict(b=2, a=3)),
        (defaultdict(int, a=1), defaultdict(int, a=2)),
        (UserDict(a=1), UserDict(a=2)),
        (Plain(1), Plain(2)),
        (Frozen((1, 2)), Frozen((2, 3))),
        ([], []),
    ],
    ids=repr,
)
def test_the_form_is_kept(data: Any, expected: Any) -> None:
    before = repr(data)
    result = convert(data, add_one)
    if isinstance(data, Plain):
        expected.second = 1
    assert result == expected
    assert type(result) is type(data)
    assert repr(data) == before


def test_a_defaultdict_keeps_its_default() -> None:
    assert convert(defaultdict(list, a=1), add_one)["missing"] == []


def test_leaves_come_in_order() -> None:
    assert list(leaves({"a": [1, Pair(2, 3)], "b": Frozen(4)})) == [1, 2, 3, 4]


def test_strings_and_none_are_leaves() -> None:
    assert list(leaves(["ab", None])) == ["ab", None]


class Batch(UserDict[str, Any]):
    """A mapping that moves itself, as tokenizers return it; its ``to`` takes the device alone."""

    def to(self, device: torch.device) -> Batch:
        return Batch({key: value.to(device) for key, value in self.items()})


def test_move() -> None:
    meta = torch.device("meta")
    data = {"x": torch.zeros(2), "name": "x", "more": (Batch(y=torch.zeros(1)), 3, Frozen(torch.zeros(1)))}
    moved = move(data, meta, non_blocking=True)
    assert moved["x"].device == moved["more"][0]["y"].device == moved["more"][2].only.device == meta
    assert (moved["name"], moved["more"][1]) == ("x", 3)
    assert type(moved["more"][0]) is Batch
    assert data["x"].device == torch.device("cpu")  # type: ignore[attr-defined]  # a tensor


def test_a_packed_sequence_moves_as_a_whole() -> None:
    packed = pack_sequence([torch.ones(3), torch.ones(1)])
    (moved,) = move([packed], torch.device("cpu"))
    assert moved.batch_sizes.device == torch.device("cpu")
    assert type(moved) is type(packed)


def test_to_fp32() -> None:
    data = {"half": torch.ones(1).half(), "b": [torch.ones(1).bfloat16()], "long": torch.ones(1).long(), "n": 1}
    result = to_fp32(data)
    assert result["half"].dtype == result["b"][0].dtype == torch.float32
    assert result["long"] is data["long"]
    double = torch.ones(1).double()
    assert to_fp32(double) is double
