"""What happens once in a process that launches, and is no leak of any one test."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_accel import debug_launcher


@pytest.fixture(scope="session", autouse=True)
def _first_launch(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first launch loads torch._dynamo, which keeps a pipe of its own for the life of the process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        debug_launcher(lambda accelerator: None)


@pytest.fixture(autouse=True)
def _runs_are_kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
