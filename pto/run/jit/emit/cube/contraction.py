"""Products of matrices: factors unpacked, then multiplied in blocks of 4 rows by 64 columns; k runs
in order, each step fused: the bits of `meaning/cube/contraction.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pto.core.dtypes import F32, I8, I32, U8, DType
from pto.run.jit.emit.cube.unpack import FACTORS, Room, in_words, unpack
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import lanes, native, shuffles
from pto.run.jit.llvm.text import NotNative, Text, Val, vector

_LANES: Final = 16
_HIGH, _WIDE = 8, 2  # rows, and vectors of columns, whose sums stay in registers
_PANEL: Final = 4 * _LANES  # columns of the right factor that lie together: they stay in cache
_TALLEST: Final = 32  # rows of a box
RIGHT_AT: Final = 1 << 19  # where the right factor lies in the scratch memory


@dataclass(frozen=True, slots=True)
class Matrix:
    """Where a matrix lies, and the most rows and columns it can have."""

    grid: Grid
    pointer: str
    rows: int
    cols: int


def kind_of(a: DType, b: DType, dst: DType, *, pairs: bool = False) -> str:
    """What factors are unpacked to, and sums are kept in; `pairs` of packed elements along k."""
    into = {F32: "float", I32: "i32"}.get(dst)
    mixed = {a.is_packed, b.is_packed} != {pairs}
    if into is None or mixed or {FACTORS.get(a), FACTORS.get(b)} != {into}:
        raise NotNative("a product of these types")
    return into


@dataclass(frozen=True, slots=True)
class Factors:
    """Both factors, unpacked in the scratch memory: the left row by row, the right in panels."""

    left: str
    right: str
    rooms: tuple[Room, Room]
    begins: str = ""  # of bytes, four in a word: what the sums of each column begin with


def unpacked(s: Spot, sizes: tuple[Val, Val, Val], a: Matrix, b: Matrix) -> Factors:
    """Both have items of m x k and k x n."""
    words = _in_words(a.grid, b.grid)
    if words is not None:
        return _bytes_unpacked(s, sizes, replace(a, grid=words[0]), replace(b, grid=words[1]), a)
    (m, k, n), deep = sizes, a.grid.dtype.values_per_item
    rooms = _rooms(replace(a, cols=a.cols * deep), replace(b, rows=b.rows * deep))
    left, right = s.e.room(), s.x.at(s.e.room(), RIGHT_AT)
    unpack(s, left, rooms[0], a.grid, a.pointer, m, k)
    unpack(s, right, rooms[1], b.grid, b.pointer, k, n, across=False)
    return Factors(left, right, rooms)


def _rooms(a: Matrix, b: Matrix) -> tuple[Room, Room]:
    high = -(-b.rows // _TALLEST) * _TALLEST
    rooms = Room(-(-a.cols // _LANES) * _LANES), Room(_PANEL, high * _PANEL)
    wide = -(-b.cols // _PANEL)
    if a.rows * rooms[0].line * 4 > RIGHT_AT or (rooms[1].panel + _PANEL) * wide * 4 > RIGHT_AT:
        raise NotNative("factors larger than the scratch memory")
    return rooms


# ---- bytes, where the machine multiplies unsigned by signed ones and adds four products at once


def _in_words(a: Grid, b: Grid) -> tuple[Grid, Grid] | None:
    if not native.target().has_byte_products or a.dtype not in (I8, U8) or b.dtype is not I8:
        return None
    left, right = in_words(a, across=True), in_words(b, across=False)
    return None if left is None or right is None else (left, right)


def _bytes_unpacked(
    s: Spot, sizes: tuple[Val, Val, Val], a: Matrix, b: Matrix, given: Matrix
) -> Factors:
    """A signed left factor is 128 too large as an unsigned one: its columns begin with -128 times
    the sum of the right one. Integers wrap, so that is exact."""
    x, (m, k, n) = s.x, sizes
    a, b = replace(a, cols=-(-a.cols // 4)), replace(b, rows=-(-b.rows // 4))
    rooms, words, panels = _rooms(a, b), x.up(k, 4), x.up(n, _PANEL)
    left, right = s.e.room(), x.at(s.e.room(), RIGHT_AT)
    signed = given.grid.dtype is I8
    unpack(s, left, rooms[0], a.grid, a.pointer, m, words, 0x80808080 if signed else 0)
    unpack(s, right, rooms[1], b.grid, b.pointer, words, n)
    begins = x.at(right, rooms[1].panel * -(-b.cols // _PANEL) * 4)
    name = s.e.unit.shared(
        repr(("begins", rooms[1], signed)), lambda f: _begins(s, f, rooms[1], 128 * signed)
    )
    x.do(f"call void {name}(i64 {k}, i64 {panels}, ptr {right}, ptr {begins})")
    return Factors(left, right, rooms, begins)


def _begins(s: Spot, name: str, room: Room, each: int) -> str:
    """void f(k, panels, right, begins). What lies behind the last byte of a column becomes 0."""
    x, type = Text(), vector(_LANES, "i32")
    splat = f"splat (i32 {each * 0x01010101})"
    words, rest = x.new("lshr i64 %p0, 2"), x.new("trunc i64 %p0 to i32")
    kept = x.new(f"shl i32 {x.new(f'and i32 {rest}, 3')}, 3")
    mask = x.new(f"sub i32 {x.new(f'shl i32 1, {kept}')}, 1")
    masks, odd = shuffles.spread(x, "i32", _LANES, mask), x.compare("ne", kept, 0, "i32")

    def panel(p: Val) -> None:
        for n in range(0, _PANEL, _LANES):
            column = x.at("%p2", x.add(x.mul(p, room.panel * 4), n * 4))

            def last(column: str = column) -> None:
                place = x.at(column, x.mul(words, room.line * 4))
                x.store(type, x.new(f"and {type} {x.load(type, place)}, {masks}"), place)

            x.when(odd, last)

            def step(k: Val, sums: list[str], column: str = column) -> list[str]:
                right = x.load(type, x.at(column, x.mul(k, room.line * 4)))
                return [_byte_products(x, s.e.unit.declare, splat, right, sums[0])]

            total = reduced_many(x, x.up("%p0", 4), type, ["zeroinitializer"], step)[0]
            place = x.at("%p3", x.add(x.mul(p, _PANEL * 4), n * 4))
            x.store(type, x.new(f"sub {type} zeroinitializer, {total}"), place)

    planes.loop(x, "%p1", 1, panel)
    x.do("ret void")
    listed, _ = planes.parameters(["i64", "i64", "ptr", "ptr"])
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


def _byte_products(x: Text, declare: Callable[[str], None], a: Val, b: Val, total: Val) -> str:
    """total + the four products of unsigned bytes of a by signed ones of b, in each word."""
    type, name = vector(_LANES, "i32"), "@llvm.x86.avx512.vpdpbusd.512"
    declare(f"declare {type} {name}({type}, {type}, {type})")
    return x.new(f"call {type} {name}({type} {total}, {type} {a}, {type} {b})")


# ---- products


Change = tuple[str, Callable[[Any], Any]]  # by its name


def changed(s: Spot, sizes: tuple[int, int, int], factors: Factors, *changes: Change) -> None:
    """Every element of either factor, f32, becomes change(element), in place."""

    def make(name: str, change: Callable[[Any], Any]) -> str:
        x = Text()
        spot = lanes.Lanes(x, _LANES, s.e.unit.declare)

        def some(at: Val) -> None:
            place = x.at("%p0", at)
            value = spot.symbol(lanes.F32, x.load(spot.type(lanes.F32), place))
            x.store(spot.type(lanes.F32), change(value).name, place)

        planes.loop(x, "%p1", 4 * _LANES, some)
        x.do("ret void")
        return x.function(f"define internal void {name}(ptr %p0, i64 %p1) noinline nounwind")

    m, _, n = sizes
    left, right = m * factors.rooms[0].line, -(-n // _PANEL) * factors.rooms[1].panel
    places = (factors.left, left), (factors.right, right)
    for (place, count), (key, change) in zip(places, changes, strict=True):
        name = s.e.unit.shared(key, partial(make, change=change))
        s.x.do(f"call void {name}(ptr {place}, i64 {4 * count})")


# How sums that overflow end: as they do, or at the largest number, which all of finite numbers do.
ENDLESS, LIMITED, LIMITED_IF_FINITE = range(3)


def multiply(
    s: Spot,
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
    key = repr(("product", kind, rooms, dst.grid, shape, of_bytes, limit))
    name = s.e.unit.shared(
        key, lambda f: _multiply(s, f, kind, rooms, dst.grid, shape, of_bytes, limit)
    )
    places = dst.pointer, factors.left, factors.right, first, factors.begins or "null"
    pointers = ", ".join(f"ptr {p}" for p in places)
    x.do(f"call void {name}(i64 {m}, i64 {k}, i64 {n}, {pointers})")


def _multiply(
    s: Spot,
    name: str,
    kind: str,
    rooms: tuple[Room, Room],
    out: Grid,
    start: tuple[Grid, bool] | None,
    of_bytes: bool,
    limit: int,
) -> str:
    """void f(m, k, n, dst, lhs, rhs, start, begins)"""
    x = Text()
    panels = x.new(f"udiv i64 %p2, {_PANEL}")
    many = x.mul(x.over("%p0", _HIGH), _HIGH)
    block = _Block(s, x, kind, rooms, out, start, of_bytes, limit)

    def strip(first: Val, wide: int) -> None:
        for n in range(0, wide, _WIDE):
            j, some = x.add(first, n * _LANES), min(_WIDE, wide - n)
            planes.loop(x, many, _HIGH, lambda i, j=j, some=some: block.write(i, j, _HIGH, some))
        planes.loop(x, "%p0", 1, lambda i: block.write(i, first, 1, wide), start=many)

    planes.loop(x, panels, 1, lambda g: strip(x.mul(g, _PANEL), _PANEL // _LANES))
    done = x.mul(panels, _PANEL)
    planes.loop(x, "%p2", _LANES, lambda j: strip(j, 1), start=done)
    x.do("ret void")
    listed, _ = planes.parameters(["i64"] * 3 + ["ptr"] * 5)
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


class _Block:
    """Some rows by some vectors of columns: all of k at once, in registers."""

    def __init__(
        self,
        s: Spot,
        x: Text,
        kind: str,
        rooms: tuple[Room, Room],
        out: Grid,
        start: tuple[Grid, bool] | None,
        of_bytes: bool,
        limit: int,
    ) -> None:
        self.x = x
        self.limit = limit
        self.of_bytes = of_bytes
        self.kind = kind
        self.type = vector(_LANES, kind)
        self.rooms = rooms
        self.out = out
        self.start = start
        self.declare = s.e.unit.declare
        self.dtype = F32 if kind == "float" else I32
        if out.col != 1 or out.box[1] % _LANES:
            raise NotNative("an accumulator whose rows are no runs")

    def write(self, i: Val, j: Val, high: int, wide: int) -> None:
        x = self.x
        zero, (a, b) = "zeroinitializer", self.rooms
        left_line = a.line
        rows = [x.at("%p4", x.mul(x.add(i, n), left_line * 4)) for n in range(high)]
        column = x.at("%p5", b.column(x, j))

        def step(k: Val, sums: list[str]) -> list[str]:
            line = x.at(column, x.mul(k, b.line * 4))
            right = [x.load(self.type, x.at(line, 4 * _LANES * n)) for n in range(wide)]
            found: list[str] = []
            for n, row in enumerate(rows):
                left = self._spread(x.load(self.kind, x.at(row, x.mul(k, 4))))
                for w, some in enumerate(right):
                    found.append(self._add(left, some, sums[n * wide + w]))
            return found

        first = [zero] * wide
        if self.of_bytes:
            begins = x.at("%p7", x.mul(j, 4))
            first = [x.load(self.type, x.at(begins, 4 * _LANES * n)) for n in range(wide)]
        sums = reduced_many(x, "%p1", self.type, first * high, step)
        for n in range(high):
            for w in range(wide):
                self._finish(x.add(i, n), x.add(j, w * _LANES), sums[n * wide + w], wide)

    def _spread(self, one: str) -> str:
        x, type = self.x, self.type
        first = x.new(f"insertelement {type} poison, {self.kind} {one}, i64 0")
        return x.new(
            f"shufflevector {type} {first}, {type} poison, <{_LANES} x i32> zeroinitializer"
        )

    def _add(self, a: str, b: str, total: Val) -> str:
        x, type = self.x, self.type
        if self.of_bytes:
            return _byte_products(x, self.declare, a, b, total)
        if self.kind == "i32":
            term = x.new(f"mul {type} {a}, {b}")
            return x.new(f"add {type} {total}, {term}")
        name = f"@llvm.fma.v{_LANES}f32"
        self.declare(f"declare {type} {name}({type}, {type}, {type})")
        found = x.new(f"call {type} {name}({type} {a}, {type} {b}, {type} {total})")
        asked = (a, b, total) if self.limit == LIMITED_IF_FINITE else ()
        return self._limited(found, asked) if self.limit else found

    def _limited(self, total: str, asked: Sequence[Val]) -> str:
        """Within the finite numbers, if all that are asked were."""
        x, type, found = self.x, self.type, total
        for word, end in (("minnum", "47EFFFFFE0000000"), ("maxnum", "C7EFFFFFE0000000")):
            name = f"@llvm.{word}.v{_LANES}f32"
            self.declare(f"declare {type} {name}({type}, {type})")
            found = x.new(f"call {type} {name}({type} {found}, {type} splat (float 0x{end}))")
        for each in asked:
            name, bits = f"@llvm.fabs.v{_LANES}f32", vector(_LANES, "i1")
            self.declare(f"declare {type} {name}({type})")
            size = x.new(f"call {type} {name}({type} {each})")
            whole = x.new(f"fcmp one {type} {size}, splat (float 0x7FF0000000000000)")
            found = x.new(f"select {bits} {whole}, {type} {found}, {type} {total}")
        return found

    def _finish(self, i: Val, j: Val, total: Val, wide: int) -> None:
        """Add what the sum starts with, and store; the last columns masked."""
        x, mask = self.x, None
        if wide == 1:
            left = x.smaller(x.sub("%p2", j), _LANES)
            mask = planes.head(x, _LANES, left)
        if self.start is not None:
            g, is_row = self.start
            where = self._place(g, 0 if is_row else i, j)
            old = planes.load_lanes(x, self.declare, self.dtype, _LANES, x.at("%p6", where), mask)
            op, parts = "fadd" if self.kind == "float" else "add", (old, total)
            total = x.new(f"{op} {self.type} {old}, {total}")
            if self.limit:
                total = self._limited(total, parts)
        to = x.at("%p3", self._place(self.out, i, j))
        planes.store_lanes(x, self.declare, self.dtype, _LANES, total, to, mask)

    def _place(self, g: Grid, i: Val, j: Val) -> Val:
        """Bytes from the tile's address to (i, j); j is a multiple of the lanes."""
        x, (h, w) = self.x, g.box
        if w == 1:  # no boxes: columns follow each other
            if g.right != 1:
                raise NotNative("an addend whose rows are no runs")
            return x.mul(x.add(x.mul(i, g.down), j), 4)
        if w % _LANES:
            raise NotNative("boxes narrower than a vector")
        down = x.add(x.mul(x.over(i, h), g.down), x.mul(x.rest(i, h), g.row))
        right = x.add(x.mul(x.over(j, w), g.right), x.rest(j, w))
        return x.mul(x.add(down, right), 4)


def reduced_many(
    x: Text,
    count: Val,
    type: str,
    first: Sequence[str],
    step: Callable[[str, list[str]], list[str]],
) -> list[str]:
    """Several running values: values = step(i, values) for i below count."""
    before, head, inside, done = x.here, x.fresh("sum"), x.fresh("in"), x.fresh("out")
    x.jump(head)
    x.label(head)
    place, i = len(x.lines), x.name()
    values = [x.name() for _ in first]
    more = x.new(f"icmp slt i64 {i}, {count}")
    x.branch(more, inside, done)
    x.label(inside)
    found = step(i, values)
    following = x.new(f"add nsw i64 {i}, 1")
    x.lines[place:place] = [
        f"  {i} = phi i64 [ 0, %{before} ], [ {following}, %{x.here} ]",
        *(
            f"  {name} = phi {type} [ {a}, %{before} ], [ {b}, %{x.here} ]"
            for name, a, b in zip(values, first, found, strict=True)
        ),
    ]
    x.jump(head)
    x.label(done)
    return values
