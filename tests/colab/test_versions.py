"""The environment is Colab's, and notebook_accel is content with it."""

from __future__ import annotations

import importlib.util
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

LOCK = Path(__file__).with_name("requirements.txt")


def test_python() -> None:
    assert sys.version_info[:2] == (3, 13)


def test_every_version_is_colabs() -> None:
    wanted = [line.split("==") for line in LOCK.read_text("utf-8").split() if "==" in line]
    assert len(wanted) > 50
    found = {name: metadata.version(name) for name, _version in wanted}
    assert found == dict(wanted)


def test_there_is_no_comm_package() -> None:
    assert importlib.util.find_spec("comm") is None


def test_nothing_would_be_upgraded() -> None:
    requirements = [Requirement(text) for text in metadata.requires("notebook_accel") or ()]
    needed = [one for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    assert {one.name for one in needed} >= {"torch", "ipywidgets"}
    for one in needed:
        assert one.specifier.contains(metadata.version(one.name), prereleases=True), one
