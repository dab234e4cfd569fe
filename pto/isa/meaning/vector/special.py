"""Fused steps whose result has another type than their operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.dtypes import DType
from pto.core.rounding import Round
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Do, Lane
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.arithmetic import add_relu
from pto.isa.meaning.vector.convert import part_of
from pto.isa.meaning.vector.shortcut import converter
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.rules.rule import Case


def _vexpdif(case: Case) -> Callable[[Lanes, Lanes], Lanes]:
    """f16 lanes are widened first: the difference is one of f32."""
    return lambda x, top: mathlib.exp(x.astype(np.float32) - top.astype(np.float32))


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


VEXPDIF = Lane(make=_vexpdif, part=part_of)
VADDRELUCONV = Do(lambda case: _converted(case, add_relu))
VMULCONV = Do(lambda case: _converted(case, lanes.mul))
