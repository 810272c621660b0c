"""Every logged call, exactly."""

from __future__ import annotations

import builtins
import math
import random
import sys

import pytest

from notebook_accel.contracts.events import Metrics
from notebook_accel.progress import History, Record


def some_calls(count: int = 300) -> list[Metrics]:
    rng = random.Random(0)
    names = ["loss", "lr", "accuracy", "phase", "note"]
    calls = []
    for number in range(count):
        chosen = rng.sample(names, rng.randrange(0, 4))
        values = {name: "warm" if name in ("phase", "note") else rng.uniform(-1e9, 1e9) for name in chosen}
        calls.append(Metrics(rng.randrange(4), 1.7e9 + number / 7, rng.randrange(-2, 50), values))
    return calls


def history_of(calls: list[Metrics]) -> History:
    history = History()
    for call in calls:
        history.add(call)
    return history


def test_records_are_every_call_in_order_of_arrival() -> None:
    calls = some_calls()
    records = list(history_of(calls).records())
    assert records == [Record(call.rank, call.step, call.time, dict(call.values)) for call in calls]
    assert [list(record.values) for record in records] == [list(call.values) for call in calls], "names in their order"


def test_a_mapping_of_metrics() -> None:
    history = history_of([Metrics(0, 0.0, 1, {"loss": 2.0, "note": "x"}), Metrics(1, 0.0, 1, {"loss": 4.0})])
    assert list(history) == ["loss"]
    assert len(history) == 1
    assert "note" not in history
    assert history["loss"].values == [3.0]
    assert history.get("nothing") is None
    assert repr(history) == "<History: loss (1)>"


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([], "no metric 'los'; nothing was logged"),
        ([Metrics(0, 0.0, 0, {"loss": 1.0, "lr": 1.0})], "no metric 'los'; logged were 'loss', 'lr'"),
    ],
)
def test_an_unknown_name_tells_the_known_ones(calls: list[Metrics], message: str) -> None:
    with pytest.raises(KeyError) as caught:
        history_of(calls)["los"]
    assert caught.value.args == (message,)


@pytest.mark.parametrize(
    ("value", "kept"),
    [(True, 1.0), (3, 3.0), (math.inf, math.inf), (10**400, str(10**400)), (None, "None"), ([1], "[1]")],
)
def test_odd_values(value: object, kept: float | str) -> None:
    history = history_of([Metrics(0, 0.0, 10**30, {"x": value})])  # type: ignore[dict-item]
    (record,) = history.records()
    assert record.values == {"x": kept}
    assert record.step == 2**63 - 1
    assert ("x" in history) is isinstance(kept, float)


def test_reading_while_calls_arrive() -> None:
    history = history_of(some_calls(10))
    reading = history.records()
    next(reading)
    history.add(Metrics(0, 0.0, 0, {"new": 1.0}))
    assert len(list(reading)) == 9, "what had arrived when the reading began"


def test_to_pandas_has_a_row_for_each_call() -> None:
    pytest.importorskip("pandas")
    history = history_of([Metrics(0, 5.0, 1, {"loss": 2.0}), Metrics(1, 6.0, 1, {"step": 9.0, "phase": "warm"})])
    frame = history.to_pandas()
    assert list(frame.columns) == ["rank", "step", "time", "loss", "step_", "phase"]
    assert frame["rank"].tolist() == [0, 1]
    assert frame["step"].tolist() == [1, 1]
    assert frame["step_"].tolist()[1] == 9.0
    assert math.isnan(frame["loss"][1])
    assert list(History().to_pandas().columns) == ["rank", "step", "time"]


def test_without_pandas_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_import = builtins.__import__

    def no_pandas(name: str, *args: object, **kwargs: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return plain_import(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match=r"pip install pandas, or use history\.records\(\)"):
        History().to_pandas()
