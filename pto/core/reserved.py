"""Arrays with reserved memory: one of any size costs nothing until it is written."""

from __future__ import annotations

import mmap
import sys
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGE = 1 << 20  # bytes
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def reserved(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An uninitialised array; a large one takes addresses, but no memory before it is written."""
    kind = np.dtype(dtype)
    nbytes = prod(shape) * kind.itemsize
    if nbytes < _LARGE or sys.platform != "linux":
        return np.empty(shape, kind)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        room = mmap.mmap(-1, nbytes, flags=flags)
    except (OSError, OverflowError, ValueError):
        return np.empty(shape, kind)
    return np.frombuffer(room, np.uint8).view(kind).reshape(shape)
