"""A screen that cannot end a run: training matters more than how it looks."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from ..display.display import NoScreen, Screen
from ..progress.model import RunModel


class SteadyScreen:
    """Passes everything on to a screen, and goes on without it when it fails."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    @property
    def stop_requested(self) -> bool:
        return self._screen.stop_requested

    @property
    def presses(self) -> int:
        return self._screen.presses

    def open(self, model: RunModel) -> None:
        self._try(self._screen.open, model)

    def refresh(self, model: RunModel) -> None:
        self._try(self._screen.refresh, model)

    def close(self, model: RunModel) -> None:
        self._try(self._screen.close, model)

    def _try(self, draw: Callable[[RunModel], None], model: RunModel) -> None:
        try:
            draw(model)
        except Exception:
            self._screen = NoScreen()
            sys.stderr.write(
                "The live view failed and was given up; the run goes on, see last_run() for its history.\n"
            )
            traceback.print_exc()
