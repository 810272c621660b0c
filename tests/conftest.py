"""Fixtures of every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from guards import Belongings

from notebook_accel import notebook_launcher


@pytest.fixture(scope="session", autouse=True)
def first_launch(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the first launch of a process leaves for good (a pipe of torch's store, torch._dynamo) is no test's leak."""
    run_dir = str(tmp_path_factory.mktemp("first"))
    notebook_launcher(lambda accelerator: None, num_processes=2, device="cpu", ui="none", run_dir=run_dir)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    before = Belongings.now()
    yield
    leaks = before.leaks()
    if any(line.startswith("file descriptor") for line in leaks):
        gc.collect()  # an object in a reference cycle keeps its file until here, which is no leak
        leaks = before.leaks()
    before.restore()
    assert not leaks, "the test left something behind:\n  " + "\n  ".join(leaks)


try:
    import hypothesis
except ImportError:  # the lane with Colab's packages
    pass
else:
    hypothesis.settings.register_profile("here", deadline=None, derandomize=bool(os.environ.get("CI")))
    hypothesis.settings.load_profile("here")
