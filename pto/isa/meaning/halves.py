"""Elementary functions of f16 and bf16, computed in f32: half the work of f64.

Rounded to 16 bits they are the exact results for every one of the 65,536 inputs of each type, which
`tests/known/test_halves.py` goes through: no error bound is needed, and where f32 does not tell on
which side of a tie a result lies, that input is named here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pto.core import primitives
from pto.core.primitives import const, isnan, select
from pto.isa.meaning.lanes import Lanes

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.693145751953125  # 16 bits of ln 2: times a power of two's exponent it is exact
_LN2_LOW = 1.4286068203094172e-06
_TO_INTEGER = 1.5 * 2.0**23  # added, it rounds to an integer, whose low bits stay in the sum
_EXP_TERMS = (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2)
_FAR = {np.dtype(np.float16): (-20.0, 12.0)}  # where e**x is 0 or infinite at last
_FARTHEST = (-95.0, 90.0)
# (log(1 + f) - f + f^2 / 2) / f^3 between the roots of 1/2 and 2, least squares
_LOG_TERMS = (
    0.086427703499794,
    -0.14262831211090088,
    0.14934174716472626,
    -0.16578958928585052,
    0.19961147010326385,
    -0.25001260638237,
    0.3333396911621094,
)
# f16 inputs whose f32 results are ties, and what they are
_EXP_TIES: Final = {0.007297515869140625: 1.0068359375, 0.0226898193359375: 1.0224609375}
_LOG_TIES: Final = {0.005340576171875: -5.23046875}


def exp(x: Lanes) -> Lanes:
    """x = n ln2 + r, Taylor in r; times 2^n, in two steps where f32 has subnormals."""
    low, high = _FAR.get(x.dtype, _FARTHEST)
    wide = x.astype(np.float32)
    clear = select(wide < low, const(wide, low), wide)
    clear = select(clear > high, const(wide, high), clear)
    turned = clear * _LOG2E + _TO_INTEGER
    n = turned - _TO_INTEGER
    r = (clear - n * _LN2_HIGH) - n * _LN2_LOW
    y = _settled(wide, (r + (r * r) * _horner(r, _EXP_TERMS)) + 1.0, x, _EXP_TIES)
    if x.dtype == np.float16:
        found = _times_two_to(y, turned.view(np.int32))
    else:
        half = (turned.view(np.int32) << 10) >> 11  # its low 22 bits, signed and halved
        rest = ((turned.view(np.int32) << 10) >> 10) - half
        found = _times_two_to(y, half) * ((rest + 127) << 23).view(np.float32)
    return select(isnan(wide), const(wide, np.nan), found).astype(x.dtype)


def log(x: Lanes) -> Lanes:
    """x = m 2^k with m in [sqrt(1/2), sqrt(2)); f = m - 1 and f * f are exact."""
    wide = x.astype(np.float32)
    tiny = wide < 2.0**-126  # none of f16
    scaled = wide if x.dtype == np.float16 else select(tiny, wide * 2.0**24, wide)
    bits = scaled.view(np.int32)
    m = ((bits & 0x007FFFFF) | (127 << 23)).view(np.float32)
    high = m > 1.4142135
    f = select(high, m * 0.5, m) - 1.0
    k = select(high, (bits >> 23) - 126, (bits >> 23) - 127)
    k = (k if x.dtype == np.float16 else select(tiny, k - 24, k)).astype(np.float32)
    z = f * f
    y = k * _LN2_HIGH + ((k * _LN2_LOW + ((z * f) * _horner(f, _LOG_TERMS) - 0.5 * z)) + f)
    return log_edges(wide, _settled(wide, y, x, _LOG_TIES)).astype(x.dtype)


def log_edges(x: Any, y: Any) -> Any:
    """Where a logarithm is no number, or infinite."""
    y = select(x == 0, -np.inf, y)
    y = select((x < 0) | isnan(x), np.nan, y)  # NaN of one sign and payload, whatever came in
    return select(x == np.inf, x, y)


def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x)."""
    return (1.0 / primitives.sqrt(x.astype(np.float32))).astype(x.dtype)


def _horner(r: Any, terms: tuple[float, ...]) -> Any:
    p = const(r, terms[0])
    for term in terms[1:]:
        p = p * r + const(r, term)
    return p


def _times_two_to(y: Any, n: Any) -> Any:
    """y 2^n by its bits, in range."""
    return (y.view(np.int32) + (n << 23)).view(np.float32)


def _settled(wide: Any, y: Any, like: Lanes, ties: dict[float, float]) -> Any:
    for at, right in ties.items() if like.dtype == np.float16 else ():
        y = select(wide == const(wide, at), const(y, right), y)
    return y
