"""Drawing the metrics with matplotlib, without pyplot and without touching its settings."""

from __future__ import annotations

import io
import math
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from ..progress.history import History
from . import words
from .curve import Curve, make_curve
from .grouping import Panel, make_panels, wants_log

# Okabe and Ito's palette, without black and yellow: told apart by the colour-blind, visible on white and on black.
PALETTE = ("#0c7bbf", "#e08214", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
GREY = "#808080"
WIDTH, ROW_HEIGHT = 10.4, 2.55
MOST_PANELS, PER_ROW, MOST_LINES = 9, 3, 6
FEW_POINTS = 24

_SETTINGS: Any = {
    "font.size": 8.5,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.usetex": False,
    "text.parse_math": False,
    "axes.formatter.useoffset": False,
    "path.simplify": True,
}


def draw(history: History, *, transparent: bool = True) -> Figure:
    """One panel for each group of metrics, up to three in a row."""
    panels = make_panels(history)
    shown = panels[:MOST_PANELS]
    columns = min(PER_ROW, len(shown)) or 1
    rows = math.ceil(len(shown) / columns) or 1
    height = rows * ROW_HEIGHT + 0.15 + (0.45 if len(shown) == 1 else 0)
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH, height), facecolor="none" if transparent else "white")
        FigureCanvasAgg(figure)
        start = _start(history)
        for index, panel in enumerate(shown):
            axes = figure.add_subplot(rows, columns, index + 1)
            _draw_panel(axes, panel, history, start)
        _place(figure, columns, height)
        if len(panels) > len(shown):
            _say_rest(figure, panels[MOST_PANELS:])
    return figure


def to_png(figure: Figure, dpi: int) -> bytes:
    """The figure as PNG, its ground as it is."""
    buffer = io.BytesIO()
    with rc_context(_SETTINGS):
        ground = figure.get_facecolor()
        figure.savefig(buffer, format="png", dpi=dpi, facecolor=ground, pil_kwargs={"compress_level": 4})
    return buffer.getvalue()


def _start(history: History) -> float:
    return min((history[name].columns().times[0] for name in history if len(history[name])), default=0.0)


def _place(figure: Figure, columns: int, height: float) -> None:
    """Fixed margins: automatic ones cost as much as the drawing itself, and make the axes jump."""
    left, right, top, bottom = 0.62 / WIDTH, 1 - 0.12 / WIDTH, 1 - 0.3 / height, 0.42 / height
    figure.subplots_adjust(left=left, right=right, top=top, bottom=bottom, hspace=0.5, wspace=0.2 + 0.02 * columns)


def _say_rest(figure: Figure, rest: list[Panel]) -> None:
    names = ", ".join(panel.title for panel in rest)
    text = f"{len(rest)} more not shown: {names}"
    figure.text(0.99, 0.004, text if len(text) < 150 else text[:149] + "…", ha="right", va="bottom", fontsize=7.5)


def _draw_panel(axes: Axes, panel: Panel, history: History, start: float) -> None:
    lines = panel.lines[:MOST_LINES]
    series = [history[name] for name, _ in lines]
    # Steps that start again with each epoch cannot share an axis; the time of the call can.
    by_time = any(one.went_back for one in series)
    curves = [make_curve(one, by_time=by_time, start=start) for one in series]
    _style(axes)
    for index, curve in enumerate(curves):
        _draw_curve(axes, curve, PALETTE[index % len(PALETTE)])
    _scale(axes, panel, curves)
    _label(axes, panel, curves, by_time)


def _style(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="y", color=GREY, alpha=0.18, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=2.5, pad=2)
    axes.margins(x=0.02, y=0.08)


def _draw_curve(axes: Axes, curve: Curve, color: str) -> None:
    if curve.spread:
        axes.fill_between(curve.band_x, curve.low, curve.high, color=color, alpha=0.2, linewidth=0)
    few = len(curve.x) <= FEW_POINTS
    marker = "o" if few else ""
    axes.plot(curve.x, curve.mean, color=color, linewidth=1.4, marker=marker, markersize=3.5, clip_on=not few)
    if curve.first_bad is not None:
        axes.axvline(curve.first_bad, color="#d6453d", linewidth=0.9, linestyle=(0, (3, 2)))


def _scale(axes: Axes, panel: Panel, curves: list[Curve]) -> None:
    limits = [pair for curve in curves if (pair := curve.limits()) is not None]
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if limits and wants_log(panel.title, min(low for low, _ in limits), max(high for _, high in limits)):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    xs = [float(x) for curve in curves for x in (curve.x[:1], curve.x[-1:]) for x in x]
    if xs and min(xs) == max(xs):
        axes.set_xlim(min(xs) - 1, max(xs) + 1)


def _label(axes: Axes, panel: Panel, curves: list[Curve], by_time: bool) -> None:
    several = len(curves) > 1
    value = "" if several or not curves else f"   {words.value(curves[0].last)}"
    axes.set_title(f"{_short(panel.title)}{value}", loc="left", fontsize=9.5, pad=5, color=GREY)
    bad = [curve.first_bad for curve in curves if curve.first_bad is not None]
    if bad:
        where = f"{words.span(min(bad))}" if by_time else f"step {min(bad):.0f}"
        axes.set_title(f"not a number from {where}", loc="right", fontsize=8, pad=5, color="#d6453d")
    axes.set_xlabel("seconds" if by_time else "step", fontsize=7.5, labelpad=1, loc="right")
    if several:
        drawn = [line for line in axes.get_lines() if line.get_linestyle() == "-"]
        pairs = zip(panel.lines, curves, strict=False)
        names = [f"{_short(label)}  {words.value(curve.last)}" for (_, label), curve in pairs]
        axes.legend(drawn, names, frameon=False, fontsize=8, labelcolor=GREY, handlelength=1.4, borderaxespad=0.2)


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
