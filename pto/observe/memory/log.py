"""A log of the accesses to global memory: bursts, threads and times.

A mark for every byte and reader would be larger than the memory itself. An access is one row of a
table instead, by page of the host's address space, so that overlapping arrays are one memory; a row
is replaced by a later one of the same thread and the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.observe.memory.granules import Cells, Conflict, cells_of
from pto.observe.order.clocks import Clock
from pto.run.watch.memory import Access, WatchedMemory

Rows = npt.NDArray[np.int64]
Row = Sequence[int]
Met = dict[tuple[str, int], tuple[int, int, int]]  # kind, thread -> time, start, end
_PAGE_BITS = 18
_THREADS = 1 << 16
_FEW = 8  # pages that are all visited, even if untouched
_FIRST_ROOM = 8
_FRESH = 64
# of a row; bursts of `_WIDTH` at `_STEP` from `_LOW` up to `_HIGH`, or those of a kept shape
_TIME, _THREAD, _LOW, _HIGH, _STEP, _WIDTH, _SHAPE = range(7)
_READ, _WRITE = "read", "write"


class Log:
    """Accesses of one kind to one page."""

    __slots__ = ("count", "fresh", "rows", "spans")

    def __init__(self) -> None:
        self.rows: Rows = np.empty((_FIRST_ROOM, 7), np.int64)
        self.count = 0
        self.fresh: list[Row] = []  # not in the table yet
        self.spans: dict[int, tuple[int, int, int]] = {}  # newest, low and high, by thread

    def add(self, row: Row) -> None:
        time, thread, low, high, *_ = row
        span = self.spans.get(thread)
        if span is not None:
            low = low if low < span[1] else span[1]
            high = high if high > span[2] else span[2]
        self.spans[thread] = time, low, high
        self.fresh.append(row)
        if len(self.fresh) == _FRESH:
            self._settle()

    def _settle(self) -> None:
        """Move fresh rows into the table."""
        while self.fresh:
            if self.count == len(self.rows):
                self._make_room()
            free = len(self.rows) - self.count
            part, self.fresh = self.fresh[:free], self.fresh[free:]
            self.rows[self.count : self.count + len(part)] = part
            self.count += len(part)

    def _make_room(self) -> None:
        """Keep only the newest of rows that differ only in time."""
        sorted_rows = self.rows[: self.count]
        order = np.lexsort(sorted_rows.T)
        sorted_rows = sorted_rows[order]
        same = (sorted_rows[1:, _THREAD:] == sorted_rows[:-1, _THREAD:]).all(axis=1)
        unique = sorted_rows[np.append(~same, True)]
        self.count = len(unique)
        capacity = len(self.rows) if self.count <= len(self.rows) // 2 else 2 * len(self.rows)
        self.rows = np.empty((capacity, 7), np.int64)
        self.rows[: self.count] = unique

    def may_meet(self, row: Row, clock: Clock) -> bool:
        """False if every access that the clock does not cover is disjoint from this one."""
        low, high = row[_LOW], row[_HIGH]
        for thread, (time, first, last) in self.spans.items():
            if first < high and last > low and time > clock.item(thread):
                return True
        return False

    def unordered(self, row: Row, clock: Clock) -> Rows:
        """Rows that may overlap an access and that the clock does not cover."""
        if self.fresh:
            self._settle()
        logged = self.rows[: self.count]
        late = logged[:, _TIME] > clock[logged[:, _THREAD]]
        late &= logged[:, _LOW] < row[_HIGH]
        late &= logged[:, _HIGH] > row[_LOW]
        late_rows = logged[late]
        step = row[_STEP]
        if not late_rows.size or not step:
            return late_rows
        # rows of one pitch: the columns decide
        ahead = (row[_LOW] - late_rows[:, _LOW]) % step
        apart = (late_rows[:, _STEP] == step) & (ahead >= late_rows[:, _WIDTH])
        return late_rows[~(apart & (ahead + row[_WIDTH] <= step))]


class GlobalLog:
    """The accesses to all of global memory, by address of the host."""

    def __init__(self) -> None:
        self._pages: dict[int, dict[str, Log]] = {}  # by kind: read, write, atomic operation
        self._shapes: dict[Any, int] = {}
        self._kept: list[Cells] = []  # shapes that a row cannot hold; their numbers begin at 1
        self._held: list[Any] = []  # memory that must not be reused meanwhile

    @property
    def nbytes(self) -> int:
        """Bytes of the log."""
        return sum(log.rows.nbytes for page in self._pages.values() for log in page.values())

    def over(self, memory: WatchedMemory) -> GlobalShadow:
        self._held.append(memory.raw)
        return GlobalShadow(self, memory.base)

    def touch(
        self, cells: Cells, base: int, thread: int, time: int, clock: Clock, kind: str
    ) -> Met:
        """Find accesses that are unordered with this one, then log it. `base`: array address."""
        low, high, step, shape = self._span(cells)
        row = (time, thread, base + low, base + high, step, cells.width, shape)
        met: Met = {}
        first, last = row[_LOW] >> _PAGE_BITS, (row[_HIGH] - 1) >> _PAGE_BITS
        for number in (first,) if first == last else _pages(cells, base, row):
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = {}
            same_kind = page.get(kind)
            for other, log in page.items():
                if (log is not same_kind or kind == _WRITE) and log.may_meet(row, clock):
                    for earlier in log.unordered(row, clock).tolist():
                        self._meet(met, other, earlier, row)
            if same_kind is None:
                same_kind = page[kind] = Log()
            same_kind.add(row)
        return met

    def writers(self, cells: Cells, base: int) -> list[tuple[int, int, int, int]]:
        """The newest write of each thread to these bytes: thread, time, start, end."""
        nothing = np.zeros(_THREADS, np.int64)
        low, high, step, shape = self._span(cells)
        row = (0, 0, base + low, base + high, step, cells.width, shape)
        met: Met = {}
        for number in _pages(cells, base, row):
            for kind, log in self._pages.get(number, {}).items():
                for earlier in log.unordered(row, nothing).tolist() if kind != _READ else ():
                    self._meet(met, kind, earlier, row)
        return [(who, *rest) for (_, who), rest in met.items()]

    def _meet(self, met: Met, kind: str, earlier: Row, row: Row) -> None:
        """Keep the newest access of each thread that shares bytes with one."""
        when, who = earlier[_TIME], earlier[_THREAD]
        if kind == _READ and when == row[_TIME] and who == row[_THREAD]:
            return  # a read of the same operation
        before = met.get((kind, who))
        if before is not None and before[0] > when:
            return
        common = self._common(earlier, row)
        if common is not None:
            low, high = common if before is None or before[0] < when else before[1:]
            met[kind, who] = when, min(low, common[0]), max(high, common[1])

    def _common(self, a: Row, b: Row) -> tuple[int, int] | None:
        """The first common byte, and one past the last."""
        if not (a[_STEP] or a[_SHAPE] or b[_STEP] or b[_SHAPE]):
            return max(a[_LOW], b[_LOW]), min(a[_HIGH], b[_HIGH])
        (starts, width), (others, size) = self._bursts(a), self._bursts(b)
        at = np.searchsorted(starts, others + size) - 1  # the last that begins before it ends
        meets = np.flatnonzero((at >= 0) & (starts[np.maximum(at, 0)] + width > others))
        if not meets.size:
            return None
        first, last = int(others[meets[0]]), int(others[meets[-1]])
        low = int(starts[np.searchsorted(starts, first - width, "right")])
        return max(low, first), min(int(starts[at[meets[-1]]]) + width, last + size)

    def _bursts(self, row: Row) -> tuple[Rows, int]:
        if row[_SHAPE]:
            shape = self._kept[row[_SHAPE] - 1]
            return shape.starts() + row[_LOW], shape.width
        return np.arange(row[_LOW], row[_HIGH] - row[_WIDTH] + 1, row[_STEP] or 1), row[_WIDTH]

    def _span(self, cells: Cells) -> tuple[int, int, int, int]:
        """Low, high, step and shape."""
        start, width = cells.start, cells.width
        if cells.places is not None:
            starts = cells.starts()
            low = int(starts[0])
            shape = self._number(Cells(0, (), (), width, starts - low))
            return low, int(starts[-1]) + width, 0, shape
        if not cells.counts:
            return start, start + width, 0, 0
        high = cells.span()[1]
        if len(cells.counts) == 1:
            return start, high, cells.strides[0], 0
        return start, high, 0, self._number(Cells(0, cells.counts, cells.strides, width))

    def _number(self, shape: Cells) -> int:
        places = None if shape.places is None else shape.places.tobytes()
        key = shape.counts, shape.strides, shape.width, places
        number = self._shapes.setdefault(key, len(self._kept) + 1)
        if number > len(self._kept):
            self._kept.append(shape)
        return number


def _pages(cells: Cells, base: int, row: Row) -> Iterable[int]:
    first, last = row[_LOW] >> _PAGE_BITS, (row[_HIGH] - 1) >> _PAGE_BITS
    if last - first <= _FEW or cells.width >> _PAGE_BITS:
        return range(first, last + 1)
    starts = cells.starts() + base
    return np.unique([starts >> _PAGE_BITS, (starts + cells.width - 1) >> _PAGE_BITS]).tolist()


class GlobalShadow:
    """One array of the host in global memory; as `Shadow`."""

    def __init__(self, log: GlobalLog, base: int) -> None:
        self._log = log
        self.base = base

    def cells(self, access: Access) -> Cells:
        return cells_of(access)

    def loads(self, cells: Cells, thread: int, time: int, clock: Clock) -> list[Conflict]:
        return self._touch(cells, thread, time, clock, _READ)

    def stores(
        self, cells: Cells, thread: int, time: int, clock: Clock, combined: str = ""
    ) -> list[Conflict]:
        """`combined`: the atomic operation of the store. Updates by one operation need no order
        among each other, and none replaces another."""
        return self._touch(cells, thread, time, clock, combined or _WRITE)

    def _touch(
        self, cells: Cells, thread: int, time: int, clock: Clock, kind: str
    ) -> list[Conflict]:
        base = self.base
        met = self._log.touch(cells, base, thread, time, clock, kind)
        if not met:
            return []
        return [
            Conflict(who, when, other != _READ, first - base, last - base)
            for (other, who), (when, first, last) in met.items()
        ]
