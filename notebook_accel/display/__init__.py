"""The live screen of a run: as widgets, as HTML, as text, or none."""

from .display import Screen, choose_ui, make_screen
from .page import render_html
from .plot import make_figure, render_figure
from .summary import summary_text

__all__ = ["Screen", "choose_ui", "make_figure", "make_screen", "render_figure", "render_html", "summary_text"]
