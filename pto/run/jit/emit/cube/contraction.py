"""Products of matrices: operands are multiplied in blocks of 6 rows by 64 columns. The
order along k and the fused steps are those of `meaning/cube/contraction.py`, so the bits are
too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pto.core.dtypes import F32, I32, DType
from pto.core.primitives import isfinite
from pto.run.jit.emit.cube.factors import LANES, PANEL, Factors, Matrix, byte_products
from pto.run.jit.emit.cube.image import Windows
from pto.run.jit.emit.cube.unpack import PanelLayout, widened
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.shuffles import spread
from pto.run.jit.llvm.text import Text, Val, element, unsupported_if, vector

_MOST = np.finfo(np.float32).max
# Rows of a block: their sums stay in registers. Blocks of 4 rows take the rest of blocks of 6.
_HIGH, _LOWER, _NARROW = 6, 4, 8  # the last one beside the panels, where a block is one vector wide
_STEPS = 4  # along k in one iteration: data that arrive late delay fewer of them

Change = tuple[str, Callable[[Any], Any]]  # by its name
Right = Callable[[Val], list[str]]  # the vectors of a row of the right factor


def changed(s: OpContext, sizes: tuple[int, int, int], factors: Factors, *changes: Change) -> None:
    """Every element of either factor, f32, becomes change(element), in place."""

    def write(x: Text, change: Callable[[Any], Any]) -> None:
        spot = lanes.Lanes(x, LANES)

        def some(at: Val) -> None:
            place = x.at("%p0", at)
            value = spot.symbol(lanes.F32, x.load(spot.type(lanes.F32), place))
            x.store(spot.type(lanes.F32), change(value).name, place)

        x.loop("%p1", 4 * LANES, some)

    m, _, n = sizes
    left, right = m * factors.rooms[0].line, -(-n // PANEL) * factors.rooms[1].panel
    places = (factors.left, left), (factors.right, right)
    for (place, count), (key, change) in zip(places, changes, strict=True):
        s.call(key, [("ptr", place), ("i64", 4 * count)], partial(write, change=change))


# Overflow of sums: to infinity, to the largest number, or to it only for finite operands.
ENDLESS, LIMITED, LIMITED_IF_FINITE = range(3)


def multiply(
    s: OpContext,
    sizes: tuple[Val, Val, Val],
    factors: Factors,
    dst: Matrix,
    start: Matrix | None,
    *,
    is_row: bool = False,
    limit: int = ENDLESS,
) -> None:
    """dst = left x right, plus `start`: a matrix, or one row for all, or dst itself; nothing else
    may overlap. LIMITED: all factors are finite."""
    x, (m, k, n), rooms = s.x, sizes, factors.rooms
    of_bytes = bool(factors.begins)
    k = x.up(k, 4) if of_bytes else k
    kind = "float" if dst.grid.dtype is F32 else "i32"
    first, shape = ("null", None) if start is None else (start.pointer, (start.grid, is_row))
    windows = factors.windows
    places = dst.pointer, factors.left, factors.right, first, factors.begins or "null"
    given = Parameters(*(("i64", n) for n in (m, k, n)), *(("ptr", p) for p in places))
    given.add("i64", factors.first)
    given.add("i64", _high_rows(x, m))
    rooms = replace(rooms[0], line=given.name(rooms[0].line)), rooms[1]
    source = factors.source
    if source is not None:
        pointer = str(given.name(source.pointer, "ptr"))
        source = replace(source, grid=source.grid.renamed(given.name), pointer=pointer)
    unpacking = given.name(_rows_if(x, factors.unpacks))
    along = k if windows is None else windows.run
    whole = isinstance(along, int) and along % _STEPS == 0
    facts = rooms, dst.grid, shape, of_bytes, limit, windows, whole, source, unpacking
    key = repr(("product", kind, *facts))

    unaligned = dst.grid.col != 1 or dst.grid.box[1] % LANES
    unsupported_if(unaligned, "an accumulator whose rows are no runs")

    def write(x: Text) -> None:
        block = _Block(x, kind, rooms, dst.grid, shape, of_bytes, limit, windows, whole, source)
        _multiply(x, block, unpacking)

    s.call(key, given.given, write)


def _high_rows(x: Text, m: Val) -> Val:
    """The rows that blocks of 6 take: where possible as many as leave whole blocks of 4."""
    if isinstance(m, int):
        whole = (n for n in range(m // _HIGH * _HIGH, -1, -_HIGH) if (m - n) % _LOWER == 0)
        return next(whole, m // _HIGH * _HIGH)
    return x.mul(x.over(m, _HIGH), _HIGH)


def _rows_if(x: Text, unpacks: str) -> Val:
    """The rows of the block that unpacks the right factor."""
    if unpacks in ("true", "false"):
        return _HIGH if unpacks == "true" else 0
    return x.new(f"select i1 {unpacks}, i64 {_HIGH}, i64 0")


def _multiply(x: Text, block: _Block, unpacking: Val) -> None:
    """f(m, k, n, dst, lhs, rhs, start, begins, first, rows of blocks of 6, ..). `unpacking`: the
    number of rows that unpack the right factor."""
    panels = x.mul(x.over("%p2", PANEL), PANEL)

    def strip(j: Val, wide: int, ends: Sequence[tuple[int, Val]]) -> None:
        start: Val = 0
        if block.source is not None and wide > 1:
            unpacks = x.compare("ne", unpacking, 0)
            x.when(unpacks, lambda: block.write(0, j, _HIGH, wide, unpacks=True))
            start = unpacking
        for high, end in ends:
            x.loop(end, high, lambda i, high=high: block.write(i, j, high, wide), start=start)
            start = end

    lower = x.add("%p9", x.mul(x.over(x.sub("%p0", "%p9"), _LOWER), _LOWER))
    narrow = x.mul(x.over("%p0", _NARROW), _NARROW)
    in_panels = [(_HIGH, "%p9"), (_LOWER, lower), (1, "%p0")]
    x.loop(panels, PANEL, lambda j: strip(j, PANEL // LANES, in_panels))
    x.loop("%p2", LANES, lambda j: strip(j, 1, [(_NARROW, narrow), (1, "%p0")]), start=panels)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of rows by vectors of columns, computed in registers over all of k."""

    x: Text
    kind: str
    rooms: tuple[PanelLayout, PanelLayout]
    out: Grid
    start: tuple[Grid, bool] | None  # the layout of the addend, and whether it is one row
    of_bytes: bool
    limit: int
    windows: Windows | None
    is_whole: bool  # True if k is known to be a multiple of the steps of an iteration
    source: Matrix | None  # of the right factor, in rows

    @property
    def type(self) -> str:
        return vector(LANES, self.kind)

    @property
    def dtype(self) -> DType:
        return F32 if self.kind == "float" else I32

    def write(self, i: Val, j: Val, high: int, wide: int, *, unpacks: bool = False) -> None:
        """`unpacks`: the right factor is read at its source, and its panel is written."""
        x = self.x
        first = ["zeroinitializer"] * wide
        if self.of_bytes:
            begins = x.at("%p7", x.mul(j, 4))
            first = [x.load(self.type, x.at(begins, 4 * LANES * n)) for n in range(wide)]
        right = partial(self._right, j, wide, self.source if unpacks else None)
        if self.windows is None:
            line = x.mul(self.rooms[0].line, 4)
            rows = [x.at("%p4", x.mul(x.add(i, n), line)) for n in range(high)]
            sums = self._products("%p1", rows, right, first * high)
        else:
            sums = self._windows(self.windows, i, right, high, first * high)
        for n in range(high):
            for w in range(wide):
                self._finish(x.add(i, n), x.add(j, w * LANES), sums[n * wide + w], wide)

    def _right(self, j: Val, wide: int, source: Matrix | None, k: Val) -> list[str]:
        """Row k of the right factor from column j on. `source`: unpack it from there."""
        x, room = self.x, self.rooms[1]
        row = x.mul(k, x.mul(room.line, 4))
        line = x.at("%p5", x.add(room.column(x, j), row))
        places = [x.at(line, 4 * LANES * n) for n in range(wide)]
        if source is None:
            return [x.load(self.type, place) for place in places]
        g, size = source.grid, source.grid.dtype.itemsize
        begin = x.at(source.pointer, x.mul(x.add(x.mul(k, g.down), j), size))
        found: list[str] = []
        for n, place in enumerate(places):
            items = x.load(vector(LANES, element(g.dtype)), x.at(begin, n * LANES * size))
            found.append(str(widened(self._floats, g.dtype, items)))
            x.store(self.type, found[-1], place)
        return found

    def _windows(
        self, windows: Windows, i: Val, right: Right, high: int, first: list[str]
    ) -> list[str]:
        x, run = self.x, windows.run
        rows = windows.rows(x, "%p4", x.add(i, "%p8"), high)

        def step(n: Val, sums: list[str]) -> list[str]:
            here = [x.at(row, windows.skipped(x, n)) for row in rows]
            return self._products(run, here, lambda k: right(x.add(x.mul(n, run), k)), sums)

        return x.fold(x.over("%p1", run), [self.type] * len(first), first, step)

    def _products(
        self, count: Val, rows: Sequence[str], right: Right, first: list[str]
    ) -> list[str]:
        """So many steps along k: each row times each vector of columns, added up."""
        x, many = self.x, _STEPS if len(rows) > 1 else 1

        def step(k: Val, sums: list[str]) -> list[str]:
            vectors, found = right(k), list[str]()
            for row in rows:
                one = x.load(self.kind, x.at(row, x.mul(k, 4)))
                left = spread(x, self.kind, LANES, one)
                for each in vectors:
                    found.append(self._add(left, each, sums[len(found)]))
            return found

        def some(n: Val, sums: list[str]) -> list[str]:
            for more in range(many):
                sums = step(x.add(x.mul(n, many), more), sums)
            return sums

        types = [self.type] * len(first)
        sums = x.fold(x.over(count, many), types, first, some)
        if many == 1 or self.is_whole:
            return sums
        done = x.mul(x.over(count, many), many)
        return x.fold(x.sub(count, done), types, sums, lambda n, sums: step(x.add(done, n), sums))

    def _add(self, a: str, b: str, total: Val) -> str:
        x, type = self.x, self.type
        if self.of_bytes:
            return byte_products(x, a, b, total)
        if self.kind == "i32":
            term = x.new(f"mul {type} {a}, {b}")
            return x.new(f"add {type} {total}, {term}")
        found = self._floats.intrinsic("fma", lanes.F32, a, b, total)
        asked = (a, b, total) if self.limit == LIMITED_IF_FINITE else ()
        return self._limited(found, asked) if self.limit else found

    @property
    def _floats(self) -> lanes.Lanes:
        return lanes.Lanes(self.x, LANES)

    def _limited(self, total: str, asked: Sequence[Val]) -> str:
        """Clamp a sum to the finite numbers, if all of `asked` are finite."""
        spot, kind, found = self._floats, lanes.F32, total
        for word, end in (("minnum", _MOST), ("maxnum", -_MOST)):
            found = spot.intrinsic(word, kind, found, spot.constant(kind, end).name)
        for each in asked:
            whole = isfinite(spot.symbol(kind, each))  # type: ignore[arg-type]
            either = spot.symbol(kind, found), spot.symbol(kind, total)
            found = str(lanes.where(spot, whole, *either).name)
        return found

    def _finish(self, i: Val, j: Val, total: Val, wide: int) -> None:
        """Add the initial value and store the sum; the last columns are masked."""
        x, mask = self.x, None
        if wide == 1:
            left = x.smaller(x.sub("%p2", j), LANES)
            mask = planes.head(x, LANES, left)
        if self.start is not None:
            g, is_row = self.start
            where = self._place(g, 0 if is_row else i, j)
            old = planes.load_lanes(x, self.dtype, LANES, x.at("%p6", where), mask)
            op, parts = "fadd" if self.kind == "float" else "add", (old, total)
            total = x.new(f"{op} {self.type} {old}, {total}")
            if self.limit:
                total = self._limited(total, parts)
        to = x.at("%p3", self._place(self.out, i, j))
        planes.store_lanes(x, self.dtype, LANES, total, to, mask)

    def _place(self, g: Grid, i: Val, j: Val) -> Val:
        """Bytes from the tile's address to (i, j); j is a multiple of the lanes."""
        x, (h, w) = self.x, g.box
        if w == 1:  # no boxes: columns follow each other
            unsupported_if(g.right != 1, "an addend whose rows are no runs")
            return x.mul(x.add(x.mul(i, g.down), j), 4)
        unsupported_if(w % LANES, "boxes narrower than a vector")
        down = x.add(x.mul(x.over(i, h), g.down), x.mul(x.rest(i, h), g.row))
        right = x.add(x.mul(x.over(j, w), g.right), x.rest(j, w))
        return x.mul(x.add(down, right), 4)
