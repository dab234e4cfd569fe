"""Last reads and writes of a local buffer, by footprint.

Programs use the same addresses of a buffer repeatedly. A footprint is therefore made once and
refers to
all footprints that may share bytes with it: a few comparisons decide whether an access is ordered.
Only if one of them is unordered, bytes are marked and compared (`granules.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pto.observe.memory.granules import Cells, Conflict, Granules, Times, cells_of
from pto.observe.order.clocks import Clock
from pto.run.watch.memory import Access, WatchedMemory

_KEPT = 4096  # cached footprints
_NEAR = 16  # neighbours and pages that are visited one by one; with more, bytes are compared
_PAGE = 512


@dataclass(slots=True, eq=False)
class Footprint(Cells):
    """The bytes of an access, with the last write and the last reads through it."""

    near: list[Footprint] = field(default_factory=list["Footprint"])  # includes itself
    writer: int = 0  # thread and time of the last write
    written: int = 0
    reads: dict[int, int] = field(default_factory=dict[int, int])  # last reads, by thread
    turn: int = 0  # of the last write, among all of the buffer
    is_marked: bool = True  # granules are up to date
    is_full: bool = False  # every byte was written
    by: int = 0  # the first operation that wrote
    is_scratch: bool = False  # the last write filled scratch space

    def holds(self, low: int, high: int) -> bool:
        """True if it is one burst that contains these bytes."""
        if self.counts or self.places is not None:
            return False
        return self.start <= low and high <= self.start + self.width


class Shadow:
    """The state of one memory."""

    def __init__(self, memory: WatchedMemory) -> None:
        self.memory = memory
        self.is_mixed = False  # writes of two operations, or at two addresses, overlap
        self._granules = Granules(memory.size)
        self._known: dict[Any, Footprint] = {}
        self._short: dict[int, list[Footprint]] = {}  # by page
        self._long: list[Footprint] = []  # over many pages
        self._last_write: dict[int, int] = {}  # by thread, of all
        self._last_read: dict[int, int] = {}
        # of accesses through footprints that were dropped
        self._gone_writes: dict[int, int] = {}
        self._gone_reads: dict[int, int] = {}
        self._late: list[Footprint] = []  # not in the granules yet
        self._reported: set[tuple[int, int]] = set()  # reported reads of unwritten bytes
        self._scattered = (0, 0)  # range of writes that are not kept
        self._turn = 0
        self._marked = 0  # number of the last write in the granules
        self._marked_reads: dict[int, int] = {}  # by thread, the time

    @property
    def grain(self) -> int:
        return self._granules.grain

    # ---- footprints

    def cells(self, access: Access) -> Footprint:
        """The footprint of an access."""
        array = access.array
        if array is None:
            return cells_of(access, Footprint)
        key = (access.start, array.strides, array.shape, access.width)
        footprint = self._known.get(key)
        if footprint is None:
            if len(self._known) == _KEPT:
                self._forget()
            footprint = cells_of(access, Footprint)
            self._meet(footprint)
            self._known[key] = footprint
        return footprint

    def _meet(self, fresh: Footprint) -> None:
        """Register a new footprint with its neighbours."""
        low, high = fresh.span()
        first, last = low // _PAGE, (high - 1) // _PAGE
        is_long = last - first >= _NEAR
        pages = () if is_long else range(first, last + 1)
        beside: Iterable[Footprint] = self._known.values()
        if not is_long:
            beside = chain(self._long, *(self._short.get(page, ()) for page in pages))
        near = [fresh]
        for other in beside:
            begin, end = other.span()
            if begin < high and end > low and (len(pages) < 2 or other not in near):
                near.append(other)
                other.near.append(fresh)
        fresh.near = near
        for page in pages:
            self._short.setdefault(page, []).append(fresh)
        if is_long:
            self._long.append(fresh)

    def _forget(self) -> None:
        for footprint in self._known.values():
            if footprint.written:
                self._scatter(*footprint.span())
            if footprint.written > self._gone_writes.get(footprint.writer, 0):
                self._gone_writes[footprint.writer] = footprint.written
            for thread, time in footprint.reads.items():
                self._gone_reads[thread] = max(time, self._gone_reads.get(thread, 0))
        self._mark()
        self._known.clear()
        self._reported.clear()
        self._short.clear()
        self._long.clear()

    # ---- accesses

    def loads(
        self, cells: Footprint, thread: int, time: int, clock: Clock, keeps: bool = False
    ) -> list[Conflict]:
        """Log a read; returns unordered writes. `keeps`: the thread's own accesses are ordered."""
        skipped = thread if keeps else -1
        conflicts: list[Conflict] = []
        if self._may_be_late(cells, clock, skipped):
            conflicts = self._marks().unordered_writes(cells, clock)
        cells.reads[thread] = self._last_read[thread] = time
        self._note(cells, thread, time, self._gone_reads)
        return conflicts

    def reads(self, cells: Footprint, thread: int, clock: Clock, keeps: bool) -> list[Conflict]:
        """Unordered reads of bytes that an operation of a thread is to write."""
        if not self._may_be_read(cells, clock, thread if keeps else -1):
            return []
        return self._marks().unordered_reads(cells, clock)

    def stores(
        self,
        cells: Footprint,
        thread: int,
        time: int,
        clock: Clock,
        keeps: bool = False,
        by: int = 0,
        is_scratch: bool = False,
    ) -> list[Conflict]:
        """Log a write of an operation; returns unordered writes."""
        skipped = thread if keeps else -1
        conflicts: list[Conflict] = []
        if self._may_be_late(cells, clock, skipped):
            conflicts = self._marks().unordered_writes(cells, clock)
        if not self.is_mixed:
            self.is_mixed = cells.by != by if cells.written else self._mixes(cells)
            cells.by = by
        self._turn += 1
        cells.writer = thread
        cells.turn = self._turn
        cells.is_scratch = is_scratch
        cells.written = self._last_write[thread] = time
        self._note(cells, thread, time, self._gone_writes)
        return conflicts

    def _mixes(self, cells: Footprint) -> bool:
        """True if a first write overlaps one with another start. Writes that are not kept count as
        overlapping everything in the range of all of them."""
        low, high = cells.span()
        first, last = self._scattered
        if cells.near:
            is_among = low < last and high > first
            return is_among or any(o.written and o.start != cells.start for o in cells.near)
        if first <= low and high <= last:
            return False  # checked before
        self._scatter(low, high)
        first, last = self._scattered
        spans = [o.span() for o in self._known.values() if o.written]
        return any(begin < last and end > first for begin, end in spans)

    def _scatter(self, low: int, high: int) -> None:
        first, last = self._scattered
        self._scattered = (min(first, low), max(last, high)) if last else (low, high)

    def _may_be_late(self, cells: Footprint, clock: Clock, skipped: int) -> bool:
        """True if granules must be checked for writes that a clock does not cover."""
        if not 0 < len(cells.near) <= _NEAR:
            return _knows_not(clock, self._last_write)
        for other in cells.near:
            if other.written > clock.item(other.writer) and other.writer != skipped:
                return True
        return bool(self._gone_writes) and _knows_not(clock, self._gone_writes)

    def _may_be_read(self, cells: Footprint, clock: Clock, skipped: int) -> bool:
        if not 0 < len(cells.near) <= _NEAR:
            return _knows_not(clock, self._last_read)
        for other in cells.near:
            for reader, last in other.reads.items():
                if last > clock.item(reader) and reader != skipped:
                    return True
        return bool(self._gone_reads) and _knows_not(clock, self._gone_reads)

    def unwritten(self, cells: Footprint, reader: int) -> Times | None:
        """Byte addresses of unwritten granules; None if there are none, or they were reported."""
        low, high = cells.span()
        if any(o.written and not o.is_scratch and o.holds(low, high) for o in cells.near):
            cells.is_full = True
            return None
        key = id(cells), reader
        if key in self._reported:
            return None
        times = self._marks().unwritten(cells)
        cells.is_full = times is None
        if cells.near:  # it is cached
            self._reported.add(key)
        return times

    def writers(self, cells: Footprint) -> list[tuple[int, int]]:
        """The last writers of these bytes: threads and times."""
        return self._marks().writers(cells)

    # ---- granules

    def _note(self, cells: Footprint, thread: int, time: int, gone: dict[int, int]) -> None:
        if cells.is_marked:
            cells.is_marked = False
            self._late.append(cells)
        if not cells.near:
            gone[thread] = time

    def _marks(self) -> Granules:
        if self._late:
            self._mark()
        return self._granules

    def _mark(self) -> None:
        """Mark the granules of all accesses since the last call, in order."""
        done, times = self._marked, self._marked_reads
        writes = [f for f in self._late if f.turn > done]
        for footprint in sorted(writes, key=_turn):
            self._granules.mark_written(
                footprint, footprint.writer, footprint.written, footprint.is_scratch
            )
        reads = [
            (time, thread, n)
            for n, footprint in enumerate(self._late)
            for thread, time in footprint.reads.items()
            if time >= times.get(thread, 0)  # one operation may read through several
        ]
        for time, thread, n in sorted(reads):
            self._granules.mark_read(self._late[n], thread, time)
            times[thread] = time
        for footprint in self._late:
            footprint.is_marked = True
        self._late.clear()
        self._marked = self._turn


def _knows_not(clock: Clock, newest: dict[int, int]) -> bool:
    return any(time > clock.item(thread) for thread, time in newest.items())


def _turn(cells: Footprint) -> int:
    return cells.turn
