"""The matplotlib backend of a rank: draws with Agg, and ``plt.show()`` sends the open figures to the screen.

Selected by name (``module://notebook_accel.capture.figures``); matplotlib looks up the names below.
"""

from __future__ import annotations

from typing import Any

from matplotlib import _pylab_helpers
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from .displays import send_figure

FigureCanvas = FigureCanvasAgg
FigureManager = FigureManagerBase


def show(*args: Any, **kwargs: Any) -> None:
    """Send every open figure to the screen and close it."""
    for manager in _pylab_helpers.Gcf.get_all_fig_managers():
        send_figure(manager.canvas.figure)
    _pylab_helpers.Gcf.destroy_all()
