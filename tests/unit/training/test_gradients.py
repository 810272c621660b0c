"""Accumulation, clipping, mixed precision and the boundary between steps."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from parity.starting import Recorder, run_ranks
from torch.utils.data import DataLoader, TensorDataset

from notebook_accel.contracts.reporting import Boundary
from notebook_accel.contracts.world import RankContext, World, current_context
from notebook_accel.training.accelerator import Accelerator
from notebook_accel.training.options import AutocastKwargs, GradientAccumulationPlugin, GradScalerKwargs


def weight(value: float = 1.0) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor([value]))


def loader_of(batches: int) -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.ones(batches, 1)), batch_size=1)


def synced(accelerator: Accelerator, batches: int, epochs: int = 2) -> list[bool]:
    loader = accelerator.prepare(loader_of(batches))
    seen = []
    for _ in range(epochs):
        for _ in loader:
            with accelerator.accumulate():
                seen.append(accelerator.sync_gradients)
    return seen


def test_a_window_ends_with_its_passes_and_with_the_loader() -> None:
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    assert synced(accelerator, 5) == [False, True, False, True, True] * 2


def test_a_window_may_go_on_in_the_next_epoch() -> None:
    plugin = GradientAccumulationPlugin(num_steps=2, sync_with_dataloader=False)
    accelerator = Accelerator(gradient_accumulation_plugin=plugin, cpu=True)
    assert synced(accelerator, 3) == [False, True, False, True, False, True]


def test_windows_without_a_loader() -> None:
    accelerator = Accelerator(gradient_accumulation_steps=3, cpu=True)
    seen = []
    for _ in range(6):
        with accelerator.accumulate():
            seen.append(accelerator.sync_gradients)
    assert seen == [False, False, True] * 2


def test_an_evaluation_inside_the_loop_does_not_end_a_window() -> None:
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    loader, evaluation = accelerator.prepare(loader_of(4), loader_of(1))
    seen = []
    for _ in loader:
        for _ in evaluation:
            pass
        with accelerator.accumulate():
            seen.append(accelerator.sync_gradients)
    assert seen == [False, True, False, True]


def test_optimizers_wait_for_the_window() -> None:
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    parameter = weight()
    optimizer = accelerator.prepare(torch.optim.SGD([parameter], lr=1.0))
    values = []
    for factor in (1.0, 3.0):
        with accelerator.accumulate():
            accelerator.backward(parameter.sum() * factor)
            optimizer.step()
            optimizer.zero_grad()
            values.append((parameter.item(), None if parameter.grad is None else parameter.grad.item()))
    assert values == [(1.0, 0.5), (-1.0, None)]


def test_zero_grad_takes_the_optimizers_own_arguments() -> None:
    accelerator = Accelerator(cpu=True)
    parameter = weight()
    optimizer = accelerator.prepare(torch.optim.SGD([parameter], lr=1.0))
    accelerator.backward(parameter.sum())
    optimizer.zero_grad(set_to_none=False)
    assert parameter.grad is not None
    assert parameter.grad.item() == 0


def test_a_closure_gives_its_loss() -> None:
    accelerator = Accelerator(cpu=True)
    parameter = weight(3.0)
    optimizer = accelerator.prepare(torch.optim.LBFGS([parameter], lr=1.0))

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (parameter**2).sum()
        accelerator.backward(loss)
        return loss

    assert optimizer.step(closure).item() == 9.0
    assert parameter.item() == pytest.approx(0, abs=1e-3)


def test_the_steps_of_accumulation_can_be_changed() -> None:
    accelerator = Accelerator(cpu=True)
    accelerator.gradient_accumulation_steps = 2
    parameter = weight()
    accelerator.backward(parameter.sum())
    assert parameter.grad is not None
    assert parameter.grad.item() == 0.5
    assert accelerator.gradient_state.num_steps == 2


def test_backward_takes_torchs_arguments() -> None:
    accelerator = Accelerator(cpu=True)
    parameter = weight()
    loss = parameter.sum()
    accelerator.backward(loss, retain_graph=True)
    accelerator.backward(loss)
    assert parameter.grad is not None
    assert parameter.grad.item() == 2


def gradients(each_batch: bool) -> list[float]:
    plugin = GradientAccumulationPlugin(num_steps=2, sync_each_batch=each_batch)
    accelerator = Accelerator(gradient_accumulation_plugin=plugin)
    model = torch.nn.Linear(1, 1, bias=False)
    model = accelerator.prepare(model)
    seen = []
    for _ in range(2):
        with accelerator.accumulate(model):
            accelerator.backward(model(torch.full((1, 1), float(accelerator.process_index))).sum())
            seen.append(accelerator.unwrap_model(model).weight.grad.item())
    with accelerator.no_sync(model):
        accelerator.backward(model(torch.full((1, 1), float(accelerator.process_index))).sum())
    seen.append(accelerator.unwrap_model(model).weight.grad.item())
    return seen


def test_gradients_stay_on_their_rank_until_the_window_ends() -> None:
    assert run_ranks(gradients, 2, False) == [[0.0, 0.5, 0.5], [0.5, 0.5, 1.0]]


def test_gradients_may_be_exchanged_at_every_pass() -> None:
    assert run_ranks(gradients, 2, True) == [[0.25, 0.5, 0.5], [0.25, 0.5, 1.0]]


def late_exchange() -> float:
    accelerator = Accelerator()
    model = accelerator.prepare(torch.nn.Linear(1, 1, bias=False))
    inputs = torch.full((1, 1), float(accelerator.process_index))
    with accelerator.no_sync(model):
        first, second = model(inputs).sum(), model(inputs).sum()
        accelerator.backward(first)
    with accelerator.trigger_sync_in_backward(model):
        accelerator.backward(second)
    return float(accelerator.unwrap_model(model).weight.grad.item())


def test_trigger_sync_in_backward() -> None:
    assert run_ranks(late_exchange, 2) == [1.0, 1.0]


def test_clipping() -> None:
    accelerator = Accelerator(cpu=True)
    parameter = torch.nn.Parameter(torch.ones(2))
    accelerator.backward((parameter * torch.tensor([3.0, 4.0])).sum())
    assert accelerator.clip_grad_norm_(iter([parameter]), 1.0).item() == pytest.approx(5.0)
    assert parameter.grad is not None
    assert parameter.grad.tolist() == pytest.approx([0.6, 0.8], abs=1e-5)
    accelerator.clip_grad_value_(parameter, 0.7)
    assert parameter.grad.tolist() == pytest.approx([0.6, 0.7], abs=1e-5)


class Probe(torch.nn.Linear):
    """Says in what precision it computed."""

    computed: torch.dtype | None = None

    def forward(self, inputs: torch.Tensor) -> dict[str, Any]:  # type: ignore[override]  # to see nested results
        outputs = super().forward(inputs)
        self.computed = outputs.dtype
        return {"outputs": outputs, "more": [outputs, 1]}


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_forward_passes_compute_in_half_and_return_single_precision(precision: str, dtype: torch.dtype) -> None:
    accelerator = Accelerator(mixed_precision=precision, cpu=True)
    model = accelerator.prepare(Probe(2, 2))
    result = model(torch.ones(1, 2))
    assert model.computed == dtype
    assert result["outputs"].dtype == result["more"][0].dtype == torch.float32
    assert model.weight.dtype == torch.float32
    with accelerator.autocast():
        assert (model.weight @ model.weight).dtype == dtype
    with accelerator.autocast(AutocastKwargs(enabled=False)):
        assert (model.weight @ model.weight).dtype == torch.float32


def test_autocast_options_reach_the_model() -> None:
    accelerator = Accelerator(mixed_precision="bf16", cpu=True, kwargs_handlers=[AutocastKwargs(enabled=False)])
    model = accelerator.prepare(Probe(2, 2))
    model(torch.ones(1, 2))
    assert model.computed == torch.float32


def test_a_model_is_unwrapped_from_mixed_precision_when_asked() -> None:
    accelerator = Accelerator(mixed_precision="bf16", cpu=True)
    model = accelerator.prepare(Probe(2, 2))
    assert accelerator.unwrap_model(model)(torch.ones(1, 2))["outputs"].dtype == torch.float32
    assert model.computed == torch.bfloat16
    accelerator.unwrap_model(model, keep_fp32_wrapper=False)(torch.ones(1, 2))
    assert model.computed == torch.float32
    assert "forward" not in vars(model)


def test_a_forward_pass_set_on_the_instance_comes_back() -> None:
    model = torch.nn.Linear(2, 2)
    own = model.forward = lambda inputs: inputs  # type: ignore[method-assign]  # as some libraries do
    accelerator = Accelerator(mixed_precision="bf16", cpu=True)
    accelerator.unwrap_model(accelerator.prepare(model), keep_fp32_wrapper=False)
    assert model.forward is own


def test_preparing_twice_wraps_once() -> None:
    accelerator, other = (Accelerator(mixed_precision="bf16", cpu=True) for _ in range(2))
    model = accelerator.prepare(accelerator.prepare(Probe(2, 2)))
    wrapped = model.forward
    assert other.prepare(model).forward is wrapped


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_of_a_prepared_model_is_a_model_of_its_own(duplicate: Any) -> None:
    model = Accelerator(mixed_precision="bf16", cpu=True).prepare(Probe(2, 2))
    other = duplicate(model)
    with torch.no_grad():
        other.weight.zero_()
        other.bias.zero_()
    assert other(torch.ones(1, 2))["outputs"].abs().sum() == 0
    assert other.computed == torch.bfloat16
    assert model.computed is None


def test_a_prepared_model_is_saved_whole() -> None:
    model = Accelerator(mixed_precision="bf16", cpu=True).prepare(torch.nn.Linear(2, 2))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded(torch.ones(1, 2)).dtype == torch.float32


def fp16(**scaling: Any) -> Accelerator:
    return Accelerator(mixed_precision="fp16", cpu=True, kwargs_handlers=[GradScalerKwargs(**scaling)])


def test_an_overflow_skips_the_step_and_the_scheduler() -> None:
    accelerator = fp16(init_scale=4.0)
    parameter = weight()
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    optimizer, scheduler = accelerator.prepare(optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5))
    boundary = accelerator._reporter.boundary
    seen = []
    for factor in (float("inf"), 0.5):
        accelerator.backward(parameter.sum() * factor)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        skipped = accelerator.optimizer_step_was_skipped
        seen.append((skipped, parameter.item(), scheduler.get_last_lr(), boundary.step))
    assert seen == [(True, 1.0, [1.0], 0), (False, 0.5, [0.5], 1)]
    assert accelerator.scaler is not None
    assert accelerator.scaler.get_scale() == 2.0


def test_clipping_sees_true_gradients() -> None:
    accelerator = fp16(init_scale=1024.0)
    parameter = weight()
    optimizer = accelerator.prepare(torch.optim.SGD([parameter], lr=1.0))
    accelerator.backward(parameter.sum() * 2)
    assert parameter.grad is not None
    assert parameter.grad.item() == 2048
    assert accelerator.clip_grad_norm_([parameter], 0.5).item() == 2
    accelerator.clip_grad_value_([parameter], 0.25)
    optimizer.step()
    assert parameter.item() == 0.75


def test_two_optimizers_share_the_scale() -> None:
    """Each is unscaled once, though one steps between the other's clipping and step."""
    accelerator = fp16(init_scale=8.0, growth_interval=1)
    first, second = weight(), weight()
    optimizers = accelerator.prepare(torch.optim.SGD([first], lr=1.0), torch.optim.SGD([second], lr=1.0))
    for expected in (0.5, 0.0):
        accelerator.backward((first * 0.5 + second * 0.5).sum())
        for parameter in (first, second):
            assert accelerator.clip_grad_norm_([parameter], 10.0).item() == 0.5
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        assert (first.item(), second.item()) == (expected, expected)
    accelerator.backward(first.sum())
    assert accelerator.scaler is not None
    assert accelerator.scaler.get_scale() == 32.0


