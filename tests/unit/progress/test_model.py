"""Events in, state out."""

from __future__ import annotations

import itertools
import random

import pytest
from unit.display.simulated import START, Clock

from notebook_accel.contracts import events
from notebook_accel.contracts.errors import RankFailure
from notebook_accel.contracts.events import (
    Display,
    Ended,
    Event,
    Failed,
    Finished,
    Halted,
    Heartbeat,
    Hello,
    Launched,
    Metrics,
    Output,
    Progress,
    Status,
)
from notebook_accel.progress import RunModel


def model_of(*many: Event, size: int = 2, clock: Clock | None = None) -> RunModel:
    model = RunModel(clock=clock or Clock())
    model.apply(Launched(START, "run-1", "train", size, f"{size} × CPU · gloo · fp32 · fork", ""))
    for event in many:
        model.apply(event)
    return model


def failure(rank: int, time: float, *, consequence: bool = False) -> Failed:
    return Failed(rank, time, RankFailure(rank, time, 3, "ValueError", "no", consequence=consequence))


def test_the_way_of_a_run() -> None:
    clock = Clock()
    model = model_of(clock=clock)
    assert (model.status, list(model.ranks)) == ("starting", [0, 1])
    model.apply(Hello(1, START, 77))
    assert (model.status, model.ranks[1].pid, model.ranks[0].phase) == ("running", 77, "waiting")
    clock.now = START + 5
    assert (model.elapsed, model.over) == (5.0, False)
    model.stopping("waiting for the ranks")
    assert (model.status, model.status_text) == ("stopping", "waiting for the ranks")
    model.apply(Ended(START + 7, "stopped", "the Stop button"))
    clock.now = START + 100
    assert (model.status, model.status_text, model.elapsed, model.over) == ("stopped", "", 7.0, True)
    model.stopping("too late")
    assert model.status == "stopped"


def test_bars_newest_active_first_and_done_ones_fall_away() -> None:
    model = model_of(
        Progress(0, START, 1, "epochs", 0, 3),
        Progress(0, START, 2, "epoch 1", 5, 10),
    )
    rank = model.ranks[0]
    assert (rank.bar and rank.bar.id, [bar.id for bar in rank.outer_bars]) == (2, [1])
    model.apply(Progress(0, START + 1, 2, "epoch 1", 10, 10, done=True))
    assert rank.bar
    assert rank.bar.id == 1
    model.apply(Progress(0, START + 2, 1, "epochs", 3, 3, done=True))
    assert (rank.bar.id, rank.bar.fraction, rank.outer_bars) == (1, 1.0, [])
    model.apply(Progress(0, START + 3, 1, "epochs", 3, 3, done=True))
    assert not rank.bars, "a bar that ended does not come back"
    assert rank.bar.meter.rate() == pytest.approx(1.5), "nor does it lose its speed"


def test_bars_that_never_end_are_bounded() -> None:
    model = model_of(*(Progress(0, START, number, "bar", 1, 2) for number in range(100)))
    assert len(model.ranks[0].bars) == 16
    assert model.ranks[0].bar
    assert model.ranks[0].bar.id == 99


@pytest.mark.parametrize(
    ("many", "seconds_in", "expected"),
    [
        ([Progress(0, START, 1, "train", 0, 100), Progress(0, START + 10, 1, "train", 20, 100)], 10, None),
        (
            [Progress(0, START, 1, "epoch 1 of 3", 0, 100), Progress(0, START + 10, 1, "epoch 1 of 3", 20, 100)],
            10,
            (80 + 200) / 2,
        ),
        (
            [
                Progress(0, START, 1, "Epoch", 0, 4),
                Progress(0, START, 2, "batches", 0, 100),
                Progress(0, START + 10, 2, "batches", 50, 100),
            ],
            10,
            70.0,  # an eighth took ten seconds
        ),
        (
            [
                Progress(0, START, 1, "Epoch", 0, 4),
                Progress(0, START, 2, "batches", 50, 100),
                Progress(0, START + 8, 2, "batches", 100, 100, done=True),
                Progress(0, START + 8, 3, "eval", 0, 10),
            ],
            8,
            24.0,  # the evaluation has only begun: by what is known the first epoch is nearly over
        ),
        (
            [
                Progress(0, START, 1, "Epoch", 2, 6),
                Progress(0, START, 2, "batches", 0, 100),
                Progress(0, START + 10, 1, "Epoch", 3, 6),
            ],
            14,
            26.0,  # three epochs of ten seconds, four of which have passed; no bar inside is needed for it
        ),
        (
            [
                Progress(0, START, 1, "Epoch", 0, 4),
                Progress(0, START, 2, "fold", 0, 5),
                Progress(0, START, 3, "batches", 0, 100),
                Progress(0, START + 10, 3, "batches", 99, 100),
            ],
            10,
            None,  # not even one fold
        ),
        (
            [
                Progress(0, START, 1, "Epoch", 0, 4),
                Progress(0, START, 2, "batches", 0, 100),
                Progress(0, START + 90, 1, "Epoch", 4, 4),
                Progress(0, START + 100, 1, "Epoch", 0, 4),
                Progress(0, START + 110, 1, "Epoch", 1, 4),
            ],
            110,
            30.0,  # the same bar, reset
        ),
    ],
)
def test_remaining(many: list[Event], seconds_in: float, expected: float | None) -> None:
    clock = Clock()
    model = model_of(*many, clock=clock)
    clock.now = START + seconds_in
    assert model.remaining() == (None if expected is None else pytest.approx(expected))
    model.apply(Ended(START + seconds_in, "finished"))
    assert model.remaining() is None


