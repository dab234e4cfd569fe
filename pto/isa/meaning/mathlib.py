"""Elementary functions with the same bits on every engine and machine: computed in f64, rounded
once.

The definition is our own f64 code (not fused, 2 ulp). The last bits of NumPy's f64 functions differ
between machines. Lanes use NumPy's result if both round to the same element; the few lanes too
close to a rounding boundary use the definition.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pto.core import primitives
from pto.core.primitives import (
    absolute,
    const,
    copysign,
    floor,
    fused,
    greater_of,
    isfinite,
    isinf,
    isnan,
    less_of,
    repeated,
    rint,
    select,
    shortcut,
    signbit,
)
from pto.isa.meaning import halves
from pto.isa.meaning.lanes import Lanes, narrow, widen

F64 = npt.NDArray[np.float64]

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts: the first has 32 trailing zero bits
_LN2_LOW = 1.90821492927058770002e-10
_FAR, _TO_INTEGER = 200.0, 1.5 * 2.0**52
_EXP_OVERFLOW, _EXP_UNDERFLOW = 709.782712893384, -745.2
# 1/n! for n = 12..2: with |r| <= ln2/2 the remainder is below 2^-58
_EXP_TERMS = tuple(
    1.0 / f for f in (479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2)
)
# e**r for |r| <= ln2/2 with a relative error of 2^-51.6: minimax, highest power first
_EXP_NEAR = (
    2.7476784503711416e-07,
    2.7635006253318475e-06,
    2.4801931845475093e-05,
    0.00019841185202531638,
    0.0013888888516013153,
    0.0083333333708925,
    0.04166666666813763,
    0.1666666666661151,
    0.49999999999998324,
    1.0,
    1.0,
)
# At Chebyshev nodes, highest power first: 2 atanh(t) / t in t^2, |t| <= 3 - 2 sqrt 2, with a
# relative error of 2^-58; the same divided by ln 2, 2^-52; 2**r for |r| <= 1/2, 2^-45.6
_LOG_NEAR = (
    0.14809867572313062,
    0.153125131147383,
    0.18183632241617026,
    0.22222197046404274,
    0.2857142876073828,
    0.3999999999930191,
    0.6666666666666765,
    2.0,
)
_LOG2_NEAR = (
    0.2429183013526297,
    0.26144407006393944,
    0.3206163935263423,
    0.4121984019742357,
    0.5770780172467822,
    0.9617966939243335,
    2.885390081777927,
)
_EXP2_NEAR = (
    1.0205916556573999e-07,
    1.3259662936174463e-06,
    1.525267287609254e-05,
    0.0001540343367383866,
    0.0013333558200859905,
    0.009618129194038007,
    0.0555041086646514,
    0.24022650695639908,
    0.6931471805599462,
    1.0000000000000135,
)
_LN2 = 0.6931471805599453
_ONE_BITS, _ROOT_BITS = 0x3FF0000000000000, 0x3FE6A09E667F3BCD  # bit patterns of 1 and of sqrt(1/2)
_EXACT_BITS, _EXACT = 0x4330000000000000, 2.0**52  # the last bit of this number has the value 1
# 1/(2k+1) for the series of atanh, k = 11..1: with |s| <= 0.1716 the remainder is below 2^-60
_LOG_TERMS = tuple(1.0 / (2 * k + 1) for k in range(11, 0, -1))


_CLOSE = 2.0**-48  # far above the error of exp64, log64 and NumPy, far below half an ulp of f32
_CLOSE_POWER = 2.0**-42  # for powers, which exponentiate a rounded logarithm of up to 150


def _settled_exp(x: Lanes) -> Lanes:
    return _settled(np.exp, _exp_of(x), _CLOSE, x)


@shortcut(_settled_exp)
def exp(x: Lanes) -> Lanes:
    """e**x."""
    return halves.exp(x) if x.dtype.itemsize == 2 else narrow(_exp_of(x)(widen(x)), x)


def _exp_of(x: Lanes) -> Callable[..., F64]:
    return exp64 if x.dtype == np.float64 else _exp_of_small


def _settled_log(x: Lanes) -> Lanes:
    return _settled(np.log, _log_of(x), _CLOSE, x)


@shortcut(_settled_log)
def log(x: Lanes) -> Lanes:
    """Natural logarithm; NaN below zero, -inf at zero."""
    if x.dtype.itemsize == 2:
        return halves.log(x)
    return halves.log_edges(x, narrow(_log_of(x)(widen(x)), x))


def _log_of(x: Lanes) -> Callable[..., F64]:
    return log64 if x.dtype == np.float64 else _log_of_small


def _settled_power(x: Lanes, y: Lanes) -> Lanes:
    if x.dtype.kind in "iu":
        return _integer_power(x, y)
    x, y = np.broadcast_arrays(x, y)
    return _settled(np.power, _power_of(x), _CLOSE_POWER, x, y)


@shortcut(_settled_power)
def power(x: Lanes, y: Lanes) -> Lanes:
    """x**y; integers by repeated squaring, wrapping."""
    if x.dtype.kind in "iu":
        return _integer_power(x, y)
    return _power_of_halves(x, y) if x.dtype.itemsize == 2 else _power_of(x)(x, y)


def _power_of(x: Lanes) -> Callable[..., Lanes]:
    return pow64 if x.dtype == np.float64 else _power_of_small


def _settled(
    fast: Callable[..., F64], exact: Callable[..., F64], close: float, *arguments: Lanes
) -> Lanes:
    """narrow(exact(x, ..)), computed by `fast` in lanes where both round to the same result."""
    x, wide = arguments[0], [widen(v) for v in arguments]
    if x.dtype == np.float64:
        return narrow(exact(*wide), x)
    with np.errstate(all="ignore"):
        y = fast(*wide)
        high = narrow(y * (1 + close), x)
        y *= 1 - close
        low = narrow(y, x)
    doubt = low != high
    if not doubt.any():
        return low
    nan = np.isnan(y)
    low[nan] = np.nan  # one sign and payload for every NaN
    doubt &= ~nan
    if doubt.any():
        low[doubt] = narrow(exact(*(v[doubt] for v in wide)), low)
    return low


def sqrt(x: Lanes) -> Lanes:
    return primitives.sqrt(x) if x.dtype.kind == "f" else narrow(primitives.sqrt(widen(x)), x)


def _rsqrt_on_arrays(x: Lanes) -> Lanes:
    return narrow(1.0 / primitives.sqrt(widen(x)), x)


@shortcut(_rsqrt_on_arrays)
def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x), rounded once.

    For f32: the f32 result and one Newton step in f64, exact for every mantissa
    (`tests/known/test_halves.py`).
    """
    if x.dtype.itemsize == 2:
        return halves.rsqrt(x)
    if x.dtype == np.float64:
        return _rsqrt_on_arrays(x)
    first = const(x, 1) / primitives.sqrt(x)
    y = widen(first)
    error = fused(-(widen(x) * y), y, const(y, 1.0))
    step = fused(error, const(y, 0.375), const(y, 0.5))
    refined = narrow(fused(y * error, step, y), x)
    return select(isfinite(first) & (first != 0), refined, first)


