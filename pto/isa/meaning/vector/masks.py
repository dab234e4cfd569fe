"""The predicate image: 256 bools, one per byte of a register.

An element of w bytes uses the lowest bit of its w (`mask[::w]`) and writes only that one. The
images of "all lanes" and "the first n lanes" are cached, so `mask is full` tests for all lanes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.constants import VREG_BYTES
from pto.isa.row import types as t

Mask = npt.NDArray[np.bool_]
WIDEST = 4  # bytes: there is no b64; 64-bit elements use a b32 mask


def lanes_of(width: int) -> int:
    """The number of lanes of a register with elements of `width` bytes."""
    return VREG_BYTES // width


@cache
def first(width: int, count: int) -> Mask:
    """The first `count` lanes of `width` bytes; the array is read-only."""
    image = np.zeros(VREG_BYTES, np.bool_)
    image[: count * width : width] = True
    image.flags.writeable = False
    return image


def full(width: int) -> Mask:
    """All lanes, in the granularity of masks for elements of `width` bytes."""
    width = min(width, WIDEST)
    return first(width, lanes_of(width))


def mask_width(type: t.Type, lanes: int) -> int:
    """The bytes per lane of a predicate; 0 for any other type.

    If its type does not give them, they are those of the registers of the operation.
    """
    if not isinstance(type, t.Mask):
        return 0
    return lanes if type.granularity is None or lanes > WIDEST else type.granularity // 8


def image(lanes: npt.NDArray[Any], width: int) -> Mask:
    """The image of one bool per lane of `width` bytes."""
    mask = np.zeros(VREG_BYTES, np.bool_)
    mask[::width] = lanes
    return mask
