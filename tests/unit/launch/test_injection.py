"""Where the accelerator goes, and which calls are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from notebook_accel.contracts.errors import CallError
from notebook_accel.launch.injection import bind

HERE = "<accelerator>"


def first(accelerator, lr, epochs=1):
    return accelerator, lr, epochs


def last(lr, epochs, accelerator):
    return accelerator, lr, epochs


def middle(lr, accelerator, epochs=1):
    return accelerator, lr, epochs


def keyword_only(lr, epochs=1, *, accelerator):
    return accelerator, lr, epochs


def positional_only(accelerator, lr, epochs=1, /):
    return accelerator, lr, epochs


def annotated(lr, acc: "Accelerator", epochs=1):  # noqa: F821, UP037
    return acc, lr, epochs


def optional(lr, epochs=1, accelerator=None):
    return accelerator, lr, epochs


def followed(accelerator=None, lr=0, epochs=1):
    return accelerator, lr, epochs


def variadic(accelerator, *rest):
    return (accelerator, *rest)


@pytest.mark.parametrize("function", [first, middle, keyword_only, positional_only, annotated, optional, followed])
@pytest.mark.parametrize(("args", "kwargs", "expected"), [((0.1,), {}, (HERE, 0.1, 1)), ((0.1, 3), {}, (HERE, 0.1, 3))])
def test_injected_wherever_it_stands(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    assert bind(function, args, kwargs)(HERE) == expected


@pytest.mark.parametrize("function", [first, last, middle, keyword_only, annotated, optional, followed])
def test_injected_beside_keywords(function: Callable[..., Any]) -> None:
    assert bind(function, (), {"epochs": 2, "lr": 0.5})(HERE) == (HERE, 0.5, 2)


def test_variadic_arguments_follow_it() -> None:
    assert bind(variadic, (1, 2, 3), {})(HERE) == (HERE, 1, 2, 3)


def test_no_parameter_no_injection() -> None:
    call = bind(lambda lr, batch: (lr, batch), (1, 2), {})
    assert call.target is None
    assert call() == (1, 2)


def test_an_accelerator_passed_by_the_caller_stays() -> None:
    assert bind(first, (), {"accelerator": "mine", "lr": 1})(HERE) == ("mine", 1, 1)


def test_a_method_is_a_function_too() -> None:
    class Trainer:
        def fit(self, accelerator, lr):
            return accelerator, lr

    assert bind(Trainer().fit, (1,), {})(HERE) == (HERE, 1)


def test_an_annotation_of_somebody_elses_accelerator_is_not_ours() -> None:
    accelerate = pytest.importorskip("accelerate")

    def train(acc):
        return acc

    train.__annotations__["acc"] = accelerate.Accelerator
    assert bind(train, ("theirs",), {})() == "theirs"


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "words"),
    [
        (first, (), {}, ["first()", "lr", "besides the accelerator", "epochs=1"]),
        (first, (1, 2, 3), {}, ["first()", "too many", "(1, 2, 3)"]),
        (first, (1,), {"epoch": 2}, ["epoch", "epochs=1"]),
        (lambda: None, (1,), {}, ["nothing"]),
    ],
)
def test_a_misfit_is_refused_with_what_the_function_takes(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(CallError) as error:
        bind(function, args, kwargs)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_callable_object_that_is_async_is_refused_too() -> None:
    class Trainer:
        async def __call__(self) -> None: ...

    with pytest.raises(CallError, match="async"):
        bind(Trainer(), (), {})
