"""Drawing the metrics with matplotlib, without pyplot and without touching its settings."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from ..progress.history import History
from . import words
from .curve import Curve, make_curve
from .grouping import Panel, make_panels, wants_log

# After Okabe and Ito, without black and yellow: told apart by the colour-blind, visible on white and on black.
PALETTE = ("#0c7bbf", "#e08214", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
# As far from white as from JupyterLab's dark page.
GREY, RED = "#7b7b7b", "#d6453d"
# Shown about 750 pixels wide, the writing has the size of the page's own small print.
WIDTH, ROW_HEIGHT, GAP = 9.0, 1.9, 0.68
MOST_PANELS, PER_ROW, MOST_LINES = 9, 3, 6
# Letters of a name for which one of so many panels in a row has room.
TITLES = {1: 60, 2: 32, 3: 20}
FEW_POINTS, MANY_POINTS = 24, 400
MINUTES_FROM = 600.0

_OURS = (
    "axes",
    "figure",
    "font",
    "grid",
    "legend",
    "lines",
    "mathtext",
    "patch",
    "path",
    "savefig",
    "text",
    "xtick",
    "ytick",
)
_SETTINGS: Any = {
    **{name: value for name, value in mpl.rcParamsDefault.items() if name.split(".")[0] in _OURS},
    "font.size": 9,
    "text.color": GREY,
    "text.parse_math": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}


class MetricFigure(Figure):
    """A figure that shows itself in a notebook, though pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        return to_png(self, 144)


@contextlib.contextmanager
def _own_settings() -> Iterator[None]:
    """Our look whatever the user's settings, and no warning about letters that the font lacks."""
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def draw(history: History, *, transparent: bool = True) -> MetricFigure:
    """One panel for each group of metrics, up to three in a row, four in two rows of two."""
    panels = make_panels(history)
    shown = panels[:MOST_PANELS]
    columns = 2 if len(shown) == 4 else min(PER_ROW, len(shown)) or 1
    rows = math.ceil(len(shown) / columns) or 1
    start = min((history[name].first_time for name in history), default=0.0)
    with _own_settings():
        height = rows * (ROW_HEIGHT + GAP) + 0.1
        figure = MetricFigure(figsize=(WIDTH, height), facecolor="none" if transparent else "white")
        FigureCanvasAgg(figure)
        for index, panel in enumerate(shown):
            _draw_panel(figure.add_subplot(rows, columns, index + 1), panel, history, start, TITLES[columns])
        _place(figure, columns, height)
        if len(panels) > len(shown):
            _say_rest(figure, panels[MOST_PANELS:], height)
    return figure


def to_png(figure: Figure, dpi: int) -> bytes:
    """The figure as PNG, its ground as it is."""
    buffer = io.BytesIO()
    with _own_settings():
        ground = figure.get_facecolor()
        figure.savefig(buffer, format="png", dpi=dpi, facecolor=ground, pil_kwargs={"compress_level": 4})
    return buffer.getvalue()


def _place(figure: Figure, columns: int, height: float) -> None:
    """Fixed margins: automatic ones cost as much as the drawing itself, and make the axes jump."""
    left, right, top, bottom = 0.55 / WIDTH, 1 - 0.12 / WIDTH, 1 - 0.3 / height, 0.48 / height
    wspace = 0.0 if columns == 1 else 0.7 / (WIDTH / columns - 0.7)
    figure.subplots_adjust(left=left, right=right, top=top, bottom=bottom, hspace=GAP / ROW_HEIGHT, wspace=wspace)


def _say_rest(figure: Figure, rest: list[Panel], height: float) -> None:
    text = f"{len(rest)} more not shown: {', '.join(panel.title for panel in rest)}"
    figure.text(0.55 / WIDTH, 0.03 / height, text if len(text) < 150 else text[:149] + "…", va="bottom", fontsize=8)


def _draw_panel(axes: Axes, panel: Panel, history: History, start: float, room: int) -> None:
    series = [history[name] for name, _ in panel.lines[:MOST_LINES]]
    # Steps that start again with each epoch cannot share an axis; the time of the call can.
    by_time = any(one.went_back for one in series)
    scale = 60.0 if by_time and max(one.last_time for one in series) - start > MINUTES_FROM else 1.0
    curves = [make_curve(one, by_time=by_time, start=start, scale=scale) for one in series]
    _style(axes)
    for index, curve in enumerate(curves):
        _draw_curve(axes, curve, PALETTE[index % len(PALETTE)])
    _scale(axes, panel, curves)
    axes.set_xlabel(
        "step" if not by_time else "minutes" if scale > 1 else "seconds", fontsize=8, labelpad=1, loc="right"
    )
    _title(axes, panel, curves, room)


def _style(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="y", color=GREY, alpha=0.18, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=2.5, pad=2)
    axes.margins(x=0.02, y=0.08)


def _draw_curve(axes: Axes, curve: Curve, color: str) -> None:
    if curve.spread:
        axes.fill_between(curve.band_x, curve.low, curve.high, color=color, alpha=0.22, linewidth=0)
    few, many = len(curve.x) <= FEW_POINTS, len(curve.x) >= MANY_POINTS
    axes.plot(
        curve.x, curve.mean, color=color, linewidth=1.0 if many else 1.4, marker="o" if few else "", markersize=3.5
    )
    if curve.first_bad is not None:
        axes.axvline(curve.first_bad, color=RED, linewidth=0.9, linestyle=(0, (3, 2)))


def _scale(axes: Axes, panel: Panel, curves: list[Curve]) -> None:
    limits = [pair for curve in curves if (pair := curve.limits()) is not None]
    low, high = min((pair[0] for pair in limits), default=0.0), max((pair[1] for pair in limits), default=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    if wants_log(panel.title, low, high):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        if limits and low == high:
            around = 0.1 * abs(low) or 1.0
            axes.set_ylim(low - around, high + around)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: words.tick(number)))
    ends = [float(x) for curve in curves for x in (*curve.x[:1], *curve.x[-1:])]
    if ends and min(ends) == max(ends):
        axes.set_xlim(ends[0] - 1, ends[0] + 1)


def _title(axes: Axes, panel: Panel, curves: list[Curve], room: int) -> None:
    several = len(panel.lines) > 1
    last = "" if several else f"   {words.value(curves[0].last)}"
    axes.set_title(f"{_short(panel.title, room)}{last}", loc="left", y=1.0, fontsize=10, pad=5, color=GREY)
    if several:
        lines = [line for line in axes.get_lines() if line.get_linestyle() == "-"]
        named = zip(panel.lines, curves, strict=False)
        labels = [f"{_short(label, room)}  {words.value(curve.last)}" for (_, label), curve in named]
        axes.legend(lines, labels, frameon=False, fontsize=8.5, labelcolor=GREY, handlelength=1.4, borderaxespad=0.2)
    if len(panel.lines) > len(curves):
        axes.set_title(
            f"{len(panel.lines) - len(curves)} more not shown", loc="right", y=1.0, fontsize=8, pad=5, color=GREY
        )
    if any(curve.first_bad is not None for curve in curves):
        axes.set_title("not a number", loc="right", y=1.0, fontsize=8.5, pad=5, color=RED)


def _short(name: str, room: int) -> str:
    """The name in ``room`` letters: its beginning and its end."""
    half = room // 2
    return name if len(name) <= room else f"{name[: half - 1]}…{name[-half:]}"
