"""Fused steps whose result has another type than their operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.dtypes import F32, DType
from pto.core.rounding import Round
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.arithmetic import add_relu
from pto.isa.meaning.vector.convert import PARTS
from pto.isa.meaning.vector.shortcut import converter
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.rules.rule import Case


def _vexpdif(case: Case) -> Callable[..., Items]:
    """f16 lanes are widened first: the difference is one of f32."""
    kind = dtype_of(case, "input")
    part = PARTS[case.word("part") or "EVEN"] if kind is not F32 else 0
    step = F32.itemsize // kind.itemsize
    bit, all_lanes = part * kind.itemsize, masks.full(kind.itemsize)
    single, zero = np.dtype(np.float32), np.float32(0)

    def exponential(core: Machine, x: Items, top: Items, mask: masks.Mask) -> Items:
        a, b = x[part::step].astype(single), top[part::step].astype(single)
        y = mathlib.exp(a - b)
        return y if mask is all_lanes else np.where(mask[bit :: F32.itemsize], y, zero)

    return exponential


def _converted(case: Case, fn: Callable[[Items, Items], Items]) -> Callable[..., Items]:
    """result[i] = fn(lhs[i], rhs[i]) in the result's type, nearest even and saturating; lanes that
    one of the two registers does not have are left out, or 0."""
    src, dst = dtype_of(case, "lhs"), dtype_of(case, "result")
    change = converter(src, dst, Round.RINT, True)
    count, width = min(src.lanes, dst.lanes), src.itemsize

    def fused(core: Machine, lhs: Items, rhs: Items, mask: masks.Mask | None) -> Items:
        y = change(fn(lhs[:count], rhs[:count]))
        out = np.zeros(dst.lanes, dst.numpy)
        out[:count] = y if mask is None else np.where(mask[::width][:count], y, _zero(dst))
        return out

    return fused


def _zero(kind: DType) -> Items:
    return np.zeros((), kind.numpy)


VEXPDIF = Do(_vexpdif)
VADDRELUCONV = Do(lambda case: _converted(case, add_relu))
VMULCONV = Do(lambda case: _converted(case, lanes.mul))
