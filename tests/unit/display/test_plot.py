"""Which panels there are, and that a curve made small keeps its shape."""

from __future__ import annotations

import math
import random
import warnings

import matplotlib as mpl
import numpy as np
import pytest

from notebook_accel.contracts.events import Metrics
from notebook_accel.display import make_figure, render_figure
from notebook_accel.display.curve import MOST_POINTS, envelope, make_curve, thin
from notebook_accel.display.grouping import make_panels, split_phase, wants_log
from notebook_accel.progress import History
from notebook_accel.progress.series import Series


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loss", ("loss", "")),
        ("train_loss", ("loss", "train")),
        ("loss/val", ("loss", "val")),
        ("Eval Loss", ("Loss", "Eval")),
        ("train/grad_norm", ("grad_norm", "train")),
        ("train", ("train", "")),
        ("test.accuracy.top1", ("accuracy_top1", "test")),
        ("latest", ("latest", "")),
        ("///", ("///", "")),
    ],
)
def test_split_phase(name: str, expected: tuple[str, str]) -> None:
    assert split_phase(name) == expected


def test_panels() -> None:
    panels = make_panels(["lr", "accuracy", "train_loss", "val/Loss", "loss", "eval_accuracy"])
    assert [(panel.title, [label for _, label in panel.lines]) for panel in panels] == [
        ("loss", ["train", "val", "loss"]),
        ("accuracy", ["accuracy", "eval"]),
        ("lr", ["lr"]),
    ]
    assert make_panels(["train_loss"])[0].title == "train_loss", "alone it keeps its whole name"


@pytest.mark.parametrize(
    ("title", "low", "high", "expected"),
    [
        ("loss", 0.001, 3.0, True),
        ("loss", 0.3, 3.0, False),
        ("loss", 0.0, 3.0, False),
        ("loss", -1.0, 3.0, False),
        ("accuracy", 0.001, 1.0, False),
        ("grad_norm", 0.01, 50.0, True),
    ],
)
def test_log_scale_where_it_helps(title: str, low: float, high: float, expected: bool) -> None:
    assert wants_log(title, low, high) is expected


@pytest.mark.parametrize("seed", range(10))
def test_thinning_keeps_the_extremes_of_every_stretch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=int(rng.integers(3_000, 40_000)))
    values[rng.integers(0, len(values), 50)] = np.nan
    spike, dip = rng.integers(0, len(values), 2)
    values[spike], values[dip] = 1e6, -1e6
    kept = thin(values, 2_000)
    assert len(kept) <= 2_000
    assert np.all(np.diff(kept) > 0)
    assert {0, len(values) - 1, int(spike), int(dip)} <= set(kept.tolist())
    shown = values[kept]
    stretch = math.ceil(len(values) / 500)
    for start in range(0, len(values) - stretch, stretch):
        inside = (kept >= start) & (kept < start + stretch)
        assert inside.any()
    assert np.nanmax(shown) == 1e6
    assert np.nanmin(shown) == -1e6


def test_few_values_are_all_kept() -> None:
    assert thin(np.arange(10.0), 2_000).tolist() == list(range(10))


def test_values_without_a_number_can_be_thinned() -> None:
    assert len(thin(np.full(5_000, np.nan), 100)) <= 100


