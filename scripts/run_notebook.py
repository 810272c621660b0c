"""Run a notebook without a browser, show in the terminal what its launches are doing, and keep what they made.

    python scripts/run_notebook.py NOTEBOOK FOLDER

FOLDER takes the executed notebook, the plot of every launch, and the launches' own folders. The progress comes from the
run directories, which hold everything that a screen can show.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from notebook_accel.channel.tail import Tail
from notebook_accel.contracts.events import Ended, Output, decode
from notebook_accel.display.plot import make_figure
from notebook_accel.display.text import TextScreen
from notebook_accel.launch.rundir import default_parent
from notebook_accel.progress.model import RunModel

LOOK_EVERY = 0.1


class Replay:
    """One run as its directory tells it, drawn in this terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = RunModel()
        self._screen = TextScreen()
        self._events = (folder / "events.jsonl").open("rb")
        self._partial = b""
        self._logs: dict[int, Tail] = {}
        self._opened = False

    def look(self) -> None:
        """Take in what is new and draw it."""
        if self.model.over:
            return
        self._read_logs()
        self._partial += self._events.read()
        *lines, self._partial = self._partial.split(b"\n")
        for line in lines:
            event = decode(line)
            if isinstance(event, Ended):
                self._read_logs()  # the last words before the summary
            self.model.apply(event)
        if not self.model.started:
            return
        if not self._opened:
            self._screen.open(self.model)
            self._opened = True
        if self.model.over:
            self._screen.close(self.model)
            self._events.close()
        else:
            self._screen.refresh(self.model)

    def _read_logs(self) -> None:
        for rank in range(self.model.world_size):
            tail = self._logs.setdefault(rank, Tail(str(self.folder / f"rank-{rank}.log")))
            text, skipped = tail.look()
            if text:
                self.model.apply(Output(rank, self.model.now, text, skipped))


class Follower(threading.Thread):
    """Looks for new runs in a folder and replays each while it goes on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="follower", daemon=True)
        self.replays: dict[Path, Replay] = {}
        self._folder = folder
        self._end = threading.Event()
        self._looking = threading.Lock()

    def run(self) -> None:
        while not self._end.wait(LOOK_EVERY):
            self.look()

    def stop(self) -> None:
        """Look a last time."""
        self._end.set()
        self.join()
        self.look()

    def look(self) -> None:
        """Draw what is new, now."""
        with self._looking:
            for path in sorted(self._folder.glob("*/events.jsonl")):
                if path.parent not in self.replays:
                    self.replays[path.parent] = Replay(path.parent)
            for replay in self.replays.values():
                replay.look()


class Client(NotebookClient):  # type: ignore[misc]
    """Prints what cells print, as they print it."""

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] == "stream":
            print(msg["content"]["text"], end="", flush=True)
        return super().process_message(msg, cell, cell_index)


def announce(cell: Any, cell_index: int) -> None:
    """Print the first line of a code cell that is about to run."""
    print(f"\n── {cell.source.splitlines()[0]} …", flush=True)


def execute(source: Path, folder: Path) -> int:
    """Run the notebook; 1 if a cell failed."""
    notebook = nbformat.read(source, as_version=4)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # the kernel's runs go there
    follower = Follower(default_parent())
    client = Client(
        notebook,
        timeout=None,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(source.parent)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        on_cell_executed=lambda **_: follower.look(),
        on_cell_start=lambda cell, cell_index: cell.cell_type == "code" and announce(cell, cell_index),
    )
    follower.start()
    try:
        client.execute()
    except CellExecutionError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    finally:
        follower.stop()
        nbformat.write(notebook, folder / source.name)
        keep(list(follower.replays.values()), folder)
    return 0


def keep(replays: list[Replay], folder: Path) -> None:
    """Draw the plots, move the runs' folders out of the cache and say what there is."""
    for number, replay in enumerate(replays):
        if len(replay.model.history):
            plot = folder / ("loss.png" if number == 0 else f"loss-{number + 1}.png")
            make_figure(replay.model.history, transparent=False).savefig(plot, dpi=144)
        shutil.move(replay.folder, folder / "runs" / replay.folder.name)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    print(f"\nIn {folder}:")
    for path in sorted(folder.iterdir()):
        print(f"  {path.name}{'/' if path.is_dir() else ''}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(execute(Path(sys.argv[1]), Path(sys.argv[2]).absolute()))
