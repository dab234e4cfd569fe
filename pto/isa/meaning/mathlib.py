"""Elementary functions, the same bits on every engine and machine: computed in f64, rounded once.

The definition is our own f64 code (not fused, 2 ulp). NumPy's f64 function, whose last bits
differ between machines, stands in for it wherever both round to the same element; the few lanes too
close to a boundary for that are computed by the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.isa.meaning.lanes import Lanes, const, narrow, widen

F64 = npt.NDArray[np.float64]

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts: the first has 32 trailing zero bits
_LN2_LOW = 1.90821492927058770002e-10
_EXP_OVERFLOW, _EXP_UNDERFLOW = 709.782712893384, -745.2
# 1/n! for n = 12..2: |r| <= ln2/2 makes the rest smaller than 2^-58
_EXP_TERMS = tuple(
    1.0 / f for f in (479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2)
)
# 1/(2k+1) for the series of atanh, k = 11..1: |s| <= 0.1716 makes the rest smaller than 2^-60
_LOG_TERMS = tuple(1.0 / (2 * k + 1) for k in range(11, 0, -1))


# 2^-48 is far above the error of either implementation, and far below half an ulp of f32.
_BELOW, _ABOVE = 1 - 2.0**-48, 1 + 2.0**-48


def exp(x: Lanes) -> Lanes:
    """e**x."""
    return _settled(x, np.exp, exp64)


def log(x: Lanes) -> Lanes:
    """Natural logarithm; NaN below zero, -inf at zero."""
    return _settled(x, np.log, log64)


def _settled(x: Lanes, fast: Callable[[F64], F64], exact: Callable[[F64], F64]) -> Lanes:
    """narrow(exact(x)), by way of `fast` where the two cannot differ after rounding."""
    wide = widen(x)
    if x.dtype == np.float64:
        return exact(wide)
    with np.errstate(all="ignore"):
        y = fast(wide)
        high = narrow(y * _ABOVE, x)
        y *= _BELOW
        low = narrow(y, x)
    doubt = low != high
    return _decided(low, y, doubt, wide, exact) if doubt.any() else low


def _decided(low: Lanes, y: F64, doubt: Lanes, wide: F64, exact: Callable[[F64], F64]) -> Lanes:
    """NaN of any sign and payload becomes one NaN; what is too close to a boundary is computed."""
    nan = np.isnan(y)
    low[nan] = np.nan
    doubt &= ~nan
    if doubt.any():
        low[doubt] = narrow(exact(wide[doubt]), low)
    return low


def sqrt(x: Lanes) -> Lanes:
    return np.sqrt(x) if x.dtype.kind == "f" else narrow(np.sqrt(widen(x)), x)


def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x), rounded once."""
    return narrow(1.0 / np.sqrt(widen(x)), x)


def recip(x: Lanes) -> Lanes:
    """1 / x, rounded once."""
    return const(x, 1) / x


def exp64(x: F64) -> F64:
    """Cody-Waite reduction x = n ln2 + r, Taylor in r, scaled by 2^n in two steps."""
    with np.errstate(all="ignore"):
        clear = np.minimum(np.maximum(x, _EXP_UNDERFLOW), _EXP_OVERFLOW + 1)
        n = np.rint(clear * _LOG2E)
        r = (clear - n * _LN2_HIGH) - n * _LN2_LOW
        p = np.full_like(r, _EXP_TERMS[0])
        for term in _EXP_TERMS[1:]:
            p = p * r + term
        y = 1.0 + (r + (r * r) * p)
        half = np.where(np.isnan(n), 0.0, np.floor(n * 0.5)).astype(np.int64)
        rest = np.where(np.isnan(n), 0.0, n).astype(np.int64) - half
        return np.where(np.isnan(x), x, (y * _two_to(half)) * _two_to(rest))


def _two_to(n: npt.NDArray[np.int64]) -> F64:
    """2**n for |n| <= 1022, by its bits."""
    return ((n + 1023) << 52).view(np.float64)


def log64(x: F64) -> F64:
    """x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m-1)/(m+1))."""
    with np.errstate(all="ignore"):
        tiny = x < 2.2250738585072014e-308
        scaled = np.where(tiny, x * 18014398509481984.0, x)  # 2^54 lifts subnormals
        bits = scaled.view(np.int64)
        e = ((bits >> 52) & 0x7FF) - 1023
        m = ((bits & 0x000FFFFFFFFFFFFF) | (1023 << 52)).view(np.float64)
        high = m > 1.4142135623730951
        m = np.where(high, m * 0.5, m)
        k = (e + high - np.where(tiny, 54, 0)).astype(np.float64)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = np.full_like(z, _LOG_TERMS[0])
        for term in _LOG_TERMS[1:]:
            p = p * z + term
        y = 2.0 * (s + s * (z * p))
        result = k * _LN2_HIGH + (k * _LN2_LOW + y)
        return _log_edges(x, result)


def _log_edges(x: F64, y: F64) -> F64:
    y = np.where(x == 0, -np.inf, y)
    y = np.where(x < 0, np.nan, y)
    return np.where(np.isnan(x) | (x == np.inf), x, y)


def pow64(x: F64, y: F64) -> F64:
    """x**y by exp(y log|x|), with the sign and the edges of C's pow."""
    with np.errstate(all="ignore"):
        size = exp64(y * log64(np.abs(x)))
        whole = np.rint(y) == y
        odd = whole & (np.remainder(y, 2.0) == 1.0)
        out = np.where((x < 0) & odd, -size, size)
        out = np.where((x < 0) & ~whole & np.isfinite(y), np.nan, out)
        out = np.where(np.isnan(x) | np.isnan(y), np.nan, out)
        return np.where((y == 0) | (x == 1), 1.0, out)


def power(x: Lanes, y: Lanes) -> Lanes:
    """x**y; integers by repeated squaring, wrapping."""
    if x.dtype.kind in "iu":
        return _integer_power(x, y)
    return narrow(pow64(widen(x), widen(y)), x)


def _integer_power(x: Lanes, y: Lanes) -> Lanes:
    """To a negative power: 0, except that 1 and -1 have integer inverses."""
    out: Any = np.ones(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    unit = (x == 1) | (x == -1)
    base, left = x, np.where(unit, np.abs(y), np.maximum(y, 0)).astype(np.uint64)
    for _ in range(int(left.max(initial=0)).bit_length()):
        out = np.where(left & 1, out * base, out)
        base, left = base * base, left >> 1
    return np.where((y < 0) & ~unit, const(x, 0), out)
