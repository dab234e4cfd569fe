"""Elements of tiles by index, inside the function of an instruction.

Consecutive indices are a vector load or store, other indices a gather or a scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

import numpy as np

from pto.core.dtypes import DType
from pto.core.layout import REST, Axis
from pto.run.jit.emit.handle.view import Numbers
from pto.run.jit.emit.tile import masked
from pto.run.jit.ir import kinds
from pto.run.jit.ir.strided import Strided
from pto.run.jit.llvm import lanes, picks, shuffles
from pto.run.jit.llvm.index import Count, Index, Number, Position
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import Text, element, mangled, vector
from pto.run.jit.llvm.value import StoredNumbers, Val, Value, facts
from pto.run.jit.runtime.values import TileDesc, ViewDesc

_STRIP: Final = 64  # bytes of the widest element in a strip of lanes
_ABREAST: Final = 4  # strips of a single row that are worked on together
_WRITTEN_OUT: Final = 16  # strips of columns that are alike, at most: what they share is found once


@dataclass(eq=False)
class TileRef:
    """A tile inside the function of an instruction."""

    place: TileDesc
    pointer: str
    valid: tuple[Number, Number]
    layout: Strided
    nbytes: int

    @property
    def type(self) -> Any:
        return self.place.type

    @property
    def dtype(self) -> DType:
        return self.place.type.dtype

    @property
    def pitch(self) -> int:
        shape, layout = self.type.shape, self.type.layout
        return self.place.pitch or shape[layout.pitch_axis]

    def get_valid(self) -> tuple[Number, Number]:
        return self.valid


@dataclass(eq=False)
class ViewRef:
    """A view of global memory inside the function of an instruction."""

    view: ViewDesc
    pointer: str
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]

    @property
    def dtype(self) -> DType:
        return self.view.dtype

    @property
    def matrix_shape(self) -> tuple[Any, Any]:
        sizes: Any = self.shape
        return self.view.layout.matrix_shape(sizes, self.dtype.itemsize)


class Elements(Numbers):
    """Reads and writes elements: the text, the current lanes, and their mask."""

    def __init__(
        self, x: Text, tiles: Sequence[TileRef], context: Callable[[int], str], alone: bool
    ) -> None:
        super().__init__(x, context)
        self._lanes = lanes.Lanes(x, 1)
        self.mask: str | None = None
        self.alone = alone  # no other agent has buffers of its own
        self.tiles = tiles  # all that the instruction names
        self.upright = False  # whether lanes are rows

    def _wide(self, index: object) -> object:
        return Number(self.x, int(index)) if isinstance(index, int | np.integer) else index

    def offset(self, tile: TileRef | ViewRef, r: Position, c: Position) -> Index:
        if isinstance(tile, ViewRef):
            shape: Any = tile.shape
            strides: Any = tile.strides
            size, place = tile.dtype.itemsize, (self._index(r), self._index(c))
            return self._index(tile.view.layout.offset(*place, shape, strides, size))
        down = _position(tile.layout.rows, self._index(r))
        return down + _position(tile.layout.cols, self._index(c))

    def symbol(self, value: object) -> Symbol:
        found = lanes.in_lanes(self._lanes, value)
        if isinstance(found, Symbol):
            return found
        return self._lanes.constant(np.asarray(found).dtype, found)

    def _index(self, value: object) -> Index:
        return Index.of(lanes.in_lanes(self._lanes, self._wide(value)))

    def _both(self, where: object) -> str | None:
        """The mask of this strip and a condition."""
        if where is None:
            return self.mask
        found = str(self.symbol(where).name)
        if self.mask is None:
            return found
        return self.x.new(f"and {vector(self._lanes.count, 'i1')} {found}, {self.mask}")

    def load(self, tile: TileRef | ViewRef, at: Index, where: object) -> Symbol:
        x = self.x
        spot = self._lanes
        dtype = tile.dtype
        kind = kinds.symbol_type(dtype)
        item = element(dtype)
        size = dtype.itemsize
        mask = self._both(where)
        woven = self._woven(tile, at, mask)
        if woven is not None:
            return woven
        if (at.step == at.repeat == 1) or (at.step == 0 and where is None):
            pointer = x.at(tile.pointer, x.mul(at.start.value, size))
            if at.step == 0:
                return spot.spread(kind, x.load(item, pointer))
            name = masked.load_lanes(x, dtype, spot.count, pointer, mask)
            if mask is None and kind.kind in "iu" and size < 8:
                name = Value(name, numbers=StoredNumbers(pointer, 8 * size))
            return spot.symbol(kind, name)
        numbers = facts(at.vector).numbers
        if mask is None and numbers is not None and spot.count > 1:
            numbers = numbers._replace(unit=size)
            return spot.symbol(kind, picks.pick(x, tile.pointer, spot.count, item, numbers))
        return self.gather(tile, at * size, dtype, mask)

    def _woven(self, tile: TileRef | ViewRef, at: Index, mask: str | None) -> Symbol | None:
        """Elements that several lanes share, or every second one: one contiguous load and a
        shuffle. None for other indices."""
        x = self.x
        count = self._lanes.count
        dtype = tile.dtype
        if at.step == 1 and 1 < at.repeat < count:
            near, picks = count // at.repeat, [n // at.repeat for n in range(count)]
        elif at.step == 2 and at.repeat == 1 and count > 1:
            near, picks = 2 * count, list(range(0, 2 * count, 2))
        else:
            return None
        if mask is None and near > count:  # bytes after the last one may be outside the tile
            only = shuffles.constants("i1", [int(n < near - 1) for n in range(near)])
        elif mask is None:
            only = None
        elif facts(mask).prefix is None and near > count:
            bits, apart = (
                vector(count, "i1"),
                (n // 2 if n % 2 == 0 else count for n in range(near)),
            )
            order = shuffles.numbers(list(apart))
            only = x.new(f"shufflevector {bits} {mask}, {bits} zeroinitializer, {order}")
        elif (many := facts(mask).prefix) is None:
            return None
        else:
            whole = x.sub(x.mul(many, 2), 1) if near > count else x.up(many, at.repeat)
            only = masked.prefix_mask(x, near, whole)
        pointer = x.at(tile.pointer, x.mul(at.start.value, dtype.itemsize))
        found = masked.load_lanes(x, dtype, near, pointer, only)
        return self._lanes.symbol(
            kinds.symbol_type(dtype), shuffles.shuffle(x, element(dtype), near, found, picks)
        )

    def gather(
        self, tile: TileRef | ViewRef, nbytes: Index, dtype: DType, mask: str | None
    ) -> Symbol:
        """Gather items at byte offsets; those of a tile are below 2^31."""
        x = self.x
        count = self._lanes.count
        item = element(dtype)
        word = "i16" if item == "half" else item  # else LLVM makes vectors of one and joins them
        type, pointers, bits = (vector(count, each) for each in (word, "ptr", "i1"))
        offsets, index = nbytes.name, nbytes.type
        if isinstance(tile, TileRef):
            index, offsets = (
                vector(count, "i32"),
                x.new(f"trunc {index} {offsets} to <{count} x i32>"),
            )
        places = x.new(f"getelementptr i8, ptr {tile.pointer}, {index} {offsets}")
        name = f"@llvm.masked.gather.v{count}{mangled(word)}.v{count}p0"
        self.x.declare(f"declare {type} {name}({pointers}, i32, {bits}, {type})")
        on = mask or "splat (i1 true)"
        given = f"{pointers} {places}, i32 1, {bits} {on}, {type} zeroinitializer"
        found = x.new(f"call {type} {name}({given})")
        if word != item:
            found = x.new(f"bitcast {type} {found} to {vector(count, item)}")
        return self._lanes.symbol(kinds.symbol_type(dtype), found)

    def store(self, tile: TileRef | ViewRef, at: Index, items: Val, mask: str | None) -> None:
        x = self.x
        count = self._lanes.count
        dtype = tile.dtype
        if at.step == at.repeat == 1:
            pointer = x.at(tile.pointer, x.mul(at.start.value, dtype.itemsize))
            masked.store_lanes(x, dtype, count, items, pointer, mask)
            return
        item = element(dtype)
        pointers = vector(count, "ptr")
        bits = vector(count, "i1")
        numbers = facts(at.vector).numbers
        if mask is None and numbers is not None and count > 1:
            numbers = numbers._replace(unit=dtype.itemsize)
            picks.put(x, tile.pointer, count, item, numbers, items)
            return
        type, nbytes = vector(count, item), at * dtype.itemsize
        places = x.new(f"getelementptr i8, ptr {tile.pointer}, {nbytes.type} {nbytes.name}")
        name = f"@llvm.masked.scatter.v{count}{mangled(item)}.v{count}p0"
        self.x.declare(f"declare void {name}({type}, {pointers}, i32, {bits})")
        on = mask or "splat (i1 true)"
        x.do(f"call void {name}({type} {items}, {pointers} {places}, i32 1, {bits} {on})")

    # ---- loops

    def walk(
        self,
        rows: Count,
        cols: Count,
        cell: Callable[[Index, Index], None],
        sizes: Sequence[int],
        by: int = 0,
    ) -> None:
        """Call cell(i, j) for all elements, with lanes along j; along i for a single column."""
        height, width = self.number(rows), self.number(cols)
        upright = width.known == 1
        if upright:
            height, width = width, height

        def line(i: Val) -> None:
            self.strips(Number(self.x, i), width, cell, sizes, upright=upright, by=by)

        if height.known == 1:
            line(0)
        else:
            self.x.loop(height.value, 1, line)

    def strips(
        self,
        i: Number,
        width: Number,
        cell: Callable[[Index, Index], None],
        sizes: Sequence[int],
        *,
        upright: bool,
        by: int = 0,
    ) -> None:
        widest = max([*sizes, *(tile.type.itemsize for tile in self.tiles)])
        count = _STRIP // widest
        if not upright and i.known == 0 and width.known and width.known % (_ABREAST * count) == 0:
            count *= _ABREAST
        spot = self._lanes = lanes.Lanes(self.x, by or count)

        def strip(j: Val, mask: str | None) -> None:
            self.mask, self.upright = mask, upright
            across = Index(spot, i, 0)
            along = Index(spot, Number(self.x, j), 1, spot.count)
            cell(*((along, across) if upright else (across, along)))
            self.mask = None

        if by and width.known is not None and width.known in range(by, _WRITTEN_OUT * by + 1, by):
            for j in range(0, width.known, by):
                strip(j, None)
        else:
            masked.strips(self.x, spot.count, width.value, strip)


def _position(along: Axis, number: Index) -> Index:
    """The element offset of indices along an axis."""
    parts: list[Index] = []
    for mode in along:
        last = mode.extent == REST
        parts.append((number if last else number % int(mode.extent)) * int(mode.stride))
        number = number if last else number // int(mode.extent)
    return reduce(add, parts)