def tanh(x: Lanes) -> Lanes:
    """Hyperbolic tangent, rounded once."""
    return narrow(tanh64(widen(x)), x)


def recip(x: Lanes) -> Lanes:
    """1 / x, rounded once."""
    return const(x, 1) / x


def _exp_of_small(x: F64) -> F64:
    """exp64 for results that are rounded to f32: e**200 is infinite and e**-200 is 0 there.

    Therefore no power of two leaves the range of f64. Adding 1.5 * 2^52 rounds to an integer in
    the low bits of the sum. Fused steps halve the work.
    """
    clear = select(x < -_FAR, const(x, -_FAR), x)
    clear = select(clear > _FAR, const(x, _FAR), clear)
    turned = fused(clear, const(x, _LOG2E), const(x, _TO_INTEGER))
    n = turned - _TO_INTEGER
    r = fused(n, const(x, -_LN2_LOW), fused(n, const(x, -_LN2_HIGH), clear))
    y = halves.horner(r, _EXP_NEAR)
    scaled = (y.view(np.int64) + (turned.view(np.int64) << 52)).view(np.float64)
    return select(isnan(x), np.nan, scaled)


def _split(x: F64) -> tuple[F64, F64, F64]:
    """t = (m - 1) / (m + 1), its square, and k, for x = m 2^k with sqrt(1/2) <= m < sqrt(2).

    x must be normal, positive and finite.
    """
    bits = x.view(np.uint64)
    biased = (bits + (_ONE_BITS - _ROOT_BITS)) >> 52
    m = (bits - (biased << 52) + _ONE_BITS).view(np.float64)
    k = (biased | _EXACT_BITS).view(np.float64) - (_EXACT + 1023)
    t = (m - 1.0) / (m + 1.0)
    return t, t * t, k


