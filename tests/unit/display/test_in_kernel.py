"""The notebook's screens in a real kernel: what the page gets, what is saved, and Stop while a cell blocks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from kernels import ROOT, Cell, Kernel

pytestmark = pytest.mark.kernel

VIEW = "application/vnd.jupyter.widget-view+json"

OPEN = """
import sys; sys.path.insert(0, "tests")
from unit.display.simulated import *
from notebook_accel.display import make_screen
from notebook_accel.host.frontend import FrontEnd, detect_front_end
clock = Clock()
model = started(2, clock)
model.apply(Output(0, clock.now, "hello <b>\\n"))
screen = make_screen({ui!r}, detect_front_end())
screen.open(model)
"""
TRAIN = """
import time
begun = time.monotonic()
for number in range(1, 30):
    step(model, clock, number)
    screen.refresh(model)
"""
CLOSE = """
for rank in (0, 1):
    model.apply(Finished(rank, clock.now))
model.apply(Ended(clock.now, "finished"))
screen.close(model)
"""
UNTIL_PRESSED = """
print(screen._panes.button.model_id, flush=True)
deadline = time.monotonic() + 50
while screen.presses < {presses} and time.monotonic() < deadline:
    screen.refresh(model)
    time.sleep(0.02)
print("pressed", screen.presses)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with Kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


def quiet(cell: Cell) -> Cell:
    assert cell.error is None, cell.error
    assert (cell.stdout, cell.stderr) == ("", "")
    return cell


def kinds(cell: Cell) -> Counter[str]:
    return Counter(message["header"]["msg_type"] for message in cell.comms)


def test_widgets_live_and_a_static_page_at_the_end(kernel: Kernel) -> None:
    live = quiet(kernel.run(OPEN.format(ui="widget") + TRAIN))
    (shown,) = live.displays
    assert shown["data"][VIEW]["model_id"]
    assert "running" in shown["data"]["text/html"], "for front ends without widgets"
    assert shown["data"]["text/plain"].startswith("train · 2 × CPU")
    sent = json.dumps([message["content"] for message in live.comms])
    assert "<table" in sent
    assert "hello &lt;b&gt;" in sent
    assert any(message["buffers"] for message in live.comms), "a plot as PNG"

    ended = quiet(kernel.run(CLOSE))
    (static,) = ended.updates
    assert static["transient"] == shown["transient"]
    assert set(static["data"]) == {"text/html", "text/plain"}
    assert '<img alt="logged metrics" src="data:image/png;base64,' in static["data"]["text/html"]
    assert "nbacc-finished" in static["data"]["text/html"]
    assert kinds(ended)["comm_close"] == kinds(live)["comm_open"], "every widget is closed"
    assert kernel.run(
        "import ipywidgets; len(ipywidgets.Widget._active_widgets) if hasattr("
        "ipywidgets.Widget, '_active_widgets') else len(ipywidgets.Widget.widgets)"
    ).result in ("0", "")


def test_the_bars_are_drawn_before_the_first_plot_which_takes_its_time(kernel: Kernel) -> None:
    first = "screen.refresh(model)\nstep(model, clock, 1)\nscreen.refresh(model)\nscreen.refresh(model)\n"
    cell = quiet(kernel.run(OPEN.format(ui="widget") + first))
    bars = [n for n, message in enumerate(cell.comms) if "1/200" in json.dumps(message["content"])]
    plots = [n for n, message in enumerate(cell.comms) if any(map(len, message["buffers"]))]
    assert bars[0] < plots[0]
    quiet(kernel.run(CLOSE))


