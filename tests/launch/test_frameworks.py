"""Other libraries train inside our ranks as they are."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn

from notebook_accel import notebook_launcher


def hf_accelerate(steps):
    from accelerate import Accelerator

    return fit(Accelerator(), steps)


def ours(steps):
    from notebook_accel import Accelerator

    return fit(Accelerator(), steps)


def fit(accelerator, steps):
    model, optimizer = accelerator.prepare(*make())
    for batch in batches(steps, accelerator.process_index, accelerator.num_processes):
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    return accelerator.num_processes, weights(accelerator.unwrap_model(model))


def fabric(steps):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=2)
    fabric.launch()
    model, optimizer = make()
    wrapped, optimizer = fabric.setup(model, optimizer)
    for batch in batches(steps, fabric.global_rank, fabric.world_size):
        fabric.backward(wrapped(batch).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    return fabric.world_size, weights(model)


def raw_torch(steps):
    dist.init_process_group()
    model, optimizer = make()
    wrapped = nn.parallel.DistributedDataParallel(model)
    for batch in batches(steps, dist.get_rank(), dist.get_world_size()):
        wrapped(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return dist.get_world_size(), weights(model)


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), 0.1)


def batches(steps, rank, size):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(steps, size, 5, 6, generator=generator)[:, rank]


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def reference(steps, size):
    model, optimizer = make()
    generator = torch.Generator().manual_seed(1)
    for batch in torch.randn(steps, size, 5, 6, generator=generator):
        model(batch.reshape(-1, 6)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return weights(model)


def test_accelerate_inside_knows_what_the_launcher_was_told() -> None:
    pytest.importorskip("accelerate")

    def look():
        from accelerate import Accelerator

        accelerator = Accelerator()
        return accelerator.mixed_precision, accelerator.gradient_accumulation_steps, accelerator.num_processes

    run = notebook_launcher(look, (), 2, "bf16", gradient_accumulation_steps=4, ui="none")
    assert run.returns == [("bf16", 4, 2)] * 2


@pytest.mark.parametrize("start_method", ["fork", "template"])
@pytest.mark.parametrize("train", [hf_accelerate, fabric, raw_torch, ours], ids=lambda train: train.__name__)
def test_trains_as_two_ranks(train, start_method: str) -> None:
    pytest.importorskip({"hf_accelerate": "accelerate", "fabric": "lightning_fabric"}.get(train.__name__, "torch"))
    run = notebook_launcher(train, (4,), 2, start_method=start_method, ui="none", timeout=120)
    expected = reference(4, 2)
    for size, found in run.returns:
        assert size == 2
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
