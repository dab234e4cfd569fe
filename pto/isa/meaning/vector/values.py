"""Scalars in register operations: one lane of the register's type, cached for a repeated value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType

Lanes = npt.NDArray[Any]


def lane_maker(kind: DType) -> Callable[[Any], Lanes]:
    """fn(scalar) -> one lane: integers keep their low bits, so an i8 129 is 129 beside u8 lanes.

    A loop passes the same scalar object in each iteration: the last lane is cached.
    """
    bits = (1 << (8 * kind.itemsize)) - 1
    last: Any = kind  # a scalar is never an element type, so this matches none
    cached: Lanes = np.zeros((), kind.numpy)

    def lane(value: Any) -> Lanes:
        nonlocal last, cached
        if value is not last:
            if kind.is_float:
                cached = np.asarray(value, kind.numpy)
            else:
                cached = np.asarray(int(value) & bits, kind.storage).view(kind.numpy)
            last = value
        return cached

    return lane


def filler(kind: DType) -> Callable[[Any], Lanes]:
    """fn(scalar) -> a register filled with it; the last one is cached and read-only."""
    lane = lane_maker(kind)
    last: Any = None
    cached: Lanes = np.zeros(kind.lanes, kind.numpy)

    def fill(value: Any) -> Lanes:
        nonlocal last, cached
        one = lane(value)
        if one is not last:
            cached, last = np.full(kind.lanes, one, kind.numpy), one
            cached.flags.writeable = False
        return cached

    return fill
