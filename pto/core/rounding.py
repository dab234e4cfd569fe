"""Rounding modes and how a number becomes an integer under one of them.

Knows neither element types nor float formats; those live in `core/floats.py` and
`core/dtypes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail, nearest
from pto.core.primitives import absolute, ceil, copysign, floor, rint, select, trunc

F64 = npt.NDArray[np.float64]


class Round(Enum):
    """How a value between two representable ones is rounded (pto-isa type.hpp).

    NONE is no rounding of its own but the default of the pair of types: toward zero from float
    to integer, ties away into hifloat8 (its only mode in hardware), nearest even otherwise.
    """

    NONE = 0
    RINT = 1  # nearest, ties to even
    ROUND = 2  # nearest, ties away from zero
    FLOOR = 3
    CEIL = 4
    TRUNC = 5
    ODD = 6  # von Neumann: an inexact result takes the odd neighbour


# The letter of each mode in `vcvt {rnd = "R"}` and `round(r)`; NONE has none.
_LETTERS: Final = {
    "R": Round.RINT,
    "A": Round.ROUND,
    "F": Round.FLOOR,
    "C": Round.CEIL,
    "Z": Round.TRUNC,
    "O": Round.ODD,
}

_SPELLINGS: Final[dict[str, Round]] = {
    **{mode.name: mode for mode in Round},
    **{f"CAST_{mode.name}": mode for mode in Round},
    **_LETTERS,
    **{letter.lower(): mode for letter, mode in _LETTERS.items()},
    **{f"ROUND_{letter}": mode for letter, mode in _LETTERS.items()},
}


def round_mode(spelling: str | Round) -> Round:
    """The mode a program names: `RINT`, `CAST_RINT`, `R`, `r` or `ROUND_R`."""
    if isinstance(spelling, Round):
        return spelling
    mode = _SPELLINGS.get(spelling)
    if mode is None:
        raise fail(
            "PTO-T005",
            f"`{spelling}` is not a rounding mode",
            help=nearest(spelling.upper(), _SPELLINGS)
            or "the modes are " + ", ".join(mode.name for mode in Round),
        )
    return mode


def _ties_away(x: F64) -> F64:
    whole = trunc(x)
    # x - whole is exact, so 0.49999999999999994 is not mistaken for a tie.
    return whole + copysign(absolute(x - whole) >= 0.5, x)


def _to_odd(x: F64) -> F64:
    below = floor(x)
    half = below * 0.5
    return select((below != x) & (half == floor(half)), below + 1.0, below)


_INTEGRAL: Final[dict[Round, Callable[[F64], F64]]] = {
    Round.RINT: rint,
    Round.ROUND: _ties_away,
    Round.FLOOR: floor,
    Round.CEIL: ceil,
    Round.TRUNC: trunc,
    Round.ODD: _to_odd,
}


def round_integral(x: F64, mode: Round) -> F64:
    """Each value rounded to an integral one; inf, NaN and the sign of zero pass through."""
    with np.errstate(invalid="ignore"):
        return _INTEGRAL[mode](x)


def clamp_integers(values: npt.NDArray[Any], low: int, high: int) -> npt.NDArray[Any]:
    """64-bit integers limited to [low, high], bounds of any size."""
    info = np.iinfo(values.dtype)
    if low > info.min:
        values = np.maximum(values, values.dtype.type(min(low, info.max)))
    if high < info.max:
        values = np.minimum(values, values.dtype.type(max(high, info.min)))
    return values


def integers_of_floats(
    x: F64, mode: Round, low: int, high: int, saturate: bool
) -> npt.NDArray[Any]:
    """Rounded to 64-bit integers: int64, or uint64 where `high` needs it.

    Saturating: limited to [low, high], NaN is 0. Otherwise the 64-bit pattern, with low bits that
    wrap modulo 2^n. Values beyond 64 bits are clamped first: +inf gives all ones, -inf the bits of
    -2^63 (pto-isa TCvt.hpp, integers).
    """
    whole = round_integral(x, mode)
    whole = np.where(np.isnan(whole), 0.0, whole)
    if saturate:
        return _limited(whole, low, high)
    whole = np.clip(whole, -(2.0**63), 2.0**64)
    bits = np.where(whole < 2.0**63, whole, whole - 2.0**64).astype(np.int64)
    return np.where(whole == 2.0**64, np.int64(-1), bits)


def _limited(whole: F64, low: int, high: int) -> npt.NDArray[Any]:
    if high < 2**53:
        return np.clip(whole, low, high).astype(np.int64)
    target = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    # float(2^63 - 1) is 2^63, which no int64 holds: such bounds are set after the cast.
    over = whole >= float(high)
    under = whole <= float(low)
    inside = np.where(over | under, 0.0, whole).astype(target)
    return np.where(over, target(high), np.where(under, target(low), inside))


def magnitudes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """|values| of 64-bit integers; the magnitude of -2^63 included."""
    bits = values.view(np.uint64)
    if values.dtype == np.uint64:
        return bits
    return np.where(values < 0, np.uint64(0) - bits, bits)


_SPARE: Final = np.uint64(0x7FF)  # low bits of a 64-bit magnitude that do not fit float64


def floats_for_rounding(values: npt.NDArray[Any]) -> F64:
    """64-bit integers as float64 that round to any format of up to 41 bits as the integers would.

    Bits that do not fit are folded into the last kept bit (round to odd), so a second rounding
    sees on which side of a tie the exact value lies.
    """
    if values.size and values.min() >= -(1 << 53) and values.max() <= 1 << 53:
        return values.astype(np.float64)
    size = magnitudes(values)
    folded = (size | ((size & _SPARE != 0).astype(np.uint64) << np.uint64(11))) & ~_SPARE
    kept = np.where(size < np.uint64(1 << 53), size, folded).astype(np.float64)
    return np.where(values < 0, -kept, kept)


def floats_of_integers(values: npt.NDArray[Any], mode: Round) -> F64:
    """64-bit integers rounded once to float64."""
    size = magnitudes(values)
    # Without the spare bits the cast is exact, so its exponent is the true bit length.
    drop = np.maximum(np.frexp((size & ~_SPARE).astype(np.float64))[1] - 53, 0)
    kept = size >> drop.astype(np.uint64)
    rest = np.ldexp((size - (kept << drop.astype(np.uint64))).astype(np.float64), -drop)
    # Only the last kept bit and what lies below it decide; together they fit a float64.
    sign = np.where(values < 0, -1.0, 1.0)
    last = round_integral(sign * ((kept & np.uint64(1)).astype(np.float64) + rest), mode)
    return np.ldexp(sign * (kept & ~np.uint64(1)).astype(np.float64) + last, drop)
