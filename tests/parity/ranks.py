"""The same training twice: by hand with DDP, and with the Accelerator. These functions run inside ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import accelerate
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from notebook_accel.training import options
from notebook_accel.training.accelerator import Accelerator

EPOCHS = 3
BATCH = 4
Result = tuple[list[float], dict[str, torch.Tensor]]


@dataclass(frozen=True)
class Case:
    """What is trained, and how."""

    samples: int = 48
    accumulate: int = 1
    clip_norm: float | None = None
    clip_value: float | None = None
    schedule: bool = False
    precision: str = "no"
    optimizer: str = "sgd"


def make_model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1))


def make_data(samples: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(samples, 5, generator=generator)
    return TensorDataset(inputs, inputs.sum(1, keepdim=True).sin())


def make_optimizer(case: Case, model: torch.nn.Module) -> torch.optim.Optimizer:
    if case.optimizer == "adam":
        return torch.optim.AdamW(model.parameters(), lr=0.01)
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def make_scheduler(optimizer: torch.optim.Optimizer) -> Any:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)


def loss_of(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(outputs, targets)


def with_accelerator(case: Case) -> Result:
    """Our Accelerator in the loop."""
    return loop(Accelerator(gradient_accumulation_steps=case.accumulate, mixed_precision=case.precision), case)


def with_accelerate(case: Case) -> Result:
    """HF Accelerate's in the same loop."""
    return loop(hf_accelerator(gradient_accumulation_steps=case.accumulate, mixed_precision=case.precision), case)


def hf_accelerator(**options: Any) -> Any:
    os.environ["OMP_NUM_THREADS"] = "1"  # it sets the number of threads itself otherwise
    return accelerate.Accelerator(cpu=True, **options)


def loop(accelerator: Any, case: Case) -> Result:
    """The loop as a user writes it."""
    model = make_model()
    optimizer = make_optimizer(case, model)
    scheduler = make_scheduler(optimizer)
    loader = DataLoader(make_data(case.samples), batch_size=BATCH)
    loader, scheduler, model, optimizer = accelerator.prepare(loader, scheduler, model, optimizer)
    losses = []
    for _ in range(EPOCHS):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = loss_of(model(inputs), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients and case.clip_norm is not None:
                    accelerator.clip_grad_norm_(model.parameters(), case.clip_norm)
                if accelerator.sync_gradients and case.clip_value is not None:
                    accelerator.clip_grad_value_(model.parameters(), case.clip_value)
                optimizer.step()
                if case.schedule:
                    scheduler.step()
                optimizer.zero_grad()
            losses.append(loss.item())
    return losses, accelerator.unwrap_model(model).state_dict()


def by_hand(case: Case) -> Result:
    """The same mathematics with torch alone."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    model = make_model()
    if size > 1:
        dist.init_process_group("gloo")
    replica = DistributedDataParallel(model) if size > 1 else model
    optimizer = make_optimizer(case, model)
    scheduler = make_scheduler(optimizer)
    scaler = torch.amp.GradScaler("cpu", enabled=case.precision == "fp16")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(case.precision)
    data = make_data(case.samples)
    losses = []
    for _ in range(EPOCHS):
        batches = list(batches_by_hand(case.samples, rank, size))
        for number, chosen in enumerate(batches, 1):
            inputs, targets = data[chosen]
            complete = number % case.accumulate == 0 or number == len(batches)
            if size > 1:
                replica.require_backward_grad_sync = complete
            with torch.autocast("cpu", dtype, enabled=dtype is not None):
                outputs = replica(inputs)
            loss = loss_of(outputs.float(), targets)
            scaler.scale(loss / case.accumulate).backward()
            if complete:
                step_by_hand(case, model, optimizer, scaler)
                if case.schedule:
                    for _ in range(size):
                        scheduler.step()
            losses.append(loss.item())
    return losses, model.state_dict()


def step_by_hand(
    case: Case, model: torch.nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler
) -> None:
    scaler.unscale_(optimizer)
    if case.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), case.clip_norm)
    if case.clip_value is not None:
        torch.nn.utils.clip_grad_value_(model.parameters(), case.clip_value)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def batches_by_hand(samples: int, rank: int, size: int) -> Iterator[list[int]]:
    """Every ``size``-th batch; the last ones are filled up from the start where there are several ranks."""
    indices = list(range(samples))
    if size > 1:
        indices += islice(cycle(range(samples)), -samples % (BATCH * size))
    for start in range(rank * BATCH, len(indices), BATCH * size):
        yield indices[start : start + BATCH]


def order_with_accelerator(samples: int, split: bool, even: bool) -> list[list[int]]:
    config = options.DataLoaderConfiguration(split, even_batches=even, use_seedable_sampler=True, data_seed=3)
    return order(Accelerator(dataloader_config=config), samples)


def order_with_accelerate(samples: int, split: bool, even: bool) -> list[list[int]]:
    config = accelerate.DataLoaderConfiguration(split, even_batches=even, use_seedable_sampler=True, data_seed=3)
    return order(hf_accelerator(dataloader_config=config), samples)


def order(accelerator: Any, samples: int) -> list[list[int]]:
    """The batches this rank sees in two shuffled epochs, and at the end of each what is said of it."""
    loader = accelerator.prepare(DataLoader(TensorDataset(torch.arange(samples)), batch_size=BATCH, shuffle=True))
    seen = []
    for _ in range(2):
        for (batch,) in loader:
            seen.append(batch.tolist())
        seen.append([len(loader), loader.total_batch_size, loader.total_dataset_length])
    return seen
