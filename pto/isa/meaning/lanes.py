"""Primitive operations on lanes, the vocabulary of every lane function. Exact, no hidden fusing.

A lane value is a NumPy array of the element type's `numpy` view. Arithmetic of f16, bf16 and f32 is
the IEEE operation rounded once (NumPy and ml_dtypes widen, compute and round); integers wrap.
Only what straight-line vector code can express stands here: the compiled engine emits it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[Any]


def const(like: Lanes, value: float) -> Lanes:
    """`value` as a lane of the type of `like`."""
    return np.asarray(value, dtype=like.dtype)


def add(a: Lanes, b: Lanes) -> Lanes:
    return a + b


def sub(a: Lanes, b: Lanes) -> Lanes:
    return a - b


def mul(a: Lanes, b: Lanes) -> Lanes:
    return a * b


def select(condition: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """a where the condition holds, else b."""
    return np.where(condition, a, b)


def is_integer(a: Lanes) -> bool:
    """Known when a program is prepared: never depends on the values."""
    return a.dtype.kind in "iu"


def maximum(a: Lanes, b: Lanes) -> Lanes:
    """NaN wins, as in IEEE 754-2019 maximum; +0 and -0 compare equal, then a."""
    return np.maximum(a, b)


def minimum(a: Lanes, b: Lanes) -> Lanes:
    """NaN wins, as in IEEE 754-2019 minimum."""
    return np.minimum(a, b)


def div(a: Lanes, b: Lanes) -> Lanes:
    """IEEE division; integers truncate toward zero, and x / 0 is 0."""
    if not is_integer(a):
        return a / b
    zero = b == 0
    safe = np.where(zero, const(b, 1), b)
    quotient = np.floor_divide(a, safe)
    remainder = a - quotient * safe
    up = (remainder != 0) & ((a < 0) != (safe < 0))
    return np.where(zero, const(a, 0), quotient + up.astype(a.dtype))


def widen(a: Lanes) -> Lanes:
    """The same values in f64: exact for every float type narrower than f64."""
    return a.astype(np.float64)


def narrow(a: Lanes, like: Lanes) -> Lanes:
    """f64 rounded once, to nearest even, to the type of `like`."""
    if like.dtype == np.float64:
        return a
    if like.dtype.kind == "f":
        return a.astype(like.dtype)
    return round_f64(a, like.dtype)


def round_f64(a: Lanes, to: np.dtype[Any]) -> Lanes:
    """f64 to a type ml_dtypes would reach by way of f32: round to odd in f32 first, then once."""
    single = a.astype(np.float32)
    back = single.astype(np.float64)
    bits = single.view(np.int32)
    inexact = (back != a) & np.isfinite(single)
    away = np.abs(back) > np.abs(a)
    odd = np.where(inexact & away & ((bits & 1) == 0), bits - 1, bits)
    odd = np.where(inexact & ((odd & 1) == 0), odd | 1, odd)
    return odd.view(np.float32).astype(to)
