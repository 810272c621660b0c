"""Errors that keep their type and find the culprit."""

from __future__ import annotations

import pickle
import signal
import threading
from typing import Any

import pytest

from notebook_accel.contracts.errors import Frame, RankDied, RankError, RankFailure, first_failure
from notebook_accel.launch.describe import describe_exception, is_consequence, user_frames
from notebook_accel.launch.failure import (
    describe_death,
    last_words,
    make_error,
)
from notebook_accel.launch.results import Unreturnable, load_error, load_result, save_error, save_result


class WithArguments(Exception):
    def __init__(self, code: int, *, place: str) -> None:
        super().__init__(f"code {code} at {place}")
        self.code, self.place = code, place


class BrokenText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def failure(rank: int = 0, time: float = 1.0, text: str = "bad", *, consequence: bool = False) -> RankFailure:
    return RankFailure(rank, time, 3, "ValueError", text, (Frame("t.py", 7, "f", "raise"),), consequence)


def os_error() -> OSError:
    return FileNotFoundError(2, "No such file", "data.csv")


def unicode_error() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


@pytest.mark.parametrize(
    "original",
    [ValueError("bad"), KeyError("k"), WithArguments(3, place="home"), os_error(), unicode_error(), StopIteration(4),
     ImportError("no", name="x"), ExceptionGroup("several", [ValueError("a")]), AssertionError(), Exception("plain")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_the_error_is_of_the_users_own_type(original: Exception) -> None:
    error = make_error([failure()], original, size=2, log_path="rank-0.log")
    assert isinstance(error, RankError)
    assert isinstance(error, type(original))
    assert error.args == original.args
    assert (error.rank, error.step) == (0, 3)
    for name, value in vars(original).items():
        assert getattr(error, name) == value


def test_builtin_attributes_survive() -> None:
    error: Any = make_error([failure()], os_error(), size=1, log_path="")
    assert (error.errno, error.filename) == (2, "data.csv")


@pytest.mark.parametrize("original", [SystemExit(3), None])
def test_what_must_not_be_raised_as_itself_is_a_plain_rank_error(original: BaseException | None) -> None:
    error = make_error([failure()], original, size=1, log_path="")
    assert type(error) is RankError


def test_a_class_that_allows_no_second_base() -> None:
    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs)

    class Strange(Exception, metaclass=Meta):
        def __init_subclass__(cls) -> None:
            raise TypeError("no subclasses")

    error = make_error([failure()], Strange("x"), size=1, log_path="")
    assert type(error) is RankError
    assert isinstance(error.__cause__, Strange)


def test_the_first_in_time_wins_unless_it_only_follows_from_another() -> None:
    failures = [failure(0, 1.0, "Connection closed by peer", consequence=True), failure(1, 3.0), failure(2, 2.0)]
    assert first_failure(failures).rank == 2
    assert first_failure(failures[:1]).rank == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[/pair.cc:534] Connection closed by peer [127.0.0.1]:5", True),
        ("Connection reset by peer", True),
        ("NCCL communicator was aborted on rank 1", True),
        ("shape mismatch", False),
        ("", False),
    ],
)
def test_consequences(text: str, expected: bool) -> None:
    assert is_consequence(text) is expected


def test_the_report_is_short_and_names_everything() -> None:
    frames = tuple(Frame(f"cell{i}.py", i, f"f{i}", f"line {i}") for i in range(1, 7))
    first = RankFailure(1, 1.0, 312, "ValueError", "bad batch\n" * 30, frames)
    others = [failure(n, 2.0, "Connection closed by peer", consequence=True) for n in (0, 2)]
    error = make_error(
        [first, *others, failure(3, 2.0, "bad batch\n" * 30)], ValueError("x"), size=4, log_path="/runs/1.log"
    )
    text = str(error)
    assert text.startswith("bad batch\n")
    assert len(text.splitlines()) <= 26
    for words in ("Rank 1 of 4 failed after 312 training steps", "cell3.py, line 3, in f3", "line 3", "/runs/1.log"):
        assert words in text
    assert "rank 3: the same error" in text
    assert "rank 0: lost its connection" in text
    assert error._render_traceback_()[0] == "ValueError: bad batch"


