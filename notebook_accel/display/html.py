"""The screen as one HTML output, replaced about once a second: for batch runs and front ends without widgets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from ..progress.model import RunModel
from .notebook import Cell
from .pace import Pace
from .page import render_html
from .plot import FINAL_DPI, LIVE_DPI
from .plotter import Plotter
from .summary import summary_text


class HtmlScreen:
    """Replaces its output at most once in ``period`` seconds."""

    stop_requested = False
    presses = 0

    def __init__(self, *, period: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._cell = Cell()
        self._pace = Pace(period, clock)
        self._plot = Plotter(2 * period, clock)

    def open(self, model: RunModel) -> None:
        """Show the run for the first time."""
        self._pace.run(lambda: self._cell.show(bundle(model, None)))

    def refresh(self, model: RunModel) -> None:
        """Replace the output if it is time to."""
        if self._pace.due():
            self._pace.run(lambda: self._draw(model))

    def _draw(self, model: RunModel) -> None:
        self._plot.refresh(model, LIVE_DPI)
        self._cell.replace(bundle(model, self._plot.png))

    def close(self, model: RunModel) -> None:
        """Leave the static end state."""
        with contextlib.suppress(Exception):
            self._plot.draw(model, FINAL_DPI)
            self._cell.replace(bundle(model, self._plot.png))


def bundle(model: RunModel, figure: bytes | None) -> dict[str, str]:
    """The run as HTML and as plain text."""
    return {"text/html": render_html(model, figure=figure), "text/plain": summary_text(model)}
