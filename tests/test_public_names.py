"""What ``import notebook_accel`` offers."""

from __future__ import annotations

import inspect

import notebook_accel

EXPECTED = {"Accelerator", "debug_launcher", "last_run", "notebook_launcher", "set_seed"}


def test_all_is_sorted_and_holds_what_was_promised() -> None:
    assert sorted(notebook_accel.__all__) == list(notebook_accel.__all__)
    assert set(notebook_accel.__all__) >= EXPECTED


def test_every_name_is_there_and_explained() -> None:
    for name in notebook_accel.__all__:
        value = getattr(notebook_accel, name)
        if not isinstance(value, str):
            assert inspect.getdoc(value), name


def test_dir_shows_the_names() -> None:
    assert set(notebook_accel.__all__) <= set(dir(notebook_accel))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(notebook_accel, "no_such_name")


def test_the_launcher_takes_its_arguments_in_the_order_of_accelerate() -> None:
    parameters = inspect.signature(notebook_accel.notebook_launcher).parameters
    assert list(parameters)[:8] == [
        "function",
        "args",
        "num_processes",
        "mixed_precision",
        "use_port",
        "master_addr",
        "node_rank",
        "num_nodes",
    ]
