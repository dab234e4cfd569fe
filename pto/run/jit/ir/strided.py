"""Strided layouts of tiles and views, and accesses to operands.

In every layout the offset of an element is the offset of its row plus that of its column. Each is
a sum over modes (extent, stride): NZ counts columns in a mode of a box's width and a mode of boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from pto.core.dtypes import DType
from pto.core.layout import REST, Axis, Mode
from pto.core.layout import position as offset
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import TRUE, Condition, Val, all_of


class Strided(NamedTuple):
    """Where elements lie behind a base address."""

    dtype: DType
    rows: Axis
    cols: Axis

    @property
    def swapped(self) -> Strided:
        return Strided(self.dtype, self.cols, self.rows)

    def of(self, dtype: DType) -> Strided:
        """The same places with elements of another type."""
        return Strided(dtype, self.rows, self.cols)

    def in_items(self, x: Text, dtype: DType) -> Strided:
        """Lines of bytes as lines of elements, if all lines begin at one."""
        rows = tuple(Mode(d.extent, x.over(d.stride, dtype.itemsize)) for d in self.rows)
        return Strided(dtype, rows, self.cols)

    def renamed(self, name: Callable[[Val], Val]) -> Strided:
        """The same layout with other names for its numbers."""
        axes = down, across = self.rows, self.cols
        if len(down) == len(across) == 1 and type(down[0].stride) is type(across[0].stride) is int:
            return self
        rows, cols = (tuple(Mode(*map(name, mode)) for mode in axis) for axis in axes)
        return Strided(self.dtype, rows, cols)

    def at(self, x: Text, base: str, row: Val, col: Val) -> str:
        """The address of an element."""
        place = x.add(position(x, self.rows, row), position(x, self.cols, col))
        return x.at(base, x.mul(place, self.dtype.itemsize))

    def begins_boxes(self, x: Text, row: Val, col: Val) -> Condition:
        """True if no box is cut by the first row and column of a window."""
        pairs = ((self.rows, row), (self.cols, col))
        inner = ((axis[0].extent, first) for axis, first in pairs if len(axis) > 1)
        return all_of(*(x.compare("eq", x.rest(first, size), 0) for size, first in inner))

    def extent(self, rows: int, cols: int) -> int:
        """Bytes from the first element to the end of the last of so many rows and columns."""
        if len(self.rows) == len(self.cols) == 1:
            last = (rows - 1) * self.rows[0].stride + (cols - 1) * self.cols[0].stride
        else:
            last = offset(self.rows, rows - 1) + offset(self.cols, cols - 1)
        return (last + 1) * self.dtype.itemsize

    @property
    def contiguous_axes(self) -> frozenset[str]:
        """The axes along which neighbours are neighbours in memory, as far as is known."""
        found = {"rows": self.rows[0].stride, "cols": self.cols[0].stride}
        return frozenset(axis for axis, step in found.items() if step == 1)


@lru_cache(maxsize=1024)
def row_major(dtype: DType, pitch: Val) -> Strided:
    """Rows of contiguous elements."""
    return Strided(dtype, axis(pitch), axis(1))


def axis(step: Val) -> Axis:
    """Places at one step."""
    return (Mode(REST, step),)


def coalesced(modes: Sequence[Mode], limit: int | None = None) -> Axis:
    """Modes of extent 1 are left out, and modes that continue each other are joined.

    `limit`: numbers are below it.
    """
    kept = [d for d in modes if d.extent != 1] or [modes[0]]
    found = kept[:1]
    for mode in kept[1:]:
        last = found[-1]
        if isinstance(last.extent, int) and isinstance(last.stride, int):
            if mode.stride == last.extent * last.stride and isinstance(mode.extent, int):
                found[-1] = Mode(last.extent * mode.extent, last.stride)  # REST is 0
                continue
            if limit is not None and len(found) == 1 and last.extent >= limit:
                break
        found.append(mode)
    found[-1] = Mode(REST, found[-1].stride)
    return tuple(found)


def position(x: Text, along: Axis, number: Val) -> Val:
    """How many elements from the first the one of this number lies."""
    found, rest = 0, number
    for mode in along:
        if mode.extent == REST:
            return x.add(found, x.mul(rest, mode.stride))
        found = x.add(found, x.mul(x.rest(rest, mode.extent), mode.stride))
        rest = x.over(rest, mode.extent)
    return found


# ---- nested repetitions, the innermost first


def span(x: Text, width: Val, counts: Sequence[Val], steps: Sequence[Val]) -> Val:
    """From the begin of the first to the end of the last, each `width` long."""
    found = width
    for count, step in zip(counts, steps, strict=True):
        found = x.add(found, x.mul(x.sub(count, 1), step))
    return found


def distinct(x: Text, width: Val, counts: Sequence[Val], steps: Sequence[Val]) -> Condition:
    """True if each repetition steps over what its inner ones cover."""
    guard, extent = TRUE, width
    for count, step in zip(counts, steps, strict=True):
        if count != 1:
            over = x.compare("sge", step, extent)
            guard = guard & (x.compare("sle", count, 1) | over)
            extent = x.add(extent, x.mul(x.sub(count, 1), step))
    return guard


# ---- accesses: the elements of an operand, as a layout at an address

Shape = Literal["matrix", "column", "row"]  # all elements, one a row, one a column


class Access(NamedTuple):
    """A layout at a machine address. Tiles have a buffer and a byte range, views only a pointer."""

    layout: Strided
    pointer: str
    memory: int = -1
    address: Val = 0
    nbytes: int = 0
    private: int = 0  # of a tile that only the instructions of a group use: its number
    array_size: Val = 0  # of a view that is written: bytes of its memory, where they may be many

    @property
    def dtype(self) -> DType:
        return self.layout.dtype

    @property
    def shape(self) -> Shape:
        if self.layout.cols[-1].stride == 0:
            return "column"
        return "row" if self.layout.rows[-1].stride == 0 else "matrix"

    @property
    def row_stride(self) -> Val:
        """Elements from row to row; 0 for a row."""
        return self.layout.rows[0].stride

    @property
    def box_stride(self) -> int:
        """Elements from one box of columns to the next; 0: no boxes."""
        return self.layout.cols[1].stride if len(self.layout.cols) > 1 else 0

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of an access: equal for accesses to the same elements."""
        where = self.address if self.memory >= 0 else self.pointer
        layout = self.layout.rows, self.layout.cols, self.dtype.itemsize
        return self.memory, where, layout, self.private

    def at(self, x: Text, row: Val, col: Val) -> Access:
        """The same layout, from an element on."""
        return Access(self.layout, self.layout.at(x, self.pointer, row, col))

    def with_layout(self, layout: Strided) -> Access:
        """The same bytes in another layout."""
        return self._replace(layout=layout)

    def private_in(self, here: Collection[int]) -> Access:
        return self if self.private in here else self._replace(private=0)

    def overlaps(self, memory: int, first: int, end: int) -> bool:
        """True if the bytes of a tile at a known address share some with a range."""
        begin = int(self.address)
        return self.memory == memory and begin < end and first < begin + self.nbytes

    def collides(self, other: Access) -> bool:
        """True if two accesses of tiles share bytes but are not the same elements."""
        if self.memory < 0 or self.private or other.private or self.identity == other.identity:
            return False
        return other.overlaps(self.memory, int(self.address), int(self.address) + self.nbytes)
