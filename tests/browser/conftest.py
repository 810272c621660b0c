"""One JupyterLab and one Chromium for all browser tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import lab
from guards import Belongings
from playwright.sync_api import Browser, Page, sync_playwright


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """In place of the guard of every test: server and browser start processes of their own and end at the very end."""
    before = Belongings.now()
    yield
    leaks = before.leaks()
    before.restore()
    assert not leaks, "the tests left something behind:\n  " + "\n  ".join(leaks)


@pytest.fixture(scope="session")
def chromium(nothing_left_behind: None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = lab.start_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def jupyter(nothing_left_behind: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
    with lab.start_lab(Path(tmp_path_factory.mktemp("lab"))) as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1180, "height": 1000}, device_scale_factor=1.5)
    page = context.new_page()
    yield page
    page.evaluate("window.jupyterapp?.serviceManager.sessions.shutdownAll()")  # kernels stay when a page goes
    context.close()