def _log_of_small(x: F64) -> F64:
    """log64 for finite positive values that came from f32. Fused steps halve the work."""
    with np.errstate(all="ignore"):
        t, z, k = _split(x)
        return fused(k, const(k, _LN2), t * halves.horner(z, _LOG_NEAR))


def _power_of_small(x: Lanes, y: Lanes) -> Lanes:
    """pow64 for results rounded to f32 or less: 2**(y log2|x|).

    Special cases are decided in the type of the operands, or in f32.
    """
    base, by = (v.astype(np.float32) if v.dtype.itemsize == 2 else v for v in (x, y))
    with np.errstate(all="ignore"):
        size = absolute(widen(base))
        t, z, k = _split(size)
        digits = fused(t, halves.horner(z, _LOG2_NEAR), k)
        digits = select(size == 0, const(k, -np.inf), digits)
        exponent = widen(by) * select(size == np.inf, size, digits)
        exponent = select(exponent < -_FAR, const(k, -_FAR), exponent)
        exponent = select(exponent > _FAR, const(k, _FAR), exponent)
        turned = exponent + _TO_INTEGER
        near = halves.horner(exponent - (turned - _TO_INTEGER), _EXP2_NEAR)
        scaled = (near.view(np.int64) + (turned.view(np.int64) << 52)).view(np.float64)
        return _power_edges(base, by, narrow(scaled, x))


def _power_of_halves(x: Lanes, y: Lanes) -> Lanes:
    """x**y of 16-bit types in f32; the lanes in doubt (one in hundreds) by `_power_of_small`."""
    base, by = x.astype(np.float32), y.astype(np.float32)
    size, doubt = halves.power(absolute(base), by, x.dtype)
    near = _power_edges(base, by, size).astype(x.dtype).view(np.uint16)

    def step(left: Lanes, out: Lanes) -> tuple[Lanes, Lanes]:
        exact = _power_of_small(x, y).view(np.uint16)
        return left ^ left, select(left != 0, exact, out)

    _, out = repeated(step, select(doubt, const(near, 1), const(near, 0)), near)
    return out.view(x.dtype)


def _power_edges(x: Lanes, y: Lanes, size: Lanes) -> Lanes:
    """x**y from `size`, which is |x|**y: adds the sign and the special cases of C's pow."""
    is_integral = rint(y) == y
    odd = is_integral & (rint(y * 0.5) != y * 0.5)
    out = select(signbit(x) & odd, -size, size)
    unknown = isnan(x) | isnan(y) | ((x < 0) & isfinite(x) & ~is_integral)
    out = select(unknown, const(size, np.nan), out)
    one = (y == 0) | (x == 1) | ((absolute(x) == 1) & isinf(y))
    return select(one, const(size, 1.0), out)


