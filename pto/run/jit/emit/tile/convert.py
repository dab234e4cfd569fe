"""Conversions of tiles: elements of one type as another, over the destination's valid region."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.dtypes import F32
from pto.core.rounding import round_integral
from pto.isa.meaning.tile.convert import Conversion
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.registry import KINDS
from pto.run.jit.emit.tile.elementwise import Mapped, emit_map
from pto.run.jit.llvm import conversions
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import UnsupportedLowering
from pto.run.jit.runtime.values import Lowered, TileDesc


def converted(s: OpContext) -> Mapped:
    """The conversion of an element."""
    body: Conversion = s.body
    if body.choose is None:
        raise UnsupportedLowering("a conversion without a choice of types")
    pair = src, dst, mode, saturate = body.choose(s.case)
    source, target = s.need(TileDesc, "src"), s.need(TileDesc, "dst")

    def change(a: Symbol) -> Symbol:
        if src is F32 and dst is F32:
            return round_integral(a, mode)  # type: ignore[arg-type, return-value]
        return conversions.convert(a, src, dst, mode, saturate)

    return Mapped(change, target, dst, [source], key=pair)


def _convert(s: OpContext) -> Sequence[Lowered]:
    found = converted(s)
    emit_map(s, found.fn, found.dst, found.dtype, found.given, key=found.key)
    return []


KINDS[Conversion] = _convert
