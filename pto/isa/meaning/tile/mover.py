"""The words a move is written in, here on NumPy: which elements go where, and what becomes of them.

A meaning of kind `Move` is a function of a mover and the operands. It says for which (i, j) an
element is made (`each`, `place`) and, for one (i, j), where to read (`read`, `item`) and what to
compute. The same function runs on the mover of the compiled engine (`run/jit/emit/tile/mover.py`),
where extents are numbers known later and (i, j) are lanes: so nothing branches on extents or
values but by `when` and `require`. Indices are lanes of int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.tile import Tile
from pto.isa.meaning.lanes import Lanes, widen
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import put, region, require_inside, scalar
from pto.isa.row import types as t

Cell = Callable[[Lanes, Lanes], Any]  # (i, j) -> what is there


class Mover:
    """Moves at once, on arrays. All of a step is read before any of it is written."""

    __slots__ = ("_i", "_j", "core")

    def __init__(self, core: Machine) -> None:
        self.core = core
        self._i: Lanes | None = None
        self._j: Lanes | None = None

    # ---- what happens

    def each(self, rows: int, cols: int, cell: Cell, *dsts: Tile) -> None:
        """dst[i, j] = cell(i, j) for i < rows, j < cols; of several tiles one value each."""
        for dst in dsts:
            require_inside(dst, rows, cols, "written")
        if rows <= 0 or cols <= 0:
            return
        found = self._cells(rows, cols, cell)
        for dst, values in zip(dsts, found if len(dsts) > 1 else (found,), strict=True):
            put(dst, rows, cols, np.asarray(values))

    def place(self, rows: int, cols: int, cell: Cell, dst: Tile) -> None:
        """Stored item k of dst = value, (k, value, where) = cell(i, j), row by row: the last of
        equal places wins. `where` None: always."""
        if rows <= 0 or cols <= 0:
            return
        found = self._cells(rows, cols, cell)
        kept = True if found[2] is None else found[2]
        at, values, kept = np.broadcast_arrays(found[0], found[1], kept)
        # a list of indices is assigned in its order, the last of equal ones last (NumPy quickstart)
        at, values = at[kept], values[kept]
        dst.items[at] = values.view(dst.items.dtype)

    def all(self, rows: int, cols: int, cell: Cell) -> bool:
        """Whether cell(i, j) holds everywhere."""
        return rows <= 0 or cols <= 0 or bool(np.all(self._cells(rows, cols, cell)))

    def require(self, fact: bool, error: Callable[[], PtoError]) -> None:
        """A program that does otherwise stops here; nothing has been written yet."""
        if not fact:
            raise error()

    def within(self, tile: Tile, rows: int, cols: int) -> None:
        """The first rows x cols elements of a tile are about to be read: it must have them."""
        require_inside(tile, rows, cols, "read")

    def when(
        self, fact: bool, body: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        if fact:
            body()
        elif otherwise is not None:
            otherwise()

    def compress(self, rows: int, cols: int, cell: Cell, dst: Tile, counts: Tile) -> None:
        """The values of each row that are kept, (value, kept) = cell(i, j), from column 0 of dst
        on; item i of counts is how many. Both have room."""
        if rows <= 0:
            return
        value, kept = self._cells(rows, cols, cell)
        number, (r, c) = kept.sum(axis=1), np.nonzero(kept)
        start, held = np.cumsum(number) - number, dst.read()
        held.view(dst.type.dtype.storage)[r, np.arange(r.size) - start[r]] = value[r, c]
        dst.write(held)
        counts.items[:rows] = number

    # ---- of one (i, j)

    def read(self, tile: Tile, r: Any, c: Any, where: Lanes | None = None) -> Lanes:
        """Elements (r, c) of a tile, valid or not; any value where `where` does not hold."""
        if r is self._i and c is self._j and _fits(tile, r, c):
            return region(tile, r.shape[0], c.shape[1])
        if where is not None:
            r, c = np.where(where, r, 0), np.where(where, c, 0)
        plain = tile.view()
        if plain is not None:
            return plain[r, c]
        return tile.items[tile.offsets()[r, c]].view(tile.type.dtype.numpy)

    def item(self, tile: Tile, k: Any, where: Lanes | None = None) -> Lanes:
        """Stored items k of a tile, in the order of memory, gaps of a window counted."""
        if where is not None:
            k = np.where(where, k, 0)
        return tile.items[k].view(tile.type.dtype.numpy)

    def bytes_at(self, tile: Tile, at: Any, dtype: DType, where: Lanes | None = None) -> Lanes:
        """Elements of a type from byte `at` of a tile on, aligned or not."""
        if where is not None:
            at = np.where(where, at, 0)
        size = dtype.itemsize
        shape = max(0, tile.nbytes - size + 1), size
        found = tile.memory.strided(tile.address, shape, (1, 1))[at]
        return np.ascontiguousarray(found).view(dtype.numpy)[..., 0]

    def best(self, count: int, at: Callable[[Any], Lanes], greatest: bool) -> tuple[Lanes, Lanes]:
        """The first best of at(0) .. at(count - 1), and its number: strictly better replaces, so
        that a NaN stays only where it is the first."""
        lines = at(np.arange(count, dtype=np.int64)[:, None, None])
        nan = lines != lines
        keys = lines
        if np.count_nonzero(nan):
            keys = np.where(nan, np.float64(-np.inf if greatest else np.inf), widen(lines))
        found = (keys.argmax if greatest else keys.argmin)(axis=0)
        found = np.where(nan[0], 0, found)
        return np.take_along_axis(lines, found[None], axis=0)[0], found

    def fold(self, count: int, start: Sequence[Any], step: Callable[..., Sequence[Any]]) -> Any:
        """state = step(k, *state) for k = 0, 1, .. count - 1."""
        state = tuple(start)
        for k in range(count):
            state = tuple(step(np.int64(k), *state))
        return state

    def lane(self, value: Any, type: t.Type | None, like: DType) -> Lanes:
        """A scalar operand beside lanes of `like`."""
        return scalar(type, like)(value)

    # ---- numbers

    def items(self, tile: Tile) -> int:
        """How many items `item` can name."""
        return tile.nbytes // tile.type.itemsize

    def least(self, a: Any, b: Any) -> Any:
        """The lesser of two numbers or indices."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)

    def number(self, value: Any) -> int:
        """An integer operand, 0 where it is absent."""
        return 0 if value is None else int(value)

    def _cells(self, rows: int, cols: int, cell: Cell) -> Any:
        self._i = np.arange(rows, dtype=np.int64)[:, None]
        self._j = np.arange(cols, dtype=np.int64)[None, :]
        return cell(self._i, self._j)


def _fits(tile: Tile, r: Lanes, c: Lanes) -> bool:
    return r.shape[0] <= tile.type.rows and c.shape[1] <= tile.type.cols
