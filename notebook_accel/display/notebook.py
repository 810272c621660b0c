"""The two calls by which output reaches a notebook cell."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from IPython import display as ipython

_show: Any = ipython.display  # IPython has types for few of its functions
_update: Any = ipython.update_display


class Cell:
    """One output of the running cell that can be replaced later."""

    def __init__(self) -> None:
        self._id = uuid.uuid4().hex

    def show(self, bundle: Mapping[str, Any]) -> None:
        """Show a MIME bundle as a new output."""
        _show(dict(bundle), raw=True, display_id=self._id)

    def replace(self, bundle: Mapping[str, Any]) -> None:
        """Put a MIME bundle in the place of what was shown."""
        _update(dict(bundle), raw=True, display_id=self._id)
