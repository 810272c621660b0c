"""What reaches the history: every value of every step, in order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from parity.starting import Recorder

from notebook_accel.training.accelerator import Accelerator


@pytest.fixture
def accelerator(recorder: Recorder) -> Accelerator:
    return Accelerator()


def backward(accelerator: Accelerator, times: int = 1) -> None:
    for _ in range(times):
        accelerator.backward(torch.ones((), requires_grad=True) * 2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, 0.1),
        (3, 3),
        (2**60 + 1, 2**60 + 1),
        (True, 1.0),
        ("warm-up", "warm-up"),
        (float("inf"), float("inf")),
        (torch.tensor(0.5), 0.5),
        (torch.tensor([[0.5]]), 0.5),
        (torch.tensor(0.1), float(np.float32(0.1))),
        (torch.tensor(0.1, dtype=torch.float64), 0.1),
        (torch.tensor(0.5).bfloat16(), 0.5),
        (torch.tensor(0.5).half(), 0.5),
        (torch.tensor(2**60 + 1), 2**60 + 1),
        (torch.tensor(True), 1.0),
        (torch.nn.Parameter(torch.tensor(0.5)), 0.5),
        (torch.tensor(0.5, requires_grad=True) * 1, 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), 1.0),
        (np.array([0.25]), 0.25),
        (np.str_("text"), "text"),
        (Fraction(1, 4), 0.25),
    ],
    ids=repr,
)
def test_values(accelerator: Accelerator, recorder: Recorder, value: Any, expected: Any) -> None:
    accelerator.log({"x": value})
    ((step, record),) = recorder.records
    assert (step, record) == (0, {"x": expected})
    assert type(record["x"]) in (float, int, str)


def test_nan_is_a_value(accelerator: Accelerator, recorder: Recorder) -> None:
    accelerator.log({"x": torch.tensor(float("nan"))})
    (value,) = recorder.records[0][1].values()
    assert value != value


def test_nested_names(accelerator: Accelerator, recorder: Recorder) -> None:
    accelerator.log({"train": {"loss": 1.0, "by": {"class": 2}}, "lr": 3})
    assert recorder.records == [(0, {"train/loss": 1.0, "train/by/class": 2, "lr": 3})]


def test_a_value_is_that_of_the_call(accelerator: Accelerator, recorder: Recorder) -> None:
    running, values = torch.zeros(()), {"x": 1.0}
    accelerator.log({"running": running})
    accelerator.log(values)
    running += 5
    values["x"] = 2.0
    assert [record for _, record in recorder.records] == [{"running": 0.0}, {"x": 1.0}]


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        (
            {"x": torch.ones(2, 3)},
            ValueError,
            r"'x' is a tensor of shape \(2, 3\)\. Log.* such as x\.mean\(\)",
        ),
        ({"x": torch.ones(0)}, ValueError, r"shape \(0,\)"),
        ({"x": torch.tensor(1j)}, TypeError, r"'x' is a tensor of torch\.complex64\. Log its abs\(\)"),
        ({"a": {"b": None}}, TypeError, r"'a/b' is None \(NoneType\)\. Log a number.*or str\(\.\.\.\)"),
        ({"x": [1.0]}, TypeError, r"'x' is \[1\.0\] \(list\)"),
        ({"x": np.ones(3)}, TypeError, r"'x' is array.*\(ndarray\)"),
        ({3: 1.0}, TypeError, r"3 \(int\) is no name\. Use str\(\.\.\.\)"),
    ],
    ids=["matrix", "empty", "complex", "none", "list", "array", "key"],
)
def test_what_is_no_value(
    accelerator: Accelerator, recorder: Recorder, values: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        accelerator.log(values)
    assert recorder.records == []


def steps(recorder: Recorder, name: str = "loss") -> list[int]:
    return [step for step, record in recorder.records if name in record]


def test_steps_are_backward_passes(accelerator: Accelerator, recorder: Recorder) -> None:
    for _ in range(3):
        backward(accelerator)
        accelerator.log({"loss": 1.0})
    assert steps(recorder) == [0, 1, 2]


def test_steps_without_backward_count_calls(accelerator: Accelerator, recorder: Recorder) -> None:
    for _ in range(3):
        accelerator.log({"loss": 1.0})
    assert steps(recorder) == [0, 1, 2]


def test_a_rare_name_stands_at_the_pass_it_was_logged_in(accelerator: Accelerator, recorder: Recorder) -> None:
    for _ in range(2):
        backward(accelerator, 10)
        accelerator.log({"accuracy": 1.0})
    assert steps(recorder, "accuracy") == [9, 19]


def test_two_calls_in_one_pass(accelerator: Accelerator, recorder: Recorder) -> None:
    """Different names share the step; a name that comes again gets the next one, and so does what comes with it."""
    backward(accelerator)
    accelerator.log({"loss": 1.0})
    accelerator.log({"lr": 0.1})
    accelerator.log({"loss": 2.0, "grad": 1.0})
    backward(accelerator)
    accelerator.log({"loss": 3.0})
    accelerator.log({"lr": 0.2})
    assert steps(recorder) == [0, 1, 2]
    assert steps(recorder, "lr") == [0, 1]
    assert steps(recorder, "grad") == [1]


def test_a_step_of_ones_own(accelerator: Accelerator, recorder: Recorder) -> None:
    accelerator.log({"loss": 1.0}, step=100)
    accelerator.log({"loss": 2.0}, step=torch.tensor(5))  # type: ignore[arg-type]  # a whole number all the same
    accelerator.log({"loss": 3.0})
    assert steps(recorder) == [100, 5, 0]


@pytest.mark.parametrize("step", [1.5, "one", True, [1]])
def test_what_is_no_step(accelerator: Accelerator, step: Any) -> None:
    with pytest.raises(TypeError, match=r"step is a whole number, or None for the newest backward pass; you passed"):
        accelerator.log({"loss": 1.0}, step=step)


def test_nothing_to_log(accelerator: Accelerator, recorder: Recorder) -> None:
    accelerator.log({})
    assert recorder.records == []
