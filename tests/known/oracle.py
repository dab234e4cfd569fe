"""Rounding by other means: values come from NumPy, ml_dtypes and en_dtypes, and a value is rounded
by looking up its two neighbours in the sorted list of them. Shares nothing with `pto.core.floats`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import en_dtypes
import ml_dtypes
import numpy as np

# The outside type of one value. Packed types are judged one nibble at a time.
OUTSIDE = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "hifloat8": en_dtypes.hifloat8,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "float4_e1m2x2": en_dtypes.float4_e1m2,
    "float4_e2m1x2": ml_dtypes.float4_e2m1fn,
}
BITS = {"f16": 16, "bf16": 16, "float4_e1m2x2": 4, "float4_e2m1x2": 4}
NO_INF = {"f8e4m3", "e8m0", "float4_e1m2x2", "float4_e2m1x2"}
NO_NAN = {"float4_e1m2x2", "float4_e2m1x2"}
MODES = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")


@cache
def values_of_codes(name: str) -> np.ndarray:
    """The float64 value of every code of a float type of at most 16 bits."""
    bits = BITS.get(name, 8)
    codes = np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)
    with np.errstate(invalid="ignore"):
        return codes.view(OUTSIDE[name]).astype(np.float64)


@dataclass(frozen=True)
class Grid:
    """Magnitudes of a type in order, one past the largest finite included, and their parity."""

    sizes: np.ndarray
    odd: np.ndarray
    largest: float


@cache
def grid(name: str) -> Grid:
    values = values_of_codes(name)
    codes = np.flatnonzero(np.isfinite(values) & ~np.signbit(values))
    codes = codes[np.argsort(values[codes])]
    sizes, odd = values[codes], (codes & 1).astype(bool)
    # A significand of one bit is always 1, hence odd, whatever the last bit of the code is.
    single = np.full(sizes.shape, name == "e8m0")
    if name == "hifloat8":
        single = (sizes > 0) & (sizes < 2.0**-15)
    odd |= single
    largest = sizes[-1]
    # The step beyond the largest value is the step of its binade: 2^15 and 1.5 * 2^15 in hifloat8.
    step = {"hifloat8": 2.0**14, "e8m0": largest}.get(name, largest - sizes[-2])
    beyond_odd = {"e8m0": True}.get(name, not odd[-1])
    return Grid(np.append(sizes, largest + step), np.append(odd, beyond_odd), float(largest))


def clamps_specials(src: str, dst: str) -> bool:
    """Whether a saturating conversion takes inf and NaN along (goldens of vcvt and fixpipe)."""
    return dst in NO_INF or grid(dst).largest < grid(src).largest


def rounded(name: str, x: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    """Float64 values as values of the type; `saturate` takes inf and NaN along."""
    if name == "e8m0":  # no zero and no sign: all of it is out of range
        x = np.where(x <= 0, 0.0 if saturate else np.nan, x)
    g = grid(name)
    size = np.abs(x)
    low = np.clip(np.searchsorted(g.sizes, size, side="right") - 1, 0, len(g.sizes) - 2)
    below, above = g.sizes[low], g.sizes[low + 1]
    up = _goes_up(mode, size, below, above, g.odd[low], np.signbit(x))
    result = np.where((size <= below) | ~up, below, above)
    result = np.copysign(_overflow(name, g, size, result, mode, saturate, np.signbit(x)), x)
    nan = np.nan if name not in NO_NAN and (not saturate or name == "e8m0") else 0.0
    result = np.where(np.isnan(x), nan, result)
    return np.where(result == 0, 0.0, result) if name == "hifloat8" else result


def _goes_up(mode, size, below, above, odd_below, negative):
    middle = below + (above - below) / 2
    return {
        "RINT": (size > middle) | ((size == middle) & odd_below),
        "ROUND": size >= middle,
        "FLOOR": negative,
        "CEIL": ~negative,
        "TRUNC": np.zeros_like(negative),
        "ODD": ~odd_below,
    }[mode]


def _overflow(name, g, size, result, mode, saturate, negative):
    over = (result > g.largest) | (size >= g.sizes[-1])
    if saturate or name in NO_NAN:
        return np.where(over, g.largest, result)
    down = {"FLOOR": ~negative, "CEIL": negative}.get(mode, mode in ("TRUNC", "ODD"))
    outside = np.nan if name in NO_INF else np.inf
    return np.where(over, np.where(down & ~np.isinf(size), g.largest, outside), result)


# --- one value at a time, for sources wider than float64 can hold or tables can list ------------


def round_fraction(x: Fraction, mode: str) -> int:
    """An exact number rounded to an integer."""
    floor = math.floor(x)
    rest = x - floor
    if rest == 0:
        return floor
    half = Fraction(1, 2)
    up = {
        "RINT": rest > half or (rest == half and floor % 2 == 1),
        "ROUND": rest > half or (rest == half and x > 0),
        "FLOOR": False,
        "CEIL": True,
        "TRUNC": x < 0,
        "ODD": floor % 2 == 0,
    }[mode]
    return floor + up


def round_to_float(name: str, x: Fraction, mode: str) -> Fraction:
    """An exact number rounded to the precision of a float type; overflow is not looked at."""
    info = np.finfo(OUTSIDE[name]) if name != "bf16" else ml_dtypes.finfo(ml_dtypes.bfloat16)
    if x == 0:
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    return round_fraction(x / step, mode) * step


def wrap(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value
