"""JupyterLab and Chromium for a test: a server of its own, and pages that show a notebook in it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import nbformat
import psutil
import pytest
from playwright.sync_api import Browser, Locator, Page, Playwright

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / ".browser"
KERNEL_IS_IDLE = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
Theme = Literal["JupyterLab Light", "JupyterLab Dark"]
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight stay in the page
}
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def start_chromium(playwright: Playwright) -> Browser:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("There is no Chromium here. On Debian or Ubuntu: apt-get install chromium")
    return playwright.chromium.launch(executable_path=path, args=list(BROWSER_OPTIONS))


@dataclass(frozen=True)
class Lab:
    """A running server: where it listens, and the folder it serves."""

    url: str
    token: str
    folder: Path

    def show(self, page: Page, notebook: str) -> Notebook:
        """Open a notebook of the folder in the page, and wait until its kernel is there."""
        page.goto(f"{self.url}doc/tree/{notebook}?token={self.token}&reset")
        page.wait_for_function(KERNEL_IS_IDLE, timeout=60_000)
        return Notebook(page, self.folder / notebook)

    def write(self, name: str, *cells: str) -> str:
        """Put a notebook with these code cells into the folder."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)
        return name


@dataclass(frozen=True)
class Notebook:
    """A notebook open in a page."""

    page: Page
    path: Path

    def command(self, name: str) -> None:
        self.page.evaluate("name => window.jupyterapp.commands.execute(name)", name)

    def use_theme(self, theme: Theme) -> None:
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        self.page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")

    def run_all(self) -> None:
        """Start all cells and do not wait for them."""
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")

    def wait_until_idle(self, timeout: float = 120) -> None:
        """Wait until no cell is running or waiting to run (those show an asterisk for their number)."""
        self.page.wait_for_function(
            "() => ![...document.querySelectorAll('.jp-InputPrompt')].some(prompt => prompt.innerText.includes('*'))",
            timeout=timeout * 1000,
        )

    def saved(self) -> dict[str, object]:
        """Save it and read the file."""
        self.command("docmanager:save")
        content: dict[str, object] = json.loads(self.path.read_text("utf-8"))
        return content

    def picture(self, name: str, part: Locator | None = None) -> None:
        """Leave a picture of the page, or of a part of it, for people to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        (part or self.page).screenshot(path=SCREENSHOTS / f"{name}.png")


@contextmanager
def start_lab(state: Path) -> Iterator[Lab]:
    """A JupyterLab on a free port of the loopback interface; its files and the served folder are in ``state``."""
    for name, values in SETTINGS.items():
        path = state / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), "utf-8")
    work = state / "work"
    work.mkdir()
    token = secrets.token_hex(16)
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(state / "config"),
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(state / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
        "IPYTHONDIR": str(state / "ipython"),
        "PYTHONPATH": str(ROOT),
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
        *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--IdentityProvider.token={token}"),
        f"--ServerApp.root_dir={work}",
    ]
    with (state / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield Lab(_address(process, state), token, work)
    finally:
        _end(process)


def _address(process: subprocess.Popen[bytes], state: Path, timeout: float = 60) -> str:
    """The address that the server writes to its runtime folder once it listens."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and process.poll() is None:
        for path in (state / "runtime").glob("jpserver-*.json"):
            if path.stat().st_size:
                return str(json.loads(path.read_text("utf-8"))["url"])
        time.sleep(0.1)
    pytest.fail("JupyterLab did not start:\n" + (state / "lab.log").read_text("utf-8")[-3000:])


def _end(process: subprocess.Popen[bytes]) -> None:
    family = [] if process.poll() is not None else psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in family:
        if child.is_running():
            child.kill()