def test_when_all_ranks_fail_alike_it_is_said_once() -> None:
    text = str(make_error([failure(n, 1.0 + n) for n in range(8)], ValueError("bad"), size=8, log_path="/runs/0.log"))
    assert "All 8 ranks failed alike; this is rank 0." in text
    assert "the same error" not in text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, ["SIGKILL", "memory", "GB are free"]),
        (-signal.SIGBUS, ["SIGBUS", "/dev/shm"]),
        (-signal.SIGSEGV, ["SIGSEGV", "native library", "last words here"]),
        (3, ["exit code 3", "os._exit"]),
    ],
)
def test_deaths_are_diagnosed(code: int, words: list[str]) -> None:
    death = describe_death(1, code, at=1.0, step=5, log_tail=("last words here",))
    error = make_error([death], None, size=2, log_path="")
    assert type(error) is RankDied
    assert all(word in str(error) for word in words), str(error)


def test_of_a_crash_the_users_own_lines_are_the_last_words() -> None:
    log = """before
one more
Fatal Python error: Segmentation fault

Thread 0x1 (most recent call first):
  File "/elsewhere/other.py", line 5 in run

Current thread 0x2 (most recent call first):
  File "/usr/lib/python3/ctypes.py", line 1 in string_at
  File "/home/me/train.py", line 12 in train
  File "/site/notebook_accel/launch/worker.py", line 74 in run_rank

Extension modules: numpy, torch""".splitlines()
    assert last_words(log) == (
        "before",
        "one more",
        "Fatal Python error: Segmentation fault",
        'File "/usr/lib/python3/ctypes.py", line 1 in string_at',
        'File "/home/me/train.py", line 12 in train',
    )
    assert last_words([f"line {i}" for i in range(9)]) == tuple(f"line {i}" for i in range(4, 9))
    assert last_words([]) == ()


def raise_deep(depth: int) -> None:
    if depth:
        raise_deep(depth - 1)
    pickle.loads(b"no pickle")


def test_frames_are_the_users_own_and_the_place_where_a_library_raised() -> None:
    try:
        raise_deep(20)
    except Exception as error:
        frames = user_frames(error)
    assert 3 <= len(frames) <= 7
    assert {frame.function for frame in frames} >= {"raise_deep"}
    assert frames[-1].source == 'pickle.loads(b"no pickle")'


def test_an_exception_that_cannot_say_what_it_is() -> None:
    described = describe_exception(BrokenText(), rank=0, at=0.0, step=0)
    assert "cannot be had: RuntimeError" in described.message


def test_a_cause_is_mentioned() -> None:
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")
    assert "KeyError: 'inner'" in describe_exception(error, rank=0, at=0.0, step=0).hint


def test_exceptions_travel_through_a_file(tmp_path: Any) -> None:
    path = str(tmp_path / "error")
    assert save_error(ValueError("x", 3), path)
    loaded = load_error(path)
    assert isinstance(loaded, ValueError)
    assert loaded.args == ("x", 3)
    assert save_error(WithArguments(1, place="x"), path)
    loaded = load_error(path)
    assert isinstance(loaded, WithArguments)
    assert (str(loaded), loaded.code) == ("code 1 at x", 1)
    held = ValueError("holds a lock", threading.Lock())
    assert save_error(held, path)
    assert isinstance(load_error(path), ValueError)
    assert load_error(path + "-not-there") is None


def test_results_travel_through_a_file(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    path = str(tmp_path / "result")
    shared = torch.arange(6.0)
    assert save_result({"a": shared, "view": shared[2:4], "f": lambda x: x + 1, "n": [1, (2,)]}, path) == ""
    value, note = load_result(path)
    assert note == ""
    value["view"][0] = 10.0
    assert value["a"][2] == 10.0
    assert value["f"](1) == 2
    assert value["n"] == [1, (2,)]


def test_what_cannot_be_sent_back_is_named_and_the_rest_arrives(tmp_path: Any) -> None:
    path = str(tmp_path / "result")
    note = save_result({"weights": [1, 2], "guard": threading.Lock()}, path)
    assert "'guard'" in note
    assert "weights" not in note
    value, _ = load_result(path)
    assert value["weights"] == [1, 2]
    assert isinstance(value["guard"], Unreturnable)


@pytest.mark.parametrize(
    ("returned", "failed", "words"),
    [
        ([], 1, "Rank 0 of 4 failed after 3 training steps; the other 3 were stopped."),
        ([1, 2], 1, "Rank 0 of 4 failed after 3 training steps; the other was stopped."),
        ([1, 2, 3], 1, "Rank 0 of 4 failed after 3 training steps; the others had finished."),
        ([1], 3, "Rank 0 of 4 failed after 3 training steps."),
    ],
)
def test_what_became_of_the_other_ranks(returned: list[int], failed: int, words: str) -> None:
    failures = [failure(n, 1.0 + n, f"error {n}") for n in range(failed)]
    text = str(make_error(failures, ValueError("x"), size=4, log_path="", returned=returned))
    assert words in text.splitlines()
