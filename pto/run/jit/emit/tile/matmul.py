"""Products of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.dtypes import F32
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.matmul import PRODUCT, counts_values
from pto.run.jit.emit.cube.contraction import multiply
from pto.run.jit.emit.cube.factors import Matrix, kind_of, unpacked
from pto.run.jit.emit.cube.scales import of_tiles, scaled
from pto.run.jit.emit.operation import OpContext, emits
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.move import UNUSUAL
from pto.run.jit.emit.tile.tile_layouts import boxed_layout
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.value import FALSE, TRUE, Condition, all_of
from pto.run.jit.runtime.values import Lowered, TileDesc

_UNLESS = "a register selects TF32 or HF32, accumulators overlap, or a scaled factor is not exact"


@emits(PRODUCT)
def _product(s: OpContext) -> Sequence[Lowered]:
    names = set(s.case.row.operand_names)
    left, right = ("lhs", "rhs") if "lhs" in names else ("a", "b")
    a, b, dst = (s.need(TileDesc, name) for name in (left, right, "dst"))
    added = next((name for name in ("acc_in", "c_in", "bias") if name in names), None)
    start = None if added is None else s.need(TileDesc, added)
    deep = a.type.dtype.values_per_item  # elements of an item, along k
    kind = kind_of(a.type.dtype, b.type.dtype, dst.type.dtype, pairs=deep > 1)
    unsupported_if(kind != "float" and "a_scale" in names, "scaled integers")
    x = s.x
    (m, k) = a.valid
    (_, n) = b.valid
    fits = masked.covers(s, b, k, n) & masked.covers(s, dst, m, n)
    guard = _plain_modes(s, a, b)
    if start is not None:
        fits = fits & masked.covers(s, start, 1 if added == "bias" else m, n)
        guard = guard & _apart(s, start, dst)
    s.fault_unless(fits)

    by_value = "a_scale" in names and counts_values(a.type, s.need(TileDesc, "a_scale").type)
    items, deep = (x.up(k, deep), 1) if by_value else (k, deep)

    def product(lhs: Matrix, rhs: Matrix) -> None:
        in_place = "a_scale" not in names and a.type.space is not dst.type.space
        factors = unpacked(s, (m, items, n), lhs, rhs, in_place=in_place)
        sizes, plain = (m, x.mul(k, deep), n), guard
        if "a_scale" in names:
            tiles = s.need(TileDesc, "a_scale"), s.need(TileDesc, "b_scale")
            limits = a.type.rows, a.type.cols * deep, b.type.cols
            pairs = zip(sizes, limits, strict=True)
            rows, long, cols = (size if isinstance(size, int) else limit for size, limit in pairs)
            plain = all_of(
                plain, scaled(s, sizes, factors, of_tiles(s, (rows, long, cols), *tiles))
            )

        def run() -> None:
            old = None if start is None else _matrix(s, start)
            multiply(s, sizes, factors, _matrix(s, dst), old, is_row=added == "bias")

        masked.guarded(s, plain, run, _UNLESS)

    def filled() -> None:
        for each in forwarded:
            for op in () if each is None else each.fills:
                s.e.operation(op)
        product(_matrix(s, a), _matrix(s, b))

    forwarded = [s.e.forwarded.get(id(s.op.operand(name))) for name in (left, right)]
    known = all_of(*(TRUE if each is None else each.known for each in forwarded))
    loaded = all_of(*(TRUE if each is None else each.guard for each in forwarded))
    first, second = (
        _matrix(s, tile) if each is None else each.source
        for each, tile in zip(forwarded, (a, b), strict=True)
    )

    def run() -> None:
        x.when(known, lambda: product(first, second), filled)

    masked.guarded(s, loaded, run, UNUSUAL)
    return []


def _matrix(s: OpContext, tile: TileDesc) -> Matrix:
    return Matrix(Access(boxed_layout(tile), masked.machine_address(s, tile)), *tile.type.shape)


def _plain_modes(s: OpContext, a: TileDesc, b: TileDesc) -> Condition:
    """f32 factors as they are: no register asks for fewer bits."""
    if F32 not in (a.type.dtype, b.type.dtype):
        return TRUE
    half, tf32 = s.register(registers.HF32), s.control(1 << registers.TF32)
    return s.x.compare("eq", s.x.new(f"or i64 {half}, {tf32}"), 0)


def _apart(s: OpContext, start: TileDesc, dst: TileDesc) -> Condition:
    """The old accumulator is the new one, or lies elsewhere."""
    elsewhere = masked.disjoint(s, start, start.type.nbytes, dst, dst.type.nbytes)
    alike = start.type.shape == dst.type.shape and start.type.layout == dst.type.layout
    same = s.x.compare("eq", start.address, dst.address) if alike else FALSE
    return elsewhere | same
