"""The static page: complete, escaped, and bounded."""

from __future__ import annotations

import random
from html.parser import HTMLParser

import pytest
from unit.display.simulated import Clock, failed, finished, running

from notebook_accel.contracts.errors import Frame, RankFailure
from notebook_accel.contracts.events import (
    Display,
    Ended,
    Failed,
    Finished,
    Launched,
    Metrics,
    Output,
    Progress,
    Status,
)
from notebook_accel.display import render_figure, render_html, summary_text
from notebook_accel.progress import RunModel

OURS = {
    "style",
    "div",
    "span",
    "b",
    "i",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "pre",
    "details",
    "summary",
    "img",
}
ATTRIBUTES = {"class", "style", "title", "open", "alt", "src"}


class Reader(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "every element is closed in its turn"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def nasty(rng: random.Random) -> str:
    pieces = [
        "<script>alert(1)</script>",
        "</pre></div>",
        '" onload="x',
        "'",
        "&amp;",
        "<b>",
        "\x00",
        "\ud83d",
        "-->",
        "é",
    ]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 6)))


def nasty_run(rng: random.Random) -> RunModel:
    clock = Clock()
    model = RunModel(clock=clock)
    model.apply(Launched(clock.now, nasty(rng), nasty(rng), 3, nasty(rng), nasty(rng)))
    for rank in range(3):
        model.apply(Progress(rank, clock.now, 1, nasty(rng), 1, 2, nasty(rng), nasty(rng)))
        model.apply(Progress(rank, clock.now, 2, nasty(rng), 1, 2, nasty(rng), nasty(rng)))
        model.apply(Metrics(rank, clock.now, 1, {nasty(rng): 1.0, nasty(rng): nasty(rng)}))
        model.apply(Output(rank, clock.now, nasty(rng) + "\nUserWarning: " + nasty(rng) + "\nopen " + nasty(rng)))
        model.apply(Display(rank, clock.now, {"text/plain": nasty(rng)}))
        model.apply(Display(rank, clock.now, {"image/png": nasty(rng)}))
        model.apply(Display(rank, clock.now, {nasty(rng): nasty(rng)}))
    model.apply(Status(0, clock.now, nasty(rng)))
    frames = (Frame(nasty(rng), 3, nasty(rng), nasty(rng)),)
    for rank in (1, 2):
        failure = RankFailure(
            rank, clock.now, 3, nasty(rng), nasty(rng), frames, rank == 2, nasty(rng), (nasty(rng), nasty(rng))
        )
        model.apply(Failed(rank, clock.now, failure))
    model.say(nasty(rng))
    model.stopping(nasty(rng))
    return model


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("over", [False, True])
def test_no_text_of_a_run_becomes_markup(seed: int, over: bool) -> None:
    model = nasty_run(random.Random(seed))
    if over:
        model.apply(Finished(0, 0.0, note="<i onclick=x>"))
        model.apply(Ended(model.now, "failed", "<u>"))
    page = render_html(model, figure=None)
    page.encode("utf-8")
    read = Reader(page)
    assert read.open == []
    assert set(read.tags) <= OURS
    assert {name for name, _ in read.attributes} <= ATTRIBUTES
    sources = [value or "" for name, value in read.attributes if name == "src"]
    assert sources
    assert all(value.startswith("data:image/png;base64,") for value in sources)


def test_the_words_themselves_are_there() -> None:
    model, clock = running(2)
    model.apply(Output(1, clock.now, "a < b & c\n"))
    read = Reader(render_html(model, figure=None))
    for words in (
        "running",
        "train",
        "2 × CPU · gloo · fp32 · fork",
        "0:04",
        "40/200",
        "×2",
        "a < b & c",
        "9.0 / 15 GB",
    ):
        assert words in read.text


def test_html_of_the_user_is_shown_as_html_and_the_same_of_all_ranks_once() -> None:
    model, clock = running(3)
    for rank in range(3):
        model.apply(Display(rank, clock.now, {"text/html": "<table id=mine></table>", "text/plain": "not this"}))
    page = render_html(model, figure=None)
    assert page.count("<table id=mine></table>") == 1
    assert "not this" not in page
    assert "×3" in Reader(page).text