EXECUTE = """
import sys, nbclient, nbformat
path, root = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": root}}).execute()
nbformat.write(notebook, path)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A notebook that was executed without a page, as its file holds it."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    path = tmp_path_factory.mktemp("saved") / "run.ipynb"
    cell = nbformat.v4.new_code_cell(OPEN.format(ui="widget") + TRAIN + CLOSE)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), path)
    subprocess.run([sys.executable, "-c", EXECUTE, str(path), str(ROOT)], check=True, capture_output=True)
    return nbformat.read(path, as_version=4)


def test_the_saved_notebook_has_curves_and_no_widgets(saved: Any) -> None:
    (output,) = saved.cells[0].outputs
    assert set(output["data"]) == {"text/html", "text/plain"}
    assert "data:image/png;base64," in output["data"]["text/html"]
    state: Any = saved.metadata.get("widgets", {})
    assert "nbacc" not in json.dumps(state)
    assert len(json.dumps(state)) < 12_000


@pytest.mark.parametrize("presses", [1, 2])
def test_the_stop_button_is_seen_while_the_cell_blocks(kernel: Kernel, presses: int) -> None:
    quiet(kernel.run(OPEN.format(ui="widget") + TRAIN))
    blocked = kernel.start(UNTIL_PRESSED.format(presses=presses))
    kernel.wait_for(blocked, lambda cell: cell.stdout)
    queued = kernel.start("print('queued cell:', screen.presses, model.status)")
    for _ in range(presses):
        kernel.send_comm(blocked.stdout.strip(), {"method": "custom", "content": {"event": "click"}})
    assert kernel.finish(blocked).stdout.endswith(f"pressed {presses}\n")
    assert kernel.finish(queued).stdout == f"queued cell: {presses} running\n", "behind the cell, as it was sent"
    quiet(kernel.run(CLOSE))


def test_after_the_screen_the_kernel_is_as_before(kernel: Kernel) -> None:
    look = "k = get_ipython().kernel; str(getattr(k.shell_stream, '_recv_callback', None))"
    before = kernel.run(look).result
    quiet(kernel.run(OPEN.format(ui="widget")))
    quiet(kernel.run(CLOSE))
    assert kernel.run(look).result == before


def test_html_is_one_output_that_is_replaced(kernel: Kernel) -> None:
    cell = quiet(kernel.run(OPEN.format(ui="html") + "screen._pace._period = 0.0\n" + TRAIN + CLOSE))
    assert len(cell.displays) == 1
    assert len(cell.updates) >= 1
    assert not cell.comms
    assert "nbacc-finished" in cell.displays[0]["data"]["text/html"]
    assert "data:image/png;base64," in cell.displays[0]["data"]["text/html"]
    assert VIEW not in cell.displays[0]["data"]


@pytest.mark.parametrize("broken", ["HTML", "Button", "Image"])
def test_without_working_widgets_it_is_html(kernel: Kernel, broken: str) -> None:
    spoil = f"""
import ipywidgets
spared = ipywidgets.{broken}
def broken(*args, **kwargs): raise RuntimeError("no widgets today")
ipywidgets.{broken} = broken
"""
    repair = f"\nipywidgets.{broken} = spared\n"
    cell = quiet(kernel.run(spoil + OPEN.format(ui="widget") + TRAIN + CLOSE + repair))
    assert set(cell.displays[0]["data"]) == {"text/html", "text/plain"}
    assert "nbacc-finished" in cell.displays[0]["data"]["text/html"]
    assert kinds(cell)["comm_open"] == kinds(cell)["comm_close"], "no widget is left over"


def test_a_plot_that_cannot_be_drawn_is_told_once_and_the_rest_goes_on(kernel: Kernel) -> None:
    spoil = """
from notebook_accel.display import plotter
spared = plotter.render_figure
def broken(*args, **kwargs): raise RuntimeError("no fonts")
plotter.render_figure = broken
"""
    cell = quiet(kernel.run(OPEN.format(ui="widget") + spoil + TRAIN + CLOSE + "plotter.render_figure = spared\n"))
    page = cell.displays[0]["data"]["text/html"]
    assert "nbacc-finished" in page
    assert page.count("the plot is off: RuntimeError: no fonts") == 1


def test_closing_a_screen_that_never_opened(kernel: Kernel) -> None:
    code = """
screen = make_screen("widget", detect_front_end())
screen.refresh(model); screen.close(model)
"""
    assert not quiet(kernel.run(code)).displays
