"""Tiles and views of any layout as fields, and how to walk over them stretch by stretch.

In every layout the place of an element is a place of its row plus a place of its column, and each
of these is the digits of the number, times steps: NZ counts columns in digits of a box's width. A
stretch is what one digit can count: along it places lie at one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.layout import REST, Axis, Digit, Frame
from pto.core.tile import TileType
from pto.run.jit.llvm.text import Text, Val, unsupported_if
from pto.run.jit.runtime.values import TileDesc


@dataclass(frozen=True, slots=True)
class Field:
    """Where elements lie behind a base address."""

    dtype: DType
    rows: Axis
    cols: Axis

    @property
    def swapped(self) -> Field:
        return Field(self.dtype, self.cols, self.rows)

    def renamed(self, name: Callable[[Val], Val]) -> Field:
        """The same field with other names for its numbers."""
        rows, cols = (
            tuple(Digit(name(d.size), name(d.step)) for d in each)
            for each in (self.rows, self.cols)
        )
        return Field(self.dtype, rows, cols)

    @property
    def units(self) -> frozenset[str]:
        """Along what neighbours in the field are neighbours in memory, as far as is known."""
        found = {"rows": self.rows[0].step, "cols": self.cols[0].step}
        return frozenset(axis for axis, step in found.items() if step == 1)


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
            if digit.step == last.size * last.step:
                found[-1] = Digit(digit.size, last.step)
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


def frame_of(tile: TileDesc) -> Frame:
    unsupported_if(tile.type.layout.named, "a layout known by name only")
    return tile.type.layout.frame(*stored_shape(tile), tile.type.itemsize)


def field(tile: TileDesc) -> Field:
    """A tile of any layout."""
    frame, (rows, cols) = frame_of(tile), tile.type.shape
    if frame.mirrored:
        rows, cols = cols, rows
    down, across = frame.axes
    found = Field(tile.type.dtype, axis(down, rows), axis(across, cols))
    return found.swapped if frame.mirrored else found


def extent(tile: TileDesc) -> int:
    """Bytes from the first element to the end of the last."""
    rows, cols = tile.type.shape
    size = tile.type.itemsize
    return (tile.type.layout.offset(rows - 1, cols - 1, *stored_shape(tile), size) + 1) * size


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
        x.loop(
            end,
            most,
            lambda i: body(
                [position(x, each, i) for each in along], x.smaller(x.sub(end, i), most), most
            ),
        )
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
