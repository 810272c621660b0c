"""What ranks displayed: figures, tables and other rich output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..contracts.events import Display

PER_RANK = 20
MAX_CHARS = 16_000_000


@dataclass(slots=True)
class Shown:
    """One displayed MIME bundle of a rank."""

    rank: int
    time: float
    data: Mapping[str, str]
    display_id: str | None
    size: int


class Shelf:
    """The latest displays of every rank, in order of arrival; the oldest make room for new ones."""

    def __init__(self, per_rank: int = PER_RANK, max_chars: int = MAX_CHARS) -> None:
        self._items: list[Shown] = []
        self._per_rank = per_rank
        self._max_chars = max_chars
        self.version = 0
        self.dropped = 0

    def put(self, event: Display) -> None:
        """Show a bundle, in the place of the rank's earlier one of the same ``display_id``."""
        size = sum(len(str(value)) for value in event.data.values())
        item = Shown(event.rank, event.time, event.data, event.display_id, size)
        self.version += 1
        for index, known in enumerate(self._items):
            if event.display_id is not None and (known.rank, known.display_id) == (event.rank, event.display_id):
                self._items[index] = item
                break
        else:
            self._items.append(item)
        self._make_room(event.rank)

    def _make_room(self, rank: int) -> None:
        mine = [item for item in self._items if item.rank == rank]
        if len(mine) > self._per_rank:
            self._drop(mine[0])
        while len(self._items) > 1 and sum(item.size for item in self._items) > self._max_chars:
            self._drop(self._items[0])

    def _drop(self, item: Shown) -> None:
        self._items = [known for known in self._items if known is not item]
        self.dropped += 1

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Shown]:
        return iter(list(self._items))
