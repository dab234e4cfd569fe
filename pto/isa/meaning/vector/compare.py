"""Comparisons into masks, and selections by mask or by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

# NaN is unequal to all and neither above nor below; -0 equals +0.
TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _ordered(case: Case, name: str) -> DType:
    """An element type whose items NumPy compares by value."""
    kind = dtype_of(case, name)
    if kind.is_float and kind.numpy == kind.storage:
        raise fail("PTO-T140", f"'{case.row.name}' op: comparing {kind} is not defined by the ISA")
    return kind


def _vcmp(case: Case) -> Callable[..., masks.Mask]:
    test, kind = TESTS[case.word("cmp_mode") or ""], _ordered(case, "src0")
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize

    def compare(core: Machine, a: Items, b: Items, mask: masks.Mask) -> masks.Mask:
        holds = test(a, b)
        return masks.image(holds if mask is all_lanes else holds & mask[::width], width)

    return compare


def _vcmps(case: Case) -> Callable[..., masks.Mask]:
    test, kind = TESTS[case.word("cmp_mode") or ""], _ordered(case, "src")
    all_lanes, width, lane = masks.full(kind.itemsize), kind.itemsize, lane_maker(kind)

    def compare(core: Machine, a: Items, scalar: Any, mask: masks.Mask) -> masks.Mask:
        holds = test(a, lane(scalar))
        return masks.image(holds if mask is all_lanes else holds & mask[::width], width)

    return compare


def _vsel(case: Case) -> Callable[..., Items]:
    kind = dtype_of(case, "src0")
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize

    def select(core: Machine, a: Items, b: Items, mask: masks.Mask) -> Items:
        return a if mask is all_lanes else np.where(mask[::width], a, b)

    return select


def by_index(case: Case, index: str) -> Callable[..., Items]:
    """source[index mod N]: lane counts are powers of two, so the low bits of an index count."""
    kind = dtype_of(case, index)
    low, unsigned = kind.storage.type(kind.lanes - 1), kind.storage

    def pick(core: Machine, source: Items, at: Items) -> Items:
        return source[at.view(unsigned) & low]

    return pick


def _vselrv2(case: Case) -> Callable[..., Items]:
    """The manual gives it the visible result of vselr; a predicate no operand carries has none."""
    index = case.type("src1")
    if isinstance(index, t.VReg) and index.elem.is_integer:
        return by_index(case, "src1")
    raise fail(
        "PTO-X140",
        "'pto.vselrv2' op: what it selects by is implicit in the lowering, not defined by the ISA",
        help="pto.vsel takes a mask, pto.vselr an index register",
    )


VCMP = Do(_vcmp)
VCMPS = Do(_vcmps)
VSEL = Do(_vsel)
VSELR = Do(lambda case: by_index(case, "src1"))
VSELRV2 = Do(_vselrv2)
