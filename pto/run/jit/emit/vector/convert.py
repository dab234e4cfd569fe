"""Conversions of registers in compiled code, and fused steps that convert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.constants import VREG_BYTES
from pto.core.convert import round_mode
from pto.core.dtypes import F32, DType
from pto.core.rounding import Round
from pto.isa.meaning import lanes as primitives
from pto.isa.meaning import mathlib
from pto.isa.meaning.vector import convert, special
from pto.isa.meaning.vector.arithmetic import add_relu
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.border.values import Mask, Native, Reg
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.arithmetic import symbol
from pto.run.jit.emit.vector.load import as_items
from pto.run.jit.emit.vector.reduce import picked
from pto.run.jit.llvm import conversions, lanes
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.shuffles import NONE, Picks
from pto.run.jit.llvm.text import NotNative, element, scalar_type


def _items(s: Spot, reg: Reg) -> Symbol:
    """A register of any type; what NumPy does not compute with as its bits."""
    kind = reg.dtype
    if lanes.computes(kind.numpy):
        return symbol(s, reg)
    spot = lanes.Lanes(s.x, kind.lanes, s.e.unit.declare)
    return spot.symbol(kind.storage, as_items(s, reg, 8 * kind.itemsize))


def _register(found: Symbol, kind: DType, mask: Symbol | None, picks: Picks | None) -> Reg:
    """Lanes whose bit is off are 0, then lanes at their places."""
    if mask is not None:
        found = lanes.where(found.lanes, mask, found, found.lanes.constant(found.dtype, 0))
    if picks is not None:
        found = picked(found, picks)
    if scalar_type(found.dtype) != element(kind):
        found = found.view(kind.numpy)
    return Reg((found.name,), kind)


@emits(convert.VCVT)
def _vcvt(s: Spot) -> Sequence[Native]:
    src, dst, case = dtype_of(s.case, "input"), dtype_of(s.case, "result"), s.case
    if src.is_packed or dst.is_packed:
        raise NotNative("packed elements")
    word = convert.plain_word(case, "rnd") or convert.plain_word(case, "round_mode")
    mode = round_mode(word) if word else Round.RINT
    saturate = convert.plain_word(case, "sat") != "NOSAT"
    part = convert.PARTS[convert.plain_word(case, "part") or "EVEN"]
    items, mask = _items(s, s.need(Reg, "input")), s.need(Mask, "mask")
    picks: npt.NDArray[np.int64] | None = None
    if dst.itemsize > src.itemsize:
        step = dst.itemsize // src.itemsize
        items = picked(items, range(part, src.lanes, step))
        bits = masks.strided(s.x, mask, part * src.itemsize, dst.itemsize)
    else:
        step = src.itemsize // dst.itemsize
        bits = masks.at_width(s.x, mask, src.itemsize)
        if step > 1:
            picks = np.full(dst.lanes, NONE)
            picks[part::step] = np.arange(src.lanes)
    found = conversions.convert(items, src, dst, mode, saturate)
    on = found.lanes.symbol(lanes.BOOL, bits)
    return [_register(found, dst, on, picks)]


@emits(special.VEXPDIF)
def _vexpdif(s: Spot) -> Sequence[Native]:
    kind = dtype_of(s.case, "input")
    part = convert.PARTS[s.case.word("part") or "EVEN"] if kind is not F32 else 0
    step = F32.itemsize // kind.itemsize
    a, b = (
        lanes.cast(picked(symbol(s, s.need(Reg, name)), range(part, kind.lanes, step)), lanes.F32)
        for name in ("input", "max")
    )
    bits = masks.strided(s.x, s.need(Mask, "mask"), part * kind.itemsize, F32.itemsize)
    found: Any = mathlib.exp(a - b)
    return [_register(found, F32, found.lanes.symbol(lanes.BOOL, bits), None)]


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
