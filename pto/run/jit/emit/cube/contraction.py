"""Products of matrices: operands are multiplied in blocks of 6 rows by 64 columns. The
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
from pto.run.jit.emit.cube.factors import LANES, PANEL, Factors, Matrix, byte_products
from pto.run.jit.emit.cube.unpack import widened
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.copies import Work
from pto.run.jit.emit.tile.move import transfer
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access, Strided, position
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.shuffles import spread
from pto.run.jit.llvm.text import Text, element, vector
from pto.run.jit.llvm.value import Condition, Val

_MOST = np.finfo(np.float32).max
# Rows of a block: their sums stay in registers. Blocks of 4 rows take the rest of blocks of 6.
_HIGH = 6
_LOWER = 4
_NARROW = 8  # the last one beside the panels, where a block is one vector wide
_STEPS = 4  # along k in one iteration: data that arrive late delay fewer of them

Change = tuple[str, Callable[[Any], Any]]  # by its name
Right = Callable[[Val], list[str]]  # the vectors of a row of the right factor


def changed(s: OpContext, sizes: tuple[int, int, int], factors: Factors, *changes: Change) -> None:
    """Every element of either factor, f32, becomes change(element), in place."""
    m, k, n = sizes
    places = (factors.left, m, k), (factors.right, k, n)
    for (place, rows, cols), (key, change) in zip(places, changes, strict=True):
        transfer(s, rows, cols, place, place, Work(change), key)


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
    x, (m, k, n) = s.x, sizes
    of_bytes = bool(factors.begins)
    k = x.up(k, 4) if of_bytes else k
    kind, out = "float" if dst.layout.dtype is F32 else "i32", dst.layout
    first = "null" if start is None else start.access.pointer
    shape = None if start is None else (start.layout, is_row)
    places = dst.access, factors.left, factors.right
    given = Parameters(*(("i64", n) for n in (m, k, n)), *(("ptr", p.pointer) for p in places))
    given.add("ptr", first)
    given.add("ptr", factors.begins or "null")
    given.add("i64", _high_rows(x, m))
    left, right = factors.left.layout.renamed(given.name), factors.right.layout
    source = factors.source
    if source is not None:
        pointer = str(given.name(source.pointer, "ptr"))
        source = Access(source.layout.renamed(given.name), pointer)
    unpacking = given.name(_rows_if(x, factors.unpacks))
    along = k if len(left.cols) == 1 else left.cols[0].extent
    whole = isinstance(along, int) and along % _STEPS == 0
    facts = left, right, out, shape, of_bytes, limit, whole, source
    key = repr(("product", kind, *facts, unpacking))
    rows = (out,) if start is None or is_row else (out, start.layout)
    unsupported_if(not all(map(_has_vectors, rows)), "an accumulator whose rows are no runs")

    def write(x: Text) -> None:
        _multiply(x, _Block(x, kind, *facts), unpacking)

    s.call(key, given.given, write)


def _has_vectors(g: Strided) -> bool:
    """True if the elements of a vector follow each other, from a multiple of its lanes on."""
    return g.cols[0].stride == 1 and g.cols[0].extent % LANES == 0  # REST is 0


def _high_rows(x: Text, m: Val) -> Val:
    """The rows that blocks of 6 take: where possible as many as leave whole blocks of 4."""
    if isinstance(m, int):
        whole = (n for n in range(m // _HIGH * _HIGH, -1, -_HIGH) if (m - n) % _LOWER == 0)
        return next(whole, m // _HIGH * _HIGH)
    return x.mul(x.over(m, _HIGH), _HIGH)


def _rows_if(x: Text, unpacks: Condition) -> Val:
    """The rows of the block that unpacks the right factor."""
    if unpacks.is_known:
        return _HIGH if unpacks.is_true else 0
    return x.new(f"select i1 {unpacks}, i64 {_HIGH}, i64 0")


def _multiply(x: Text, block: _Block, unpacking: Val) -> None:
    """f(m, k, n, dst, lhs, rhs, start, begins, rows of blocks of 6, ..). `unpacking`: the number of
    rows that unpack the right factor."""
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

    lower = x.add("%p8", x.mul(x.over(x.sub("%p0", "%p8"), _LOWER), _LOWER))
    narrow = x.mul(x.over("%p0", _NARROW), _NARROW)
    in_panels = [(_HIGH, "%p8"), (_LOWER, lower), (1, "%p0")]
    x.loop(panels, PANEL, lambda j: strip(j, PANEL // LANES, in_panels))
    x.loop("%p2", LANES, lambda j: strip(j, 1, [(_NARROW, narrow), (1, "%p0")]), start=panels)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of rows by vectors of columns, computed in registers over all of k."""

    x: Text
    kind: str
    left: Strided
    right: Strided
    out: Strided
    start: tuple[Strided, bool] | None  # the layout of the addend, and whether it is one row
    of_bytes: bool
    limit: int
    is_whole: bool  # True if k is known to be a multiple of the steps of an iteration
    source: Access | None  # of the right factor, in rows

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
        if self.source is not None and high == _HIGH and not unpacks:
            right = self._prefetching(right, self.source, i, j)
        rows = _starts(x, self.left, "%p4", i, high)
        if len(self.left.cols) == 1:
            sums = self._products("%p1", rows, right, first * high)
        else:
            sums = self._runs(rows, right, first * high)
        for n in range(high):
            for w in range(wide):
                self._finish(x.add(i, n), x.add(j, w * LANES), sums[n * wide + w], wide)

    def _right(self, j: Val, wide: int, source: Access | None, k: Val) -> list[str]:
        """Row k of the right factor from column j on. `source`: unpack it from there."""
        x = self.x
        line = x.at(self.right.at(x, "%p5", 0, j), x.mul(k, 4 * PANEL))
        places = [x.at(line, 4 * LANES * n) for n in range(wide)]
        if source is None:
            return [x.load(self.type, place) for place in places]
        g = source.layout
        spot = self._floats
        found = list[str]()
        begin = g.at(x, source.pointer, k, j)
        for n, place in enumerate(places):
            at = x.at(begin, n * LANES * g.dtype.itemsize)
            items = x.load(vector(LANES, element(g.dtype)), at)
            value = widened(spot.symbol(kinds.symbol_type(g.dtype), items), g.dtype)
            found.append(str(value.name))
            x.store(self.type, found[-1], place)
        return found

    def _prefetching(self, right: Right, source: Access, i: Val, j: Val) -> Right:
        """`right`, and each row also asks for a vector of the panel that is unpacked next: the next
        one, or the first one of the rows below, which the next product along k is likely to read.
        Four blocks of rows ask for a whole panel."""
        x, wide = self.x, PANEL // LANES
        is_last = x.compare("sgt", x.add(j, 2 * PANEL), "%p2")
        below = x.new(f"select i1 {is_last}, i64 %p1, i64 0")
        panel = x.new(f"select i1 {is_last}, i64 0, i64 {x.add(j, PANEL)}")
        column = x.add(panel, x.mul(x.rest(x.over(i, _HIGH), wide), LANES))

        def row(k: Val) -> list[str]:
            x.prefetch(source.layout.at(x, source.pointer, x.add(k, below), column))
            return right(k)

        return row

    def _runs(self, rows: Sequence[str], right: Right, first: list[str]) -> list[str]:
        """Rows whose elements are contiguous in runs along k."""
        x, ((run, _), *more) = self.x, self.left.cols

        def step(n: Val, sums: list[str]) -> list[str]:
            skipped = x.mul(position(x, tuple(more), n), 4)
            here = [x.at(row, skipped) for row in rows]
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
        found = self._floats.intrinsic("fma", kinds.F32, a, b, total)
        asked = (a, b, total) if self.limit == LIMITED_IF_FINITE else ()
        return self._limited(found, asked) if self.limit else found

    @property
    def _floats(self) -> lanes.Lanes:
        return lanes.Lanes(self.x, LANES)

    def _limited(self, total: str, asked: Sequence[Val]) -> str:
        """Clamp a sum to the finite numbers, if all of `asked` are finite."""
        spot = self._floats
        kind = kinds.F32
        found = total
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
            mask = masked.prefix_mask(x, LANES, left)
        if self.start is not None:
            g, is_row = self.start
            at = g.at(x, "%p6", 0 if is_row else i, j)
            old = masked.load_lanes(x, self.dtype, LANES, at, mask)
            op, parts = "fadd" if self.kind == "float" else "add", (old, total)
            total = x.new(f"{op} {self.type} {old}, {total}")
            if self.limit:
                total = self._limited(total, parts)
        to = self.out.at(x, "%p3", i, j)
        masked.store_lanes(x, self.dtype, LANES, total, to, mask)


def _starts(x: Text, g: Strided, base: str, i: Val, count: int) -> list[str]:
    """The addresses of `count` rows, from number `i` on."""
    if len(g.rows) == 1:
        step = x.mul(g.rows[0].stride, 4)
        return [x.at(base, x.mul(x.add(i, n), step)) for n in range(count)]
    (size, step), (_, down) = g.rows
    first, found = g.at(x, base, i, 0), list[str]()
    for n in range(count):
        if n >= size:
            found.append(g.at(x, base, x.add(i, n), 0))
            continue
        below = x.compare("sge", x.add(x.rest(i, size), n), size)
        back = 4 * (down - size * step)
        more = x.new(f"select i1 {below}, i64 {back}, i64 0") if n else 0
        found.append(x.at(first, x.add(more, 4 * n * step)))
    return found
