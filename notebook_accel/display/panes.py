"""The widgets of the screen, from top to bottom; each is sent only when its content changed."""

from __future__ import annotations

import contextlib
from typing import Any

import ipywidgets

from ..progress.model import RunModel
from .failure import failure_html
from .header import header_html, notes_html
from .logpane import log_html
from .outputs import outputs_html
from .rows import make_table
from .style import STYLE
from .table import table_html, toggle_html

NAMES = ("head", "alert", "table", "toggle", "all", "log", "outputs")
LABELS = ("Stop", "End now", "Ending")


class Panes:
    """``box`` holds all of them, ``button`` is the Stop button."""

    def __init__(self) -> None:
        self._texts: dict[str, Any] = {name: _text() for name in NAMES}
        self._style = _text(STYLE)
        self._texts["toggle"].add_class("nbacc-toggle")
        self._texts["all"].add_class("nbacc-all")
        self.button = ipywidgets.Button(description=LABELS[0], icon="stop", layout=_layout(width="auto", height="26px"))
        self.button.layout.flex, self.button.layout.margin = "0 0 auto", "0 0 0 14px"
        self._texts["head"].layout.flex = "1 1 auto"
        self._image = ipywidgets.Image(format="png", layout=_layout(width="100%", max_width="1080px", display="none"))
        top = ipywidgets.HBox([self._texts["head"], self.button], layout=_layout(max_width="1080px", width="100%"))
        top.layout.align_items = "center"
        above = [self._texts[name] for name in NAMES[1:5]]
        below = [self._texts[name] for name in NAMES[5:]]
        self.box = ipywidgets.VBox([self._style, top, *above, self._image, *below], layout=_layout(width="100%"))
        self._boxes = (top, self.box)

    def update(self, model: RunModel, *, presses: int = 0) -> None:
        """Bring header, notes and bars up to date; ``presses`` of the Stop button change what it says."""
        table = make_table(model)
        self._set("head", header_html(model))
        self._set("alert", notes_html(model) + failure_html(model))
        self._set("table", table_html(table, live=True))
        self._set("toggle", toggle_html(table))
        self._set("all", table_html(table, table.all_rows, live=True))
        label = LABELS[min(presses, len(LABELS) - 1)]
        if self.button.description != label:
            self.button.description = label

    def update_log(self, model: RunModel) -> None:
        """Bring log and displays up to date."""
        self._set("log", log_html(model))
        self._set("outputs", outputs_html(model))

    def show_plot(self, png: bytes) -> None:
        """Put a new plot in the place of the old one."""
        self._image.value = png
        if self._image.layout.display is not None:
            self._image.layout.display = None

    def _set(self, name: str, content: str) -> None:
        widget = self._texts[name]
        content = f'<div class="nbacc">{content}</div>' if content else ""
        if widget.value == content:
            return
        if bool(widget.value) != bool(content):  # an empty widget would still take its margins
            widget.layout.display = None if content else "none"
        widget.value = content

    def close(self) -> None:
        """Empty and close every widget, so that a saved notebook carries none of their content."""
        texts = [*self._texts.values(), self._style]
        for widget, empty in [*((text, "") for text in texts), (self._image, b"")]:
            with contextlib.suppress(Exception):
                widget.value = empty
        for widget in (*texts, self._image, self.button, *self._boxes):
            for name in ("layout", "style"):
                with contextlib.suppress(Exception):
                    getattr(widget, name).close()
            with contextlib.suppress(Exception):
                widget.close()


def _layout(**traits: Any) -> Any:
    return ipywidgets.Layout(margin="0", **traits)


def _text(content: str = "") -> Any:
    return ipywidgets.HTML(content, layout=_layout(width="100%", display="none"))
