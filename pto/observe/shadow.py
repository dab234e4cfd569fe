"""What is known about every byte of a local buffer: who wrote it last, who read it since, and when.

Kept for granules of 32 bytes, and for smaller ones from the moment an access has a finer edge, so
that footprints are exact and mostly cheap. Whether two accesses are ordered is asked of a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.observe.clocks import Clock
from pto.run.watch.memory import Access, WatchedMemory

Times = npt.NDArray[np.int64]
_COARSE = 32
_THREAD_BITS = 16  # of a mark: the rest is the time
_THREADS = (1 << _THREAD_BITS) - 1
_KEPT = 4096  # footprints of a buffer that are remembered


@dataclass(slots=True, eq=False)
class Cells:
    """Bytes of one memory: bursts of `width` at strides, or at listed places."""

    start: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    width: int
    places: Times | None = None
    grain: int = 0  # the largest granule whose edges are edges of these cells
    scaled: int = 0  # the granule that `range` counts in
    range: slice | None = None  # of one burst
    is_written: bool = False  # every byte; once it is, it stays so

    def __post_init__(self) -> None:
        found = gcd(_COARSE, self.width | self.start)
        if self.strides:
            found = gcd(found, *self.strides)
        if self.places is not None:
            found = gcd(found, int(np.gcd.reduce(self.places)))
        self.grain = found

    def starts(self) -> Times:
        """Where bursts begin, in order."""
        if self.places is not None:
            return np.unique(self.places)
        return np.unique(_offsets(self.counts, self.strides) + self.start)


def cells_of(access: Access) -> Cells:
    """The bytes an access touched; bursts that follow each other become one."""
    array = access.array
    if array is None:
        places = access.places
        return Cells(0, (), (), access.width, np.zeros(0, np.int64) if places is None else places)
    start, width = access.memory.address_of(array), array.itemsize
    if array.flags.c_contiguous:
        return Cells(start, (), (), array.nbytes, None)
    steps: list[tuple[int, int]] = []
    for count, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            start += (count - 1) * stride
        if count > 1 and stride:
            steps.append((abs(stride), count))
    steps.sort()
    while steps and steps[0][0] <= width:
        stride, count = steps.pop(0)
        width += (count - 1) * stride
    steps.reverse()
    return Cells(start, tuple(c for _, c in steps), tuple(s for s, _ in steps), width)


@dataclass(frozen=True, slots=True)
class Conflict:
    """An earlier access that nothing orders before this one."""

    thread: int
    time: int
    other_writes: bool
    first: int  # byte
    last: int  # behind the last byte
    is_lost: bool = False  # a write of the same thread, of which nothing is left


class Shadow:
    """The state of one memory."""

    def __init__(self, memory: WatchedMemory) -> None:
        self.memory = memory
        self.grain = _COARSE
        self._size = -(-memory.size // _COARSE) * _COARSE
        count = self._size // _COARSE
        self.written = np.zeros(count, np.int64)  # time and thread of the last write; 0: never
        self.read: dict[int, Times] = {}  # by thread
        self.last_write: dict[int, int] = {}
        self.last_read: dict[int, int] = {}
        self._known: dict[Any, Cells] = {}

    def cells(self, access: Access) -> Cells:
        """The bytes an access touched. Programs come back to the same places of local buffers."""
        array = access.array
        if array is None:
            return cells_of(access)
        key = (array.__array_interface__["data"][0], array.strides, array.shape, array.itemsize)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[key] = cells_of(access)
        return found

    # ---- accesses

    def loads(self, cells: Cells, thread: int, time: int, clock: Clock) -> list[Conflict]:
        """A read: what it is not ordered after, then its mark."""
        if cells.grain % self.grain:  # both are powers of two
            self._refine(cells)
        found = self._unordered_writes(cells, clock)
        times = self.read.get(thread)
        if times is None:
            times = self.read[thread] = np.zeros(self.written.size, np.int64)
        self._put(times, cells, time)
        self.last_read[thread] = time
        return found

    def stores(self, cells: Cells, thread: int, time: int, clock: Clock) -> list[Conflict]:
        """A write: what it is not ordered after, then its mark."""
        if cells.grain % self.grain:  # both are powers of two
            self._refine(cells)
        found = [
            replace(c, is_lost=self._is_lost(c, cells)) if c.thread == thread else c
            for c in self._unordered_writes(cells, clock)
        ]
        for reader, last in self.last_read.items():
            if last > clock.item(reader):
                times = self._get(self.read[reader], cells)
                late = times > clock[reader]
                if reader == thread:  # what the same operation has read
                    late &= times != time
                if late.any():
                    n = int(times[late].max())
                    found.append(self._conflict(cells, times == n, reader, n, False))
        self._put(self.written, cells, time << _THREAD_BITS | thread)
        self.last_write[thread] = time
        return found

    def _unordered_writes(self, cells: Cells, clock: Clock) -> list[Conflict]:
        for writer, last in self.last_write.items():
            if last > clock.item(writer):
                break
        else:
            return []
        marks = self._get(self.written, cells)
        times, writers = marks >> _THREAD_BITS, marks & _THREADS
        late = times > clock[writers]
        if not late.any():
            return []
        pairs = {(int(w), int(n)) for w, n in zip(writers[late], times[late], strict=True)}
        newest: dict[int, int] = {}
        for writer, n in pairs:
            newest[writer] = max(n, newest.get(writer, 0))
        return [
            self._conflict(cells, (times == n) & (writers == w), w, n, True)
            for w, n in newest.items()
        ]

    def newest_reads(self, cells: Cells) -> dict[int, int]:
        """By thread, where it has read any of these bytes."""
        return {r: int(self._get(times, cells).max()) for r, times in self.read.items()}

    def _is_lost(self, conflict: Conflict, cells: Cells) -> bool:
        """Whether all that is left of an earlier write is about to be overwritten."""
        mark = conflict.time << _THREAD_BITS | conflict.thread
        return np.count_nonzero(self.written == mark) == np.count_nonzero(
            self._get(self.written, cells) == mark
        )

    def _conflict(self, cells: Cells, where: Any, thread: int, time: int, writes: bool) -> Conflict:
        places = self._addresses(cells)[np.broadcast_to(where, self._shape(cells))]
        first = int(places.min())
        return Conflict(thread, time, writes, first, int(places.max()) + self.grain)

    def unwritten(self, cells: Cells) -> Times | None:
        """Byte addresses of granules nobody has written; None where there are none."""
        if cells.is_written:
            return None
        times = self._get(self.written, cells)
        if times.all():
            cells.is_written = True
            return None
        return self._addresses(cells)[np.broadcast_to(times == 0, self._shape(cells))]

    # ---- granules

    def _refine(self, cells: Cells) -> None:
        grain = gcd(self.grain, cells.grain)
        times = self.grain // grain
        self.written = self.written.repeat(times)
        self.read = {thread: marks.repeat(times) for thread, marks in self.read.items()}
        self.grain = grain

    def _shape(self, cells: Cells) -> tuple[int, ...]:
        count = cells.width // self.grain
        return (cells.places.size, count) if cells.places is not None else (*cells.counts, count)

    def _index(self, cells: Cells) -> Times:
        inner = np.arange(cells.width // self.grain)
        places = cells.places
        return (np.zeros(0, np.int64) if places is None else places)[:, None] // self.grain + inner

    def _view(self, array: Any, cells: Cells) -> Any:
        grain, size = self.grain, array.itemsize
        if not cells.counts:
            if cells.scaled != grain:
                cells.scaled = grain
                cells.range = slice(cells.start // grain, (cells.start + cells.width) // grain)
            return array[cells.range]
        strides = (*(s // grain * size for s in cells.strides), size)
        return np.ndarray(
            self._shape(cells), array.dtype, array, cells.start // grain * size, strides
        )

    def _get(self, array: Any, cells: Cells) -> Any:
        if cells.places is not None:
            return array[self._index(cells)]
        return self._view(array, cells)

    def _put(self, array: Any, cells: Cells, value: int | bool) -> None:
        if cells.places is not None:
            array[self._index(cells)] = value
        else:
            self._view(array, cells)[...] = value

    def _addresses(self, cells: Cells) -> Times:
        """The byte address of every granule."""
        inner = np.arange(cells.width // self.grain, dtype=np.int64) * self.grain
        if cells.places is not None:
            return cells.places[:, None] + inner
        return _offsets(cells.counts, cells.strides)[..., None] + inner + cells.start


def _offsets(counts: tuple[int, ...], strides: tuple[int, ...]) -> Times:
    total = np.zeros((1,) * len(counts), np.int64)
    for axis, (count, stride) in enumerate(zip(counts, strides, strict=True)):
        shape = [1] * len(counts)
        shape[axis] = count
        total = total + (np.arange(count, dtype=np.int64) * stride).reshape(shape)
    return total
