"""Points matplotlib at the rank's backend, whether it is loaded already or not."""

from __future__ import annotations

import os
import sys

_BACKEND = "module://notebook_accel.capture.figures"


def capture_figures() -> None:
    """Make pyplot in this process draw off-screen and ``plt.show()`` reach the rank's screen."""
    # Without figures from the kernel: what was open there is shown there.
    os.environ["MPLBACKEND"] = _BACKEND
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
        pyplot.switch_backend(_BACKEND)
    elif "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use(_BACKEND)


def show_open_figures() -> None:
    """What a notebook does at the end of a cell: show the figures that are still open."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and pyplot.get_fignums():
        pyplot.show()
