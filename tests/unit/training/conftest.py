"""A rank without a launch: its reports are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from parity.starting import Recorder

from notebook_accel.contracts.world import RankContext, World, current_context


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    token = current_context.set(RankContext(World(), reporter=recorder))
    yield recorder
    current_context.reset(token)