def test_the_failure_is_told_once_and_first() -> None:
    read = Reader(render_html(failed(4), figure=None))
    text = read.text
    for words in ("ValueError: bad batch", "Use drop_last=True.", "cell [4]:18 in train", "return x / 0"):
        assert text.count(words) == 1, words
    assert "ranks 0, 2–3 failed because of it" in text
    assert text.index("rank 1 failed at step 40") < text.index("9.0 / 15 GB")


def test_the_same_failure_of_other_ranks_is_said_in_a_line() -> None:
    model, clock = running(4)
    for rank in range(4):
        message = "bad batch" if rank != 3 else "worse batch"
        model.apply(Failed(rank, clock.now + rank, RankFailure(rank, clock.now + rank, 0, "ValueError", message)))
    text = Reader(render_html(model, figure=None)).text
    assert "rank 0 failedValueError: bad batch" in text, "no step was done, none is named"
    assert "ranks 1–2: the same error" in text
    assert "rank 3 failed: ValueError: worse batch" in text
    assert text.count("bad batch") == 1


def test_words_stay_apart_where_the_style_sheet_is_left_out() -> None:
    model = finished()
    model.name = "fit"
    text = Reader(render_html(model, figure=None)).text
    assert "finished fit 2 × CPU · gloo · fp32 · fork 0:04" in text
    assert "×2 loaded 10 samples" in text


def test_columns_have_room_for_what_comes_and_drop_out_by_name_in_a_narrow_page() -> None:
    model, clock = running(1, 5)
    first = render_html(model, figure=None)
    model.apply(Progress(0, clock.now, 1, "epoch 1 of 3", 199, 200))
    assert 'class="nbacc-count" style="width:10ch"' in first
    assert 'class="nbacc-count" style="width:10ch"' in render_html(model, figure=None)
    assert '<td class="nbacc-memory">9.0 / 15 GB</td>' in first


def test_the_end_is_marked_by_its_colour_class() -> None:
    assert 'class="nbacc-head nbacc-finished"' in render_html(finished(), figure=None)
    assert 'class="nbacc-head nbacc-failed"' in render_html(failed(), figure=None)
    model, clock = running()
    model.apply(Failed(0, clock.now, RankFailure(0, clock.now, 1, "E", "m")))
    assert 'class="nbacc-head nbacc-failed"' in render_html(model, figure=None), "before the others have ended, too"


def test_a_long_log_is_folded_and_bounded() -> None:
    model, clock = running()
    model.apply(Output(0, clock.now, "".join(f"line {n}\n" for n in range(5_000))))
    live = render_html(model, figure=None)
    assert "line 4999" in live
    assert "line 4700" not in live
    model.apply(Ended(clock.now, "finished"))
    page = render_html(model, figure=None)
    assert "<details><summary>log · 5001 lines, the last 500 shown" in page
    assert len(page) < 150_000


def test_many_ranks_are_one_click_away() -> None:
    page = render_html(running(20, 3)[0], figure=None)
    assert "<details><summary>all 20 ranks</summary>" in page
    assert "<details><summary>all" not in render_html(running(8, 3)[0], figure=None)


def test_the_plot_is_inside_the_page() -> None:
    model = finished()
    figure = render_figure(model.history, dpi=50)
    assert figure
    assert figure.startswith(b"\x89PNG")
    read = Reader(render_html(model, figure=figure))
    (source,) = [value for name, value in read.attributes if name == "src"]
    assert len(source or "") > len(figure)


def test_an_empty_run_is_a_page() -> None:
    model = RunModel(clock=Clock())
    assert "starting" in Reader(render_html(model, figure=None)).text
    assert summary_text(model) == "starting"


def test_summary_text() -> None:
    lines = summary_text(failed(3)).splitlines()
    assert lines[0] == "train · 3 × CPU · gloo · fp32 · fork · failed after 0:05"
    assert lines[1:8] == [
        "rank 1 failed at step 40",
        "  ValueError: bad batch",
        "  cell [4]:18 in train",
        "      loss = f(x)",
        "  /home/me/losses.py:88 in f",
        "      return x / 0",
        "  Use drop_last=True.",
    ]
    assert lines[-1].startswith("last values: loss 0.4")
    assert "cell [4]" not in summary_text(failed(3), frames=False)
