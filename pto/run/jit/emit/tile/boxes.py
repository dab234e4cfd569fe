"""Tiles and views of any layout as fields, and how to walk over them stretch by stretch.

In every layout the place of an element is a place of its row plus a place of its column, and each
of these is the digits of the number, times steps: NZ counts columns in digits of a box's width. A
stretch is what one digit can count: along it places lie at one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.layout import REST, Axis, Digit
from pto.core.layout import position as offset
from pto.core.tile import TileType
from pto.run.jit.llvm.text import Text, Val, unsupported_if
from pto.run.jit.runtime.values import TileDesc


class Field(NamedTuple):
    """Where elements lie behind a base address."""

    dtype: DType
    rows: Axis
    cols: Axis

    @property
    def swapped(self) -> Field:
        return Field(self.dtype, self.cols, self.rows)

    def of(self, dtype: DType) -> Field:
        """The same places with elements of another type."""
        return Field(dtype, self.rows, self.cols)

    def in_items(self, x: Text, dtype: DType) -> Field:
        """Lines of bytes as lines of elements, if all lines begin at one."""
        rows = tuple(Digit(d.size, x.over(d.step, dtype.itemsize)) for d in self.rows)
        return Field(dtype, rows, self.cols)

    def renamed(self, name: Callable[[Val], Val]) -> Field:
        """The same field with other names for its numbers."""
        axes = down, across = self.rows, self.cols
        if len(down) == len(across) == 1 and type(down[0].step) is type(across[0].step) is int:
            return self
        rows, cols = (tuple(Digit(*map(name, digit)) for digit in axis) for axis in axes)
        return Field(self.dtype, rows, cols)

    def at(self, x: Text, base: str, row: Val, col: Val) -> str:
        """The address of an element."""
        place = x.add(position(x, self.rows, row), position(x, self.cols, col))
        return x.at(base, x.mul(place, self.dtype.itemsize))

    def begins(self, x: Text, row: Val, col: Val) -> str:
        """True if no box is cut by the first row and column of a window."""
        pairs = ((self.rows, row), (self.cols, col))
        inner = ((axis[0].size, first) for axis, first in pairs if len(axis) > 1)
        return x.both(*(x.compare("eq", x.rest(first, size), 0) for size, first in inner))

    def extent(self, rows: int, cols: int) -> int:
        """Bytes from the first element to the end of the last of so many rows and columns."""
        if len(self.rows) == len(self.cols) == 1:
            last = (rows - 1) * self.rows[0].step + (cols - 1) * self.cols[0].step
        else:
            last = offset(self.rows, rows - 1) + offset(self.cols, cols - 1)
        return (last + 1) * self.dtype.itemsize

    @property
    def units(self) -> frozenset[str]:
        """Along what neighbours in the field are neighbours in memory, as far as is known."""
        found = {"rows": self.rows[0].step, "cols": self.cols[0].step}
        return frozenset(axis for axis, step in found.items() if step == 1)


@lru_cache(maxsize=1024)
def plain(dtype: DType, pitch: Val) -> Field:
    """Rows of contiguous elements."""
    return Field(dtype, line(pitch), line(1))


def line(step: Val) -> Axis:
    """Places at one step."""
    return (Digit(REST, step),)


def axis(digits: Sequence[Digit], limit: int | None = None) -> Axis:
    """Digits that are always zero left out, and those joined that continue each other.

    `limit`: numbers are below it.
    """
    kept = [d for d in digits if d.size != 1] or [digits[0]]
    found = kept[:1]
    for digit in kept[1:]:
        last = found[-1]
        if isinstance(last.size, int) and isinstance(last.step, int):
            if digit.step == last.size * last.step and isinstance(digit.size, int):
                found[-1] = Digit(last.size * digit.size, last.step)  # REST is 0
                continue
            if limit is not None and len(found) == 1 and last.size >= limit:
                break
        found.append(digit)
    found[-1] = Digit(REST, found[-1].step)
    return tuple(found)


def require_all_boxes(type: TileType, valid: Sequence[Val]) -> None:
    """Refuse a compact tile whose valid region, which decides, may leave boxes out."""
    for given, extent, side in zip(valid, type.shape, type.box, strict=True):
        unsupported_if(
            extent > side and (not isinstance(given, int) or -(-given // side) * side < extent),
            "a compact tile without some of its boxes",
        )


def stored_shape(tile: TileDesc) -> tuple[int, int]:
    """The shape in the address formula: `Tile._stored`."""
    type, (rows, cols) = tile.type, tile.type.shape
    if tile.pitch is not None:
        return (rows, tile.pitch) if type.layout.pitch_axis else (tile.pitch, cols)
    if type.compact is Compact.NORMAL and type.layout.is_boxed:
        require_all_boxes(type, tile.valid)
    return type.storage_shape(type.shape)


def field(tile: TileDesc) -> Field:
    """A tile of any layout."""
    type, layout = tile.type, tile.type.layout
    if layout.is_boxed or layout.named:
        return _boxed(type, stored_shape(tile))
    if layout.pitch_axis:
        return plain(type.dtype, tile.pitch or type.cols)
    return plain(type.dtype, tile.pitch or type.rows).swapped


@lru_cache(maxsize=1024)
def _boxed(type: TileType, stored: tuple[int, int]) -> Field:
    found = _frame(type, stored)
    down, across = (axis(each, n) for each, n in zip(found[1:], type.shape, strict=True))
    return Field(type.dtype, down, across)


def in_boxes(tile: TileDesc) -> Field:
    """A tile of any layout, with the size of its boxes even if there is only one."""
    return _frame(tile.type, stored_shape(tile))


def _frame(type: TileType, stored: tuple[int, int]) -> Field:
    frame = type.layout.frame(*stored, type.itemsize)
    found = Field(type.dtype, *frame.axes)
    return found.swapped if frame.mirrored else found


def lines(tile: TileDesc) -> Field:
    """A tile with one step along each axis."""
    require_lines(tile.type)
    return field(tile)


def require_lines(type: TileType) -> None:
    unsupported_if(type.layout.is_boxed or type.dtype.is_packed, "a boxed or packed tile")


def extent(tile: TileDesc) -> int:
    """Bytes from the first element to the end of the last."""
    return field(tile).extent(*tile.type.shape)


# ---- nested repetitions, the innermost first


def span(x: Text, width: Val, counts: Sequence[Val], steps: Sequence[Val]) -> Val:
    """From the begin of the first to the end of the last, each `width` long."""
    found = width
    for count, step in zip(counts, steps, strict=True):
        found = x.add(found, x.mul(x.sub(count, 1), step))
    return found


def distinct(x: Text, width: Val, counts: Sequence[Val], steps: Sequence[Val]) -> str:
    """True if each repetition steps over what its inner ones cover."""
    fine, extent = "true", width
    for count, step in zip(counts, steps, strict=True):
        if count != 1:
            over = x.compare("sge", step, extent)
            fine = x.both(fine, x.either(x.compare("sle", count, 1), over))
            extent = x.add(extent, x.mul(x.sub(count, 1), step))
    return fine


# ---- walks


def position(x: Text, along: Axis, number: Val) -> Val:
    """How many elements from the first the one of this number lies."""
    found, rest = 0, number
    for digit in along:
        if digit.size == REST:
            return x.add(found, x.mul(rest, digit.step))
        found = x.add(found, x.mul(x.rest(rest, digit.size), digit.step))
        rest = x.over(rest, digit.size)
    return found


# body(places of the first element in each field, how many elements, at most how many or None)
Stretch = Callable[[list[Val], Val, int | None], None]


def stretches(x: Text, along: Sequence[Axis], start: Val, end: Val, body: Stretch) -> None:
    """The numbers from `start` to `end` in parts along which all fields have one step."""
    sizes = [each[0].size for each in along if each[0].size != REST]
    if not sizes:
        body([position(x, each, start) for each in along], x.sub(end, start), None)
    elif start == 0 and all(isinstance(size, int) for size in sizes):
        most = gcd(*map(int, sizes))
        whole = isinstance(end, int) and int(end) % most == 0

        def part(i: Val) -> None:
            count = most if whole else x.smaller(x.sub(end, i), most)
            body([position(x, each, i) for each in along], count, most)

        if end == most:
            part(0)
        else:
            x.loop(end, most, part)
    else:
        _uneven(x, along, sizes, start, end, body)


def _uneven(
    x: Text, along: Sequence[Axis], sizes: Sequence[Val], start: Val, end: Val, body: Stretch
) -> None:
    def turn(state: list[str]) -> list[Val]:
        (i,) = state
        count = x.sub(end, i)
        for size in sizes:
            count = x.smaller(count, x.sub(size, x.rest(i, size)))
        body([position(x, each, i) for each in along], count, None)
        return [x.add(i, count)]

    x.while_loop(["i64"], [start], lambda state: x.compare("slt", state[0], end), turn)
