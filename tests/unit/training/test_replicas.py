"""Models on several ranks: what is put around them, and loops of different lengths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from parity.starting import run_ranks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from notebook_accel.training.accelerator import Accelerator


def compiled(model: torch.nn.Module) -> Any:
    return torch.compile(model, backend="eager")


def unwrapping() -> dict[str, bool]:
    accelerator = Accelerator(mixed_precision="bf16")
    model = torch.nn.Linear(2, 2)
    inside = accelerator.prepare(compiled(model))
    inner = inside.module
    other = torch.nn.Linear(2, 2)
    outside = compiled(accelerator.prepare(other))
    return {
        "inside kept": accelerator.unwrap_model(inside) is inner,
        "inside": accelerator.unwrap_model(inside, keep_torch_compile=False) is model,
        "outside kept": accelerator.unwrap_model(outside) is other,
        "outside": accelerator.unwrap_model(outside, keep_torch_compile=False) is other,
        "training goes on": type(outside._orig_mod) is DistributedDataParallel,
    }


def test_unwrapping_compiled_models() -> None:
    (result, _) = run_ranks(unwrapping, 2)
    assert all(result.values()), result


def test_unwrapping_a_compiled_model_alone() -> None:
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(2, 2)
    prepared = accelerator.prepare(compiled(model))
    assert accelerator.unwrap_model(prepared) is prepared
    assert accelerator.unwrap_model(prepared, keep_torch_compile=False) is model
    assert accelerator.unwrap_model(model) is model


def uneven(even: bool | None) -> tuple[int, float]:
    """How many batches a rank has, and where training gets."""
    accelerator = Accelerator()
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    loader = DataLoader(TensorDataset(torch.ones(5, 1)), batch_size=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, loader, optimizer = accelerator.prepare(model, loader, optimizer)
    done = 0
    with accelerator.join_uneven_inputs([model], even_batches=even):
        for (inputs,) in loader:
            accelerator.backward(model(inputs).sum())
            optimizer.step()
            optimizer.zero_grad()
            done += 1
    assert len(loader) == 2
    return done, accelerator.unwrap_model(model).weight.item()


def test_ranks_may_have_different_numbers_of_batches() -> None:
    first, second = run_ranks(uneven, 2, False)
    assert (first[0], second[0]) == (2, 1)
    assert first[1] == second[1] == pytest.approx(1 - 0.1 * 2 - 0.1 * 1 / 2)


def test_batches_are_even_unless_said_otherwise() -> None:
    assert [done for done, _ in run_ranks(uneven, 2, None)] == [2, 2]


def test_alone_there_is_nothing_to_join() -> None:
    assert run_ranks(uneven_alone, 1) == [3]


def uneven_alone() -> int:
    accelerator = Accelerator()
    loader = accelerator.prepare(DataLoader(TensorDataset(torch.ones(5, 1)), batch_size=2))
    with accelerator.join_uneven_inputs([], even_batches=False):
        return len(list(loader))
