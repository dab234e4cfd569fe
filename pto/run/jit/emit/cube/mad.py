"""Products of L0A and L0B into L0C by pointer, of sizes that are known when the code is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.dtypes import F32, DType
from pto.core.layout import REST, Mode
from pto.isa.meaning.cube import mad
from pto.isa.meaning.cube.contraction import finite, rounded_to_tf32
from pto.isa.meaning.cube.fractal import padded
from pto.isa.meaning.memory import registers
from pto.isa.meaning.memory.dma import element
from pto.run.jit.emit.cube.contraction import ENDLESS, LIMITED, LIMITED_IF_FINITE, changed, multiply
from pto.run.jit.emit.cube.factors import Matrix, kind_of, unpacked
from pto.run.jit.emit.cube.load import scales_beside
from pto.run.jit.emit.cube.scales import fragments, scaled
from pto.run.jit.emit.operation import OpContext, emits
from pto.run.jit.emit.tile import masked
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import expect, unsupported_if
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.llvm.value import TRUE, Condition, Val, all_of
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue


@emits(mad.MAD, mad.MAD_ACC, mad.MAD_BIAS)
def _mad(s: OpContext) -> Sequence[Lowered]:
    m, n, k = (s.need(ScalarValue, name).name for name in ("m", "n", "k"))
    start = "bias" if s.body is mad.MAD_BIAS else "acc" if s.body is mad.MAD_ACC else ""
    return _product(s, (m, k, n), "disable_gemv" in s.op.attrs, start)


@emits(mad.MAD_RAW)
def _raw(s: OpContext) -> Sequence[Lowered]:
    """All sizes and modes are fields of one word."""
    word = expect(s.need(ScalarValue, "xt").name, int, _RUN_TIME)
    m, k, n = (word >> shift & 0xFFF for shift in (0, 12, 24))
    start = "" if word >> 63 & 1 else "bias" if word >> 62 & 1 else "acc"
    single = element(s.case, "lhs") is F32
    plain = s.x.compare("eq", s.control(1 << registers.TF32), 0) if single else TRUE
    return _product(s, (m, k, n), bool(word >> 61 & 1), start, plain)


def _product(
    s: OpContext,
    sizes: tuple[Val, Val, Val],
    as_matrix: bool,
    start_at: str,
    guard: Condition = TRUE,
) -> Sequence[Lowered]:
    """dst = lhs x rhs, plus what is there (`acc`) or the bias."""
    m, k, n = (_size(each) for each in sizes)
    is_row = m == 1 and not as_matrix  # the left operand is contiguous
    mad.Sizes(m, n, k, is_row).check(s.case.row.name)
    a, b, dst = (s.need(PointerDesc, name) for name in ("lhs", "rhs", "dst"))
    kinds = [element(s.case, name) for name in ("lhs", "rhs", "dst")]
    kind_of(*kinds)
    left = _row(kinds[0]) if is_row else _strips(kinds[0], m)
    right, out = _strips(kinds[1], n), _strips(kinds[2], m, FRACTAL_NZ_ROW)
    fits = all_of(
        s.e.inside(a.memory, a.address, _reach(left, m, k)),
        s.e.inside(b.memory, b.address, _reach(right, n, k)),
        s.e.inside(dst.memory, dst.address, _reach(out, m, n)),
    )
    start, biased = None, start_at == "bias"
    if biased:
        table = s.need(PointerDesc, "bias")
        fits = fits & s.e.inside(table.memory, table.address, n * 4)
        row = Access(strided.row_major(kinds[2], n), s.pointer(table.memory, table.address))
        start = Matrix(row, 1, n)
    s.fault_unless(fits)
    into = Matrix(Access(out, s.pointer(dst.memory, dst.address)), m, n)
    if start_at == "acc":
        start = into
    lhs = Matrix(Access(left, s.pointer(a.memory, a.address)), m, k)
    rhs = Matrix(Access(right.swapped, s.pointer(b.memory, b.address)), k, n)
    known = m, k, n
    factors = unpacked(s, known, lhs, rhs)
    scales = _scales(s, known, a, b, is_row) if s.case.row.needs == "mx" else None
    tf32 = s.case.word("tf32_mode") if kinds[0] is F32 else None

    def product(limited: bool) -> None:
        limit = ENDLESS
        if limited:
            limit = LIMITED if tf32 is None else LIMITED_IF_FINITE
            left, right = ((f"finite {kind}", partial(finite, kind=kind)) for kind in kinds[:2])
            changed(s, known, factors, left, right)
        if tf32 is not None:
            away = tf32 == "round_away"
            change = f"tf32 {away}", partial(rounded_to_tf32, away=away)
            changed(s, known, factors, change, change)
        exact = TRUE if scales is None else scaled(s, known, factors, scales)
        masked.guarded(
            s,
            exact,
            lambda: multiply(s, known, factors, into, start, is_row=biased, limit=limit),
            "a factor times its scale is not exact",
        )

    unless = "CTRL selects TF32"
    masked.guarded(s, guard, lambda: _as_limited(s, kinds[2], product), unless)
    return []


def _as_limited(s: OpContext, kind: DType, product: Callable[[bool], None]) -> None:
    """The product of one of both kinds: the instruction says it, else CTRL."""
    mode = s.case.word("sat_mode")
    if mode is not None or not kind.is_float:
        product(kind.is_float and mode == "sat")
        return
    kept = s.x.compare("ne", s.control(1 << registers.KEEP_SPECIALS), 0)
    s.x.when(kept, lambda: product(False), lambda: product(True))


def _scales(
    s: OpContext, sizes: tuple[int, int, int], a: PointerDesc, b: PointerDesc, is_row: bool
) -> tuple[Matrix, Matrix]:
    """The block scales beside both operands. A contiguous row of scales is left to the reference
    engine."""
    unsupported_if(is_row, "block scales of a row")
    (m, k, n), found = sizes, list[Matrix]()
    for name, place, rows in (("lhs", a, m), ("rhs", b, n)):
        beside, (layout, high, wide) = scales_beside(s, name, place), fragments(rows, k)
        s.fault_unless(s.e.inside(beside.memory, beside.address, high * wide))
        at = s.pointer(beside.memory, beside.address)
        found.append(Matrix(Access(layout, at), high, wide))
    across = found[1]
    turned = across.access.with_layout(across.layout.swapped)
    return found[0], Matrix(turned, across.cols, across.rows)


def _size(word: Val) -> int:
    """A size that is known now."""
    return expect(word, int, _RUN_TIME)


_RUN_TIME = "a size that is known only when it runs"


def _strips(kind: DType, rows: int, wide: int = 0) -> Strided:
    """Strips of C0 columns, a row of 32 bytes after the other."""
    wide = wide or C0_SIZE_BYTE // kind.itemsize
    return Strided(kind, strided.axis(wide), (Mode(wide, 1), Mode(REST, padded(rows) * wide)))


def _row(kind: DType) -> Strided:
    """One contiguous row."""
    wide = C0_SIZE_BYTE // kind.itemsize
    return Strided(kind, strided.axis(0), (Mode(wide, 1), Mode(REST, wide)))


def _reach(g: Strided, rows: int, cols: int) -> int:
    """Bytes from the first to the last row of the last strip."""
    (wide, _), (_, strip) = g.cols
    return ((-(-cols // wide) - 1) * strip + rows * wide) * g.dtype.itemsize
