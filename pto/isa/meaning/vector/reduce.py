"""Reductions of the active lanes.

Sums are trees of neighbours, as vcpadd repeated: lanes 0+1, 2+3, ..., then those in pairs again,
until one is left. f16 sums are computed in f32 and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import VLANE_COUNT
from pto.core.dtypes import DType
from pto.core.primitives import const, select
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do, TreeFold, Vectors
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vmi.shape import by_neighbours
from pto.isa.meaning.vmi.words import NONE, VectorWords
from pto.isa.rules.rule import Case


def slots(case: Case, kind: DType) -> slice:
    """The result lanes: 0..7, or the first of each VLane in the other edition of the manual."""
    if case.profile.vector.group_reduction_slots == "contiguous":
        return slice(0, VLANE_COUNT)
    return slice(0, None, kind.per_vlane)


def _extreme(
    case: Case, fn: Callable[[Any, Any], Any], find: Callable[[Items], Any]
) -> Callable[..., Items]:
    """The extreme in lane 0, the bits of its first index in lane 1. NaN wins."""
    kind = dtype_of(case, "input")
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize
    neutral = lanes.neutral(fn, kind.numpy)

    def reduce(core: Machine, x: Items, mask: masks.Mask) -> Items:
        out = np.zeros(kind.lanes, kind.numpy)
        if mask is all_lanes:
            at = int(find(x))
        else:
            active = np.flatnonzero(mask[::width])
            if not active.size:
                out[0] = neutral
                return out
            at = int(active[find(x[active])])
        out[0] = x[at]
        out.view(kind.storage)[1] = at
        return out

    return reduce


def _matching(fn: Callable[[Any, Any], Any]) -> Vectors:
    """The extreme in lane 0, and the active lanes that equal it (or are NaN, if it is NaN)."""

    def make(case: Case) -> Callable[..., tuple[Lanes, Lanes]]:
        kind = dtype_of(case, "input")
        everywhere, alone = np.zeros(kind.lanes, np.int64), np.full(kind.lanes, NONE)
        alone[0] = 0

        def run(x: VectorWords, source: Lanes, mask: Lanes) -> tuple[Lanes, Lanes]:
            active = select(mask, source, const(source, lanes.neutral(fn, kind.numpy)))
            reduced = by_neighbours(x, fn, active, 1, kind.lanes)
            beside = x.take([reduced], everywhere)
            equal = (source == beside) | ((source != source) & (beside != beside))
            return x.take([reduced], alone), equal & mask

        return run

    return Vectors(make)


def _first(case: Case) -> slice:
    return slice(0, 1)


def _group_places(case: Case) -> slice:
    return slots(case, dtype_of(case, "input"))


def _groups(fn: Callable[[Any, Any], Any], wide: bool = False) -> TreeFold:
    return TreeFold(fn, lambda case: VLANE_COUNT, _group_places, wide)


def _half(case: Case) -> int:
    return dtype_of(case, "input").lanes // 2


VCADD = TreeFold(lanes.add, lambda case: 1, _first, wide=True)
VCMAX = Do(lambda case: _extreme(case, lanes.maximum, np.argmax))
VCMIN = Do(lambda case: _extreme(case, lanes.minimum, np.argmin))
VCBMAX = _matching(lanes.maximum)
VCBMIN = _matching(lanes.minimum)
VCGADD = _groups(lanes.add, wide=True)
VCGMAX = _groups(lanes.maximum)
VCGMIN = _groups(lanes.minimum)
VCPADD = TreeFold(lanes.add, _half, lambda case: slice(0, _half(case)))
