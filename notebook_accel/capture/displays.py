"""Sends what a rank shows with IPython's ``display`` to the screen.

The function objects themselves are changed, since a notebook's ``from IPython.display import display`` has long
copied the reference when a rank is forked.
"""

from __future__ import annotations

import base64
import builtins
import io
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from ..contracts.world import current_context


def capture_displays() -> None:
    """Make what IPython displays in this process go to the rank's screen."""
    if not hasattr(builtins, "display"):
        # A notebook's code may use it without an import; a fresh process does not have it yet.
        vars(builtins)["display"] = _display
    for name in ("IPython.core.display_functions", "IPython.core.display"):
        module = sys.modules.get(name)
        for own in (_display, _publish_display_data, _clear_output):
            theirs = getattr(module, own.__name__.lstrip("_"), None)
            if theirs is not None:
                theirs.__code__ = own.__code__
                theirs.__defaults__ = own.__defaults__
                theirs.__kwdefaults__ = own.__kwdefaults__


# These two run with IPython's module globals: everything they need is imported inside.


def _display(*objs: Any, include: Any = None, exclude: Any = None, metadata: Any = None, transient: Any = None,
             display_id: Any = None, raw: bool = False, clear: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    from notebook_accel.capture.displays import show

    return show(objs, include=include, exclude=exclude, display_id=display_id, raw=raw)


def _publish_display_data(data: Any, metadata: Any = None, *args: Any, transient: Any = None, **kwargs: Any) -> None:
    from notebook_accel.capture.displays import send

    send(data, (transient or {}).get("display_id"))


def _clear_output(wait: bool = False) -> None:
    """A rank's log is not erased, and the control characters for a terminal would only stand in it."""


class Handle:
    """What ``display(..., display_id=True)`` returns: shows something else in the same place."""

    def __init__(self, display_id: str) -> None:
        self.display_id = display_id

    def display(self, obj: Any, **kwargs: Any) -> None:
        """Show ``obj`` in this place."""
        show((obj,), display_id=self.display_id, **kwargs)

    update = display


def show(
    objs: tuple[Any, ...],
    *,
    include: Any = None,
    exclude: Any = None,
    display_id: str | bool | None = None,
    raw: bool = False,
    **_: Any,
) -> Handle | None:
    """Show objects in the rank's place on the screen, as IPython's ``display`` would in the cell."""
    name = uuid.uuid4().hex if display_id is True else display_id or None
    for obj in objs:
        send(obj if raw else _bundle(obj, include, exclude), name)
    return Handle(name) if name else None


def send(data: Mapping[str, Any], display_id: str | None = None) -> None:
    """Send a MIME bundle; outside a rank's own thread its text is printed."""
    context = current_context.get()
    if context is None:
        sys.stdout.write(f"{data.get('text/plain', '')}\n")
    elif data:
        context.reporter.display({mime: _text(value) for mime, value in data.items()}, display_id)


def send_figure(figure: Any) -> None:
    """Show a matplotlib figure as a PNG."""
    target = io.BytesIO()
    figure.savefig(target, format="png", bbox_inches="tight")
    send({"image/png": _text(target.getvalue()), "text/plain": str(figure)})


def _bundle(obj: Any, include: Any, exclude: Any) -> Mapping[str, Any]:
    if hasattr(obj, "savefig") and hasattr(obj, "canvas"):
        send_figure(obj)
        return {}
    from IPython.core.formatters import DisplayFormatter

    formatter: Any = DisplayFormatter()
    formatted, _ = formatter.format(obj, include=include, exclude=exclude)
    return {mime: value for mime, value in formatted.items() if isinstance(value, str | bytes)}


def _text(value: Any) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)
