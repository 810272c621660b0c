"""What a launch gives back: the results, the history and the logs of a run, and a handle while it is not over."""

from __future__ import annotations

import html
import importlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display.html import bundle
from ..display.plot import make_figure, render_figure
from ..display.summary import summary_text
from ..host.frontend import detect_front_end
from ..progress.history import History
from ..progress.model import RunModel
from .rundir import RunDirectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Run:
    """One launch of a training function; made by ``notebook_launcher``.

    Attributes:
        returns: what each rank's function returned, tensors on the CPU; None for a rank that returned nothing.
        error: the exception of a failed run (None otherwise).
    """

    def __init__(self, directory: RunDirectory, model: RunModel, processes: int) -> None:
        self.returns: list[Any] = [None] * processes
        self.error: BaseException | None = None
        self._directory = directory
        self._model = model
        self._started = time.time()
        self._ended: float | None = None
        self._over = threading.Event()
        self._request_stop: Callable[[str], None] = lambda reason: None

    @property
    def status(self) -> str:
        """ "running", "finished", "stopped" or "failed"."""
        return self._model.status if self._over.is_set() else "running"

    @property
    def value(self) -> Any:
        """What rank 0's function returned."""
        return self.returns[0]

    def __getitem__(self, rank: int) -> Any:
        return self.returns[rank]

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def history(self) -> History:
        """Everything the ranks logged: ``run.history["loss"].values``."""
        return self._model.history

    @property
    def dir(self) -> Path:
        """The folder with the run's events and logs."""
        return self._directory.path

    @property
    def duration(self) -> float:
        """Seconds from the launch to its end, or to now."""
        return (self._ended or time.time()) - self._started

    def logs(self, rank: int = 0) -> str:
        """Everything that a rank printed.

        Raises:
            IndexError: there is no such rank.
        """
        if not 0 <= rank < len(self.returns):
            raise IndexError(f"there is no rank {rank}: this run has the ranks 0 to {len(self.returns) - 1}.")
        path = Path(self._directory.log_path(rank))
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def plot(self) -> Figure:
        """The curves of all metrics, as a matplotlib figure."""
        return make_figure(self.history)

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until the run is over.

        Args:
            timeout: seconds to wait at most; None: as long as it takes.

        Raises:
            TimeoutError: it is still running.
            RankError: it failed.
        """
        if not self._over.wait(timeout):
            raise TimeoutError(f"the run is still going after waiting {timeout} s: call wait() again, or stop().")
        if self.error is not None:
            raise self.error
        return self

    def stop(self, timeout: float | None = None) -> Run:
        """Ask all ranks to stop at the same step, and wait until they have; asking twice ends them at once."""
        if not self._over.is_set():
            self._request_stop("stopped by run.stop()")
        if not self._over.wait(timeout):
            raise TimeoutError(f"the run has not stopped within {timeout} s: call stop() again to end it at once.")
        return self

    def show(self) -> None:
        """Draw the run as it stands, in this cell or terminal."""
        front_end = detect_front_end()
        if front_end.notebook:
            display: Any = importlib.import_module("IPython.display").display
            display(bundle(self._model, render_figure(self.history)), raw=True)
        else:
            sys.stdout.write(summary_text(self._model) + "\n")

    def stops_through(self, request_stop: Callable[[str], None]) -> None:
        """Used by the launcher: what ``stop`` calls, with the reason."""
        self._request_stop = request_stop

    def is_over(self, timeout: float) -> bool:
        """Used by the launcher: whether the run is over within so many seconds."""
        return self._over.wait(timeout)

    def finish(self) -> None:
        """Used by the launcher: the run is over."""
        self._ended = time.time()
        self._over.set()

    def __repr__(self) -> str:
        metrics = ", ".join(
            f"{name} {series.values[-1]:.4g}" for name, series in list(self.history.items())[:4] if len(series)
        )
        ranks = f"{len(self.returns)} rank{'s' if len(self.returns) > 1 else ''}"
        parts = [self.status, ranks, f"{self.duration:.1f} s", metrics, str(self.dir)]
        return f"<Run {' · '.join(part for part in parts if part)}>"

    def _repr_html_(self) -> str:
        return f'<span style="color:var(--jp-ui-font-color2,#777);font-size:90%">{html.escape(repr(self)[1:-1])}</span>'


_last: list[Run] = []


def remember(run: Run) -> None:
    """Make a run the one that ``last_run`` gives."""
    _last[:] = [run]


def last_run() -> Run | None:
    """The newest run launched by this kernel, whatever became of it (None: there was none)."""
    return _last[0] if _last else None
