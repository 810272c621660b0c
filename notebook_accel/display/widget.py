"""The screen as core widgets: updated in place while the run goes on, replaced by static HTML at its end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from ..progress.model import RunModel
from .html import HtmlScreen, bundle
from .notebook import Cell
from .pace import Pace
from .panes import Panes
from .plot import FINAL_DPI, LIVE_DPI
from .plotter import Plotter
from .stop_button import StopButton

VIEW = "application/vnd.jupyter.widget-view+json"
BARS, LOG, PLOT = 0.25, 0.5, 1.0


class WidgetScreen:
    """Widgets in one cell output; HTML without widgets if they cannot be made."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cell = Cell()
        self._bars, self._logs = Pace(BARS, clock), Pace(LOG, clock)
        self._plot = Plotter(PLOT, clock)
        self._clock = clock
        self._panes: Panes | None = None
        self._stop: StopButton | None = None
        self._instead: HtmlScreen | None = None
        self._drawn_log = (-1, -1)

    @property
    def stop_requested(self) -> bool:
        """Whether the Stop button was ever pressed."""
        return self.presses > 0

    @property
    def presses(self) -> int:
        """How often the Stop button was pressed."""
        return self._stop.presses if self._stop else 0

    def open(self, model: RunModel) -> None:
        """Show the run for the first time."""
        try:
            self._panes = Panes()
            self._stop = StopButton(self._panes.button)
            self._panes.update(model)
            view = {"version_major": 2, "version_minor": 0, "model_id": self._panes.box.model_id}
            self._cell.show({VIEW: view, **bundle(model, None)})
        except Exception:  # whatever is wrong with the widgets, the run must be seen
            self._fall_back(model)

    def refresh(self, model: RunModel) -> None:
        """Look at the Stop button, and draw what changed and is due."""
        if self._instead is not None:
            self._instead.refresh(model)
        elif self._panes is not None and self._stop is not None:
            self._stop.look()
            self._draw(model, self._panes)

    def _draw(self, model: RunModel, panes: Panes) -> None:
        if self._bars.due():
            self._bars.run(lambda: panes.update(model, presses=self.presses))
        log = (model.log_version, model.shelf.version)
        if log != self._drawn_log and self._logs.due():
            self._drawn_log = log
            self._logs.run(lambda: panes.update_log(model))
        # The page stands still meanwhile, with the newest bars; the plot is then drawn from all that came in.
        if self._plot.load_first(model, before=lambda: panes.update(model, presses=self.presses)):
            return
        if self._plot.refresh(model, LIVE_DPI) and self._plot.png:
            panes.show_plot(self._plot.png)

    def close(self, model: RunModel) -> None:
        """Replace the widgets by static HTML."""
        if self._instead is not None:
            self._instead.close(model)
        elif self._panes is not None:
            with contextlib.suppress(Exception):
                self._plot.draw(model, FINAL_DPI)
                self._cell.replace(bundle(model, self._plot.png))
            self._drop_widgets()

    def _fall_back(self, model: RunModel) -> None:
        with contextlib.suppress(Exception):
            self._drop_widgets()
        self._instead = HtmlScreen(clock=self._clock)
        self._instead.open(model)

    def _drop_widgets(self) -> None:
        if self._stop is not None:
            self._stop.close()
        if self._panes is not None:
            self._panes.close()
            self._panes = None
