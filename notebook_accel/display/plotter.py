"""Redrawing the plot when there is something new, and giving up quietly when it cannot be drawn."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..progress.model import RunModel
from .pace import Pace
from .plot import render_figure


class Plotter:
    """Keeps the latest plot of a run as PNG in ``png``."""

    def __init__(self, period: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = Pace(period, clock)
        self._version = 0
        self._broken = False
        self.png: bytes | None = None

    def is_first(self, model: RunModel) -> bool:
        """Whether there is something to draw for the first time, which takes longer than later."""
        return not self._version and model.plot_version > 0

    def refresh(self, model: RunModel, dpi: int) -> bool:
        """Draw if there are new values and it is time to; True if the plot is new."""
        if self._broken or model.plot_version == self._version or not self._pace.due():
            return False
        self._version = model.plot_version
        self._pace.run(lambda: self.draw(model, dpi))
        return not self._broken

    def draw(self, model: RunModel, dpi: int) -> None:
        """Draw now; a plot that cannot be drawn is not tried again."""
        if self._broken:
            return
        try:
            self.png = render_figure(model.history, dpi=dpi)
        except Exception as error:  # a broken matplotlib must not stop the training
            self._broken = True
            model.say(f"the plot is off: {type(error).__name__}: {error}")