def _exp_near(x: F64, n: F64) -> F64:
    """e**(x - n ln2) for the integer n nearest to x / ln2."""
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = const(r, _EXP_TERMS[0])
    for term in _EXP_TERMS[1:]:
        p = p * r + term
    return 1.0 + (r + (r * r) * p)


def exp64(x: F64) -> F64:
    """Cody-Waite reduction x = n ln2 + r, Taylor in r, scaled by 2^n in two steps."""
    with np.errstate(all="ignore"):
        clear = less_of(greater_of(x, _EXP_UNDERFLOW), _EXP_OVERFLOW + 1)
        n = rint(clear * _LOG2E)
        y = _exp_near(clear, n)
        half = select(isnan(n), 0.0, floor(n * 0.5)).astype(np.int64)
        rest = select(isnan(n), 0.0, n).astype(np.int64) - half
        return select(isnan(x), np.nan, (y * _two_to(half)) * _two_to(rest))


def tanh64(x: F64) -> F64:
    """(1 - e) / (1 + e) with e = exp(-2|x|); near 0, where that cancels, Lambert's fraction."""
    with np.errstate(all="ignore"):
        size = absolute(x)
        e = exp64(-2.0 * size)
        near = const(x, 1.0)
        for odd in range(25, 0, -2):  # x / (1 + x^2 / (3 + x^2 / (5 + ...)))
            near = odd + (x * x) / near
        far = copysign((1.0 - e) / (1.0 + e), x)
        return select(size < 1.0, x / near, far)


def _two_to(n: npt.NDArray[np.int64]) -> F64:
    """2**n for |n| <= 1022, by its bits."""
    return ((n + 1023) << 52).view(np.float64)


def log64(x: F64) -> F64:
    """x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m-1)/(m+1))."""
    with np.errstate(all="ignore"):
        tiny = x < 2.2250738585072014e-308
        scaled = select(tiny, x * 18014398509481984.0, x)  # 2^54 makes subnormals normal
        bits = scaled.view(np.int64)
        e = ((bits >> 52) & 0x7FF) - 1023
        m = ((bits & 0x000FFFFFFFFFFFFF) | (1023 << 52)).view(np.float64)
        high = m > 1.4142135623730951
        m = select(high, m * 0.5, m)
        k = (e + high - select(tiny, 54, 0)).astype(np.float64)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = const(z, _LOG_TERMS[0])
        for term in _LOG_TERMS[1:]:
            p = p * z + term
        y = 2.0 * (s + s * (z * p))
        result = k * _LN2_HIGH + (k * _LN2_LOW + y)
        return halves.log_edges(x, result)


def pow64(x: F64, y: F64) -> F64:
    """x**y by exp(y log|x|)."""
    with np.errstate(all="ignore"):
        return _power_edges(x, y, exp64(y * log64(absolute(x))))


def _integer_power(x: Lanes, y: Lanes) -> Lanes:
    """x**y of integers, wrapping.

    A negative power is 0, except of 1 and -1, where only the last bit of y counts. Bytes are
    computed in 16 bits, because machines have no byte multiplication.
    """
    bits = np.dtype(f"u{max(2, x.dtype.itemsize)}")
    left, base = y.view(f"u{y.dtype.itemsize}").astype(bits), x.astype(bits)

    def step(left: Lanes, base: Lanes, out: Lanes) -> tuple[Lanes, Lanes, Lanes]:
        for bit in (1, 2, 4):  # three bits per step, because the test for remaining bits costs time
            out, base = select((left & bit) != 0, out * base, out), base * base
        return left >> 3, base, out

    _, _, out = repeated(step, *step(left, base, const(base, 1)))
    result = out.astype(x.dtype)
    if x.dtype.kind == "u":
        return result
    return select((y < 0) & (x != 1) & (x != -1), const(x, 0), result)