def test_unscale_gradients() -> None:
    accelerator = fp16(init_scale=8.0)
    parameter = weight()
    optimizer = accelerator.prepare(torch.optim.SGD([parameter], lr=1.0))
    accelerator.backward(parameter.sum())
    accelerator.unscale_gradients(optimizer)
    accelerator.unscale_gradients()
    assert parameter.grad is not None
    assert parameter.grad.item() == 1


def test_a_closure_with_fp16_is_refused() -> None:
    optimizer = fp16().prepare(torch.optim.SGD([weight()], lr=1.0))
    with pytest.raises(TypeError, match=r'step\(closure\) does not work with mixed_precision="fp16"'):
        optimizer.step(lambda: 1.0)


class StopHere(Boundary):
    """A boundary that is asked for from the start and stops at step 2."""

    def __init__(self) -> None:
        super().__init__()
        self.requested = True
        self.reached: list[int] = []

    def reach(self) -> None:
        self.reached.append(self.step)
        if self.step == 2:
            raise KeyboardInterrupt


def test_the_boundary_is_reached_after_every_optimizer_step() -> None:
    recorder, boundary = Recorder(), StopHere()
    recorder.boundary = boundary
    token = current_context.set(RankContext(World(), reporter=recorder, gradient_accumulation_steps=2))
    try:
        accelerator = Accelerator()
    finally:
        current_context.reset(token)
    parameter = weight()
    optimizer = accelerator.prepare(torch.optim.SGD([parameter], lr=1.0))
    passes: list[bool] = []

    def train() -> None:
        while True:
            with accelerator.accumulate():
                passes.append(accelerator.sync_gradients)
                accelerator.backward(parameter.sum())
                optimizer.step()
                optimizer.zero_grad()

    with pytest.raises(KeyboardInterrupt):
        train()
    assert (passes, boundary.reached) == ([False, True] * 2, [1, 2])
