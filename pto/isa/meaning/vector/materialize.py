"""Registers from one value: broadcast, duplicate, count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import filler, lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def _vbr(case: Case) -> Callable[..., Items]:
    fill = filler(dtype_of(case, "result"))
    return lambda core, value: fill(value)


def _vdup(case: Case) -> Callable[..., Items]:
    kind = dtype_of(case, "result")
    fill, all_lanes, width = filler(kind), masks.full(kind.itemsize), kind.itemsize
    zero = np.zeros((), kind.numpy)
    lane = -1 if case.word("position") == "HIGHEST" else 0

    def scalar(core: Machine, value: object, mask: masks.Mask | None) -> Items:
        whole = fill(value)
        return whole if mask is None or mask is all_lanes else np.where(mask[::width], whole, zero)

    def vector(core: Machine, value: Items, mask: masks.Mask | None) -> Items:
        active = all_lanes if mask is None else mask
        return np.where(active[::width], value[lane], zero)

    return vector if isinstance(case.type("input"), t.VReg) else scalar


def _vci(case: Case) -> Callable[..., Items]:
    """Counts up to 255 are exact in every type it takes, so each lane is rounded once."""
    kind = dtype_of(case, "result")
    lane, steps = lane_maker(kind), np.arange(kind.lanes).astype(kind.numpy)
    if case.word("order") == "DESC":
        return lambda core, base: lane(base) - steps
    return lambda core, base: lane(base) + steps


VBR = Do(_vbr)
VDUP = Do(_vdup)
VCI = Do(_vci)
