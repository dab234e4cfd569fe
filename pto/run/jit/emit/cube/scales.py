"""Block scales (MX): unpacked factors times 2^(scale - 127), one scale for 32 elements along k.

A factor of few bits times a power of two is exact in f32 unless the power is extreme; then, and
where a scale is NaN, the reference does the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pto.core.constants import MX_BLOCK_SIZE, MX_COL_LEN, MX_ROW_LEN
from pto.core.dtypes import I32, U8
from pto.core.layout import REST, Mode
from pto.isa.meaning.cube import factors as operands
from pto.run.jit.emit.cube.factors import Factors, Matrix
from pto.run.jit.emit.cube.unpack import RIGHT_AT, unpack
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.tile_layouts import boxed_layout
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access, Strided, row_major
from pto.run.jit.llvm.shuffles import spread
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import Condition, Val
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
        place = masked.machine_address(s, tile)
        found.append(Matrix(Access(boxed_layout(tile).of(U8), place), *tile.type.shape))
    return found[0], found[1]


def fragments(rows: int, depth: int) -> tuple[Strided, int, int]:
    """Scales as they lie beside L0A and L0B: boxes of 16 rows and two groups, along k first; the
    rows and groups there are."""
    along, across = operands.fragments(rows, depth)
    size, (h, w) = operands.FRAGMENT, (MX_ROW_LEN, MX_COL_LEN)
    down = Mode(h, w), Mode(REST, across * size)
    return Strided(U8, down, (Mode(w, 1), Mode(REST, size))), along * h, across * w


def scaled(
    s: OpContext, sizes: tuple[Val, Val, Val], factors: Factors, scales: tuple[Matrix, Matrix]
) -> Condition:
    """Multiply both operands by their scales in place; returns True if that was exact."""
    x, (m, k, n) = s.x, sizes
    groups = x.up(k, MX_BLOCK_SIZE)
    places: list[Access] = []
    for matrix, at, rows, cols in zip(
        scales, (_LEFT_SCALES, _RIGHT_SCALES), (m, groups), (groups, n), strict=True
    ):
        pitch = -(-matrix.cols // _LANES) * _LANES
        places.append(Access(row_major(I32, pitch), x.at(s.e.scratch(), at)))
        unpack(s, places[-1], matrix.access, rows, cols)
    bad = x.stack("i32")
    x.store("i32", 0, bad, 4)
    _apply(s, factors.left, places[0], m, k, bad, _scale_rows)
    _apply(s, factors.right, places[1], k, n, bad, _scale_columns)
    return x.compare("eq", x.load("i32", bad, 4), "0", "i32")


Write = Callable[[Text, Strided, Strided], None]


def _apply(
    s: OpContext, values: Access, scales: Access, rows: Val, cols: Val, bad: str, write: Write
) -> None:
    """f(rows, cols, values, scales, bad)"""
    given = [("i64", rows), ("i64", cols), ("ptr", values.pointer), ("ptr", scales.pointer)]
    key = repr(("scales", write.__name__, values.layout, scales.layout))
    s.call(key, [*given, ("ptr", bad)], lambda x: write(x, values.layout, scales.layout))


def _scale_rows(x: Text, values: Strided, scales: Strided) -> None:
    """One scale for 32 elements of a row."""

    def row(i: Val) -> None:
        def half(h: str) -> None:
            group = x.over(h, MX_BLOCK_SIZE // _LANES)
            one = x.load("i32", scales.at(x, "%p3", i, group), 4)
            all = spread(x, "i32", _LANES, one)
            _times(x, values.at(x, "%p2", i, x.mul(h, _LANES)), all)

        x.loop(x.up("%p1", _LANES), 1, half)

    x.loop("%p0", 1, row)


def _scale_columns(x: Text, values: Strided, scales: Strided) -> None:
    """One scale for 32 rows of a column."""

    def row(i: Val) -> None:
        def strip(c: Val) -> None:
            some = x.load(f"<{_LANES} x i32>", scales.at(x, "%p3", x.over(i, MX_BLOCK_SIZE), c))
            kept = masked.prefix_mask(x, _LANES, x.smaller(x.sub("%p1", c), _LANES))
            plain = f"<{_LANES} x i32> splat (i32 127)"  # beside the last column nothing counts
            chosen = x.new(f"select <{_LANES} x i1> {kept}, <{_LANES} x i32> {some}, {plain}")
            _times(x, values.at(x, "%p2", i, c), chosen)

        x.loop("%p1", _LANES, strip)

    x.loop("%p0", 1, row)


def _times(x: Text, pointer: str, scales: str) -> None:
    """Values times 2^(scale - 127); remember a scale out of range."""
    ints, floats, bits = (f"<{_LANES} x {kind}>" for kind in ("i32", "float", "i1"))
    from_least = x.new(f"sub {ints} {scales}, splat (i32 {_LEAST})")
    out = x.new(f"icmp ugt {ints} {from_least}, splat (i32 {_MOST - _LEAST})")
    x.declare(f"declare i1 @llvm.vector.reduce.or.v{_LANES}i1({bits})")
    any_ = x.new(f"call i1 @llvm.vector.reduce.or.v{_LANES}i1({bits} {out})")
    old = x.load("i32", "%p4", 4)
    x.store("i32", x.new(f"or i32 {old}, {x.new(f'zext i1 {any_} to i32')}"), "%p4", 4)
    power = x.new(f"bitcast {ints} {x.new(f'shl {ints} {scales}, splat (i32 23)')} to {floats}")
    x.store(floats, x.new(f"fmul {floats} {x.load(floats, pointer)}, {power}"), pointer)
