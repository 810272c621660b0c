"""The Stop button of a cell that blocks."""

from __future__ import annotations

from typing import Any


class StopButton:
    """Counts the presses of a button widget."""

    def __init__(self, button: Any) -> None:
        self._button = button
        self._clicks = 0
        button.on_click(self._clicked)

    def _clicked(self, _: Any) -> None:
        self._clicks += 1

    @property
    def presses(self) -> int:
        """How often the button was pressed."""
        return self._clicks

    def look(self) -> None:
        """Look for presses that wait behind the running cell."""

    def close(self) -> None:
        """Stop looking."""
