"""Registers from one value: broadcast, duplicate, count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.primitives import shortcut
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector.arithmetic import same
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def _vdup(case: Case) -> Callable[[Lanes], Lanes]:
    if not isinstance(case.type("input"), t.VReg):
        return same
    lane = dtype_of(case, "result").lanes - 1 if case.word("position") == "HIGHEST" else 0
    # an array of one lane has a different shape from the register; symbols have no shape
    return shortcut(lambda value: np.full_like(value, value[lane]))(lambda value: value[lane])


def _vci(case: Case) -> Callable[[Lanes], Lanes]:
    """Lane numbers up to 255 are exact in every supported type, so each lane is rounded once."""
    kind = dtype_of(case, "result")
    steps = np.arange(kind.lanes).astype(kind.numpy)
    if case.word("order") == "DESC":
        return lambda base: base - steps
    return lambda base: base + steps


VBR = Lane(same, moves=True)
VDUP = Lane(make=_vdup, moves=True)
VCI = Lane(make=_vci)
