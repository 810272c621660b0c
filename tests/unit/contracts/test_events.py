"""Events survive the wire."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_accel.contracts import events
from notebook_accel.contracts.errors import Frame, RankFailure

FAILURE = RankFailure(1, 2.0, 3, "ValueError", "bäd\n<b>", (Frame("a.py", 4, "f", "x = 1"),), True, "hint", ("tail",))
ALL: list[events.Event] = [
    events.Launched(1.0, "id", "train", 2, "2 × CPU", "why"),
    events.Hello(0, 1.0, 7),
    events.Status(0, 1.0, "compiling"),
    events.Progress(0, 1.0, 1, "epoch 1", 3, None, "batch", "loss=1", True),
    events.Metrics(0, 1.0, 5, {"loss": 0.5, "note": "text"}),
    events.Output(0, 1.0, "line\r\n", 12),
    events.Display(0, 1.0, {"text/html": "<b>"}, "id"),
    events.Heartbeat(0, 1.0, 3, 10, 20),
    events.Halted(0, 1.0, 4),
    events.Finished(0, 1.0, "rank-0.result", "note", True, ("torch._dynamo",)),
    events.Failed(1, 2.0, FAILURE, "rank-1.error", 100),
    events.Ended(3.0, "failed", "why"),
]


@pytest.mark.parametrize("event", ALL, ids=lambda event: type(event).__name__)
def test_encode_and_decode_are_inverse(event: events.Event) -> None:
    line = events.encode(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert events.decode(line) == event


def test_every_kind_of_event_is_tried() -> None:
    assert {type(event) for event in ALL} == set(events._TYPES.values())


@given(st.dictionaries(st.text(), st.one_of(st.floats(allow_nan=False), st.text())))
def test_any_names_and_values(values: dict[str, float | str]) -> None:
    decoded = events.decode(events.encode(events.Metrics(0, 0.0, 0, values)))
    assert isinstance(decoded, events.Metrics)
    assert dict(decoded.values) == {_wire(k): _wire(v) for k, v in values.items()}


def _wire(value: float | str) -> float | str:
    """Lone surrogates, which no encoding has, arrive spelled out."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def test_nan_arrives_as_nan() -> None:
    decoded = events.decode(events.encode(events.Metrics(0, 0.0, 0, {"loss": math.nan})))
    assert isinstance(decoded, events.Metrics)
    assert math.isnan(float(decoded.values["loss"]))


@pytest.mark.parametrize("line", [b"", b"{}", b"[1]", b'{"event":"x"}', b'{"event":"hello"}', b"nonsense", b"\xff"])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json and decoding errors are ValueErrors of their own
        events.decode(line)
