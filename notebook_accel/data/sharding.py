"""Which batch goes to which rank: arithmetic on sequences, without torch.

Batches are dealt in turns of one for each rank. The last turn may be short of batches, or its last batch short of
samples; there the generators return how many samples of the turn are real (0: the turn was complete), which in the
order of ranks come before the ones filled up from the start of the data.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one rank among ``size``.

    ``even``: every rank gets the same number of equal batches, filled up from the start of the data; otherwise the
    ranks share what there is. ``drop_last``: an incomplete last turn is left out.
    """

    rank: int
    size: int
    even: bool = True
    drop_last: bool = False


def deal_batches(batches: Iterable[list[T]], batch_size: int | None, share: Share) -> Generator[list[T], None, int]:
    """Every ``size``-th batch; ``batch_size`` None: batches of any length, which are repeated whole."""
    turns = _turns(batches, share.size)
    turn = next(turns, [])
    head: list[Any] = list(turn) if batch_size is None else [sample for batch in turn for sample in batch]
    while turn:
        complete = len(turn) == share.size and (batch_size is None or len(turn[-1]) == batch_size)
        # Whether a turn is the last is asked only where it matters, for a stream may take long to give the next.
        following = [] if complete else next(turns, [])
        if not complete and not following:
            return (yield from _deal_last(turn, head, batch_size, share))
        yield turn[share.rank]
        turn = following or next(turns, [])
    return 0


def _deal_last(
    turn: list[list[T]], head: list[Any], batch_size: int | None, share: Share
) -> Generator[list[T], None, int]:
    """The rank's batch, if any, of a last turn that is not complete."""
    if share.drop_last:
        return 0
    dealt = _fill_turn(turn, head, batch_size, share.size) if share.even else turn
    if share.rank < len(dealt):
        yield dealt[share.rank]
    return sum(map(len, turn))


def _turns(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of ``size``, the last one perhaps shorter."""
    iterator = iter(items)
    while turn := list(islice(iterator, size)):
        yield turn


def _fill_turn(turn: list[Any], head: list[Any], batch_size: int | None, size: int) -> list[Any]:
    filling = cycle(head)
    if batch_size is None:
        return turn + list(islice(filling, size - len(turn)))
    empty: list[Any] = []
    padded = turn + [empty] * (size - len(turn))
    return [batch + list(islice(filling, batch_size - len(batch))) for batch in padded]


def split_batches(batches: Iterable[list[T]], batch_size: int, share: Share) -> Generator[list[T], None, int]:
    """The ``rank``-th part of every batch; ``batch_size`` is a multiple of ``size``."""
    part = slice(share.rank * (batch_size // share.size), (share.rank + 1) * (batch_size // share.size))
    head: list[T] = []
    real = 0
    for batch in batches:
        head = head or batch
        real = 0 if len(batch) == batch_size else len(batch)
        if real and share.drop_last:
            return 0
        missing = batch_size - len(batch) if share.even else 0
        if own := (batch + list(islice(cycle(head), missing)))[part]:
            yield own
    return real


def deal_stream(samples: Iterable[T], batch_size: int, share: Share) -> Generator[T, None, int]:
    """The samples of every ``size``-th batch of ``batch_size`` samples of a stream whose length nobody knows."""
    return (yield from _flat(deal_batches(_turns(samples, batch_size), batch_size, share)))


def _flat(batches: Generator[list[T], None, int]) -> Generator[T, None, int]:
    while True:
        try:
            batch = next(batches)
        except StopIteration as end:
            return int(end.value)
        yield from batch


def dealt_length(batches: int, share: Share) -> int:
    """How many batches a rank gets of ``batches`` that are dealt."""
    whole, rest = divmod(batches, share.size)
    if share.drop_last or rest == 0:
        return whole
    return whole + 1 if share.even or share.rank < rest else whole


def split_range(length: int, rank: int, size: int) -> range:
    """The positions that a rank gets when ``length`` items are cut in ``size`` runs, the first ones one longer."""
    each, extra = divmod(length, size)
    start = rank * each + min(rank, extra)
    return range(start, start + each + (1 if rank < extra else 0))
