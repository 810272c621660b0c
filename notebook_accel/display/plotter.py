"""Redrawing the plot when there is something new, and giving up quietly when it cannot be drawn."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..progress.model import RunModel
from .pace import Pace
from .plot import load, render_figure


class Plotter:
    """Keeps the latest plot of a run as PNG in ``png``."""

    def __init__(self, period: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = Pace(period, clock)
        self._version = 0
        self._broken = False
        self._loaded = False
        self.png: bytes | None = None

    def load_first(self, model: RunModel, before: Callable[[], None]) -> bool:
        """Once, when there is something to draw: call ``before``, and load what drawing needs; True if this was it."""
        if self._loaded or not len(model.history):
            return False
        self._loaded = True
        before()
        self._try(model, load)
        return True

    def refresh(self, model: RunModel, dpi: int) -> bool:
        """Draw if there are new values and it is time to; True if the plot is new."""
        if self._broken or model.plot_version == self._version or not self._pace.due():
            return False
        self._version = model.plot_version
        self._pace.run(lambda: self.draw(model, dpi))
        return not self._broken

    def draw(self, model: RunModel, dpi: int) -> None:
        """Draw now; a plot that cannot be drawn is not tried again."""
        if not self._broken:
            self._try(model, lambda: self._draw(model, dpi))

    def _draw(self, model: RunModel, dpi: int) -> None:
        self.png = render_figure(model.history, dpi=dpi)

    def _try(self, model: RunModel, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # a broken matplotlib must not stop the training
            self._broken = True
            model.say(f"the plot is off: {type(error).__name__}: {error}")
