"""Fixtures of every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from guards import Belongings


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
