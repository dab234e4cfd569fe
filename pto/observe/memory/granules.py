"""The last write and the later reads of every byte of a buffer, with their times.

Kept for granules of 32 bytes, and for smaller ones from the moment an access has a finer edge, so
that footprints are exact and mostly cheap. A clock decides whether two accesses are ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pto.observe.order.clocks import Clock
from pto.run.watch.memory import Access, offsets

Times = npt.NDArray[np.int64]
_COARSE = 32
_THREAD_BITS = 16  # of a mark: the rest is the time
_THREADS = (1 << _THREAD_BITS) - 1


@dataclass(slots=True, eq=False)
class Cells:
    """Bytes of one memory: bursts of `width` at strides, or at listed addresses."""

    start: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    width: int
    places: Times | None = None

    @property
    def grain(self) -> int:
        """The largest granule with edges at all edges of these cells."""
        size = gcd(_COARSE, self.width | self.start)
        if self.strides:
            size = gcd(size, *self.strides)
        if self.places is not None:
            size = gcd(size, int(np.gcd.reduce(self.places)))
        return size

    def span(self) -> tuple[int, int]:
        """The first byte, and one past the last."""
        if self.places is not None:
            return int(self.places.min()), int(self.places.max()) + self.width
        high = self.start + self.width
        for count, stride in zip(self.counts, self.strides, strict=True):
            high += (count - 1) * stride
        return self.start, high

    def starts(self) -> Times:
        """The starts of bursts, in order."""
        if self.places is not None:
            return np.unique(self.places)
        return np.unique(offsets(self.counts, self.strides) + self.start)


C = TypeVar("C", bound=Cells)


def cells_of(access: Access, kind: type[C] = Cells) -> C:
    """The bytes of an access; adjacent bursts are merged."""
    array = access.array
    if array is None:
        return kind(0, (), (), access.width, access.addresses())
    start, width = access.start, array.itemsize
    if array.flags.c_contiguous:
        return kind(start, (), (), array.nbytes, None)
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
    return kind(start, tuple(c for _, c in steps), tuple(s for s, _ in steps), width)


@dataclass(frozen=True, slots=True)
class Conflict:
    """An earlier access that is not ordered before this one."""

    thread: int
    time: int
    other_writes: bool
    first: int  # byte
    last: int  # one past the last byte


class Granules:
    """The state of one memory."""

    def __init__(self, nbytes: int) -> None:
        self.grain = _COARSE
        count = -(-nbytes // _COARSE)
        self.written = np.zeros(count, np.int64)  # time and thread of the last write; 0: never
        self.read: dict[int, Times] = {}  # by thread
        self.scratch: npt.NDArray[np.bool_] | None = None  # last written as scratch space

    # ---- marks

    def mark_read(self, cells: Cells, thread: int, time: int) -> None:
        self._refine(cells)
        times = self.read.get(thread)
        if times is None:
            times = self.read[thread] = np.zeros(self.written.size, np.int64)
        self._put(times, cells, time)

    def mark_written(self, cells: Cells, thread: int, time: int, is_scratch: bool = False) -> None:
        self._refine(cells)
        self._put(self.written, cells, time << _THREAD_BITS | thread)
        if is_scratch and self.scratch is None:
            self.scratch = np.zeros(self.written.size, np.bool_)
        if self.scratch is not None:
            self._put(self.scratch, cells, is_scratch)

    # ---- queries

    def unordered_writes(self, cells: Cells, clock: Clock) -> list[Conflict]:
        """The newest write of every thread that a clock does not cover."""
        self._refine(cells)
        marks = self._get(self.written, cells)
        times, writers = marks >> _THREAD_BITS, marks & _THREADS
        late = times > clock[writers]
        if not late.any():
            return []
        newest: dict[int, int] = {}
        for mark in np.unique(marks[late]).tolist():  # in order of time
            newest[mark & _THREADS] = mark >> _THREAD_BITS
        return [
            self._conflict(cells, marks == (n << _THREAD_BITS | w), w, n, True)
            for w, n in newest.items()
        ]

    def unordered_reads(self, cells: Cells, clock: Clock) -> list[Conflict]:
        """The same for reads."""
        self._refine(cells)
        conflicts: list[Conflict] = []
        for reader, marks in self.read.items():
            times = self._get(marks, cells)
            late = times > clock[reader]
            if late.any():
                n = int(times[late].max())
                conflicts.append(self._conflict(cells, times == n, reader, n, False))
        return conflicts

    def unwritten(self, cells: Cells) -> Times | None:
        """Byte addresses of granules without defined content; None if there are none."""
        self._refine(cells)
        absent = self._get(self.written, cells) == 0
        if self.scratch is not None:
            absent = absent | self._get(self.scratch, cells)
        if not absent.any():
            return None
        return self._addresses(cells)[np.broadcast_to(absent, self._shape(cells))]

    def writers(self, cells: Cells) -> list[tuple[int, int]]:
        """The last writers of these bytes: threads and times."""
        marks = np.unique(self._get(self.written, cells)).tolist()
        return [(mark & _THREADS, mark >> _THREAD_BITS) for mark in marks if mark]

    def _conflict(self, cells: Cells, where: Any, thread: int, time: int, writes: bool) -> Conflict:
        places = self._addresses(cells)[np.broadcast_to(where, self._shape(cells))]
        first = int(places.min())
        return Conflict(thread, time, writes, first, int(places.max()) + self.grain)

    # ---- granules

    def _refine(self, cells: Cells) -> None:
        """Make granules no larger than those of an access."""
        grain = gcd(self.grain, cells.grain)
        if grain == self.grain:
            return
        times = self.grain // grain
        self.written = self.written.repeat(times)
        self.scratch = None if self.scratch is None else self.scratch.repeat(times)
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
            return array[cells.start // grain : (cells.start + cells.width) // grain]
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
        return offsets(cells.counts, cells.strides)[..., None] + inner + cells.start
