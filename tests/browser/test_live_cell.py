"""What a person sees in JupyterLab while a cell trains, and afterwards. Pictures of it are left in .browser/."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from browser.lab import ROOT, Lab, Theme
from playwright.sync_api import Page, expect

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
LIVE = ".jp-OutputArea-output .jupyter-widgets"  # only widgets have this class
TABLE = ".jp-OutputArea-output table.nbacc-table"
DONE = "[...document.querySelectorAll('.nbacc-table .nbacc-bar i')].map(bar => parseFloat(bar.style.width) || 0)"
PICTURE = f"document.querySelector('{LIVE} img')?.src"

ENDLESS = """
from notebook_accel import notebook_launcher

def train(accelerator):
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    data = DataLoader(TensorDataset(torch.zeros(64, 1)), batch_size=8)
    model = torch.nn.Linear(1, 1)
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), data)
    while True:
        for (inputs,) in data:
            loss = model(inputs).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            accelerator.log({"loss": loss})

run = notebook_launcher(train, num_processes=2)
"""

FAILING = """
from notebook_accel import notebook_launcher

def train(accelerator):
    batches = [3, 2, 1, 0]
    for batch in batches:
        print("batch", batch)
        if accelerator.process_index == 1:
            scale(batch)

def scale(batch):
    if batch == 0:
        raise ValueError("a batch of 0 samples cannot be scaled")

run = notebook_launcher(train, num_processes=2)
"""


TALKING = """
from notebook_accel import notebook_launcher

def train(accelerator):
    import os, time
    from IPython.display import HTML, display
    display(HTML("<table class=dataframe><tr><td>shown by a rank</td></tr></table>"))
    for batch in accelerator.track(range(10_000), "counting"):
        if batch < 40:
            print("line", batch, "of a log with words that are kept whole " * 6)
            accelerator.log({"loss": 1 / (batch + 1), "accuracy": 0.9}, step=batch)
        else:
            time.sleep(0.05)

run = notebook_launcher(train, num_processes=2, blocking=False)
"""

# How far the log pane is from its newest line, how much of it is out of sight, and the pixels of the narrowest bar.
LOG_AND_BARS = """() => {
    const log = document.querySelector('.nbacc-log');
    const bars = [...document.querySelectorAll('.nbacc-table .nbacc-bar')];
    const lines = log.querySelector('pre').getBoundingClientRect();
    const away = Math.abs(lines.bottom - log.getBoundingClientRect().bottom);
    return [away, lines.height - log.clientHeight, Math.min(...bars.map(bar => bar.clientWidth))];
}"""


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_the_quickstart_shows_its_progress_and_leaves_static_curves(page: Page, jupyter: Lab, theme: Theme) -> None:
    name = theme.split()[-1].lower()
    file = f"quickstart-{name}.ipynb"
    shutil.copy(ROOT / "notebooks" / "01_quickstart.ipynb", jupyter.folder / file)
    notebook = jupyter.show(page, file)
    notebook.use_theme(theme)
    notebook.command("notebook:clear-all-cell-outputs")
    notebook.picture(f"{name}-1-before")
    notebook.run_all()

    # During the run: two rank bars that grow, and a plot that is redrawn.
    expect(page.locator(f"{LIVE} table.nbacc-table tbody tr")).to_have_count(2, timeout=60_000)
    page.wait_for_function(f"{DONE}.length === 2 && {DONE}.every(width => width > 0)", timeout=60_000)
    page.locator(f"{LIVE} img").first.wait_for(timeout=60_000)
    for _redrawn in range(3):
        shown = page.evaluate(PICTURE)
        page.wait_for_function(f"shown => {{ const now = {PICTURE}; return now && now !== shown; }}", arg=shown)
    page.locator(LIVE).first.scroll_into_view_if_needed()
    notebook.picture(f"{name}-2-during")
    notebook.picture(f"{name}-live-cell", page.locator(".jp-CodeCell", has=page.locator(LIVE)))

    # Afterwards: no widget, the same table and the curves as plain HTML.
    notebook.wait_until_idle()
    expect(page.locator(LIVE)).to_have_count(0)
    expect(page.locator(".nbacc .nbacc-state")).to_have_text("finished")
    curves = page.locator(".jp-OutputArea-output .nbacc-plot img[src^='data:image/png']")
    expect(curves).to_be_visible()
    curves.scroll_into_view_if_needed()
    notebook.picture(f"{name}-3-after")
    check_saved(notebook.saved())

    # Opened again, as by somebody who was sent the file.
    page.reload()
    page.locator(TABLE).wait_for(timeout=60_000)
    expect(curves).to_be_visible()
    assert "Error displaying widget" not in page.content()


def check_saved(content: dict[str, Any]) -> None:
    assert not content["metadata"].get("widgets")
    outputs = [output for cell in content["cells"] for output in cell.get("outputs", ())]
    assert not [output for output in outputs if WIDGET_VIEW in output.get("data", {})]
    assert any("data:image/png;base64" in "".join(output.get("data", {}).get("text/html", "")) for output in outputs)


def test_the_stop_button_stops_the_run_and_the_cell_returns(page: Page, jupyter: Lab) -> None:
    notebook = jupyter.show(page, jupyter.write("endless.ipynb", ENDLESS, "print('status:', run.status)"))
    notebook.use_theme("JupyterLab Light")
    notebook.run_all()
    page.wait_for_function("document.querySelector('.nbacc-table')?.innerText.includes('epoch 3')", timeout=60_000)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("status: stopped").wait_for(timeout=60_000)
    expect(page.locator(".nbacc .nbacc-state")).to_have_text("stopped")
    expect(page.locator(LIVE)).to_have_count(0)
    notebook.picture("stopped")


@pytest.mark.parametrize("width", [1180, 700, 420])
def test_at_any_width_there_are_bars_and_the_newest_log_lines_beside_other_cells(
    page: Page, jupyter: Lab, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    name = f"talking-{width}.ipynb"
    notebook = jupyter.show(page, jupyter.write(name, TALKING, "print('another cell')", "run.stop(); run.wait()"))
    notebook.use_theme("JupyterLab Light")
    page.evaluate("window.jupyterapp.shell.collapseLeft()")
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')")
    page.get_by_text("line 39 of a log").first.wait_for(timeout=60_000)
    page.locator(f"{LIVE} img").first.wait_for(timeout=60_000)
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')")
    page.get_by_text("another cell", exact=True).wait_for()
    from_newest, out_of_sight, bar = page.evaluate(LOG_AND_BARS)
    assert from_newest < 2
    assert out_of_sight > 100
    assert bar > 30
    notebook.picture(f"width-{width}")
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
    notebook.wait_until_idle()
    expect(page.locator(".nbacc .nbacc-state")).to_have_text("stopped")


def test_a_failure_names_the_rank_and_the_line(page: Page, jupyter: Lab) -> None:
    notebook = jupyter.show(page, jupyter.write("failing.ipynb", FAILING))
    notebook.use_theme("JupyterLab Dark")
    notebook.run_all()
    expect(page.locator(".nbacc .nbacc-state")).to_have_text("failed", timeout=60_000)
    notebook.wait_until_idle()
    shown = page.locator(".jp-OutputArea").inner_text()
    for part in ("rank 1", "ValueError", "a batch of 0 samples cannot be scaled", "scale(batch)"):
        assert part in shown
    notebook.picture("failed")
