"""Two unordered writes of one pipe to the same bytes: is data lost?

Programs rely on the later write to win: a read of all its bytes, and of nothing else, is correct.
Data is lost if the earlier write had other values, and either it was completely overwritten unread,
or a read mixes its remaining bytes with those of the later write.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.observe.replay import told
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import Access

Pair = tuple[Operation, Operation]  # the earlier, the later
Places = npt.NDArray[np.int64]
_MOST = 64  # locations of one pair that are followed at a time


@dataclass(slots=True)
class _Write:
    """The last write of an operation: host addresses of its bytes, and values."""

    places: Places
    values: Any
    was_read: bool = False


@dataclass(slots=True)
class _Change:
    """Bytes of an earlier write that have other values now, and all bytes of the later write."""

    places: Places
    later: Places
    is_global: bool


class Lost(Observer):
    """Follows the bytes that two writes leave different, until they are read."""

    def __init__(self, pairs: Collection[Pair]) -> None:
        self._pairs = set(pairs)
        self._first = {first for first, _ in pairs}
        self._ops = {op: op for pair in pairs for op in pair}
        self._names = {told(op): op for op in self._ops}
        self._kept: dict[tuple[int, Operation], list[_Write]] = {}  # by core and operation
        self._open: dict[Pair, list[_Change]] = {}
        self.harmful: set[Pair] = set()

    def event(self, event: InstructionEvent) -> None:
        core, op = id(event.core), self._ops.get(event.op) or self._names.get(told(event.op))
        for access in event.accesses if self._kept or self._open else ():
            self._follow(access)
        written = [a for a in event.accesses if a.writes]
        for pair in [p for p in self._pairs if p[1] == op] if written else ():
            for before in self._kept.get((core, pair[0]), ()):
                self._compare(pair, before, written)
        if op is not None and op in self._first:
            self._kept[core, op] = [_Write(_bytes(access), _values(access)) for access in written]

    def _compare(self, pair: Pair, before: _Write, written: list[Access]) -> None:
        """Find bytes of the earlier write that have other values now."""
        for access in written:
            places, values = _bytes(access), _values(access)
            _, mine, theirs = np.intersect1d(places, before.places, return_indices=True)
            other = places[mine[values[mine] != before.values[theirs]]]
            if not other.size:
                continue
            if mine.size == before.places.size and not before.was_read:
                self._report(pair)
            elif pair[0] != pair[1]:  # a stream of stores, each over the tail of the last
                changes = self._open.setdefault(pair, [])
                changes.append(_Change(other, places, access.memory.space is Space.GM))
                del changes[:-_MOST]

    def _follow(self, access: Access) -> None:
        base, (low, high) = access.memory.base, access.span()
        low, high = base + low, base + high
        if not access.writes:
            for earlier in (write for writes in self._kept.values() for write in writes):
                if not earlier.was_read and earlier.places[0] < high and earlier.places[-1] >= low:
                    earlier.was_read = bool(np.isin(_bytes(access), earlier.places).any())
        for pair, changes in list(self._open.items()):
            near = [c for c in changes if c.places[0] < high and c.places[-1] >= low]
            if any(self._sees(change, access) for change in near):
                self._report(pair)
            elif near:
                self._open[pair] = [c for c in changes if c.places.size]

    def _sees(self, change: _Change, access: Access) -> bool:
        """True if both writes are read at once; overwritten bytes are dropped."""
        touched = _bytes(access)
        meets = np.isin(change.places, touched)
        if access.writes:
            change.places = change.places[~meets]
            return False
        return bool(meets.any()) and not np.isin(touched, change.later).all()

    def _report(self, pair: Pair) -> None:
        self.harmful.add(pair)
        self._pairs.discard(pair)
        self._open.pop(pair, None)

    def end(self) -> None:
        """Treat everything left in global memory as read by the host."""
        for pair, changes in list(self._open.items()):
            if any(change.is_global for change in changes):
                self._report(pair)


def _bytes(access: Access) -> Places:
    """The host addresses of the bytes of an access, in order."""
    return np.unique(access.bytes()) + access.memory.base


def _values(access: Access) -> Any:
    return access.memory.raw[np.unique(access.bytes())]
