"""The interface for moves, implemented on NumPy: where elements go, and how they are converted.

A meaning of kind `Move` is a function of a mover and the operands. It lists the (i, j) for which an
element is made (`each`, `place`) and, for one (i, j), what to read (`read`, `item`) and compute.
The same function runs on the mover of the compiled engine (`run/jit/emit/tile/mover.py`), where
extents are run-time values and (i, j) are lanes. A meaning therefore branches on extents and
values only
with `when` and `require`. Indices are lanes of int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.core.compact import PackedOrder
from pto.core.dtypes import DType, items_of
from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Tile
from pto.isa.meaning.lanes import Lanes, widen
from pto.isa.meaning.memory import registers
from pto.isa.meaning.memory.views import ViewMoves
from pto.isa.meaning.scalar.arith import bits_of, from_bits, to_bits
from pto.isa.meaning.tile import bits, merge
from pto.isa.meaning.tile.indices import across, crosses, down, is_first, numbers, picked, turns
from pto.isa.meaning.tile.patch import copy, cut, landing, paste, require_window
from pto.isa.meaning.tile.regions import put, region, require_inside, scalar
from pto.isa.meaning.tile.window import one_matrix
from pto.isa.row import types as t

Change = Callable[[Any, Any], Any]  # (elements, their columns) -> converted elements
Cell = Callable[[Lanes, Lanes], Any]  # (i, j) -> the element there


class Mover(ViewMoves):
    """Moves elements on arrays. A step reads everything before it writes."""

    __slots__ = ()

    # ---- moves

    def each(self, rows: int, cols: int, cell: Cell, *dsts: Tile, by: int = 0) -> None:
        """dst[i, j] = cell(i, j) for i < rows, j < cols; one value for each of several tiles. `by`:
        a hint to compiled code that this number of columns is computed alike."""
        for dst in dsts:
            require_inside(dst, rows, cols, "written")
        if rows <= 0 or cols <= 0:
            return
        values_found = cell(down(rows), across(cols))
        if len(dsts) == 1:
            put(dsts[0], rows, cols, _signed_as(dsts[0], np.asarray(values_found)))
            return
        values_found = [each if each.base is None else each.copy() for each in values_found]
        for dst, values in zip(dsts, values_found, strict=True):
            put(dst, rows, cols, _signed_as(dst, values))

    def place(
        self,
        rows: int,
        cols: int,
        cell: Cell,
        dst: Tile | GlobalTensor,
        combine: Callable[[Lanes, Lanes], Lanes] | None = None,
    ) -> None:
        """dst at k = value, with (k, value, where) = cell(i, j), row by row. `where` None: always.
        If k repeats, the last one wins, or is combined with the old value. k is a stored item or
        (row, column), or a list of such."""
        if rows <= 0 or cols <= 0:
            return
        placed = cell(down(rows), across(cols))
        for k, value, where in placed if isinstance(placed, list) else [placed]:
            if combine is None and where is None and _put_rows(dst, k, value):
                continue
            items, at = self._items(dst, k)
            at, values, stays = np.broadcast_arrays(at, value, True if where is None else where)
            at, values = at[stays], values[stays].view(items.dtype)
            if combine is None:
                # NumPy assigns a list of indices in order, so the last of equal ones wins
                items[at] = values
                continue
            numbers, new = items.view(value.dtype), values.view(value.dtype)
            for batch in turns(at):
                numbers[at[batch]] = combine(numbers[at[batch]], new[batch])

    def hold(
        self, rows: int, cols: int, cell: Cell, dtype: DType, most: tuple[int, int]
    ) -> Callable[[Any, Any], Lanes]:
        """A function of (i, j) that returns cell(i, j), computed once for all i < rows, j < cols.
        The type must support arithmetic. `most`: the greatest number of rows and columns."""
        values = cell(down(rows), across(cols))
        return lambda i, j: values[i, j]

    def _items(self, dst: Tile | GlobalTensor, k: Any) -> tuple[Lanes, Any]:
        """The stored items, and the index of the selected ones."""
        if isinstance(dst, GlobalTensor):
            raw = dst.memory.view(dst.address, dst.nbytes)
            return raw.view(dst.dtype.storage), dst.offset(*k)
        return dst.items, dst.offsets()[k] if isinstance(k, tuple) else k

    def shares(self, src: Tile, dst: Tile) -> bool:
        """True if dst has the same storage as src, so that elements which stay are not accessed."""
        return src.memory is dst.memory and src.address == dst.address

    def copy(
        self,
        src: Tile,
        at: tuple[int, int],
        dst: Tile,
        to: tuple[int, int],
        size: tuple[int, int],
        change: Change | None = None,
        *,
        turned: bool = False,
        by_column: bool = False,
        packed: tuple[PackedOrder | None, PackedOrder | None] = (None, None),
    ) -> None:
        """Copy `size` elements from `at` of src to `to` of dst; both are inside. `turned`
        transposes src. `change` converts the elements; with `by_column` it also receives their
        columns, counted from `at`."""
        rows, cols = size
        if change is None and at == to == (0, 0) and not turned and packed == (None, None):
            copy(src, dst, rows, cols)
            return
        values = cut(src, *at, cols, rows).T if turned else cut(src, *at, rows, cols, packed[0])
        if change is not None:
            values = change(values, np.arange(cols)[None, :])
        elif dst.view() is None and src.memory is dst.memory:
            values = values.copy()  # NumPy handles overlapping slices
        paste(dst, *to, values, packed[1])

    def fill(self, dst: Tile, item: Any, rows: tuple[int, int], cols: tuple[int, int]) -> None:
        """Write one item to all elements of the rows and columns in a range."""
        height, width = rows[1] - rows[0], cols[1] - cols[0]
        if height <= 0 or width <= 0:
            return
        plain = dst.view()
        if plain is None or rows[1] > plain.shape[0] or cols[1] > plain.shape[1]:
            paste(dst, rows[0], cols[0], np.broadcast_to(item, (height, width)))
        else:
            kind = plain.dtype
            plain[rows[0] : rows[1], cols[0] : cols[1]] = (
                item if item.dtype == kind else (items_of(dst.type.dtype, item).view(kind))
            )

    def landing(self, tile: Tile, sub: int | None) -> Tile:
        """The tile in the buffer of the agent that owns it."""
        return landing(self.core, tile, sub)

    def merge_runs(self, src: Tile, dst: Tile, run: int, groups: int, kind: DType) -> None:
        """Merge each four runs of records into one; all are in row 0, which is large enough."""
        merge.merge_runs(src, dst, run, groups, kind)

    def merge_lists(
        self, srcs: list[Tile], dst: Tile, counts: Any, kind: DType, stop: bool
    ) -> None:
        """Merge records (`stop`: until a list is exhausted); `counts` gets the number of each."""
        counts[...] = merge.merge_lists(srcs, dst, kind, stop).astype(counts.dtype)

    def all(self, rows: int, cols: int, cell: Cell) -> bool:
        """True if cell(i, j) holds everywhere."""
        return rows <= 0 or cols <= 0 or bool(cell(down(rows), across(cols)).all())

    def within(self, tile: Tile, rows: int, cols: int) -> None:
        """Require that a tile has at least rows x cols elements."""
        require_inside(tile, rows, cols, "read")

    def holds(self, tile: Tile, at: tuple[int, int], size: tuple[int, int]) -> None:
        """Require that a window is inside the tile."""
        require_window(tile, tile.type.shape, *at, *size)

    def reach(self, tile: Tile, nbytes: int) -> None:
        """Require that `nbytes` bytes from a tile's first are inside its buffer."""
        tile.memory.check(tile.address, nbytes, 1)

    def when(
        self, fact: bool, body: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        if fact:
            body()
        elif otherwise is not None:
            otherwise()

    def groups(self, rows: int, cols: int, many: int, cell: Callable[..., Any], dst: Tile) -> None:
        """dst[i, many * k + n] = value n of cell(i, k): `many` values for each k, up to `cols`."""
        require_inside(dst, rows, cols, "written")
        if rows > 0 and cols > 0:
            stacked = np.stack(cell(down(rows), across(-(-cols // many))), axis=2)
            put(dst, rows, cols, stacked.reshape(rows, -1)[:, :cols])

    def blocks(self, rows: int, count: int, size: int, at: Cell, src: Tile, dst: Tile) -> None:
        """Block k of row i of dst, of `size` bytes, is copied from byte b of src. (b, where) =
        at(i, k). `where` None: always."""
        if rows <= 0 or count <= 0:
            return
        places, where = at(down(rows), across(count))
        safe = places if where is None else np.where(where, places, 0)
        shape = max(0, src.memory.size - src.address - size + 1), size
        blocks = np.ascontiguousarray(src.memory.strided(src.address, shape, (1, 1))[safe])
        cols = count * size // dst.type.itemsize
        blocks = blocks.reshape(rows, -1).view(dst.type.dtype.storage)
        if where is not None:
            before = region(dst, rows, cols).view(blocks.dtype)
            blocks = np.where(np.repeat(where, cols // count, axis=1), blocks, before)
        put(dst, rows, cols, blocks)

    def at_most(self, rows: int, cols: int, bins: int, cell: Cell, dst: Tile) -> None:
        """dst[i, b] = how many counted k < cols have a number up to b, for b < bins; (number,
        counted) = cell(i, k). `counted` None: all are."""
        histogram = np.zeros((rows, bins + 1), np.int64)
        if cols > 0:
            number, counted = cell(down(rows), across(cols))
            number = number if counted is None else np.where(counted, number, bins)
            np.add.at(histogram, (down(rows), number), 1)
        totals = np.cumsum(histogram[:, :bins], axis=1)
        self.each(rows, bins, lambda i, j: totals.astype(dst.type.dtype.numpy), dst)

    def sort(self, rows: int, cols: int, block: int, key: Cell, record: Cell, dst: Tile) -> None:
        """Sort records of 64 bits, record(i, j), into row i of dst, per block of columns. The
        greatest key(i, j) comes first; the order is stable. dst is large enough."""
        i, j = down(rows), across(cols)
        keys, blocks = np.broadcast_arrays(~key(i, j), j // block)
        ordered = np.take_along_axis(record(i, j), np.lexsort((keys, blocks)), 1)
        put(
            dst,
            rows,
            ordered.nbytes // rows // dst.type.itemsize,
            ordered.view(dst.type.dtype.storage),
        )

    def compress(self, rows: int, cols: int, cell: Cell, dst: Tile, counts: Tile) -> None:
        """Pack the values of each row that are kept, (value, kept) = cell(i, j), from column 0 of
        dst. Item i of counts is their number. Both are large enough."""
        if rows <= 0:
            return
        value, selected = cell(down(rows), across(cols))
        number, (r, c) = selected.sum(axis=1), np.nonzero(selected)
        start, contents = np.cumsum(number) - number, dst.read()
        contents.view(dst.type.dtype.storage)[r, np.arange(r.size) - start[r]] = value[r, c]
        dst.write(contents)
        counts.items[:rows] = number

    def pack(
        self, rows: int, cols: int, cell: Cell, dst: Tile, pitch: int = 0, nbytes: int = 0
    ) -> None:
        """Pack the bits cell(i, j): row i into row i of dst, in whole elements. With `pitch` bits
        from row to row, they are packed into one stream from the first byte of dst."""
        bits_found = cell(down(rows), across(cols))
        if nbytes:
            bits.pack_stream(dst, bits_found, pitch, nbytes)
        else:
            bits.pack_rows(dst, bits_found)

    # ---- for one (i, j)

    def bit(self, mask: Tile, i: Any, j: Any) -> Lanes:
        """Bit j of row i of a mask."""
        if is_first(i, i.size) and is_first(j, j.size) and crosses(i, j):
            return bits.unpack(mask, i.size, j.size)
        return bits.unpack(mask, *mask.type.shape)[i, j]

    def read(self, tile: Tile | GlobalTensor, r: Any, c: Any, where: Lanes | None = None) -> Lanes:
        """Elements (r, c), valid or not; undefined if `where` does not hold."""
        if where is not None and np.all(where):
            where = None  # an element that is not selected must not be read either
        is_view = isinstance(tile, GlobalTensor)
        height, width = tile.matrix_shape if is_view else tile.type.shape
        if where is not None:
            r, c = np.where(where, r, 0), np.where(where, c, 0)
        down, across = is_first(r, height), is_first(c, width)
        if down and across and not is_view and crosses(r, c):
            return region(tile, r.shape[0], c.shape[1])
        plain = one_matrix(tile, height, width) if is_view else tile.view()
        if plain is not None:
            return picked(plain, r, c, down, across)
        items, at = self._items(tile, (r, c))
        return items[at].view(tile.dtype.numpy if is_view else tile.type.dtype.numpy)

    def item(self, tile: Tile | GlobalTensor, k: Any, where: Lanes | None = None) -> Lanes:
        """Stored items k of a tile in memory order, with the gaps of a window; or of a view."""
        if isinstance(tile, GlobalTensor):
            width = tile.matrix_shape[1]
            return self.read(tile, k // width, k % width, where)
        if where is not None:
            k = np.where(where, k, 0)
        return tile.items[k].view(tile.type.dtype.numpy)

    def numbered(self, view: GlobalTensor) -> bool:
        """True if elements are named by their number, not by row and column. Compiled code uses
        numbers if there is no gap between rows."""
        return False

    def count(self, tile: Tile, r: Any, c: Any) -> Lanes:
        """Elements (r, c) that are integers, as int64."""
        return self.read(tile, r, c).astype(np.int64)

    def bytes_at(self, tile: Tile, at: Any, dtype: DType, where: Lanes | None = None) -> Lanes:
        """Elements of a type from byte `at` of a tile on, aligned or not."""
        if where is not None:
            at = np.where(where, at, 0)
        size = dtype.itemsize
        shape = max(0, tile.memory.size - tile.address - size + 1), size
        raw = tile.memory.strided(tile.address, shape, (1, 1))[at]
        return np.ascontiguousarray(raw).view(dtype.numpy)[..., 0]

    def best(
        self, line: Any, count: int, at: Callable[[Any, Any], Lanes], greatest: bool
    ) -> tuple[Lanes, Lanes]:
        """The first best of at(line, 0) .. at(line, count - 1), and its number. Only a strictly
        better element replaces it, so a NaN stays only if it is the first."""
        lines = at(line, numbers(0, count))
        positions = lines.argmax(axis=0) if greatest else lines.argmin(axis=0)
        places = down(positions.shape[0]), across(positions.shape[1])
        best = lines[positions, *places]
        if lines.dtype.kind not in "iu":
            nan = lines if lines.dtype.kind != "f" else best  # NumPy returns the first NaN
            if np.count_nonzero(nan != nan):
                nan = lines != lines
                keys = np.where(nan, np.float64(-np.inf if greatest else np.inf), widen(lines))
                positions = (keys.argmax if greatest else keys.argmin)(axis=0)
                positions = np.where(nan[0], 0, positions)
                best = lines[positions, *places]
        return best, positions

    def fold(self, count: int, start: Sequence[Any], step: Callable[..., Sequence[Any]]) -> Any:
        """state = step(k, *state) for k = 0, 1, .. count - 1."""
        state = tuple(start)
        for k in range(count):
            state = tuple(step(np.int64(k), *state))
        return state

    def lane(self, value: Any, type: t.Type | None, like: DType) -> Lanes:
        """A scalar operand as a lane with the type of `like`."""
        return scalar(type, like)(value)

    # ---- numbers

    def items(self, tile: Tile) -> int:
        """The number of items that `item` can address."""
        return tile.nbytes // tile.type.itemsize

    def least(self, a: Any, b: Any) -> Any:
        """The smaller of two numbers or indices."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)

    def index(self, value: Lanes) -> Lanes:
        """Lanes that are not negative, as int64."""
        return value

    def number(self, value: Any) -> int:
        """An integer operand; 0 if it is absent."""
        return 0 if value is None else int(value)

    # ---- scalars and registers

    def bits(self, value: Any, type: t.Scalar) -> int:
        """The bits of a scalar operand, as a number."""
        return to_bits(type, value)

    def scalar(self, number: int, type: t.Scalar) -> Any:
        """A scalar result with these bits."""
        return from_bits(type, number & (1 << bits_of(type)) - 1)

    def element(self, tile: Tile, k: int) -> int:
        """The bits of stored item k."""
        return int(tile.items[k])

    def set_element(self, tile: Tile, k: int, bits: int) -> None:
        tile.items[k] = bits

    def array(self, count: int) -> Lanes:
        """A result: `count` words of 0."""
        return np.zeros(count, np.int64)

    def slot(self, array: Lanes, k: int) -> int:
        """A word of an array."""
        return int(array[k])

    def set_slot(self, array: Lanes, k: int, word: int) -> None:
        array.view(np.uint64)[k] = word

    def has(self, register: str) -> bool:
        """True if a register without an initial value has been written."""
        return registers.get(self.core, register) is not None


def _signed_as(dst: Tile, values: Lanes) -> Lanes:
    """Integers of the same width as a tile's elements get the sign of the tile's type."""
    target_type = dst.type.dtype.numpy
    alike = (
        target_type.kind in "iu"
        and values.dtype.kind in "iu"
        and target_type.itemsize == values.itemsize
    )
    return values.view(target_type) if alike else values


def _put_rows(dst: Tile | GlobalTensor, k: Any, values: Any) -> bool:
    """Write whole rows of a matrix in memory in order; False if the request is different."""
    if not isinstance(dst, GlobalTensor) or not isinstance(k, tuple):
        return False
    r, c = k
    if not is_first(c, dst.matrix_shape[1]) or c.ndim != 2 or np.shape(r) != (r.size, 1):
        return False
    plain = one_matrix(dst, *dst.matrix_shape)
    if plain is None:
        return False
    rows, cols = r[:, 0], c.shape[1]
    if cols < plain.shape[1]:
        plain[rows, :cols] = values.view(plain.dtype)
    else:
        plain[rows] = values.view(plain.dtype)  # by whole rows
    return True
