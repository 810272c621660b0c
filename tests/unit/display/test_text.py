"""The terminal's screen on a terminal that a test reads."""

from __future__ import annotations

import io
import re

from unit.display.simulated import START, Clock, failed, started, step

from notebook_accel.contracts.events import Display, Ended, Finished, Output
from notebook_accel.display.text import LogLines, TextScreen
from notebook_accel.progress import RunModel

UP = re.compile(r"\x1b\[(\d+)F\x1b\[J")


class Terminal(io.StringIO):
    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty

    def lines(self) -> list[str]:
        """What is on the screen in the end, line by line."""
        shown: list[str] = []
        for part in re.split(f"({UP.pattern})", self.getvalue()):
            if part is None or part.isdigit():
                continue
            if up := UP.fullmatch(part):
                assert int(up[1]) <= len(shown), "it never moves above its own output"
                del shown[len(shown) - int(up[1]) :]
            else:
                assert part == "" or part.endswith("\n")
                shown += part.splitlines()
        return shown


def drive(
    *, tty: bool, steps: int = 120, size: int = 2, width: int = 120
) -> tuple[Terminal, TextScreen, RunModel, Clock]:
    clock, out = Clock(), Terminal(tty=tty)
    model = started(size, clock)
    screen = TextScreen(out, clock=clock, width=width)
    screen.open(model)
    for number in range(1, steps + 1):
        step(model, clock, number)
        if number == 10:
            for rank in range(size):
                model.apply(Output(rank, clock.now, "loaded 10\n"))
        if number == 50:
            model.apply(Output(1, clock.now, "only me\n"))
        screen.refresh(model)
    return out, screen, model, clock


def test_on_a_terminal_the_bars_stay_below_the_output() -> None:
    out, _, _, _ = drive(tty=True)
    lines = out.lines()
    assert lines[1:3] == ["[×2] loaded 10", "[1] only me"]
    assert lines[3].startswith("train · 2 × CPU · gloo · fp32 · fork · running 0:1")
    bar = r"0  epoch 1 of 3  █{9,10}░{6,7}  1\d\d/200  10.0/s  0:0\d left +loss 0.\d+  9.0 / 15 GB"
    assert re.fullmatch(bar, lines[4])
    assert len(lines) == 6


def test_on_a_terminal_at_the_end_only_the_summary_stays() -> None:
    out, screen, model, clock = drive(tty=True)
    model.apply(Output(0, clock.now, "last words\n"))
    for rank in (0, 1):
        model.apply(Finished(rank, clock.now))
    model.apply(Ended(clock.now, "finished"))
    screen.close(model)
    lines = out.lines()
    assert lines[3] == "[0] last words"
    assert lines[4] == "train · 2 × CPU · gloo · fp32 · fork · finished after 0:12"
    assert [line.split("  ")[:2] for line in lines[5:7]] == [["rank 0", "finished"], ["rank 1", "finished"]]
    assert not any("█" in line for line in lines)


def test_no_line_is_wider_than_the_terminal() -> None:
    out, _, _, _ = drive(tty=True, width=60)
    bars = [line for line in out.lines() if "█" in line]
    assert len(bars) == 2
    assert all(len(line) == 59 and line.endswith("…") for line in bars)


def test_elsewhere_a_line_for_each_rank_now_and_then() -> None:
    out, _, _, _ = drive(tty=False)
    text = out.getvalue()
    assert "\x1b" not in text
    assert "\r" not in text
    reports = [line for line in text.splitlines() if line.startswith("rank ")]
    assert reports[0] == "rank 0  epoch 1 of 3  10/200  10.0/s  0:19 left  loss 0.8187  9.0 / 15 GB"
    assert 6 <= len(reports) <= 16, "in twelve seconds"


def test_a_long_run_says_it_less_often() -> None:
    clock, out = Clock(), Terminal(tty=False)
    model = started(1, clock)
    screen = TextScreen(out, clock=clock)
    clock.now += 3600
    step(model, clock, 1)
    screen.refresh(model)
    said = len(out.lines())
    for _ in range(55):
        clock.now += 1
        screen.refresh(model)
    assert len(out.lines()) == said
    clock.now += 10
    screen.refresh(model)
    assert len(out.lines()) == said + 1


def test_many_ranks_are_few_lines() -> None:
    out, _, _, _ = drive(tty=False, size=16, steps=12)
    assert len([line for line in out.lines() if line.startswith("rank ")]) == 4


def test_a_failure_is_one_line_for_the_error_has_the_rest() -> None:
    out, model = Terminal(tty=False), failed(3)
    TextScreen(out).close(model)
    text = out.getvalue()
    assert "rank 1 failed at step 40: ValueError: bad batch\n" in text
    assert "losses.py" not in text


def test_closing_never_raises() -> None:
    screen = TextScreen(out := Terminal(tty=False))
    out.close()
    screen.close(failed(3))


def test_an_output_that_knows_few_letters() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    TextScreen(out).close(failed(3))
    assert b"\ntrain ? 3 ? CPU" in raw.getvalue()


def test_every_line_of_every_rank_is_told_once() -> None:
    clock = Clock()
    model = RunModel(clock=clock)
    lines = LogLines()
    model.apply(Output(0, START, "same\n"))
    assert lines.new(model, wait=0.4) == [], "another rank may say the same"
    model.apply(Output(1, START, "same\n"))
    clock.now += 0.5
    assert lines.new(model, wait=0.4) == ["[×2] same"]
    model.apply(Output(2, START, "same\n"))
    assert lines.new(model, wait=0.4) == ["[2] same"]
    assert lines.new(model, wait=0.0) == []


def test_lines_that_fell_out_of_the_ring_are_counted() -> None:
    model = RunModel(clock=Clock())
    model.apply(Output(0, START, "".join(f"{n}\n" for n in range(1_500))))
    first, *rest = LogLines().new(model, wait=0.0)
    assert first == "… 500 lines are only in the log files"
    assert rest[0] == "[0] 500"
    assert len(rest) == 1_000


def test_displays_are_told_once_as_text() -> None:
    model, lines = RunModel(clock=Clock()), LogLines()
    model.apply(Display(0, START, {"text/plain": "   a\x1b[31m  b\n0  1  2\n", "text/html": "<table>"}))
    model.apply(Display(1, START, {"image/png": "AAAA"}, "figure"))
    assert lines.new(model, wait=0.0) == ["[0]    a  b\n0  1  2", "[1] showed image/png"]
    assert lines.new(model, wait=0.0) == []
    model.apply(Display(1, START, {"text/plain": "again"}, "figure"))
    assert lines.new(model, wait=0.0) == ["[1] again"]


def test_it_is_used_where_there_is_no_notebook() -> None:
    from notebook_accel.display import make_screen
    from notebook_accel.host.frontend import FrontEnd

    screen = make_screen("auto", FrontEnd("pipe", False, False))
    assert isinstance(screen, TextScreen)
    assert (screen.presses, screen.stop_requested) == (0, False)
