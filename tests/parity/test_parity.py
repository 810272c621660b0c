"""Training with the Accelerator is training by hand: the same losses and parameters."""

from __future__ import annotations

import pytest
import torch
from parity.ranks import (
    Case,
    Result,
    by_hand,
    order_with_accelerate,
    order_with_accelerator,
    with_accelerate,
    with_accelerator,
)
from parity.starting import run_ranks

CASES = {
    "plain": Case(),
    "adam": Case(optimizer="adam"),
    "uneven": Case(samples=45),
    "fewer samples than ranks × batch": Case(samples=5),
    "accumulation": Case(accumulate=2),
    "accumulation, windows cut short": Case(samples=45, accumulate=3),
    "clipped norm": Case(clip_norm=0.05),
    "clipped values": Case(clip_value=0.01),
    "scheduler": Case(schedule=True),
    "bf16": Case(precision="bf16"),
    "fp16": Case(precision="fp16", clip_norm=0.5),
    "everything": Case(samples=45, accumulate=2, clip_norm=0.1, schedule=True, optimizer="adam"),
}


def agree(result: Result, expected: Result) -> None:
    losses, parameters = result
    expected_losses, expected_parameters = expected
    assert len(losses) == len(expected_losses) > 0
    assert losses == pytest.approx(expected_losses, abs=1e-6)
    assert parameters.keys() == expected_parameters.keys()
    for name, value in expected_parameters.items():
        torch.testing.assert_close(parameters[name], value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_losses_and_parameters_are_those_of_a_loop_by_hand(case: Case, size: int) -> None:
    for result, expected in zip(run_ranks(with_accelerator, size, case), run_ranks(by_hand, size, case), strict=True):
        agree(result, expected)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("name", ["uneven", "accumulation, windows cut short", "bf16", "everything"])
def test_losses_and_parameters_are_those_of_accelerate(name: str, size: int) -> None:
    ours, theirs = run_ranks(with_accelerator, size, CASES[name]), run_ranks(with_accelerate, size, CASES[name])
    for result, expected in zip(ours, theirs, strict=True):
        agree(result, expected)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("samples", [8, 21])
def test_shuffled_samples_are_those_of_accelerate(samples: int, split: bool, even: bool) -> None:
    assert run_ranks(order_with_accelerator, 2, samples, split, even) == run_ranks(
        order_with_accelerate, 2, samples, split, even
    )


def test_the_cases_differ_from_one_another() -> None:
    """So that no option can be ignored by both sides."""
    seen = {name: run_ranks(by_hand, 1, case)[0][0][-1] for name, case in CASES.items() if case.samples == 48}
    assert len(set(seen.values())) == len(seen), seen
