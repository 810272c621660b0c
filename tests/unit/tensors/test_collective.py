"""What ranks exchange, on two real ranks and alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from parity.starting import run_ranks

from notebook_accel.backends.group import OneRank
from notebook_accel.tensors import collective
from notebook_accel.tensors.nested import convert
from notebook_accel.training.accelerator import Accelerator


def exchange() -> dict[str, Any]:
    accelerator = Accelerator()
    rank = accelerator.process_index
    group = accelerator._group
    tensor = torch.tensor([[1, 2]]) + 10 * rank
    list_of_objects: list[Any] = [{"rank": rank}, rank]
    result = {
        "gather": accelerator.gather(tensor),
        "gather of nothing's dimension": accelerator.gather(torch.tensor(rank)),
        "gather nested": accelerator.gather({"a": [tensor, (torch.tensor([rank > 0]),)]}),
        "gather bf16": accelerator.gather(torch.ones(1, dtype=torch.bfloat16)),
        "gather of a slice": accelerator.gather(torch.arange(6).reshape(2, 3).T + rank),
        "sum": accelerator.reduce(tensor),
        "mean": accelerator.reduce(tensor, "mean"),
        "max": accelerator.reduce([tensor], "max"),
        "none": accelerator.reduce(tensor, "none"),
        "scaled": accelerator.reduce(tensor, "sum", scale=0.5),
        "unchanged": tensor,
        "padded": accelerator.pad_across_processes(torch.ones(1 + rank, 2), pad_index=-1),
        "padded first": accelerator.pad_across_processes(torch.ones(1 + rank), dim=-1, pad_first=True),
        "no such dimension": accelerator.pad_across_processes(torch.ones(1), dim=3),
        "objects": collective.gather_object(group, [("rank", rank)]),
        "broadcast": collective.broadcast(group, [torch.tensor([rank])], from_process=1),
        "broadcast objects": collective.broadcast_object_list(group, list_of_objects),
        "trained": accelerator.gather(torch.ones(1, requires_grad=True)).requires_grad,
    }
    for name, wrong in {
        "unequal": torch.ones(2 + rank),
        "types": torch.ones(2, dtype=[torch.int, torch.long][rank]),
    }.items():
        try:
            accelerator.gather(wrong)
        except ValueError as error:
            result[name] = str(error)
    return result


def plain(data: Any) -> Any:
    """Tensors as their type and values."""
    return convert(data, lambda item: (item.dtype, item.tolist()) if isinstance(item, torch.Tensor) else item)


def test_two_ranks() -> None:
    first, second = run_ranks(exchange, 2)
    expected = {
        "gather": torch.tensor([[1, 2], [11, 12]]),
        "gather of nothing's dimension": torch.tensor([0, 1]),
        "gather nested": {"a": [torch.tensor([[1, 2], [11, 12]]), (torch.tensor([False, True]),)]},
        "gather bf16": torch.ones(2, dtype=torch.bfloat16),
        "gather of a slice": torch.tensor([[0, 3], [1, 4], [2, 5], [1, 4], [2, 5], [3, 6]]),
        "sum": torch.tensor([[12, 14]]),
        "mean": torch.tensor([[6.0, 7.0]]),
        "max": [torch.tensor([[11, 12]])],
        "scaled": torch.tensor([[6.0, 7.0]]),
        "no such dimension": torch.ones(1),
        "objects": [("rank", 0), ("rank", 1)],
        "broadcast": [torch.tensor([1])],
        "broadcast objects": [{"rank": 0}, 0],
        "trained": False,
    }
    for rank, result in enumerate((first, second)):
        for name, value in expected.items():
            assert plain(result[name]) == plain(value), name
        assert result["none"].tolist() == result["unchanged"].tolist() == [[1 + 10 * rank, 2 + 10 * rank]]
    assert first["padded"].tolist() == [[1, 1], [-1, -1]]
    assert second["padded"].tolist() == [[1, 1], [1, 1]]
    assert first["padded first"].tolist() == [0, 1]
    assert "(2,) torch.float32, (3,) torch.float32 on ranks 0 to 1. Make them equal first with" in first["unequal"]
    assert second["unequal"] == first["unequal"]
    assert "(2,) torch.int32, (2,) torch.int64" in second["types"]


def test_alone() -> None:
    accelerator = Accelerator(cpu=True)
    tensor = torch.tensor([3, 4])
    assert accelerator.gather(tensor) is tensor
    assert accelerator.reduce(tensor, "mean").tolist() == [3, 4]
    assert accelerator.reduce(tensor, "sum", scale=2).tolist() == [6, 8]
    assert accelerator.pad_across_processes(tensor) is tensor
    accelerator.wait_for_everyone()


def test_refusals_say_what_to_type() -> None:
    group = OneRank()
    with pytest.raises(TypeError, match=r"there is 1\.5 \(float\).*torch\.tensor\(\.\.\.\), or use gather_object"):
        collective.gather(group, {"a": 1.5})
    with pytest.raises(ValueError, match=r"reduction='average' is not known\. Use one of 'sum', 'mean', 'max', 'none'"):
        collective.reduce(group, 1, torch.ones(1), "average", 1)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match=r"you passed 'text' \(str\)\. Pass \[value\]"):
        collective.gather_object(group, "text")


def test_concatenate() -> None:
    parts = [{"a": torch.ones(1), "b": (torch.zeros(2, 1),)}, {"a": torch.zeros(2), "b": (torch.ones(2, 1),)}]
    whole = collective.concatenate(parts)
    assert whole["a"].tolist() == [1, 0, 0]
    assert whole["b"][0].shape == (4, 1)
    assert collective.concatenate([torch.ones(2, 1), torch.ones(2, 3)], dim=1).shape == (2, 4)
    with pytest.raises(TypeError, match="Only tensors can be joined"):
        collective.concatenate(["a", "b"])
