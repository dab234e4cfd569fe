"""Fused steps of registers that convert, in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning import lanes as primitives
from pto.isa.meaning.vector import special
from pto.isa.meaning.vector.arithmetic import add_relu
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.border.values import Mask, Native, Reg
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.arithmetic import picked, symbol
from pto.run.jit.llvm import conversions, lanes
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.shuffles import NONE, Picks
from pto.run.jit.llvm.text import element, scalar_type


def _register(found: Symbol, kind: DType, mask: Symbol | None, picks: Picks | None) -> Reg:
    """Lanes whose bit is off are 0, then lanes at their places."""
    if mask is not None:
        found = lanes.where(found.lanes, mask, found, found.lanes.constant(found.dtype, 0))
    if picks is not None:
        found = picked(found, picks)
    if scalar_type(found.dtype) != element(kind):
        found = found.view(kind.numpy)
    return Reg((found.name,), kind)


def _fused(fn: Callable[..., Any]) -> Callable[[Spot], Sequence[Native]]:
    """Computed in the type of the operands, then converted: nearest even, saturating."""

    def emit(s: Spot) -> Sequence[Native]:
        src, dst = dtype_of(s.case, "lhs"), dtype_of(s.case, "result")
        count = min(src.lanes, dst.lanes)
        a, b = (picked(symbol(s, s.need(Reg, name)), range(count)) for name in ("lhs", "rhs"))
        found = conversions.convert(fn(a, b), src, dst)
        mask, on = s.operand("mask"), None
        if isinstance(mask, Mask):
            bits = masks.strided(s.x, mask, 0, src.itemsize)
            every = lanes.Lanes(s.x, VREG_BYTES // src.itemsize, s.e.unit.declare)
            on = picked(every.symbol(lanes.BOOL, bits), range(count))
        picks = [n if n < count else NONE for n in range(dst.lanes)]
        return [_register(found, dst, on, picks)]

    return emit


emits(special.VADDRELUCONV)(_fused(add_relu))
emits(special.VMULCONV)(_fused(primitives.mul))
