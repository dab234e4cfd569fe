"""Lanes chosen by an index register in compiled code."""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.vector import compare, rearrange
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.border.values import Native, Reg
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.items import gathered
from pto.run.jit.emit.vector.load import as_items, as_register
from pto.run.jit.llvm.text import NotNative, vector


@emits(compare.VSELR, compare.VSELRV2, rearrange.VPERM)
def _by_index(s: Spot) -> Sequence[Native]:
    """source[index mod N], through memory."""
    source, index = s.all()
    if not isinstance(source, Reg) or not isinstance(index, Reg) or index.dtype.is_float:
        raise NotNative("a selection that is not by an index register")
    width, count = 8 * source.dtype.itemsize, source.dtype.lanes
    if index.dtype.itemsize != source.dtype.itemsize:
        raise NotNative("indices of another width")
    x, type = s.x, vector(count, f"i{width}")
    low = x.new(f"and {type} {as_items(s, index, width)}, splat (i{width} {count - 1})")
    room = x.stack(type)
    x.store(type, as_items(s, source, width), room, 64)
    wide = vector(count, "i64")
    places = low if width == 64 else x.new(f"zext {type} {low} to {wide}")
    places = x.new(f"mul {wide} {places}, splat (i64 {width // 8})")
    found = gathered(s, width, room, places, count)
    return [as_register(s, dtype_of(s.case, "result"), f"i{width}", found)]
