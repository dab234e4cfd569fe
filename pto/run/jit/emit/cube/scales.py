"""Block scales (MX): unpacked factors times 2^(scale - 127), one scale for 32 elements along k.

A factor of few bits times a power of two is exact in f32 unless the power is extreme; then, and
where a scale is NaN, the reference does the product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pto.core.constants import MX_BLOCK_SIZE, MX_COL_LEN, MX_ROW_LEN
from pto.core.dtypes import U8
from pto.isa.meaning.cube import factors as operands
from pto.run.jit.emit.cube.factors import Factors, Matrix
from pto.run.jit.emit.cube.unpack import RIGHT_AT, PanelLayout, unpack
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid, grid
from pto.run.jit.llvm.shuffles import spread
from pto.run.jit.llvm.text import Text, Val, unsupported_if
from pto.run.jit.runtime.values import TileDesc

_LEAST, _MOST = 27, 227  # scales that leave every factor of 8 bits a normal float
_LANES: Final = 16
_LEFT_SCALES, _RIGHT_SCALES = 2 * RIGHT_AT, 3 * RIGHT_AT  # in the scratch memory


def of_tiles(
    s: OpContext, limits: tuple[int, int, int], left: TileDesc, right: TileDesc
) -> tuple[Matrix, Matrix]:
    """Scales in tiles; `limits` are the largest sizes (m, k, n) there can be."""
    most, found = -(-limits[1] // MX_BLOCK_SIZE), list[Matrix]()
    for tile, rows, cols in ((left, limits[0], most), (right, most, limits[2])):
        unsupported_if(
            tile.type.itemsize != 1 or tile.type.rows < rows or tile.type.cols < cols,
            "scales of another type, or fewer than the factors may need",
        )
        bytes_ = replace(grid(tile), dtype=U8)
        found.append(Matrix(bytes_, planes.machine_address(s, tile), *tile.type.shape))
    return found[0], found[1]


def fragments(rows: int, depth: int) -> tuple[Grid, int, int]:
    """Scales as they lie beside L0A and L0B: boxes of 16 rows and two groups, along k first; the
    rows and groups there are."""
    along, across = operands.fragments(rows, depth)
    size, (h, w) = operands.FRAGMENT, (MX_ROW_LEN, MX_COL_LEN)
    return Grid(U8, (h, w), across * size, size, w, 1), along * h, across * w


def scaled(
    s: OpContext, sizes: tuple[Val, Val, Val], factors: Factors, scales: tuple[Matrix, Matrix]
) -> str:
    """Multiply both operands by their scales in place; returns True if that was exact."""
    x, (m, k, n) = s.x, sizes
    groups = x.up(k, MX_BLOCK_SIZE)
    places: list[tuple[str, int]] = []
    for matrix, at, rows, cols in zip(
        scales, (_LEFT_SCALES, _RIGHT_SCALES), (m, groups), (groups, n), strict=True
    ):
        to, line = x.at(s.e.scratch(), at), -(-matrix.cols // _LANES) * _LANES
        unpack(s, to, PanelLayout(line), matrix.grid, matrix.pointer, rows, cols)
        places.append((to, line))
    along = _call(s, "left", factors.left, factors.rooms[0], *places[0], m, k, _scale_rows)
    across = _call(s, "right", factors.right, factors.rooms[1], *places[1], k, n, _scale_columns)
    return x.both(along, across)


Write = Callable[[Text, PanelLayout, int, str], None]


def _call(
    s: OpContext,
    what: str,
    values: str,
    room: PanelLayout,
    scales: str,
    step: int,
    rows: Val,
    cols: Val,
    write: Write,
) -> str:
    """i1 f(rows, cols, values, scales)"""

    def make(name: str) -> str:
        x = Text(s.e.unit.declare)
        bad = x.stack("i32")
        x.store("i32", 0, bad, 4)
        write(x, room, step, bad)
        x.do(f"ret i1 {x.compare('eq', x.load('i32', bad, 4), '0', 'i32')}")
        listed = "i64 %p0, i64 %p1, ptr %p2, ptr %p3"
        return x.function(f"define internal i1 {name}({listed}) noinline nounwind")

    name = s.e.unit.shared(repr(("scales", what, room, step)), make)
    return s.x.new(f"call i1 {name}(i64 {rows}, i64 {cols}, ptr {values}, ptr {scales})")


def _scale_rows(x: Text, room: PanelLayout, step: int, bad: str) -> None:
    """One scale for 32 elements of a row."""

    def row(i: Val) -> None:
        values, scales = (x.at("%p2", x.mul(i, room.line * 4)), x.at("%p3", x.mul(i, step * 4)))

        def half(h: str) -> None:
            group = x.over(h, MX_BLOCK_SIZE // _LANES)
            one = x.load("i32", x.at(scales, x.mul(group, 4)), 4)
            all = spread(x, "i32", _LANES, one)
            _times(x, x.at(values, x.mul(h, _LANES * 4)), all, bad)

        x.loop(x.up("%p1", _LANES), 1, half)

    x.loop("%p0", 1, row)


def _scale_columns(x: Text, room: PanelLayout, step: int, bad: str) -> None:
    """One scale for 32 rows of a column."""

    def row(i: Val) -> None:
        values = x.at("%p2", x.mul(i, room.line * 4))
        scales = x.at("%p3", x.mul(x.over(i, MX_BLOCK_SIZE), step * 4))

        def strip(c: Val) -> None:
            place = x.mul(c, _LANES * 4)
            some = x.load(f"<{_LANES} x i32>", x.at(scales, place))
            kept = planes.head(x, _LANES, x.smaller(x.sub("%p1", x.mul(c, _LANES)), _LANES))
            plain = f"<{_LANES} x i32> splat (i32 127)"  # beside the last column nothing counts
            chosen = x.new(f"select <{_LANES} x i1> {kept}, <{_LANES} x i32> {some}, {plain}")
            column = room.column(x, x.mul(c, _LANES))
            _times(x, x.at(values, column), chosen, bad)

        x.loop(x.up("%p1", _LANES), 1, strip)

    x.loop("%p0", 1, row)


def _times(x: Text, pointer: str, scales: str, bad: str) -> None:
    """Values times 2^(scale - 127); remember a scale out of range."""
    ints, floats, bits = (f"<{_LANES} x {kind}>" for kind in ("i32", "float", "i1"))
    from_least = x.new(f"sub {ints} {scales}, splat (i32 {_LEAST})")
    out = x.new(f"icmp ugt {ints} {from_least}, splat (i32 {_MOST - _LEAST})")
    x.declare(f"declare i1 @llvm.vector.reduce.or.v{_LANES}i1({bits})")
    any_ = x.new(f"call i1 @llvm.vector.reduce.or.v{_LANES}i1({bits} {out})")
    old = x.load("i32", bad, 4)
    x.store("i32", x.new(f"or i32 {old}, {x.new(f'zext i1 {any_} to i32')}"), bad, 4)
    power = x.new(f"bitcast {ints} {x.new(f'shl {ints} {scales}, splat (i32 23)')} to {floats}")
    x.store(floats, x.new(f"fmul {floats} {x.load(floats, pointer)}, {power}"), pointer)
