"""Packing of lifetimes into memory: an offset for each buffer such that live buffers never overlap.

Numbers only; nothing is known about the buffers here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_ROUNDS = 16  # further tries while nothing fits
_MANY = 1000  # with more items the first packing that fits is used
_NOWHERE = 1 << 62


@dataclass(frozen=True, slots=True)
class Item:
    """Bytes that are live from position `first` to `last`; at `start` if the offset is fixed."""

    first: int
    last: int
    size: int
    start: int = -1

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class PackResult:
    """An offset for each item, and the end of the highest."""

    starts: tuple[int, ...]
    high: int


def spread(
    items: Sequence[Item], fixed: Sequence[Item], align: int, capacity: int
) -> PackResult | None:
    """A packing that reuses bytes as late as the capacity allows; None if none was found.

    Two items share bytes only if more than `pause` positions lie between their lifetimes. The
    longest pause that fits is found by bisection; with the longest of all nothing is shared.
    """
    pause = max((i.last for i in (*items, *fixed)), default=0)
    packing = None
    fits = -1
    fails = pause + 1
    while fails - fits > 1:
        longer, pinned = (
            [replace(i, last=i.last + pause) for i in group] for group in (items, fixed)
        )
        hopeless = most_alive(longer, align) > capacity
        tried = None if hopeless else _lowest(longer, pinned, align, capacity)
        if tried is not None and tried.high <= capacity:
            packing, fits = tried, pause
        else:
            fails = pause
        pause = (fits + fails) // 2
    return packing


def pack(items: Sequence[Item], fixed: Sequence[Item], align: int, capacity: int) -> PackResult:
    """The lowest packing found; its `high` exceeds the capacity when none that fits was found."""
    best = _lowest(items, fixed, align, capacity)
    return best if best.high <= capacity else _squeeze(items, fixed, align, capacity, best)


def _lowest(items: Sequence[Item], fixed: Sequence[Item], align: int, capacity: int) -> PackResult:
    """The lowest of a first fit in several orders.

    Program order comes first: it is optimal for buffers of one size, and easy to read.
    """
    least = most_alive(items, align)
    best = PackResult((0,) * len(items), 0 if not items else _NOWHERE)
    for key in _ORDERS:
        order = sorted(range(len(items)), key=lambda n, key=key: key(items[n]))
        best = min(best, _first_fit(items, fixed, align, order), key=lambda p: p.high)
        if best.high <= least or (best.high <= capacity and len(items) > _MANY):
            break
    return best


def _squeeze(
    items: Sequence[Item], fixed: Sequence[Item], align: int, capacity: int, best: PackResult
) -> PackResult:
    """Try several times, each time placing the items first that did not fit."""
    order = list(range(len(items)))
    packed = best
    for _ in range(_ROUNDS):
        late = {n for n in order if packed.starts[n] + items[n].size > capacity}
        order = sorted(order, key=lambda n, late=late: n not in late)
        packed = _first_fit(items, fixed, align, order)
        best = min(best, packed, key=lambda p: p.high)
        if best.high <= capacity:
            break
    return best


_Key = Callable[[Item], tuple[int, ...]]
_ORDERS: tuple[_Key, ...] = (
    lambda i: (i.first, -i.size),
    lambda i: (-i.size, i.first, i.last),
    lambda i: (i.first - i.last, -i.size, i.first),
    lambda i: ((i.first - i.last - 1) * i.size, i.first),
)


def most_alive(items: Sequence[Item], align: int) -> int:
    """Bytes of the items alive at the fullest position: no packing can need less."""
    return int(curve(items, align).max(initial=0))


def curve(items: Sequence[Item], align: int) -> Ints:
    """Bytes alive at each position, every size rounded up to the alignment."""
    change = np.zeros(max((i.last for i in items), default=-1) + 2, np.int64)
    sizes = [-(-i.size // align) * align for i in items]
    np.add.at(change, [i.first for i in items], sizes)
    np.subtract.at(change, [i.last + 1 for i in items], sizes)
    return np.cumsum(change)


def fullest(items: Sequence[Item], fixed: Sequence[Item], align: int) -> tuple[int, int]:
    """The position where most bytes are alive, and how many; shared bytes count once."""
    alive = curve([*items, *(Item(i.first, i.last, 0) for i in fixed)], align)
    firsts = np.array(sorted({i.first for i in (*items, *fixed)}), np.int64)
    if not len(firsts):
        return 0, 0
    extra = _covered(fixed, firsts) if fixed else 0
    total = alive[firsts] + extra
    best = int(np.argmax(total))
    return int(firsts[best]), int(total[best])


def _covered(fixed: Sequence[Item], positions: Ints) -> Ints:
    """Bytes that fixed items occupy at each position."""
    rows = sorted((i.start, i.end, i.first, i.last) for i in fixed)
    start, end, first, last = np.array(rows, np.int64).T
    out = np.zeros(len(positions), np.int64)
    for n, position in enumerate(positions):
        here = (first <= position) & (last >= position)
        ends = np.maximum.accumulate(end[here])
        begins = np.maximum(start[here], np.concatenate(([0], ends))[:-1])
        out[n] = np.maximum(end[here] - begins, 0).sum()
    return out


def _first_fit(
    items: Sequence[Item], fixed: Sequence[Item], align: int, order: Sequence[int]
) -> PackResult:
    """Place each item into the lowest gap among the placed items that are live with it."""
    capacity_rows = len(fixed) + len(items)
    placed = np.zeros((4, capacity_rows), np.int64)
    for n, item in enumerate(fixed):
        placed[:, n] = item.first, item.last, item.start, item.end
    starts = [0] * len(items)
    for count, n in enumerate(order, len(fixed)):
        item = items[n]
        starts[n] = _lowest_gap(placed[:, :count], item, align)
        placed[:, count] = item.first, item.last, starts[n], starts[n] + item.size
    return PackResult(tuple(starts), int(placed[3, len(fixed) :].max(initial=0)))


def _lowest_gap(placed: npt.NDArray[Any], item: Item, align: int) -> int:
    first, last, start, end = placed
    clash = np.flatnonzero((first <= item.last) & (last >= item.first))
    if not len(clash):
        return 0
    clash = clash[np.argsort(start[clash], kind="stable")]
    tops = -(-np.maximum.accumulate(end[clash]) // align) * align
    floors = np.concatenate(([0], tops))  # the start of each gap; the last one is open
    fits = np.flatnonzero(floors[:-1] + item.size <= start[clash])
    return int(floors[fits[0]] if len(fits) else floors[-1])
