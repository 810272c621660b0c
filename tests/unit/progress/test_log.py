"""From terminal text to a folded log."""

from __future__ import annotations

import pytest

from notebook_accel.progress.lines import LINE_LIMIT, LineSplitter, visible
from notebook_accel.progress.log import LogBook, tone_of


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("plain", "plain"),
        ("\x1b[1;32mgreen\x1b[0m text", "green text"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (" 10%|#   |\r 50%|##  |\r100%|####|", "100%|####|"),
        ("windows\r", "windows"),
        ("bell\x07 and\x00 null", "bell and null"),
        ("\x1b[A\x1b[2Kmoved", "moved"),
        ("tab\tstays  ", "tab\tstays"),
        ("half \ud800 of a pair", "half  of a pair"),
        ("x" * 5000, "x" * (LINE_LIMIT - 1) + "…"),
    ],
)
def test_visible(raw: str, seen: str) -> None:
    assert visible(raw) == seen


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_chunks_make_the_same_lines(size: int) -> None:
    text = "first\r\nsecond\x1b[31m red\x1b[0m\n1%\r50%\r100%\nno end"
    splitter = LineSplitter()
    lines = [line for start in range(0, len(text), size) for line in splitter.feed(text[start : start + size])]
    assert lines == ["first", "second red", "100%"]
    assert splitter.rest == "no end"
    assert splitter.flush() == "no end"
    assert splitter.rest == ""


def test_an_endless_line_stays_small() -> None:
    splitter = LineSplitter()
    for number in range(10_000):
        splitter.feed(f"\r{number} " + "x" * 100)
    assert splitter.rest.startswith("9999 ")
    assert len(splitter._open) < 50_000


def entries(book: LogBook) -> list[tuple[str, list[int]]]:
    return [(entry.text, entry.ranks) for entry in book]


def test_the_same_line_of_several_ranks_is_one_entry() -> None:
    book = LogBook()
    for rank in (2, 0, 3, 1):
        book.write(rank, 1.0, "loaded 10\n" + f"rank {rank}\n")
    assert entries(book) == [
        ("loaded 10", [0, 1, 2, 3]),
        ("rank 2", [2]),
        ("rank 0", [0]),
        ("rank 3", [3]),
        ("rank 1", [1]),
    ]


def test_the_second_time_of_one_rank_folds_with_the_second_time_of_another() -> None:
    book = LogBook()
    book.write(0, 1.0, "epoch\nepoch\n")
    book.write(1, 2.0, "epoch\nepoch\nepoch\n")
    assert entries(book) == [("epoch", [0, 1]), ("epoch", [0, 1]), ("epoch", [1])]


def test_far_apart_lines_are_not_folded() -> None:
    book = LogBook(window=5)
    book.write(0, 1.0, "same\n")
    book.write(0, 1.0, "".join(f"{n}\n" for n in range(5)))
    book.write(1, 1.0, "same\n")
    assert entries(book)[-1] == ("same", [1])


def test_it_is_a_ring() -> None:
    book = LogBook(kept=10, window=4)
    book.write(0, 1.0, "".join(f"{n}\n" for n in range(100)))
    assert [entry.text for entry in book] == [str(n) for n in range(90, 100)]
    assert [entry.number for entry in book.tail(2)] == [98, 99]
    assert (book.total, len(book), book.tail(0)) == (100, 10, [])


def test_open_lines_end_with_the_run() -> None:
    book = LogBook()
    book.write(1, 1.0, "50%\r60%")
    assert list(book.open_lines()) == [(1, "60%")]
    assert entries(book) == []
    book.flush(2.0)
    assert list(book.open_lines()) == []
    assert entries(book) == [("60%", [1])]


def test_left_out_bytes_are_told() -> None:
    book = LogBook()
    book.write(0, 1.0, "before, cut in the mid")
    book.write(0, 2.0, "after\n", skipped=12_345)
    assert entries(book) == [
        ("before, cut in the mid", [0]),
        ("… 12,345 bytes are only in the log file", [0]),
        ("after", [0]),
    ]


@pytest.mark.parametrize(
    ("line", "tone"),
    [
        ("loss 0.3", "plain"),
        ("/a/b.py:3: UserWarning: careful", "warning"),
        ("WARNING:root:careful", "warning"),
        ("[W C10d] Warning: slow", "warning"),
        ("forewarned is forearmed", "plain"),
        ("ValueError: no", "error"),
        ("torch.OutOfMemoryError: CUDA out of memory", "error"),
        ("Traceback (most recent call last):", "error"),
        ("ERROR 2026 x", "error"),
        ("mean error 0.3", "plain"),
    ],
)
def test_tone(line: str, tone: str) -> None:
    assert tone_of(line) == tone


def test_what_libraries_print_at_every_start_is_left_out() -> None:
    book = LogBook()
    book.write(
        0, 0.0, "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1\nmine\n"
    )
    assert [entry.text for entry in book] == ["mine"]
