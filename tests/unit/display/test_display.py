"""Which screen a front end gets, and how often it draws."""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from unit.display.simulated import running

from notebook_accel.contracts.events import Metrics
from notebook_accel.display.display import NoScreen, choose_ui, make_screen
from notebook_accel.display.pace import Pace
from notebook_accel.display.plotter import Plotter
from notebook_accel.host.frontend import FrontEnd, classify, detect_front_end

IN_KERNEL = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True))
HEADLESS = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False))
IN_TERMINAL = SimpleNamespace()
KAGGLE = "KAGGLE_KERNEL_RUN_TYPE"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"shell": None, "tty": True}, FrontEnd("terminal", True, False)),
        ({"shell": None}, FrontEnd("pipe", False, False)),
        ({"shell": IN_TERMINAL, "tty": True}, FrontEnd("ipython-terminal", True, False)),
        ({"shell": IN_TERMINAL}, FrontEnd("pipe", False, False)),
        ({"shell": IN_KERNEL}, FrontEnd("jupyter", True, True)),
        ({"shell": IN_KERNEL, "ipywidgets": ""}, FrontEnd("jupyter", True, False)),
        ({"shell": IN_KERNEL, "ipywidgets": "7.6.5"}, FrontEnd("jupyter", True, False)),
        ({"shell": IN_KERNEL, "ipywidgets": "7.7.1"}, FrontEnd("jupyter", True, True)),
        ({"shell": IN_KERNEL, "ipywidgets": "10.0.0a1"}, FrontEnd("jupyter", True, True)),
        ({"shell": IN_KERNEL, "modules": {"google.colab": 1}}, FrontEnd("colab", True, True)),
        ({"shell": IN_KERNEL, "environ": {"COLAB_RELEASE_TAG": "x"}}, FrontEnd("colab", True, True)),
        ({"shell": IN_KERNEL, "environ": {"VSCODE_PID": "1"}}, FrontEnd("vscode", True, True)),
        (
            {"shell": IN_KERNEL, "environ": {KAGGLE: "Interactive", "COLAB_RELEASE_TAG": "x"}},
            FrontEnd("kaggle", True, True),
        ),
        ({"shell": IN_KERNEL, "environ": {KAGGLE: "Batch"}}, FrontEnd("kaggle", False, True)),
        ({"shell": HEADLESS}, FrontEnd("jupyter", False, True)),
        ({"shell": HEADLESS, "environ": {"COLAB_RELEASE_TAG": "x"}}, FrontEnd("colab", False, True)),
        ({"shell": None, "environ": {KAGGLE: "Batch"}}, FrontEnd("pipe", False, False)),
    ],
)
def test_front_ends(facts: dict[str, Any], expected: FrontEnd) -> None:
    assert classify(**{"modules": {}, "environ": {}, "tty": False, "ipywidgets": "8.1.9", **facts}) == expected


def test_detection_in_a_test_run_finds_no_notebook() -> None:
    assert not detect_front_end().notebook


NOTEBOOK = FrontEnd("jupyter", True, True)
BARE = FrontEnd("jupyter", True, False)
BATCH = FrontEnd("kaggle", False, True)
TERMINAL = FrontEnd("terminal", True, False)
PIPE = FrontEnd("pipe", False, False)


@pytest.mark.parametrize(
    ("front_end", "auto", "widget", "html"),
    [
        (NOTEBOOK, "widget", "widget", "html"),
        (BARE, "html", "html", "html"),
        (BATCH, "html", "widget", "html"),
        (TERMINAL, "text", "text", "text"),
        (PIPE, "text", "text", "text"),
    ],
)
def test_choose_ui(front_end: FrontEnd, auto: str, widget: str, html: str) -> None:
    assert choose_ui("auto", front_end) == auto
    assert choose_ui("widget", front_end) == widget
    assert choose_ui("html", front_end) == html
    assert choose_ui("text", front_end) == "text"
    assert choose_ui("none", front_end) == "none"


def test_no_screen_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    screen = make_screen("none", TERMINAL)
    assert isinstance(screen, NoScreen)
    model, _ = running()
    screen.open(model)
    screen.refresh(model)
    screen.close(model)
    assert (screen.presses, screen.stop_requested) == (0, False)
    assert capfd.readouterr() == ("", "")


class Watch:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pace_keeps_its_period() -> None:
    watch = Watch()
    pace = Pace(1.0, watch)
    drawn = []
    for tick in range(50):
        watch.now = tick / 10
        if pace.due():
            pace.run(lambda: drawn.append(watch.now))
    assert drawn == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("took", "gaps"),
    [
        (0.02, [1.0, 1.0, 1.0]),
        (0.1, [1.1, 1.6, 1.6]),  # a sixteenth of the time
        (0.5, [1.5, 3.0, 3.0]),  # but once in three seconds
        (2.0, [3.0, 6.0, 6.0]),  # but a third of the time at most
    ],
)
def test_slow_drawing_slows_down_but_for_the_first(took: float, gaps: list[float]) -> None:
    watch = Watch()
    pace = Pace(1.0, watch)

    def slow() -> None:
        watch.now += took

    starts = []
    while len(starts) < 4:
        if pace.due():
            starts.append(watch.now)
            pace.run(slow)
        else:
            watch.now += 0.05
    assert [later - earlier for earlier, later in itertools.pairwise(starts)] == pytest.approx(gaps, abs=0.11)


def test_a_drawing_that_fails_counts_as_drawn() -> None:
    watch = Watch()
    pace = Pace(1.0, watch)
    with pytest.raises(ZeroDivisionError):
        pace.run(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert not pace.due()


def test_matplotlib_is_loaded_once_after_the_bars_and_before_the_first_plot() -> None:
    model = running(1, 0)[0]
    plotter = Plotter(clock=Watch())
    told: list[str] = []
    assert not plotter.load_first(model, before=lambda: told.append("too early"))
    model.apply(Metrics(0, 0.0, 0, {"loss": 1.0}))
    assert plotter.load_first(model, before=lambda: told.append("bars"))
    assert plotter.png is None
    assert not plotter.load_first(model, before=lambda: told.append("again"))
    assert plotter.refresh(model, 50)
    assert plotter.png
    assert told == ["bars"]


def test_without_matplotlib_there_is_a_note_and_no_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "notebook_accel.display.figure", None)
    monkeypatch.delattr("notebook_accel.display.figure", raising=False)
    model = running(1, 1)[0]
    plotter = Plotter(clock=Watch())
    assert plotter.load_first(model, before=lambda: None)
    assert not plotter.refresh(model, 50)
    (note,) = model.notice
    assert note.startswith("the plot is off: ")
