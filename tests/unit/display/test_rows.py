"""The table of ranks as words."""

from __future__ import annotations

import pytest
from unit.display.simulated import Clock, failed, finished, running, started, step

from notebook_accel.contracts.errors import RankFailure
from notebook_accel.contracts.events import Ended, Failed, Finished, Halted, Heartbeat, Hello, Metrics, Progress, Status
from notebook_accel.display.rows import make_table
from notebook_accel.progress import RunModel


def doing(model: RunModel) -> list[str]:
    return [row.doing for row in make_table(model).rows]


def test_a_running_rank() -> None:
    model, _ = running()
    (row, _) = make_table(model).rows
    assert (row.doing, row.count, row.rate, row.left, row.memory) == (
        "epoch 1 of 3",
        "40/200",
        "10.0/s",
        "0:16",
        "9.0 / 15 GB",
    )
    assert (row.fraction, row.tone, row.moving, make_table(model).metric) == (0.2, "busy", True, "loss")


def test_what_a_rank_is_doing() -> None:
    clock = Clock()
    model = started(7, clock)
    model.apply(Status(1, clock.now, "compiling (first step)"))
    model.apply(Halted(2, clock.now, 12))
    model.apply(Finished(3, clock.now))
    model.apply(Heartbeat(4, clock.now, 5))
    model.apply(Heartbeat(5, clock.now, 5))
    model.apply(Finished(6, clock.now, interrupted=True))
    clock.now += 34
    for rank in (0, 1, 2, 4):
        model.apply(Heartbeat(rank, clock.now, 6 if rank == 0 else model.ranks[rank].step))
    assert doing(model) == [
        "running",
        "compiling (first step), 34 s",
        "waits to stop at step 12",
        "finished",
        "not moving for 34 s",
        "no news for 34 s",
        "stopped",
    ]
    assert [row.tone for row in make_table(model).rows] == ["busy", "busy", "quiet", "quiet", "warn", "warn", "warn"]
    model.apply(Ended(clock.now, "stopped"))
    assert doing(model)[0] == "ended at step 6"


def test_a_rank_that_stands_with_all_the_others_is_not_marked() -> None:
    clock = Clock()
    model = started(2, clock)
    clock.now += 60
    for rank in (0, 1):
        model.apply(Heartbeat(rank, clock.now, -1))
    clock.now += 1
    assert doing(model) == ["running", "running"]


def test_before_the_ranks_are_up() -> None:
    clock = Clock()
    model = started(1, clock)
    model.ranks[0].phase = "waiting"
    assert doing(model) == ["starting"]
    clock.now += 12
    assert doing(model) == ["starting, 12 s"]


def test_the_cause_is_red_and_what_follows_is_not() -> None:
    rows = make_table(failed(3)).rows
    assert [(row.tone, row.doing) for row in rows] == [
        ("off", "stopped, rank 1 failed"),
        ("bad", "failed: ValueError"),
        ("off", "stopped, rank 1 failed"),
    ]


def test_a_bar_that_is_done_keeps_its_speed() -> None:
    model, clock = running(1)
    model.apply(Progress(0, clock.now, 1, "epoch 1 of 3", 200, 200, done=True))
    speed = make_table(model).rows[0].rate
    clock.now += 5
    (row,) = make_table(model).rows
    assert (row.rate, row.left, row.count) == (speed, "", "200/200")


def test_outer_bars_and_postfix_stand_beside() -> None:
    model, clock = running(1)
    model.apply(Progress(0, clock.now, 2, "batches: ", 3, None, "B", "loss=0.3, "))
    (row,) = make_table(model).rows
    assert (row.doing, row.around, row.fraction) == ("batches", "epoch 1 of 3 40/200 · loss=0.3", None)
    model.apply(Progress(0, clock.now, 2, "batches", 3, None, done=True))
    (row,) = make_table(model).rows
    assert (row.doing, row.around) == ("epoch 1 of 3", "\xa0"), "the line stays, so that nothing jumps"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["lr", "accuracy"], "lr"),
        (["lr", "val_loss", "loss"], "loss"),
        (["eval_loss", "train_loss"], "train_loss"),
        ([], ""),
    ],
)
def test_the_metric_worth_a_column(names: list[str], expected: str) -> None:
    model = RunModel(clock=Clock())
    for name in names:
        model.apply(Metrics(0, 0.0, 0, {name: 1.0}))
    assert make_table(model).metric == expected


def test_up_to_eight_ranks_are_all_shown() -> None:
    table = make_table(running(8, 3)[0])
    assert ([row.rank for row in table.rows], table.all_rows) == (list(range(8)), [])


