"""``prepare``: what comes back, alone and on two ranks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from parity.starting import Recorder, run_ranks
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, OneCycleLR, ReduceLROnPlateau, StepLR
from torch.utils.data import DataLoader, TensorDataset

from notebook_accel.contracts.errors import SettingsError
from notebook_accel.contracts.world import RankContext, World, current_context
from notebook_accel.data.loader import PreparedLoader
from notebook_accel.training.accelerator import Accelerator
from notebook_accel.training.optimizer import AcceleratedOptimizer
from notebook_accel.training.options import (
    DataLoaderConfiguration,
    DistributedDataParallelKwargs,
    DistributedType,
    GradientAccumulationPlugin,
    GradScalerKwargs,
)
from notebook_accel.training.scheduler import AcceleratedScheduler


def things() -> tuple[torch.nn.Module, torch.optim.Optimizer, DataLoader[Any], LRScheduler]:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return model, optimizer, DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=2), StepLR(optimizer, 1000)


def test_objects_come_back_in_order_and_others_as_they_are() -> None:
    model, optimizer, loader, scheduler = things()
    other = object()
    result = Accelerator(cpu=True).prepare(scheduler, other, loader, optimizer, model, None)
    kinds = (AcceleratedScheduler, object, PreparedLoader, AcceleratedOptimizer, torch.nn.Linear, type(None))
    assert tuple(map(type, result)) == kinds
    assert result[1] is other
    assert result[0].optimizers == [result[3]]


def test_a_single_object_comes_back_by_itself() -> None:
    model, *_ = things()
    assert Accelerator(cpu=True).prepare(model) is model


def test_prepared_objects_are_left_as_they_are() -> None:
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(*things())
    again = accelerator.prepare(*prepared)
    assert all(new is old for new, old in zip(again, prepared, strict=True))
    assert list(map(len, (accelerator._prepared.models, accelerator._prepared.optimizers))) == [1, 1]


def test_a_scheduler_made_from_a_prepared_optimizer() -> None:
    accelerator = Accelerator(cpu=True)
    _, optimizer, _, _ = accelerator.prepare(*things())
    scheduler = accelerator.prepare(StepLR(optimizer, 1, gamma=0.5))
    assert isinstance(optimizer, torch.optim.Optimizer)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert scheduler.get_last_lr() == [0.5]
    assert scheduler.last_epoch == 1


def test_a_scheduler_watches_its_own_optimizer() -> None:
    accelerator = Accelerator(cpu=True)
    first, second = (torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0) for _ in range(2))
    scheduler, *optimizers = accelerator.prepare(StepLR(second, 1), first, second)
    assert scheduler.optimizers == [optimizers[1]]


def test_device_placement_has_one_entry_for_each() -> None:
    with pytest.raises(ValueError, match="one entry for each of the 2 objects; you passed 1"):
        Accelerator(cpu=True).prepare(1, 2, device_placement=[True])


def test_free_memory_forgets() -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, loader, scheduler = accelerator.prepare(*things())
    model, optimizer, loader, scheduler = accelerator.free_memory(model, optimizer, loader, scheduler)
    assert model is optimizer is loader is scheduler is None
    assert accelerator._prepared.models == accelerator._prepared.optimizers == []


def on_two() -> dict[str, Any]:
    accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
    model, _, loader, _ = accelerator.prepare(*things(), device_placement=[True, None, False, None])
    frozen = accelerator.prepare(torch.nn.Linear(2, 2).requires_grad_(False))
    for_evaluation = accelerator.prepare_model(torch.nn.Linear(2, 2), evaluation_mode=True)
    return {
        "ddp": type(model) is DistributedDataParallel and model.find_unused_parameters,
        "again": accelerator.prepare(model) is model,
        "second": Accelerator().prepare(model) is model,
        "frozen": type(frozen),
        "evaluation": type(for_evaluation),
        "unwrapped": type(accelerator.unwrap_model(model)),
        "batches": len(loader),
        "kind": (accelerator.distributed_type, accelerator.use_distributed, accelerator.num_processes),
        "who": (accelerator.is_main_process, accelerator.is_last_process, accelerator.local_process_index),
        "repr": repr(accelerator),
    }


def test_two_ranks() -> None:
    first, second = run_ranks(on_two, 2)
    expected = {
        "ddp": True,
        "again": True,
        "second": True,
        "frozen": torch.nn.Linear,
        "evaluation": torch.nn.Linear,
        "unwrapped": torch.nn.Linear,
        "batches": 2,
        "kind": (DistributedType.MULTI_CPU, True, 2),
    }
    assert {name: first[name] for name in expected} == {name: second[name] for name in expected} == expected
    assert (first["who"], second["who"]) == ((True, False, 0), (False, True, 1))
    assert second["repr"] == "Accelerator(rank 1 of 2, cpu, mixed_precision='no')"


def test_the_launchers_word_counts_unless_something_is_said() -> None:
    recorder = Recorder()
    context = RankContext(World(), "bf16", 4, 3, "/project", recorder)
    token = current_context.set(context)
    try:
        told, own = Accelerator(), Accelerator(mixed_precision="no", gradient_accumulation_steps=1, project_dir="here")
        by_plugin = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=2))
    finally:
        current_context.reset(token)
    assert (told.mixed_precision, told.gradient_accumulation_steps, told.project_dir) == ("bf16", 4, "/project")
    assert (own.mixed_precision, own.gradient_accumulation_steps, own.project_dir) == ("no", 1, "here")
    assert by_plugin.gradient_accumulation_steps == 2
    own.log({"x": 1})
    assert recorder.records == [(0, {"x": 1})]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"mixed_precision": "fp8"},
            SettingsError,
            r"mixed_precision='fp8' is not known\. Use one of \"no\", ",
        ),
        ({"gradient_accumulation_steps": -1}, ValueError, "whole number, 1 or more; you passed -1"),
        ({"gradient_accumulation_steps": 1.5}, ValueError, r"whole number, 1 or more; you passed 1\.5"),
        (
            {
                "gradient_accumulation_steps": 2,
                "gradient_accumulation_plugin": GradientAccumulationPlugin(num_steps=3),
            },
            ValueError,
            r"gradient_accumulation_steps=2 and a plugin with num_steps=3 were passed\. Pass one of them",
        ),
        ({"kwargs_handlers": [3]}, TypeError, r"kwargs_handlers takes Distributed.*, AutocastKwargs; you passed 3"),
        ({"kwargs_handlers": [GradScalerKwargs(), GradScalerKwargs()]}, ValueError, "holds two GradScalerKwargs"),
        ({"even_batches": True}, TypeError, "unexpected keyword argument 'even_batches'"),
        ({"deepspeed_plugin": None}, TypeError, "unexpected keyword argument 'deepspeed_plugin'"),
    ],
)
def test_refusals(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Accelerator(cpu=True, **options)


def test_options_of_loaders() -> None:
    config = DataLoaderConfiguration(even_batches=False, non_blocking=True)
    accelerator = Accelerator(split_batches=True, dataloader_config=config, cpu=True)
    assert (accelerator.split_batches, accelerator.even_batches, accelerator.non_blocking) == (True, False, True)
    accelerator.even_batches = True
    assert accelerator.even_batches
    assert config == DataLoaderConfiguration(even_batches=False, non_blocking=True)


def test_a_copy_is_itself() -> None:
    accelerator = Accelerator(cpu=True)
    assert copy.deepcopy(accelerator) is accelerator


def learning_rates(split: bool) -> dict[str, Any]:
    accelerator = Accelerator(split_batches=split)
    result = {}
    for name, make in {
        "lambda": lambda optimizer: LambdaLR(optimizer, lambda step: step),
        "one cycle": lambda optimizer: OneCycleLR(optimizer, max_lr=1.0, total_steps=5),
        "plateau": lambda optimizer: ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
    }.items():
        parameter = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([parameter], lr=1.0)
        optimizer, scheduler = accelerator.prepare(optimizer, make(optimizer))
        rates = []
        for _ in range(3):
            optimizer.step()
            scheduler.step(*([1.0] if name == "plateau" else []))
            rates.append(optimizer.param_groups[0]["lr"])
        result[name] = rates
    return result


def test_schedulers_move_once_for_each_rank_unless_batches_are_split() -> None:
    shared = run_ranks(learning_rates, 2, False)
    assert shared[0] == shared[1]
    assert shared[0]["lambda"] == [2, 4, 6]
    assert shared[0]["plateau"] == [1.0, 1.0, 0.5]
    assert shared[0]["one cycle"][-1] == pytest.approx(4e-6, rel=0.1)
    split, _ = run_ranks(learning_rates, 2, True)
    assert split["lambda"] == [1, 2, 3]
    assert split["plateau"] == shared[0]["plateau"]


def test_a_scheduler_of_its_own_will() -> None:
    accelerator = Accelerator(cpu=True, step_scheduler_with_optimizer=False)
    _, optimizer, _, _ = things()
    optimizer, scheduler = accelerator.prepare(optimizer, LambdaLR(optimizer, lambda step: step))
    optimizer.step()
    accelerator.sync_gradients = False
    scheduler.step()
    assert scheduler.get_last_lr() == [1]
