"""Fused operations with a result type that differs from the operand types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.floats import Round
from pto.core.primitives import const, select
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane, Vectors
from pto.isa.meaning.lanes import Lanes, add_relu, raw
from pto.isa.meaning.vector.arithmetic import exp_difference
from pto.isa.meaning.vector.convert import part_of
from pto.isa.meaning.vector.shortcut import converter
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.meaning.vmi.words import NONE, VectorWords
from pto.isa.rules.rule import Case


def _converted(case: Case, fn: Callable[[Lanes, Lanes], Lanes]) -> Callable[..., Lanes]:
    """result[i] = fn(lhs[i], rhs[i]) in the result's type, to nearest even, saturating.

    Lanes that one of the two registers lacks are omitted, or 0.
    """
    src, dst = dtype_of(case, "lhs"), dtype_of(case, "result")
    change, count = converter(src, dst, Round.RINT, True), min(src.lanes, dst.lanes)
    first, every = np.arange(count), np.arange(dst.lanes)

    def fused(x: VectorWords, lhs: Lanes, rhs: Lanes, mask: Lanes | None) -> Lanes:
        y = raw(change(fn(x.take([lhs], first), x.take([rhs], first))))
        if mask is not None:
            y = select(x.take([mask], first), y, const(y, 0))
        return x.take([y], np.where(every < count, every, NONE))

    return fused


def _scaled(case: Case) -> Callable[[Lanes, Lanes], Lanes]:
    change = converter(dtype_of(case, "input"), dtype_of(case, "result"), Round.ROUND, True)
    return lambda x, scalar: change(lanes.mul(x, scalar))


VMULSCVT = Lane(make=_scaled, part=part_of)
VEXPDIF = Lane(exp_difference, part=part_of)
VADDRELUCONV = Vectors(lambda case: _converted(case, add_relu))
VMULCONV = Vectors(lambda case: _converted(case, lanes.mul))