def test_a_rank_that_had_finished_is_not_green_in_a_failed_run() -> None:
    model, clock = running(3)
    model.apply(Finished(0, clock.now))
    assert make_table(model).rows[0].tone == "quiet"
    model.apply(Failed(1, clock.now, RankFailure(1, clock.now, 40, "ValueError", "m")))
    model.apply(Ended(clock.now, "failed"))
    rows = make_table(model).rows
    assert [(row.tone, row.doing) for row in rows] == [
        ("off", "finished"),
        ("bad", "failed: ValueError"),
        ("off", "stopped, rank 1 failed"),
    ]


def test_without_training_steps_none_are_named() -> None:
    clock = Clock()
    model = started(2, clock)
    for rank in (0, 1):
        model.apply(Heartbeat(rank, clock.now, 0))
    assert [row.count for row in make_table(model).rows] == ["", ""]
    model.apply(Finished(0, clock.now))
    model.apply(Finished(1, clock.now, interrupted=True))
    assert [(row.doing, row.count) for row in make_table(model).rows] == [("finished", ""), ("stopped", "")]


def test_what_is_left_is_rounded_up() -> None:
    clock = Clock()
    model = started(1, clock)
    model.apply(Progress(0, clock.now, 1, "train", 0, 100))
    clock.now += 1
    model.apply(Progress(0, clock.now, 1, "train", 80, 100))
    assert make_table(model).rows[0].left == "0:01"


def test_room_under_a_bar_is_kept_only_while_some_rank_uses_it() -> None:
    clock = Clock()
    model = started(2, clock)
    for rank in (0, 1):
        model.apply(Progress(rank, clock.now, 1, "epochs", 0, 3))
        model.apply(Progress(rank, clock.now, 2, "batches", 0, 9))
    model.apply(Progress(0, clock.now, 2, "batches", 1, 9, done=True))
    model.apply(Progress(0, clock.now, 1, "epochs", 0, 3, done=True))
    model.apply(Failed(0, clock.now, RankFailure(0, clock.now, 0, "ValueError", "m")))
    model.apply(Ended(clock.now, "failed"))
    assert [row.around for row in make_table(model).rows] == ["\xa0", "epochs 0/3"]
    model.apply(Progress(1, clock.now, 2, "batches", 1, 9, done=True))
    assert [row.around for row in make_table(model).rows] == ["", ""]


def test_ranks_in_step_are_the_first_ones_and_have_no_roles() -> None:
    model, clock = running(32, 60, behind={7: 1, 20: 5})
    for rank in range(0, 32, 3):
        model.apply(Progress(rank, clock.now, 1, "epoch 1 of 3", 200, 200, done=True))
        model.apply(Progress(rank, clock.now, 2, "epoch 2 of 3", 0, 200))
    assert [(row.rank, row.role) for row in make_table(model).rows] == [(0, ""), (1, ""), (2, ""), (3, "")]


def test_of_many_ranks_the_ends_the_middle_and_the_odd_ones() -> None:
    model, clock = running(32, 60, behind={7: 30, 20: 5})
    clock.now += 0.05
    table = make_table(model)
    roles = {row.rank: row.role for row in table.rows if row.role}
    assert roles[7] == "slowest"
    assert set(roles.values()) == {"slowest", "median", "fastest"}
    assert len(table.all_rows) == 32
    assert len(table.rows) <= 8


def test_a_rank_in_trouble_is_always_among_the_shown() -> None:
    model, clock = running(32, 10)
    clock.now += 20
    for rank in model.ranks:
        if rank != 13:
            step_one = model.ranks[rank].step + 1
            model.apply(Heartbeat(rank, clock.now, step_one))
    table = make_table(model)
    assert [row.doing for row in table.rows if row.rank == 13] == ["no news for 20 s"]


def test_what_most_ranks_do_is_no_trouble() -> None:
    model, clock = running(20, 5)
    for rank in model.ranks:
        model.apply(Finished(rank, clock.now, interrupted=True))
    model.apply(Ended(clock.now, "stopped"))
    assert len(make_table(model).rows) == 4


def test_no_roles_when_it_is_over() -> None:
    table = make_table(finished(12))
    assert {row.role for row in table.rows} == {""}
    assert {row.tone for row in table.rows} == {"quiet"}


def test_a_rank_that_came_back_is_shown_again() -> None:
    model, clock = running(2)
    model.apply(Finished(0, clock.now))
    model.apply(Hello(0, clock.now, 5))
    step(model, clock, 41)
    assert doing(model)[0] == "epoch 1 of 3"


def test_a_rank_that_has_trained_shows_all_its_steps() -> None:
    clock = Clock()
    model = started(1, clock)
    model.apply(Progress(0, clock.now, 1, "eval", 3, 3, "batch", done=True))
    model.apply(Heartbeat(0, clock.now, 575))
    model.apply(Finished(0, clock.now))
    (row,) = make_table(model).rows
    assert (row.doing, row.count, row.rate, row.fraction) == ("finished", "575 steps", "", 1.0)