def test_the_slowest_rank_decides_what_remains() -> None:
    bars = [Progress(r, START, 1, "epoch 1/1", 0, 100) for r in (0, 1)]
    later = [Progress(0, START + 10, 1, "epoch 1/1", 50, 100), Progress(1, START + 10, 1, "epoch 1/1", 10, 100)]
    clock = Clock()
    clock.now = START + 10
    assert model_of(*bars, *later, clock=clock).remaining() == pytest.approx(90.0)


def test_the_first_cause_is_the_failure() -> None:
    model = model_of(failure(0, START + 1, consequence=True), failure(1, START + 3), size=4)
    model.apply(failure(2, START + 2))
    assert [f.rank for f in model.failures] == [0, 2, 1]
    assert model.failure
    assert model.failure.rank == 2
    assert model_of(failure(0, START, consequence=True)).failure is not None, "better than none"


def test_a_rank_that_starts_again_is_new() -> None:
    model = model_of(Hello(0, START, 1), Progress(0, START, 1, "epoch", 5, 10), failure(0, START))
    model.stopping("ending the other ranks")
    model.apply(Hello(0, START + 1, 2))
    assert (model.failures, model.ranks[0].phase, model.ranks[0].bar, model.status) == ([], "running", None, "running")


def test_status_since() -> None:
    model = model_of(Status(0, START + 1, "compiling"), Status(0, START + 4, "compiling"))
    assert (model.ranks[0].text, model.ranks[0].text_since) == ("compiling", START + 1)
    model.apply(Status(0, START + 9, ""))
    assert model.ranks[0].text == ""


def test_news_and_movement_are_not_the_same() -> None:
    clock = Clock()
    model = model_of(Hello(0, START, 1), Heartbeat(0, START, 5), clock=clock)
    clock.now = START + 9
    model.apply(Heartbeat(0, START + 9, 5, 10, 20))
    rank = model.ranks[0]
    assert (rank.news, rank.moved, rank.memory, rank.memory_total) == (START + 9, START, 10, 20)
    model.apply(Heartbeat(0, START + 9, 6))
    assert (rank.moved, rank.memory_total) == (START + 9, 20)


def test_halted_until_it_moves() -> None:
    model = model_of(Hello(0, START, 1), Halted(0, START, 7))
    assert (model.ranks[0].phase, model.ranks[0].step) == ("halted", 7)
    model.apply(Metrics(0, START, 8, {"loss": 1.0}))
    assert model.ranks[0].phase == "running"
    model.apply(Finished(0, START, interrupted=True))
    model.apply(Halted(0, START, 9))
    assert model.ranks[0].phase == "interrupted"


def test_latest_metrics_and_versions() -> None:
    model = model_of(Metrics(0, START, 1, {"loss": 2.0, "phase": "warm"}), Metrics(0, START, 2, {"loss": 1.0}))
    assert model.ranks[0].metrics == {"loss": 1.0, "phase": "warm"}
    assert model.plot_version == 2
    before = model.log_version
    model.apply(Output(0, START, "x\n"))
    assert model.log_version > before


def test_notes_are_said_once() -> None:
    model = model_of(Finished(0, START, note="a lambda was left out"))
    model.say("rank 0: a lambda was left out")
    model.say("")
    assert model.notice == ["rank 0: a lambda was left out"]


def test_a_helper_process_has_output_but_no_row() -> None:
    model = model_of(Output(-1, START, "from the host\n"), Heartbeat(-1, START, 3))
    assert list(model.ranks) == [0, 1]
    assert [entry.text for entry in model.log] == ["from the host"]


ANY_ORDER: list[Event] = [
    Launched(START, "r", "train", 2, "line", "why"),
    Hello(0, START, 1),
    Hello(9, START, 1),
    Status(1, START, "compiling"),
    Progress(1, START, 1, "", 3, None, done=True),
    Progress(1, START, 1, "", -1, 0),
    Metrics(5, START, -1, {}),
    Metrics(0, START - 50, 2, {"loss": float("nan")}),
    Output(0, START, "\x1b[", 3),
    Display(3, START, {}),
    Heartbeat(0, START, -1),
    Halted(0, START, 1),
    Finished(1, START),
    failure(1, START),
    Ended(START, "failed", ""),
]


@pytest.mark.parametrize("seed", range(30))
def test_any_order_of_events_is_taken(seed: int) -> None:
    shuffled = random.Random(seed).sample(ANY_ORDER, len(ANY_ORDER))
    model = RunModel(clock=itertools.count(START).__next__)
    for event in shuffled:
        model.apply(event)
        model.remaining()
    assert model.status == "failed"
    assert {0, 1, 9, 5, 3} <= set(model.ranks)


def test_every_event_is_known() -> None:
    known = {type(event) for event in ANY_ORDER}
    assert known == set(RunModel._takers) == set(events._TYPES.values())
