"""Turns a rank's tqdm bars (tqdm, tqdm.auto, tqdm.notebook; unmodified user code) into bars of the screen."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

from tqdm import std

from ..contracts.reporting import Reporter

# What tqdm.notebook overrides to drive its widgets; without them it is plain tqdm again.
_WIDGET_METHODS = ("__init__", "display", "__iter__", "update", "close", "clear", "reset", "status_printer", "colour")


def capture_tqdm(reporter: Reporter) -> None:
    """Make every tqdm bar of this process that would go to stdout or stderr a bar of ``reporter``."""
    # The lock came from the parent with its semaphore: a rank killed while holding it would block all others.
    std.tqdm.set_lock(threading.RLock())
    _report(std.tqdm, reporter)
    notebook = sys.modules.get("tqdm.notebook")
    if notebook is None:
        sys.modules["tqdm.notebook"] = _plain_notebook_module()
    else:
        for name in _WIDGET_METHODS:
            if name in vars(notebook.tqdm_notebook):
                delattr(notebook.tqdm_notebook, name)


def _plain_notebook_module() -> types.ModuleType:
    """tqdm.notebook as a rank sees it: the same names, without widgets."""
    module = types.ModuleType("tqdm.notebook")
    names = {"tqdm": std.tqdm, "tqdm_notebook": std.tqdm, "trange": std.trange, "tnrange": std.trange}
    vars(module).update(names, __all__=list(names))
    return module


def _report(cls: Any, reporter: Reporter) -> None:
    """Replace the parts of tqdm that draw; counting, throttling and the public API stay tqdm's own."""
    draw, finish = cls.display, cls.close

    def display(self: Any, msg: str | None = None, pos: int | None = None) -> Any:
        if not _on_screen(self):
            return draw(self, msg, pos)
        bar = _bar_of(self, reporter)
        bar.n, bar.total = self.n, self.total
        bar.description = (self.desc or "").removesuffix(": ")
        bar.postfix = str(self.postfix or "")
        return True

    def close(self: Any) -> None:
        if self.disable or not _on_screen(self):
            finish(self)
            return
        self.disable = True
        display(self)
        _bar_of(self, reporter).done = True
        self._decr_instances(self)

    cls.display, cls.close = display, close
    plain_clear, plain_moveto = cls.clear, cls.moveto
    cls.clear = lambda self, nolock=False: None if _on_screen(self) else plain_clear(self, nolock)
    cls.moveto = lambda self, n: None if _on_screen(self) else plain_moveto(self, n)
    cls.status_printer = staticmethod(_silent_when_on_screen(cls.status_printer))


def _silent_when_on_screen(plain: Any) -> Any:
    def status_printer(file: Any) -> Any:
        return (lambda text: None) if _is_standard(file) else plain(file)

    return status_printer


def _on_screen(bar: Any) -> bool:
    return _is_standard(getattr(bar, "fp", None))


def _is_standard(file: Any) -> bool:
    """Whether this is stdout or stderr, possibly in one of tqdm's own wrappers."""
    while hasattr(file, "_wrapped"):
        file = file._wrapped
    return file is sys.stdout or file is sys.stderr


def _bar_of(bar: Any, reporter: Reporter) -> Any:
    found = getattr(bar, "_screen_bar", None)
    if found is None:
        found = bar._screen_bar = reporter.bar((bar.desc or "").removesuffix(": "), bar.total, bar.unit)
    return found
