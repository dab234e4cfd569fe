"""Elementary functions of f16 and bf16, computed in f32: half the work of f64.

Rounded to 16 bits, the results are exact for each of the 65,536 inputs of each type;
`tests/known/test_halves.py` checks all of them, so no error bound is needed. A table below lists
the inputs for which f32 is too coarse to decide a tie.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pto.core import primitives
from pto.core.primitives import const, fused, isnan, select
from pto.isa.meaning.lanes import Lanes

_F16: Final = np.dtype(np.float16)
_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453
# adding this rounds to an integer, which is then in the low bits of the sum
_TO_INTEGER = 1.5 * 2.0**23
_ONE_BITS, _ROOT_BITS = 0x3F800000, 0x3F3504F3  # bit patterns of 1 and of sqrt(1/2)
_EXACT_BITS, _EXACT = 0x4B000000, 2.0**23  # the last bit of this number has the value 1
# Range of x outside which e**x is 0 or infinite, then coefficients for e**r with
# sqrt(1/2) <= e**r <= sqrt(2), highest power first: near Chebyshev's, chosen so that every input
# rounds correctly.
_EXP_F16: Final = (
    (-20.0, 12.0),
    (
        0.008369626477360725,
        0.041917622089385986,
        0.16666507720947266,
        0.4999927580356598,
        1.0000001192092896,
        1.0,
    ),
)
_EXP_BF16: Final = (
    (-95.0, 90.0),
    (0.04187639802694321, 0.1679297387599945, 0.5000190138816833, 0.9999629259109497, 1.0),
)
# f16 inputs for which the f32 result is a tie, and their correctly rounded results
_EXP_TIES: Final = {0.007297515869140625: 1.0068359375, 0.0226898193359375: 1.0224609375}
# (log(1 + f) - f) / f^2 for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG_F16: Final = (
    -0.10189095884561539,
    0.15982691943645477,
    -0.17131708562374115,
    0.1993006467819214,
    -0.2498190701007843,
    0.3333415687084198,
    -0.5000007748603821,
)
_LOG_BF16: Final = (
    -0.14430730044841766,
    0.21747174859046936,
    -0.2526598274707794,
    0.3327908515930176,
    -0.4999392330646515,
)
# 2 atanh(t) / (t ln 2), in t^2; 2**r for sqrt(1/2) <= 2**r <= sqrt(2)
_LOG2_NEAR: Final = (
    0.43173301219940186,
    0.5767145156860352,
    0.9617988467216492,
    2.885390043258667,
)
_EXP2_NEAR: Final = (
    0.00015469732170458883,
    0.0013400432653725147,
    0.00961802527308464,
    0.05550327152013779,
    0.24022650718688965,
    0.6931471824645996,
    1.0,
)
_FAR: Final = 2.0**20  # a power with a greater exponent is 0, 1 or infinite
# relative, of the power and of each digit of its logarithm that y multiplies
_ERROR: Final = 2.0**-23


def exp(x: Lanes) -> Lanes:
    """e**x as e**r 2^n with x = n ln2 + r; scaled in two steps if f32 may be subnormal."""
    (low, high), terms = _EXP_F16 if x.dtype == _F16 else _EXP_BF16
    wide = x.astype(np.float32)
    clear = select(wide < low, const(wide, low), wide)
    clear = select(clear > high, const(wide, high), clear)
    turned = fused(clear, const(wide, _LOG2E), const(wide, _TO_INTEGER))
    y = horner(fused(turned - _TO_INTEGER, const(wide, -_LN2), clear), terms)
    if x.dtype == _F16:
        for at, right in _EXP_TIES.items():
            y = select(wide == const(wide, at), const(y, right), y)
    scaled = _scaled(y, turned.view(np.int32), x.dtype)
    return select(isnan(wide), const(wide, np.nan), scaled).astype(x.dtype)


def _scaled(y: Any, n: Any, kind: Any) -> Any:
    """y 2^n, with n in the low 22 bits; in two steps if the type has subnormals of f32."""
    if kind == _F16:
        return _times_two_to(y, n)
    half = (n << 10) >> 11
    rest = ((n << 10) >> 10) - half
    return _times_two_to(y, half) * ((rest + 127) << 23).view(np.float32)


def log(x: Lanes) -> Lanes:
    """Natural logarithm: x = m 2^k with sqrt(1/2) <= m < sqrt(2); f = m - 1 and f * f are exact."""
    wide = x.astype(np.float32)
    f, k = _split(wide, x.dtype)
    y = fused(f * f, horner(f, _LOG_F16 if x.dtype == _F16 else _LOG_BF16), f)
    return log_edges(wide, fused(k, const(k, _LN2), y)).astype(x.dtype)


def _split(wide: Any, kind: Any) -> tuple[Any, Any]:
    """The fraction f and the exponent k of `log`."""
    tiny = wide < 2.0**-126  # f16 has no subnormals of f32
    bits = wide if kind == _F16 else select(tiny, wide * 2.0**24, wide)
    bits = bits.view(np.uint32)
    biased = (bits + (_ONE_BITS - _ROOT_BITS)) >> 23
    f = (bits - (biased << 23) + _ONE_BITS).view(np.float32) - 1.0
    k = (biased | _EXACT_BITS).view(np.float32) - (_EXACT + 127)
    return f, k if kind == _F16 else select(tiny, k - 24, k)


def power(size: Any, y: Any, kind: Any) -> tuple[Any, Any]:
    """|x|**y in f32, and a mask of the lanes in which f32 is too coarse to round to 16 bits.

    With y (k + l) = n + r, where k and n are integers, y k - n is exact.
    """
    low, high = (-40.0, 40.0) if kind == _F16 else (-140.0, 130.0)
    far = select(y > _FAR, const(y, _FAR), select(y < -_FAR, const(y, -_FAR), y))
    f, k = _split(size, kind)
    t = f / (f + 2.0)
    digits = t * horner(t * t, _LOG2_NEAR)
    product, part = far * k, far * digits
    total = fused(far, digits, product)
    clear = select(total > low, total, const(total, low))
    clear = select(clear < high, clear, const(total, high))
    turned = clear + _TO_INTEGER
    r = fused(far, digits, product - (turned - _TO_INTEGER))
    r = select(r > -0.6, r, const(r, -0.6))
    near = horner(select(r < 0.6, r, const(r, 0.6)), _EXP2_NEAR)
    near_power = _scaled(near, turned.view(np.int32), kind)
    error = fused(primitives.absolute(part), const(part, _ERROR), const(part, _ERROR))
    if kind == _F16:
        sides = (
            fused(near_power, side, near_power).astype(kind).view(np.uint16)
            for side in (error, -error)
        )
        doubt = next(sides) != next(sides)
    else:  # near a tie of the 16-bit type, or already rounded once because it is subnormal
        past = ((near_power.view(np.int32) & 0xFFFF) - 0x8000).astype(np.float32)
        doubt = primitives.absolute(past) <= error * 2.0**24
        doubt = doubt | ((total > -138.0) & (total < -125.0))
    edge = (size == 0) | (size == np.inf)
    high_end = (y > 0) == (size == np.inf)
    near_power = select(
        edge, select(high_end, const(near_power, np.inf), const(near_power, 0.0)), near_power
    )
    return near_power, doubt & (clear == total) & ~edge


def log_edges(x: Any, y: Any) -> Any:
    """`y`, the logarithm of `x`, replaced where x is zero, negative, NaN or infinite."""
    y = select(x == 0, -np.inf, y)
    y = select((x < 0) | isnan(x), np.nan, y)  # one sign and payload for every NaN
    return select(x == np.inf, x, y)


def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x)."""
    return (1.0 / primitives.sqrt(x.astype(np.float32))).astype(x.dtype)


def horner(r: Any, terms: tuple[float, ...]) -> Any:
    """A polynomial of r, its highest term first, by fused steps."""
    p = const(r, terms[0])
    for term in terms[1:]:
        p = fused(p, r, const(r, term))
    return p


def _times_two_to(y: Any, n: Any) -> Any:
    """y 2^n by adding to the exponent bits; the result must be in range."""
    return (y.view(np.int32) + (n << 23)).view(np.float32)
