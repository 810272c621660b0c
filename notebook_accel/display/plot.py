"""The plot of every logged metric; matplotlib is loaded with the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..progress.history import History

if TYPE_CHECKING:
    from .figure import MetricFigure

LIVE_DPI, FINAL_DPI = 110, 144


def load() -> None:
    """Load matplotlib, up to a second's work, so that the first plot is drawn as fast as any other."""
    from . import figure  # noqa: F401


def make_figure(history: History, *, transparent: bool = True) -> MetricFigure:
    """A matplotlib figure of all metrics, not registered with pyplot."""
    from .figure import draw

    return draw(history, transparent=transparent)


def render_figure(history: History, *, dpi: int = FINAL_DPI) -> bytes | None:
    """The figure as PNG with a transparent ground; None when no number was logged."""
    if not len(history):
        return None
    from .figure import draw, to_png

    return to_png(draw(history), dpi)