def test_the_band_covers_every_value() -> None:
    rng = np.random.default_rng(1)
    middle = rng.normal(size=10_001)
    low, high = middle - rng.random(10_001), middle + rng.random(10_001)
    x, lows, highs = envelope(np.arange(10_001.0), low, high, 300)
    assert len(x) == len(lows) == len(highs) == 300
    assert np.all(np.diff(x) > 0)
    assert (lows.min(), highs.max()) == (low.min(), high.max())
    for start in range(300):
        inside = slice(10_001 * start // 300, 10_001 * (start + 1) // 300)
        assert lows[start] <= low[inside].min()
        assert highs[start] >= high[inside].max()


def series_of(values: list[tuple[int, int, float]]) -> Series:
    series = Series("loss")
    for time, (rank, step, value) in enumerate(values):
        series.add(rank, step, value, 100.0 + time)
    return series


def test_a_curve_is_the_mean_and_the_spread() -> None:
    curve = make_curve(series_of([(0, 0, 1.0), (1, 0, 3.0), (0, 1, 2.0), (1, 1, 2.0)]))
    assert curve.x.tolist() == [0, 1]
    assert curve.mean.tolist() == [2.0, 2.0]
    assert (curve.low.tolist(), curve.high.tolist()) == ([1.0, 2.0], [3.0, 2.0])
    assert (curve.spread, curve.last, curve.first_bad, curve.limits()) == (True, 2.0, None, (1.0, 3.0))


def test_a_curve_over_time_and_in_order_of_steps() -> None:
    again = series_of([(0, 0, 1.0), (0, 1, 2.0), (0, 0, 3.0)])
    assert make_curve(again, by_time=True, start=100.0).x.tolist() == [0, 1, 2]
    assert make_curve(again, by_time=True, start=100.0, scale=2.0).x.tolist() == [0, 0.5, 1]
    interleaved = make_curve(series_of([(0, 0, 0.0), (0, 2, 2.0), (1, 1, 1.0)]))
    assert (interleaved.x.tolist(), interleaved.mean.tolist(), interleaved.last) == ([0, 1, 2], [0.0, 1.0, 2.0], 2.0)


def test_where_numbers_end_is_known() -> None:
    curve = make_curve(series_of([(0, 3, 1.0), (0, 4, math.nan), (0, 5, math.inf)]))
    assert curve.first_bad == 4
    assert curve.limits() == (1.0, 1.0)


def history_of(names: list[str], steps: int, ranks: int = 2) -> History:
    rng = random.Random(0)
    history = History()
    for step in range(steps):
        for rank in range(ranks):
            history.add(Metrics(rank, float(step), step, {name: rng.random() + 0.1 for name in names}))
    return history


HARD = {
    "one point": history_of(["loss"], 1, 1),
    "markup and math": history_of(["$\\frac{", "<b>", "a_b^c$", "損失", "%s{}"], 3),
    "many metrics": history_of([f"metric {n}" for n in range(30)], 3),
    "many lines": history_of(
        [f"{phase}_loss" for phase in ("train", "val", "test", "dev", "eval", "holdout", "valid")], 3
    ),
    "many points": history_of(["loss", "eval_loss"], 5_000, 2),
}


@pytest.mark.parametrize("name", HARD)
def test_whatever_was_logged_is_drawn_without_a_word(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        png = render_figure(HARD[name], dpi=40)
    assert png
    assert png.startswith(b"\x89PNG")
    assert not told
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "values",
    [[math.nan], [math.inf, -math.inf], [1.0, math.nan, 2.0], [0.0, 0.0], [1e300, -1e300], [5.0, 5.0], [1e-300, 1e300]],
)
def test_odd_numbers_are_drawn(values: list[float]) -> None:
    history = History()
    for step, value in enumerate(values):
        history.add(Metrics(0, float(step), step, {"loss": value}))
    assert render_figure(history, dpi=40)


def test_nothing_logged_is_no_figure() -> None:
    history = History()
    assert render_figure(history) is None
    history.add(Metrics(0, 0.0, 0, {"phase": "warm"}))
    assert render_figure(history) is None
    assert make_figure(history).axes == []


def test_at_most_nine_panels_and_the_rest_is_named() -> None:
    figure = make_figure(HARD["many metrics"])
    assert len(figure.axes) == 9
    (rest,) = figure.texts
    assert rest.get_text().startswith("21 more not shown: metric 9, metric 10")


def test_train_and_eval_share_a_panel_with_a_legend() -> None:
    figure = make_figure(history_of(["train_loss", "eval_loss", "lr"], 5))
    loss, lr = figure.axes
    legend = loss.get_legend()
    assert legend is not None
    assert [text.get_text().split()[0] for text in legend.get_texts()] == ["train", "eval"]
    assert lr.get_legend() is None
    assert loss.get_title(loc="left") == "loss"
    assert [len(axes.collections) for axes in (loss, lr)] == [2, 1], "a band for each line"


def test_the_scale_is_logarithmic_where_it_helps() -> None:
    history = History()
    for step in range(50):
        history.add(Metrics(0, float(step), step, {"loss": 10.0 ** (-step / 10), "accuracy": 10.0 ** (-step / 10)}))
    assert [axes.get_yscale() for axes in make_figure(history).axes] == ["log", "linear"]


def test_epochs_that_count_from_zero_again_are_shown_over_time() -> None:
    history = History()
    for number in range(40):
        history.add(Metrics(0, number * 60.0, number % 10, {"loss": 1.0}))
    (axes,) = make_figure(history).axes
    assert axes.get_xlabel() == "minutes"
    assert axes.get_lines()[0].get_xdata()[-1] == 39


@pytest.mark.parametrize(("count", "grid"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3))])
def test_the_panels_fill_their_rows(count: int, grid: tuple[int, int]) -> None:
    figure = make_figure(history_of([f"m{n}x" for n in range(count)], 5))
    spec = figure.axes[0].get_subplotspec()
    assert spec is not None
    assert spec.get_gridspec().get_geometry() == grid


def test_a_long_name_keeps_its_end_and_stays_in_its_panel() -> None:
    names = ["a", "b", "encoder/block/12/attention/output/dense/weight/norm", "c", "d", "e"]
    figure = make_figure(history_of(names, 5))
    (title,) = [axes.get_title("left") for axes in figure.axes if "…" in axes.get_title("left")]
    assert title.split()[0] == "encoder/b…eight/norm"


def test_a_constant_zero_has_a_plain_axis() -> None:
    history = History()
    history.add(Metrics(0, 0.0, 0, {"accuracy": 0.0}))
    (axes,) = make_figure(history).axes
    assert axes.get_ylim() == (-1.0, 1.0)


def test_the_users_settings_are_neither_used_nor_changed() -> None:
    with mpl.rc_context(
        {"axes.edgecolor": "red", "axes.facecolor": "red", "font.size": 40.0, "axes.spines.left": False}
    ):
        before = dict(mpl.rcParams)
        figure = make_figure(history_of(["loss"], 500))
        assert dict(mpl.rcParams) == before
    (axes,) = figure.axes
    assert mpl.colors.same_color(axes.spines["left"].get_edgecolor(), "#7b7b7b")
    assert axes.spines["left"].get_visible()
    assert axes.yaxis.get_ticklabels()[0].get_fontsize() < 10


def test_pyplot_is_not_needed() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from notebook_accel.display import render_figure; from notebook_accel.progress import History;"
        "from notebook_accel.contracts.events import Metrics; h = History(); h.add(Metrics(0, 0.0, 0, {'x': 1.0}));"
        "assert render_figure(h); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_figure_shows_itself() -> None:
    assert make_figure(history_of(["loss"], 3))._repr_png_().startswith(b"\x89PNG")


def test_a_long_run_is_drawn_with_few_points() -> None:
    series = series_of([(0, step, float(step % 7)) for step in range(30_000)])
    curve = make_curve(series)
    assert len(curve.x) <= MOST_POINTS
    assert len(curve.band_x) <= MOST_POINTS
