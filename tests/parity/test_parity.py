"""Training with the Accelerator is training by hand: the same losses and parameters."""

from __future__ import annotations

import pytest
import torch

from parity.ranks import Case, Result, by_hand, with_accelerator
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
    "everything": Case(samples=45, accumulate=2, clip_norm=0.1, schedule=True, optimizer="adam"),
}


def both(case: Case, size: int) -> list[tuple[Result, Result]]:
    return list(zip(run_ranks(with_accelerator, size, case), run_ranks(by_hand, size, case), strict=True))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_losses_and_parameters_are_those_of_a_loop_by_hand(case: Case, size: int) -> None:
    for (losses, parameters), (expected_losses, expected) in both(case, size):
        assert len(losses) == len(expected_losses) > 0
        assert losses == pytest.approx(expected_losses, abs=1e-6)
        assert parameters.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(parameters[name], value, rtol=0, atol=1e-6)


def test_the_cases_differ_from_one_another() -> None:
    """So that no option can be ignored by both sides."""
    seen = {name: run_ranks(by_hand, 1, case)[0][0][-1] for name, case in CASES.items() if case.samples == 48}
    assert len(set(seen.values())) == len(seen), seen
