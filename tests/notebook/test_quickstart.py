"""notebooks/01_quickstart.ipynb, run without a browser, and what its saved file holds."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "notebooks" / "01_quickstart.ipynb"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("quickstart")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("PYTHONPATH", str(ROOT))
        notebook = nbformat.read(SOURCE, as_version=4)
        client = NotebookClient(notebook, timeout=150, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute()
    return notebook


def launch_output(notebook: Any) -> Any:
    """The one output of the cell that launches."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and "= notebook_launcher(" in cell.source]
    (output,) = cell.outputs
    return output


def test_it_is_committed_executed_and_static() -> None:
    notebook = nbformat.read(SOURCE, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert "widgets" not in notebook.metadata
    check_static(launch_output(notebook))
    assert not re.search(r"/(home|root|Users|tmp|work)/", json.dumps(notebook))


def test_the_launch_leaves_static_html_with_the_curves(executed: Any) -> None:
    check_static(launch_output(executed))


def check_static(output: Any) -> None:
    assert WIDGET_VIEW not in output.data
    html = output.data["text/html"]
    assert "finished" in html
    assert html.count('src="data:image/png;base64,') == 1
    assert "<script" not in html
    assert "loss" in output.data["text/plain"]


def test_no_widget_state_is_kept(executed: Any) -> None:
    assert "widgets" not in executed.metadata


def test_nbconvert_shows_the_curves(executed: Any) -> None:
    exporter = pytest.importorskip("nbconvert").HTMLExporter()
    page, _resources = exporter.from_notebook_node(copy.deepcopy(executed))
    assert launch_output(executed).data["text/html"].split("base64,")[1][:200] in page


def test_the_digits_are_shown(executed: Any) -> None:
    last = [cell for cell in executed.cells if cell.cell_type == "code"][-1]
    assert any("image/png" in output.get("data", {}) for output in last.outputs)
