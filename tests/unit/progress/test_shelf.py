"""What ranks displayed, bounded."""

from __future__ import annotations

from notebook_accel.contracts.events import Display
from notebook_accel.progress.shelf import Shelf


def shown(shelf: Shelf) -> list[str]:
    return [item.data["text/plain"] for item in shelf]


def put(shelf: Shelf, text: str, rank: int = 0, display_id: str | None = None) -> None:
    shelf.put(Display(rank, 1.0, {"text/plain": text}, display_id))


def test_the_same_display_id_replaces_in_place() -> None:
    shelf = Shelf()
    put(shelf, "a", display_id="one")
    put(shelf, "b")
    put(shelf, "c", rank=1, display_id="one")
    put(shelf, "d", display_id="one")
    assert shown(shelf) == ["d", "b", "c"]
    assert shelf.version == 4


def test_the_oldest_of_a_rank_goes_first() -> None:
    shelf = Shelf(per_rank=3)
    put(shelf, "other", rank=1)
    for number in range(5):
        put(shelf, str(number))
    assert shown(shelf) == ["other", "2", "3", "4"]
    assert shelf.dropped == 2


def test_the_whole_is_bounded_too() -> None:
    shelf = Shelf(max_chars=100)
    for number in range(5):
        put(shelf, str(number) * 40, rank=number)
    assert shown(shelf) == ["3" * 40, "4" * 40]
    put(shelf, "x" * 1000)
    assert len(shelf) == 1, "the newest stays, however large"
