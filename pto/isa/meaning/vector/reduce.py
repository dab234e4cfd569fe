"""Folds of the active lanes. Sums go by neighbours, as vcpadd repeated: lanes 0+1, 2+3, ..., then
those in pairs again, until one is left. f16 sums are formed in f32 and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import VLANE_COUNT
from pto.core.dtypes import DType
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.rules.rule import Case

Active = Callable[[Items, masks.Mask], Items]
_EVEN, _ODD = slice(0, None, 2), slice(1, None, 2)


def _active(kind: DType, neutral: Any) -> Active:
    """Lanes whose mask is off replaced by what a fold does not see."""
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize
    other = np.asarray(neutral, kind.numpy)

    def active(x: Items, mask: masks.Mask) -> Items:
        return x if mask is all_lanes else np.where(mask[::width], x, other)

    return active


def _sum_type(kind: DType) -> np.dtype[Any]:
    return np.dtype(np.float32) if kind.is_float else kind.numpy


def _by_neighbours(x: Items) -> Any:
    """The sum of a power of two of lanes."""
    while x.size > 1:
        x = x[_EVEN] + x[_ODD]
    return x[0]


def _rows_by_neighbours(x: Items) -> Items:
    while x.shape[1] > 1:
        x = x[:, _EVEN] + x[:, _ODD]
    return x[:, 0]


def _vcadd(case: Case) -> Callable[..., Items]:
    kind, result = dtype_of(case, "input"), dtype_of(case, "result")
    active, wide = _active(kind, 0), np.dtype(np.float32) if kind.is_float else result.numpy

    def add(core: Machine, x: Items, mask: masks.Mask) -> Items:
        out = np.zeros(result.lanes, result.numpy)
        out[0] = _by_neighbours(active(x, mask).astype(wide, copy=False))
        return out

    return add


def slots(case: Case, kind: DType) -> slice:
    """Lanes 0..7, or the first of each VLane in the edition of the manual."""
    if case.profile.vector.group_reduction_slots == "contiguous":
        return slice(0, VLANE_COUNT)
    return slice(0, None, kind.per_vlane)


def _groups(case: Case, neutral: Any, fold: Callable[[Items], Items]) -> Callable[..., Items]:
    kind = dtype_of(case, "input")
    active, places = _active(kind, neutral), slots(case, kind)

    def reduce(core: Machine, x: Items, mask: masks.Mask) -> Items:
        out = np.zeros(kind.lanes, kind.numpy)
        out[places] = fold(active(x, mask).reshape(VLANE_COUNT, -1))
        return out

    return reduce


def _vcgadd(case: Case) -> Callable[..., Items]:
    wide = _sum_type(dtype_of(case, "input"))
    return _groups(case, 0, lambda x: _rows_by_neighbours(x.astype(wide, copy=False)))


def lowest(kind: DType) -> Any:
    """What every value is at least as large as: the maximum of no lane."""
    return -np.inf if kind.is_float else kind.min


def highest(kind: DType) -> Any:
    return np.inf if kind.is_float else kind.max


def _folded(fn: Callable[[Any, Any], Any]) -> Callable[[Items], Items]:
    """Each group by an extreme that has an answer for two zeros, so the order does not matter."""
    return lambda x: lanes.fold(fn, np.ascontiguousarray(x.T))


def _vcgmax(case: Case) -> Callable[..., Items]:
    return _groups(case, lowest(dtype_of(case, "input")), _folded(lanes.maximum))


def _vcgmin(case: Case) -> Callable[..., Items]:
    return _groups(case, highest(dtype_of(case, "input")), _folded(lanes.minimum))


def _extreme(case: Case, neutral: Any, find: Callable[[Items], Any]) -> Callable[..., Items]:
    """The value in lane 0, its first index as an integer's bits in lane 1. NaN wins."""
    kind = dtype_of(case, "input")
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize

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


def _vcpadd(case: Case) -> Callable[..., Items]:
    kind = dtype_of(case, "input")
    active, half = _active(kind, 0), kind.lanes // 2

    def add(core: Machine, x: Items, mask: masks.Mask) -> Items:
        lanes = active(x, mask)
        out = np.zeros(kind.lanes, kind.numpy)
        out[:half] = lanes[::2] + lanes[1::2]
        return out

    return add


VCADD = Do(_vcadd)
VCMAX = Do(lambda case: _extreme(case, lowest(dtype_of(case, "input")), np.argmax))
VCMIN = Do(lambda case: _extreme(case, highest(dtype_of(case, "input")), np.argmin))
VCGADD = Do(_vcgadd)
VCGMAX = Do(_vcgmax)
VCGMIN = Do(_vcgmin)
VCPADD = Do(_vcpadd)
