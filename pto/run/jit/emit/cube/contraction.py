"""Products of matrices: factors unpacked, then multiplied in blocks of 4 rows by 64 columns; k runs
in order, each step fused: the bits of `meaning/cube/contraction.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pto.core.dtypes import F32, I32, DType
from pto.run.jit.emit.cube.unpack import FACTORS, Room, unpack
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import NotNative, Text, Val, vector

_LANES: Final = 16
_HIGH, _WIDE = 4, 4  # rows, and vectors of columns, whose sums stay in registers
_PANEL: Final = _WIDE * _LANES  # columns of the right factor that lie together: they stay in cache
_TALLEST: Final = 32  # rows of a box
RIGHT_AT: Final = 1 << 19  # where the right factor lies in the scratch memory


@dataclass(frozen=True, slots=True)
class Matrix:
    """Where a matrix lies, and the most rows and columns it can have."""

    grid: Grid
    pointer: str
    rows: int
    cols: int


def kind_of(a: DType, b: DType, dst: DType) -> str:
    """What factors are unpacked to, and sums are kept in."""
    into = {F32: "float", I32: "i32"}.get(dst)
    if into is None or {FACTORS.get(a), FACTORS.get(b)} != {into}:
        raise NotNative("a product of these types")
    return into


@dataclass(frozen=True, slots=True)
class Factors:
    """Both factors, unpacked in the scratch memory: the left row by row, the right in panels."""

    left: str
    right: str
    rooms: tuple[Room, Room]


def unpacked(s: Spot, sizes: tuple[Val, Val, Val], a: Matrix, b: Matrix) -> Factors:
    m, k, n = sizes
    high = -(-b.rows // _TALLEST) * _TALLEST
    rooms = Room(-(-a.cols // _LANES) * _LANES), Room(_PANEL, high * _PANEL)
    wide = -(-b.cols // _PANEL)
    if a.rows * rooms[0].line * 4 > RIGHT_AT or rooms[1].panel * wide * 4 > RIGHT_AT:
        raise NotNative("factors larger than the scratch memory")
    left, right = s.e.room(), s.x.at(s.e.room(), RIGHT_AT)
    unpack(s, left, rooms[0], a.grid, a.pointer, m, k)
    unpack(s, right, rooms[1], b.grid, b.pointer, k, n)
    return Factors(left, right, rooms)


def changed(
    s: Spot,
    sizes: tuple[int, int, int],
    factors: Factors,
    key: str,
    change: Callable[[Any], Any],
) -> None:
    """Every element of both factors, f32, becomes change(element), in place."""

    def make(name: str) -> str:
        x = Text()
        spot = lanes.Lanes(x, _LANES, s.e.unit.declare)

        def some(at: Val) -> None:
            place = x.at("%p0", at)
            value = spot.symbol(lanes.F32, x.load(spot.type(lanes.F32), place))
            x.store(spot.type(lanes.F32), change(value).name, place)

        planes.loop(x, "%p1", 4 * _LANES, some)
        x.do("ret void")
        return x.function(f"define internal void {name}(ptr %p0, i64 %p1) noinline nounwind")

    (m, _, n), name = sizes, s.e.unit.shared(key, make)
    left, right = m * factors.rooms[0].line, -(-n // _PANEL) * factors.rooms[1].panel
    for place, count in ((factors.left, left), (factors.right, right)):
        s.x.do(f"call void {name}(ptr {place}, i64 {4 * count})")


def multiply(
    s: Spot,
    sizes: tuple[Val, Val, Val],
    factors: Factors,
    dst: Matrix,
    start: Matrix | None,
    *,
    is_row: bool = False,
) -> None:
    """dst = left x right, plus `start`: a matrix, or one row for all, or dst itself; nothing else
    may overlap."""
    x, (m, k, n), rooms = s.x, sizes, factors.rooms
    kind = "float" if dst.grid.dtype is F32 else "i32"
    first, shape = ("null", None) if start is None else (start.pointer, (start.grid, is_row))
    key = repr(("product", kind, rooms, dst.grid, shape))
    name = s.e.unit.shared(key, lambda f: _multiply(s, f, kind, rooms, dst.grid, shape))
    pointers = ", ".join(f"ptr {p}" for p in (dst.pointer, factors.left, factors.right, first))
    x.do(f"call void {name}(i64 {m}, i64 {k}, i64 {n}, {pointers})")


def _multiply(
    s: Spot,
    name: str,
    kind: str,
    rooms: tuple[Room, Room],
    out: Grid,
    start: tuple[Grid, bool] | None,
) -> str:
    """void f(m, k, n, dst, lhs, rhs, start)"""
    x = Text()
    panels = x.new(f"udiv i64 %p2, {_PANEL}")
    fours = x.new("and i64 %p0, -4")
    block = _Block(s, x, kind, rooms, out, start)

    def strip(first: Val, wide: int) -> None:
        planes.loop(x, fours, 4, lambda i: block.write(i, first, _HIGH, wide))
        planes.loop(x, "%p0", 1, lambda i: block.write(i, first, 1, wide), start=fours)

    planes.loop(x, panels, 1, lambda g: strip(x.mul(g, _PANEL), _WIDE))
    done = x.mul(panels, _PANEL)
    planes.loop(x, "%p2", _LANES, lambda j: strip(j, 1), start=done)
    x.do("ret void")
    listed, _ = planes.parameters(["i64"] * 3 + ["ptr"] * 4)
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
    ) -> None:
        self.x = x
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

        sums = reduced_many(x, "%p1", self.type, [zero] * (high * wide), step)
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
        if self.kind == "i32":
            term = x.new(f"mul {type} {a}, {b}")
            return x.new(f"add {type} {total}, {term}")
        name = f"@llvm.fma.v{_LANES}f32"
        self.declare(f"declare {type} {name}({type}, {type}, {type})")
        return x.new(f"call {type} {name}({type} {a}, {type} {b}, {type} {total})")

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
            op = "fadd" if self.kind == "float" else "add"
            total = x.new(f"{op} {self.type} {old}, {total}")
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
