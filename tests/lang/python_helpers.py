"""Functions that kernels of `python_kernels` call, from a module of their own."""

from __future__ import annotations

from typing import Any

import pto


def clamp(n: Any, low: int = 0, *, high: int) -> Any:
    """n, not below low and not above high."""
    if n < low:
        return low
    if n > high:
        return high
    return n


def first_above(n: Any, most: int) -> Any:
    """The first number whose square is above n, or `most`."""
    for i in pto.range(most):
        if i * i > n:
            return i
    return most


def doubled(t: Any, times: int = 1) -> Any:
    """t + t, `times` over; Python's recursion."""
    if times == 0:
        return t
    return doubled(t + t, times - 1)


def pick(x: Any, n: Any) -> Any:
    """Tile n of x, or tile 3."""
    if n == 0:
        return pto.load(x[0:16, :], 16, 64)
    if n == 1:
        return pto.load(x[16:32, :], 16, 64)
    return pto.load(x[32:48, :], 16, 64) if n == 2 else pto.load(x[48:64, :], 16, 64)
