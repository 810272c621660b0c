"""Agreement on a common step, with simulated ranks and an injected clock."""

from __future__ import annotations

import random

import pytest

from notebook_accel.launch.stopping import Action, Stopping


class SimulatedRank:
    """A rank in lockstep training: it finishes step k only when every rank has begun step k (an all-reduce)."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.asked = False
        self.free_until = 0
        self.stop_at: int | None = None
        self.stopped_at: int | None = None

    def take(self, action: Action) -> None:
        self.asked = True
        if action.order == "go":
            self.free_until = max(self.free_until, action.step)
        elif action.order == "stop":
            self.stop_at = action.step

    @property
    def waits(self) -> bool:
        return self.asked and self.stop_at is None and self.step >= self.free_until and self.stopped_at is None


def simulate(steps: list[int], seed: int, delay: float = 0.05) -> tuple[list[SimulatedRank], list[Action]]:
    ranks = [SimulatedRank(step) for step in steps]
    stopping, actions, chance, told = Stopping(0.0), [], random.Random(seed), {}
    now = 0.0
    while any(rank.stopped_at is None for rank in ranks) and now < 60:
        now += delay
        for rank in ranks:
            if rank.stop_at is not None and rank.step >= rank.stop_at and rank.stopped_at is None:
                rank.stopped_at = rank.step
        begun = [r.step + (0 if r.waits or r.stopped_at is not None else 1) for r in ranks]
        for number, rank in enumerate(ranks):
            if rank.waits:
                if told.get(number) != rank.step and chance.random() < 0.7:
                    told[number] = rank.step
                    stopping.halted(number, rank.step, now)
            elif rank.stopped_at is None and min(begun) > rank.step and chance.random() < 0.8:
                rank.step += 1
        alive = [n for n, rank in enumerate(ranks) if rank.stopped_at is None]
        for action in stopping.advance(alive, now):
            actions.append(action)
            ranks[action.rank].take(action)
    return ranks, actions


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("steps", [[5], [5, 5], [5, 6], [7, 6, 7], [3, 3, 4, 4]])
def test_all_ranks_stop_at_one_step(steps: list[int], seed: int) -> None:
    ranks, actions = simulate(steps, seed)
    assert len({rank.stopped_at for rank in ranks}) == 1
    assert ranks[0].stopped_at is not None
    assert {action.order for action in actions} <= {"halt", "go", "stop"}


def orders(stopping: Stopping, times: list[float]) -> list[tuple[float, str]]:
    return [(now, action.order) for now in times for action in stopping.advance([0], now)]


def test_a_rank_that_never_answers_is_interrupted_then_terminated_then_killed() -> None:
    seen = orders(Stopping(0.0, step_s=0.5), [0, 1, 1.9, 2, 4, 7, 8, 9.1])
    assert seen == [(0, "halt"), (2, "interrupt"), (7, "terminate"), (9.1, "kill")]


def test_a_rank_that_answers_late_is_still_agreed_with() -> None:
    stopping = Stopping(0.0)
    assert orders(stopping, [0, 2]) == [(0, "halt"), (2, "interrupt")]
    stopping.halted(0, 7, 3.0)
    assert list(stopping.advance([0], 3.1)) == [Action("stop", 0, 7)]
    assert orders(stopping, [7, 9, 12]) == []


def test_without_steps_there_is_no_boundary_to_wait_for() -> None:
    seen = orders(Stopping(0.0, step_s=0), [0, 0.2, 0.4])
    assert seen == [(0, "halt"), (0.4, "interrupt")]


def test_slow_steps_are_given_their_time() -> None:
    seen = orders(Stopping(0.0, step_s=5), [0, 2, 10, 19, 20])
    assert seen == [(0, "halt"), (20, "interrupt")]


def test_last_words_are_waited_for() -> None:
    stopping = Stopping(0.0)
    list(stopping.advance([0], 0.0))
    stopping.halted(0, 12, 0.1)
    assert list(stopping.advance([0], 0.2)) == [Action("stop", 0, 12)]
    assert orders(stopping, [10, 30]) == []
    assert orders(stopping, [31]) == [(31, "interrupt")]
