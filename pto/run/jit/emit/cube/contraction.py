"""Products of matrices: unpacked operands are multiplied in blocks of 8 rows by 32 columns. The
order along k and the fused steps are those of `meaning/cube/contraction.py`, so the bits are
too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pto.core.dtypes import F32, I32, DType
from pto.core.primitives import isfinite
from pto.run.jit.emit.cube.ahead import NextLoad
from pto.run.jit.emit.cube.factors import LANES, PANEL, Factors, Matrix, byte_products
from pto.run.jit.emit.cube.image import Windows
from pto.run.jit.emit.cube.unpack import PanelLayout
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.shuffles import spread
from pto.run.jit.llvm.text import Text, Val, unsupported_if, vector

_MOST = np.finfo(np.float32).max
_HIGH, _WIDE = 8, 2  # rows and vectors of columns of a block; its sums stay in registers

Change = tuple[str, Callable[[Any], Any]]  # by its name


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
    parts = (
        m // _HIGH * (n // PANEL * PANEL // LANES // _WIDE)
        if isinstance(m, int) and isinstance(n, int)
        else 0
    )
    ahead = [each.named(given) for each in factors.ahead] if parts else []
    key = repr(("product", kind, rooms, dst.grid, shape, of_bytes, limit, windows, ahead, parts))

    unaligned = dst.grid.col != 1 or dst.grid.box[1] % LANES
    unsupported_if(unaligned, "an accumulator whose rows are no runs")

    def write(x: Text) -> None:
        block = _Block(x, kind, rooms, dst.grid, shape, of_bytes, limit, windows)
        _multiply(x, block, ahead, parts)

    s.call(key, given.given, write)


def _multiply(x: Text, block: _Block, ahead: Sequence[NextLoad], parts: int) -> None:
    """f(m, k, n, dst, lhs, rhs, start, begins, first, addresses ahead)"""
    panels = x.new(f"udiv i64 %p2, {PANEL}")
    high = x.over("%p0", _HIGH)
    many = x.mul(high, _HIGH)

    def strip(first: Val, wide: int) -> None:
        def rows(i: Val, n: int) -> None:
            j = x.add(first, n * LANES)
            if wide > _WIDE:
                part = x.add(x.mul(x.over(j, _WIDE * LANES), high), x.over(i, _HIGH))
                for each in ahead:
                    each.fetch(x, part, parts)
            block.write(i, j, _HIGH, min(_WIDE, wide - n))

        for n in range(0, wide, _WIDE):
            x.loop(many, _HIGH, lambda i, n=n: rows(i, n))
        x.loop("%p0", 1, lambda i: block.write(i, first, 1, wide), start=many)

    x.loop(panels, 1, lambda g: strip(x.mul(g, PANEL), PANEL // LANES))
    done = x.mul(panels, PANEL)
    x.loop("%p2", LANES, lambda j: strip(j, 1), start=done)


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

    @property
    def type(self) -> str:
        return vector(LANES, self.kind)

    @property
    def dtype(self) -> DType:
        return F32 if self.kind == "float" else I32

    def write(self, i: Val, j: Val, high: int, wide: int) -> None:
        x = self.x
        first = ["zeroinitializer"] * wide
        if self.of_bytes:
            begins = x.at("%p7", x.mul(j, 4))
            first = [x.load(self.type, x.at(begins, 4 * LANES * n)) for n in range(wide)]
        column = x.at("%p5", self.rooms[1].column(x, j))
        if self.windows is None:
            line = self.rooms[0].line * 4
            rows = [x.at("%p4", x.mul(x.add(i, n), line)) for n in range(high)]
            sums = self._products("%p1", rows, column, first * high)
        else:
            sums = self._windows(self.windows, i, column, high, first * high)
        for n in range(high):
            for w in range(wide):
                self._finish(x.add(i, n), x.add(j, w * LANES), sums[n * wide + w], wide)

    def _windows(
        self, windows: Windows, i: Val, column: str, high: int, first: list[str]
    ) -> list[str]:
        x, run = self.x, windows.run
        rows = windows.rows(x, "%p4", x.add(i, "%p8"), high)

        def step(n: Val, sums: list[str]) -> list[str]:
            here = [x.at(row, windows.skipped(x, n)) for row in rows]
            below = x.at(column, x.mul(n, run * self.rooms[1].line * 4))
            return self._products(run, here, below, sums)

        return x.fold(x.over("%p1", run), [self.type] * len(first), first, step)

    def _products(
        self, count: Val, rows: Sequence[str], column: str, first: list[str]
    ) -> list[str]:
        """So many steps along k: each row times each vector of columns, added up."""
        x, wide = self.x, len(first) // len(rows)

        def step(k: Val, sums: list[str]) -> list[str]:
            line = x.at(column, x.mul(k, self.rooms[1].line * 4))
            right = [x.load(self.type, x.at(line, 4 * LANES * n)) for n in range(wide)]
            found: list[str] = []
            for n, row in enumerate(rows):
                one = x.load(self.kind, x.at(row, x.mul(k, 4)))
                left = spread(x, self.kind, LANES, one)
                for w, some in enumerate(right):
                    found.append(self._add(left, some, sums[n * wide + w]))
            return found

        return x.fold(count, [self.type] * len(first), first, step)

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
