"""Products of L0A and L0B into L0C by pointer, of sizes that are known when the code is made."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.dtypes import DType
from pto.isa.meaning.cube import mad
from pto.isa.meaning.cube.fractal import padded
from pto.isa.meaning.memory import registers
from pto.isa.meaning.memory.dma import element
from pto.run.jit.border import context
from pto.run.jit.border.state import register_offset
from pto.run.jit.border.values import Native, Place, Word
from pto.run.jit.emit.cube.contraction import Matrix, kind_of, multiply, unpacked
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm.text import NotNative


@emits(mad.MAD, mad.MAD_ACC, mad.MAD_BIAS)
def _mad(s: Spot) -> Sequence[Native]:
    if s.case.row.needs == "mx" or s.case.word("tf32_mode") is not None:
        raise NotNative("block scales, or factors of fewer bits")
    m, n, k = (_size(s, name) for name in ("m", "n", "k"))
    is_row = m == 1 and "disable_gemv" not in s.op.attrs  # the left factor lies in one piece
    a, b, dst = (s.need(Place, name) for name in ("lhs", "rhs", "dst"))
    kinds = [element(s.case, name) for name in ("lhs", "rhs", "dst")]
    kind_of(*kinds)
    left = _row(kinds[0]) if is_row else _strips(kinds[0], m)
    right, out = _strips(kinds[1], n), _accumulator(kinds[2], m)
    fits = s.e.inside(a.memory, a.address, _reach(left, m, k))
    fits = s.x.both(fits, s.e.inside(b.memory, b.address, _reach(right, n, k)))
    fits = s.x.both(fits, s.e.inside(dst.memory, dst.address, _reach(out, m, n)))
    start, biased = None, s.body is mad.MAD_BIAS
    if biased:
        table = s.need(Place, "bias")
        fits = s.x.both(fits, s.e.inside(table.memory, table.address, n * 4))
        start = Matrix(
            Grid(kinds[2], (1, 1), 0, 1, 0, 0), s.pointer(table.memory, table.address), 1, n
        )
    s.fault_unless(fits)
    into = Matrix(out, s.pointer(dst.memory, dst.address), m, n)
    if s.body is mad.MAD_ACC:
        start = into

    def run() -> None:
        lhs = Matrix(left, s.pointer(a.memory, a.address), m, k)
        rhs = Matrix(right.turned, s.pointer(b.memory, b.address), k, n)
        sizes = m, k, n
        multiply(s, sizes, unpacked(s, sizes, lhs, rhs), into, start, is_row=biased)

    planes.either_way(s, _keeps_specials(s), run)
    return []


def _size(s: Spot, name: str) -> int:
    """From 1 to 4095, as the reference checks."""
    word = s.need(Word, name).name
    if not isinstance(word, int) or not 1 <= int(word) <= mad.MOST:
        raise NotNative("a size that is known only when it runs")
    return word


def _strips(kind: DType, rows: int) -> Grid:
    """Strips of C0 columns, a row of 32 bytes after the other."""
    wide = C0_SIZE_BYTE // kind.itemsize
    box = (FRACTAL_NZ_ROW, wide)
    return Grid(kind, box, FRACTAL_NZ_ROW * wide, padded(rows) * wide, wide, 1)


def _row(kind: DType) -> Grid:
    """One row, strip behind strip."""
    wide = C0_SIZE_BYTE // kind.itemsize
    return Grid(kind, (1, wide), 0, wide, 0, 1)


def _accumulator(kind: DType, rows: int) -> Grid:
    side = FRACTAL_NZ_ROW
    return Grid(kind, (side, side), side * side, padded(rows) * side, side, 1)


def _reach(g: Grid, rows: int, cols: int) -> int:
    """Bytes from the first to the last row of the last strip."""
    wide = g.box[1]
    return ((-(-cols // wide) - 1) * g.right + rows * wide) * g.dtype.itemsize


def _keeps_specials(s: Spot) -> str:
    """Neither the instruction nor CTRL asks for saturation."""
    mode = s.case.word("sat_mode")
    if mode is not None:
        return "false" if mode == "sat" else "true"
    x = s.x
    ctrl = x.load("i64", x.at(s.e.word(context.REGISTERS), register_offset(registers.CTRL)), 8)
    kept = x.new(f"and i64 {ctrl}, {1 << registers.KEEP_SPECIALS}")
    return x.compare("ne", kept, 0)
