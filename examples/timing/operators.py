"""Operators of one or two arrays as natural tile kernels: elementwise, by rows, transposed, copied.

They stand for vendor operators whose tiling is not published: even shares of the work for all
vector cores, tiles in two sets of buffers, 16-bit values computed in f32.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pto
from pto import isa

F32: Any = pto.f32
LANES = 64  # elements of a row are padded to these
TILE = 8192  # elements, as f32 32 KB
TRANSPOSED = 64  # rows and columns of a transposed tile


class Buffers:
    """Tiles one behind the other in UB."""

    def __init__(self) -> None:
        self.end = 0

    def tile(self, rows: int, cols: int, dtype: Any, **more: Any) -> pto.Tile:
        found = pto.tile(rows, cols, dtype, address=self.end, **more)
        self.end += -(-rows * cols * dtype.itemsize // 32) * 32
        return found


def begin(buffers: int) -> None:
    """Every buffer is free at first."""
    for b in range(buffers):
        isa.set_flag("V", "MTE2", b)
        isa.set_flag("MTE3", "V", b)


def end(buffers: int) -> None:
    for b in range(buffers):
        isa.wait_flag("V", "MTE2", b)
        isa.wait_flag("MTE3", "V", b)


def turn(
    b: int, load: Callable[[], None], compute: Callable[[], None], store: Callable[[], None]
) -> None:
    """One tile through the pipes, in the buffers of turn `b`."""
    isa.wait_flag("V", "MTE2", b)
    load()
    isa.set_flag("MTE2", "V", b)
    isa.wait_flag("MTE2", "V", b)
    isa.wait_flag("MTE3", "V", b)
    compute()
    isa.set_flag("V", "MTE2", b)
    isa.set_flag("V", "MTE3", b)
    isa.wait_flag("V", "MTE3", b)
    store()
    isa.set_flag("MTE3", "V", b)


def exp(t: pto.Tile, _: pto.Tile, source: pto.Tile) -> None:
    isa.texp(t, source)


def sigmoid(t: pto.Tile, u: pto.Tile, source: pto.Tile) -> None:
    """1 / (1 + exp(-x))"""
    isa.tmuls(u, source, -1.0)
    isa.barrier("V")
    isa.texp(u, u)
    isa.barrier("V")
    isa.tadds(u, u, 1.0)
    isa.barrier("V")
    isa.trecip(t, u)


def gelu(t: pto.Tile, u: pto.Tile, source: pto.Tile) -> None:
    """x / (1 + exp(-1.5958 (x + 0.044715 x^3)))"""
    isa.tmul(u, source, source)
    isa.barrier("V")
    isa.tmuls(u, u, -0.07135481627)
    isa.barrier("V")
    isa.tadds(u, u, -1.59576912161)
    isa.barrier("V")
    isa.tmul(u, u, source)
    isa.barrier("V")
    isa.texp(u, u)
    isa.barrier("V")
    isa.tadds(u, u, 1.0)
    isa.barrier("V")
    isa.tdiv(t, source, u)


UNARY = {"exp": exp, "sigmoid": sigmoid, "gelu": gelu}


@cache
def elementwise(name: str) -> Any:
    """`y = f(x)` on flat arrays; 16-bit values are converted, computed in f32, converted back."""
    operation = UNARY[name]

    @pto.kernel(profile="a2a3")
    def kernel(x: pto.Global[Any], y: pto.Global[Any], width: int, tiles: int) -> None:
        ub, dtype = Buffers(), x.dtype
        narrow = dtype.itemsize < 4
        sets = [[ub.tile(1, width, dtype) for _ in range(2)] for _ in range(2)]
        wide, spare = ub.tile(1, width, F32), ub.tile(1, width, F32)
        first = pto.block_idx() * tiles * width

        def compute(source: pto.Tile, result: pto.Tile) -> None:
            if narrow:
                isa.tcvt(wide, source)
                isa.barrier("V")
            operation(wide if narrow else result, spare, wide if narrow else source)
            if narrow:
                isa.barrier("V")
                isa.tcvt(result, wide)

        def step(b: int, at: Any) -> None:
            source, result = sets[b]
            turn(
                b,
                lambda: isa.tload(source, x[0:1, at : at + width]),
                lambda: compute(source, result),
                lambda: isa.tstore(y[0:1, at : at + width], result),
            )

        begin(2)
        for i in pto.range(0, tiles, 2):
            for b in (0, 1):
                step(b, min(first + (i + b) * width, x.shape[1] - width))
        end(2)

    return kernel


@pto.kernel(profile="a2a3")
def maximum(
    x: pto.Global[Any],
    y: pto.Global[Any],
    z: pto.Global[Any],
    width: int,
    tiles: int,
    convert: bool,
) -> None:
    """`z = max(x, y)` on flat arrays; `convert`: compared in f32."""
    ub, dtype = Buffers(), x.dtype
    sets = [[ub.tile(1, width, dtype) for _ in range(3)] for _ in range(2)]
    wide = [ub.tile(1, width, F32) for _ in range(2)] if convert else []
    first = pto.block_idx() * tiles * width

    def compute(one: pto.Tile, other: pto.Tile, result: pto.Tile) -> None:
        if not convert:
            isa.tmax(result, one, other)
            return
        isa.tcvt(wide[0], one)
        isa.tcvt(wide[1], other)
        isa.barrier("V")
        isa.tmax(wide[0], wide[0], wide[1])
        isa.barrier("V")
        isa.tcvt(result, wide[0])

    def step(b: int, at: Any) -> None:
        one, other, result = sets[b]

        def load() -> None:
            isa.tload(one, x[0:1, at : at + width])
            isa.tload(other, y[0:1, at : at + width])

        turn(
            b,
            load,
            lambda: compute(one, other, result),
            lambda: isa.tstore(z[0:1, at : at + width], result),
        )

    begin(2)
    for i in pto.range(0, tiles, 2):
        for b in (0, 1):
            step(b, min(first + (i + b) * width, x.shape[1] - width))
    end(2)


@pto.kernel(profile="a2a3")
def rms_norm(
    x: pto.Global[Any], weight: pto.Global[Any], y: pto.Global[Any], rows: int, tiles: int
) -> None:
    """`y = x / sqrt(mean(x^2)) * weight` by whole rows: `tiles` tiles of `rows` rows a block."""
    ub, dtype, cols = Buffers(), x.dtype, -(-x.shape[1] // LANES) * LANES
    narrow, valid, high = dtype.itemsize < 4, x.shape[1], -(-rows // 8) * 8
    sources = [ub.tile(rows, cols, dtype, valid=(rows, valid)) for _ in range(2)]
    squares = ub.tile(rows, cols, F32, valid=(rows, valid))
    wide = ub.tile(rows, cols, F32, valid=(rows, valid)) if narrow else squares
    work = ub.tile(rows, LANES, F32)
    scale, given = (ub.tile(1, cols, kind, valid=(1, valid)) for kind in (F32, dtype))
    sums = ub.tile(high, 1, F32, layout="DN", valid=(rows, 1))
    line = isa.treshape(sums, to=pto.tile_type(1, high, F32))
    isa.tload(given, weight)
    isa.set_flag("MTE2", "V", 2)
    isa.wait_flag("MTE2", "V", 2)
    if narrow:
        isa.tcvt(scale, given)
        isa.barrier("V")

    def compute(source: pto.Tile, _: pto.Tile) -> None:
        values = source
        if narrow:
            isa.tcvt(wide, source)
            isa.barrier("V")
            values = wide
        isa.tmul(squares, values, values)
        isa.barrier("V")
        isa.trowsum(sums, squares, work)
        isa.barrier("V")
        isa.tmuls(line, line, 1.0 / valid)
        isa.barrier("V")
        isa.tsqrt(line, line)
        isa.barrier("V")
        isa.trowexpanddiv(values, values, sums)
        isa.barrier("V")
        isa.tcolexpandmul(values, values, scale if narrow else given)
        if narrow:
            isa.barrier("V")
            isa.tcvt(source, wide)

    in_place(x, y, (sources, sources), rows, tiles, compute)


@pto.kernel(profile="a2a3")
def argmax(
    x: pto.Global[Any], y: pto.Global[pto.u32], rows: int, tiles: int, convert: bool
) -> None:
    """The column of the greatest element of each row; `convert`: compared in f32."""
    ub, dtype, cols = Buffers(), x.dtype, -(-x.shape[1] // LANES) * LANES
    valid, high = x.shape[1], -(-rows // 16) * 16
    sources = [ub.tile(rows, cols, dtype, valid=(rows, valid)) for _ in range(2)]
    results = [ub.tile(high, 1, pto.u32, layout="DN", valid=(rows, 1)) for _ in range(2)]
    kind = F32 if convert else dtype
    wide = ub.tile(rows, cols, kind, valid=(rows, valid)) if convert else sources[0]
    work = ub.tile(rows, cols, kind, valid=(rows, valid))

    def compute(source: pto.Tile, result: pto.Tile) -> None:
        if convert:
            isa.tcvt(wide, source)
            isa.barrier("V")
        isa.trowargmax(result, wide if convert else source, tmp=work)

    in_place(x, y, (sources, results), rows, tiles, compute)


def in_place(
    x: Any,
    y: Any,
    buffers: tuple[list[pto.Tile], list[pto.Tile]],
    rows: int,
    tiles: int,
    compute: Callable[[pto.Tile, pto.Tile], None],
) -> None:
    """Rows through the pipes, sources and results of two turns; the last tile may overlap."""
    first = pto.block_idx() * tiles * rows
    for b in (0, 1):
        isa.set_flag("MTE3", "MTE2", b)

    def step(b: int, at: Any) -> None:
        source, result = buffers[0][b], buffers[1][b]
        isa.wait_flag("MTE3", "MTE2", b)
        isa.tload(source, x[at : at + rows, :])
        isa.set_flag("MTE2", "V", b)
        isa.wait_flag("MTE2", "V", b)
        compute(source, result)
        isa.set_flag("V", "MTE3", b)
        isa.wait_flag("V", "MTE3", b)
        isa.tstore(y[at : at + rows, :], result)
        isa.set_flag("MTE3", "MTE2", b)

    for i in pto.range(0, tiles, 2):
        for b in (0, 1):
            step(b, min(first + (i + b) * rows, x.shape[0] - rows))
    for b in (0, 1):
        isa.wait_flag("MTE3", "MTE2", b)


@pto.kernel(profile="a2a3")
def transpose(x: pto.Global[Any], y: pto.Global[Any], across: int, count: int, tiles: int) -> None:
    """`y = x.T` by tiles of 64 x 64, `across` of them side by side; `tiles` a block."""
    ub, dtype, side = Buffers(), x.dtype, TRANSPOSED
    sets = [[ub.tile(side, side, dtype) for _ in range(2)] for _ in range(2)]
    work = ub.tile(side, side, dtype)

    def step(b: int, row: Any, col: Any) -> None:
        source, result = sets[b]
        turn(
            b,
            lambda: isa.tload(source, x[row : row + side, col : col + side]),
            lambda: isa.ttrans(result, source, work),
            lambda: isa.tstore(y[col : col + side, row : row + side], result),
        )

    begin(2)
    for i in pto.range(0, tiles, 2):
        for b in (0, 1):
            tile = (pto.block_idx() * tiles + i + b) % count
            step(b, tile // across * side, tile % across * side)
    end(2)


@pto.kernel(profile="a2a3")
def copy(x: pto.Global[Any], y: pto.Global[Any], width: int, tiles: int) -> None:
    """`y = x` on flat arrays: `tiles` tiles a block, in four buffers; no vector instruction."""
    ub, buffers = Buffers(), 4
    mine = [ub.tile(1, width, x.dtype) for _ in range(buffers)]
    first = pto.block_idx() * tiles * width
    for b in range(buffers):
        isa.set_flag("MTE3", "MTE2", b)

    def step(b: int, at: Any) -> None:
        isa.wait_flag("MTE3", "MTE2", b)
        isa.tload(mine[b], x[0:1, at : at + width])
        isa.set_flag("MTE2", "MTE3", b)
        isa.wait_flag("MTE2", "MTE3", b)
        isa.tstore(y[0:1, at : at + width], mine[b])
        isa.set_flag("MTE3", "MTE2", b)

    for i in pto.range(0, tiles, buffers):
        for b in range(buffers):
            step(b, min(first + (i + b) * width, x.shape[1] - width))
    for b in range(buffers):
        isa.wait_flag("MTE3", "MTE2", b)
