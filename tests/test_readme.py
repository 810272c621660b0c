"""What the README shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kernels import run_cells

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/architecture.md"]


@pytest.mark.kernel
def test_the_example_runs_as_printed(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    cells = [example, "sorted(run.value)", "losses = run.history['loss'].values; losses[-1] < losses[0] / 10"]
    shown = run_cells(cells, env={"XDG_CACHE_HOME": str(tmp_path)}, timeout=120)
    assert [cell.error for cell in shown] == [None, None, None]
    assert shown[1].result == "['0.bias', '0.weight', '2.bias', '2.weight']"
    assert shown[2].result == "True"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_that_are_named_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.findall(r"`?make ([a-z-]+)`?", (ROOT / page).read_text("utf-8")))
    assert [target for target in named if f"\n{target}:" not in makefile] == []
