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
WIDTH = "960px"
HIDDEN = "nbacc-hidden"


class Panes:
    """``box`` holds all of them, ``button`` is the Stop button."""

    def __init__(self) -> None:
        self._made: list[Any] = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        # Widget state is mostly layouts and styles, so all share one; what differs is a class of the style sheet.
        wide = self._make("Layout", width="100%", max_width=WIDTH, margin="0", flex="1 1 auto", align_items="center")
        narrow = self._make("Layout", width="auto", height="26px", margin="0 0 0 14px", flex="0 0 auto")
        sheet = self._make("HTML", value=STYLE, layout=wide)
        texts = {name: self._make("HTML", layout=wide, style=sheet.style) for name in NAMES}
        self._texts = texts
        self.button = self._make("Button", description=LABELS[0], icon="stop", layout=narrow)
        self._image = self._make("Image", format="png", layout=wide)
        top = self._make("HBox", children=[texts["head"], self.button], layout=wide)
        middle = [texts[name] for name in NAMES[1:5]]
        below = [texts[name] for name in NAMES[5:]]
        self.box = self._make("VBox", children=[sheet, top, *middle, self._image, *below], layout=wide)
        self.box.add_class("nbacc-box")
        for widget in (sheet, self._image, *texts.values()):
            widget.add_class(HIDDEN)
        for name in ("toggle", "all"):
            texts[name].add_class(f"nbacc-{name}")

    def _make(self, kind: str, **traits: Any) -> Any:
        """A widget or layout that ``close`` will close."""
        widget = getattr(ipywidgets, kind)(**traits)
        self._made.append(widget)
        return widget

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
        self._image.remove_class(HIDDEN)

    def _set(self, name: str, content: str) -> None:
        widget = self._texts[name]
        content = f'<div class="nbacc">{content}</div>' if content else ""
        if widget.value == content:
            return
        if bool(widget.value) != bool(content):  # an empty widget would still take its margins
            (widget.remove_class if content else widget.add_class)(HIDDEN)
        widget.value = content

    def close(self) -> None:
        """Empty and close every widget, so that a saved notebook carries none of their content."""
        for widget in self._made:
            with contextlib.suppress(Exception):
                widget._dom_classes = ()
                widget.value = widget.value[:0]  # text or bytes
        for widget in reversed(self._made):
            with contextlib.suppress(Exception):
                widget.style.close()
            with contextlib.suppress(Exception):
                widget.close()
        self._made.clear()
