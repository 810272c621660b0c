"""The screen as core widgets: updated in place while the run goes on, replaced by static HTML at its end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import ipywidgets

from ..progress.model import RunModel
from .failure import failure_html
from .header import header_html, notes_html
from .html import HtmlScreen, bundle
from .logpane import log_html
from .notebook import Cell
from .outputs import outputs_html
from .pace import Pace
from .plot import FINAL_DPI, LIVE_DPI
from .plotter import Plotter
from .rows import make_table
from .stop_button import StopButton
from .style import STYLE
from .table import table_html

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
        self._seen = (-1, -1)

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
            self._drop_widgets()
            self._instead = HtmlScreen(clock=self._clock)
            self._instead.open(model)

    def refresh(self, model: RunModel) -> None:
        """Look at the Stop button, and draw what changed and is due."""
        if self._instead:
            self._instead.refresh(model)
            return
        panes, stop = self._panes, self._stop
        if panes is None or stop is None:
            return
        stop.look()
        if self._bars.due():
            self._bars.run(lambda: panes.update(model))
        seen = (model.log_version, model.shelf.version)
        if seen != self._seen and self._logs.due():
            self._seen = seen
            self._logs.run(lambda: panes.update_log(model))
        if self._plot.refresh(model, LIVE_DPI) and self._plot.png:
            panes.show_plot(self._plot.png)

    def close(self, model: RunModel) -> None:
        """Replace the widgets by static HTML."""
        if self._instead:
            self._instead.close(model)
            return
        with contextlib.suppress(Exception):
            self._plot.draw(model, FINAL_DPI)
            self._cell.replace(bundle(model, self._plot.png))
        self._drop_widgets()

    def _drop_widgets(self) -> None:
        if self._stop:
            self._stop.close()
        if self._panes:
            self._panes.close()


class Panes:
    """The widgets, from top to bottom; each is sent only when its content changed."""

    def __init__(self) -> None:
        self._texts: dict[str, Any] = {}
        for name in ("head", "alert", "table", "all", "log", "outputs"):
            self._texts[name] = ipywidgets.HTML(layout=ipywidgets.Layout(width="100%", margin="0"))
        self._style = ipywidgets.HTML(STYLE, layout=ipywidgets.Layout(display="none"))
        self.button = ipywidgets.Button(
            description="Stop", icon="stop", layout=ipywidgets.Layout(width="auto", flex="0 0 auto")
        )
        self._image = ipywidgets.Image(format="png", layout=ipywidgets.Layout(width="100%", display="none"))
        top = ipywidgets.HBox([self._texts["head"], self.button], layout=ipywidgets.Layout(max_width="1080px"))
        rest = [self._texts[name] for name in ("alert", "table")]
        below = [self._texts[name] for name in ("log", "outputs")]
        self.box = ipywidgets.VBox([self._style, top, *rest, self._image, *below])

    def update(self, model: RunModel) -> None:
        """Bring header, notes and bars up to date."""
        table = make_table(model)
        self._set("head", header_html(model))
        self._set("alert", notes_html(model) + failure_html(model))
        self._set("table", table_html(table))

    def update_log(self, model: RunModel) -> None:
        """Bring log and displays up to date."""
        self._set("log", log_html(model))
        self._set("outputs", outputs_html(model))

    def show_plot(self, png: bytes) -> None:
        """Put a new plot in the place of the old one."""
        self._image.value = png
        if self._image.layout.display == "none":
            self._image.layout.display = None

    def _set(self, name: str, content: str) -> None:
        content = f'<div class="nbacc">{content}</div>' if content else ""
        if self._texts[name].value != content:
            self._texts[name].value = content

    def close(self) -> None:
        """Empty and close every widget, so that a saved notebook carries none of their content."""
        widgets = [*self._texts.values(), self._style, self._image, self.button, self.box]
        for widget in widgets:
            with contextlib.suppress(Exception):
                if isinstance(widget, ipywidgets.HTML):
                    widget.value = ""
                elif isinstance(widget, ipywidgets.Image):
                    widget.value = b""
        for widget in widgets:
            with contextlib.suppress(Exception):
                widget.layout.close()
                widget.close()
