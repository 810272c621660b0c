"""Which screen a run gets."""

from __future__ import annotations

from typing import Literal, Protocol, cast

from ..host.frontend import FrontEnd
from ..progress.model import RunModel

View = Literal["widget", "html", "text", "none"]


class Screen(Protocol):
    """A view of one run; only the thread that opened it may call it."""

    def open(self, model: RunModel) -> None:
        """Show the run for the first time."""

    def refresh(self, model: RunModel) -> None:
        """Draw what changed, if it is time to; cheap enough to call ten times a second."""

    def close(self, model: RunModel) -> None:
        """Leave the static end state, whatever happened; never raises."""

    @property
    def stop_requested(self) -> bool:
        """Whether the Stop button was ever pressed."""

    @property
    def presses(self) -> int:
        """How often the Stop button was pressed."""


class NoScreen:
    """Shows nothing."""

    stop_requested = False
    presses = 0

    def open(self, model: RunModel) -> None:
        """Nothing to show."""

    def refresh(self, model: RunModel) -> None:
        """Nothing to draw."""

    def close(self, model: RunModel) -> None:
        """Nothing to leave."""


def choose_ui(ui: str, front_end: FrontEnd) -> View:
    """The view for ``ui=`` in this front end; what a front end cannot show falls back to what it can."""
    if ui == "none" or ui == "text":
        return cast(View, ui)
    if not front_end.notebook:
        return "text"
    if ui == "html" or not front_end.widgets:
        return "html"
    return "widget" if ui == "widget" or front_end.interactive else "html"


def make_screen(ui: str, front_end: FrontEnd) -> Screen:
    """The screen for ``ui=``: "auto", "widget", "html", "text" or "none"."""
    view = choose_ui(ui, front_end)
    if view == "none":
        return NoScreen()
    if view == "text":
        from .text import TextScreen

        return TextScreen()
    from .html import HtmlScreen

    if view == "html":
        return HtmlScreen(period=1.0 if front_end.interactive else 10.0)
    from .widget import WidgetScreen

    return WidgetScreen()
