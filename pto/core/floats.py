"""Float formats bit by bit: which values a format holds, and how a value rounds into one.

Values travel as float64, which holds every value of every format here. Names, spellings and
integers live in `core/dtypes.py`; which pairs saturate is decided in `core/convert.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

import ml_dtypes
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
    integral = trunc(x)
    # x - whole is exact, so 0.49999999999999994 is not mistaken for a tie.
    return integral + copysign(absolute(x - integral) >= 0.5, x)


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
    rounded = round_integral(x, mode)
    rounded = np.where(np.isnan(rounded), 0.0, rounded)
    if saturate:
        return _limited(rounded, low, high)
    rounded = np.clip(rounded, -(2.0**63), 2.0**64)
    bits = np.where(rounded < 2.0**63, rounded, rounded - 2.0**64).astype(np.int64)
    return np.where(rounded == 2.0**64, np.int64(-1), bits)


def _limited(rounded: F64, low: int, high: int) -> npt.NDArray[Any]:
    if high < 2**53:
        return np.clip(rounded, low, high).astype(np.int64)
    target = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    # float(2^63 - 1) is 2^63, which no int64 holds: such bounds are set after the cast.
    over = rounded >= float(high)
    under = rounded <= float(low)
    inside = np.where(over | under, 0.0, rounded).astype(target)
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
    rounded = np.where(size < np.uint64(1 << 53), size, folded).astype(np.float64)
    return np.where(values < 0, -rounded, rounded)


def floats_of_integers(values: npt.NDArray[Any], mode: Round) -> F64:
    """64-bit integers rounded once to float64."""
    size = magnitudes(values)
    # Without the spare bits the cast is exact, so its exponent is the true bit length.
    drop = np.maximum(np.frexp((size & ~_SPARE).astype(np.float64))[1] - 53, 0)
    high_bits = size >> drop.astype(np.uint64)
    rest = np.ldexp((size - (high_bits << drop.astype(np.uint64))).astype(np.float64), -drop)
    # Only the last kept bit and what lies below it decide; together they fit a float64.
    sign = np.where(values < 0, -1.0, 1.0)
    last = round_integral(sign * ((high_bits & np.uint64(1)).astype(np.float64) + rest), mode)
    return np.ldexp(sign * (high_bits & ~np.uint64(1)).astype(np.float64) + last, drop)


@dataclass(frozen=True, slots=True, eq=False)
class FloatFormat:
    """A binary float format: values 1.M x 2^E down to E = emin, evenly spaced below 2^emin.

    `tapers` describes a mantissa that shrinks away from 1, as (largest |E|, mantissa bits) in
    order; beyond the last |E| the values are bare powers of two.
    """

    bits: int
    mantissa: int
    emin: int
    max: float
    nan: int | None  # the code of the positive quiet NaN
    inf: bool = True
    signed: bool = True
    native: Any = None  # the NumPy type, where 16 bits or more make a table too large
    tapers: tuple[tuple[int, int], ...] = ()

    @property
    def saturates(self) -> bool:
        """f32 and f64 keep inf and NaN in every saturation mode (micro-instruction manual, sat)."""
        return self.bits < 32

    @property
    def min(self) -> float:
        """The lowest finite value."""
        return -self.max if self.signed else 2.0**self.emin

    def mantissa_at(self, exponent: int) -> int:
        """Mantissa bits of values in [2^exponent, 2^(exponent + 1))."""
        if not self.tapers:
            return self.mantissa
        return next((bits for limit, bits in self.tapers if abs(exponent) <= limit), 0)


IEEE_F16: Final = FloatFormat(16, 10, -14, 65504.0, 0x7E00, native=np.float16)
BRAIN_F16: Final = FloatFormat(16, 7, -126, 255 * 2.0**120, 0x7FC0, native=ml_dtypes.bfloat16)
IEEE_F32: Final = FloatFormat(
    32, 23, -126, (2 - 2.0**-23) * 2.0**127, 0x7FC00000, native=np.float32
)
IEEE_F64: Final = FloatFormat(
    64, 52, -1022, (2 - 2.0**-52) * 2.0**1023, 0x7FF8 << 48, native=np.float64
)
E4M3: Final = FloatFormat(8, 3, -6, 448.0, 0x7F, inf=False)
E5M2: Final = FloatFormat(8, 2, -14, 57344.0, 0x7E)
E2M1: Final = FloatFormat(4, 1, 0, 6.0, None, inf=False)
E1M2: Final = FloatFormat(4, 2, 0, 1.75, None, inf=False)
# A scale: 2^(byte - 127). No sign, no zero (OCP Microscaling Formats).
POWER_OF_TWO: Final = FloatFormat(8, 0, -127, 2.0**127, 0xFF, inf=False, signed=False)
# HiFloat8 (equal to en_dtypes on all 256 codes): |E| <= 3 keeps 3 mantissa bits, <= 7 two, <= 15
# one; from 2^-16 down to 2^-22 the values are powers of two.
HIFLOAT: Final = FloatFormat(8, 3, -22, 32768.0, 0x80, tapers=((3, 3), (7, 2), (15, 1)))


def _powers(exponents: Any) -> F64:
    return np.ldexp(1.0, np.asarray(exponents, np.int32))


# --- bits to values ---------------------------------------------------------------------------


@cache
def values_of(form: FloatFormat) -> F64:
    """The value of every code of a format of at most 8 bits."""
    special = {POWER_OF_TWO: _scale_values, HIFLOAT: _hifloat_values}
    values = special[form]() if form in special else _ieee_values(form)
    values.flags.writeable = False
    return values


def _ieee_values(form: FloatFormat) -> F64:
    code = np.arange(1 << (form.bits - 1))
    field, fraction = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    significand = fraction + np.where(field > 0, 1 << form.mantissa, 0)
    exponent = np.maximum(field, 1) - 1 + form.emin - form.mantissa
    size = significand * _powers(exponent)
    beyond = np.flatnonzero(size > form.max)
    size[beyond] = np.nan
    if form.inf:
        size[beyond[0]] = np.inf
    return np.concatenate([size, -size])


def _scale_values() -> F64:
    values = _powers(np.arange(256) - 127)
    values[0xFF] = np.nan
    return values


# Dot prefix of HiFloat8, longest exponents first: (its bits, how many, D).
_DOTS: Final = ((0b11, 2, 4), (0b10, 2, 3), (0b01, 2, 2), (0b001, 3, 1), (0b0001, 4, 0))


def _hifloat_values() -> F64:
    size = np.zeros(128)
    for prefix, width, digits in _DOTS:
        mantissa = 7 - width - digits
        code = np.arange(prefix << (7 - width), (prefix + 1) << (7 - width))
        field = (code >> mantissa) & ((1 << digits) - 1)
        fraction = code & ((1 << mantissa) - 1)
        # Sign-magnitude exponent: its first bit is the sign, its leading 1 is not stored.
        half = 1 << digits >> 1
        magnitude = half + (field & (half - 1)) if half else np.zeros_like(code)
        exponent = np.where(field & half, -magnitude, magnitude)
        size[code] = (1.0 + fraction / (1 << mantissa)) * _powers(exponent)
    size[1:8] = _powers(np.arange(1, 8) - 23)  # prefix 0000: denormals
    size[0x6F] = np.inf
    values = np.concatenate([size, -size])
    values[0x80] = np.nan  # there is one zero; its negative is the NaN
    return values


def unpack(form: FloatFormat, items: npt.NDArray[Any]) -> F64:
    """Storage items of `form`, one value each, as exact float64."""
    if form.native is None:
        return values_of(form)[items]
    with np.errstate(invalid="ignore"):
        return items.view(form.native).astype(np.float64)


# --- values to bits ---------------------------------------------------------------------------


@cache
def _codes(form: FloatFormat) -> npt.NDArray[np.uint8]:
    """Code of each value, indexed by the upper 15 bits of its float64: sign, exponent and as much
    of the fraction as any format of at most 8 bits keeps."""
    values = values_of(form)
    table = np.full(1 << 15, form.nan or 0, np.uint8)
    number = ~np.isnan(values)
    table[(values[number].view(np.uint64) >> 49).astype(np.intp)] = np.flatnonzero(number)
    if form is HIFLOAT:
        table[1 << 14] = 0  # -0.0 is the one zero
    return table


def pack(form: FloatFormat, values: F64) -> npt.NDArray[Any]:
    """Values that `form` holds exactly, as storage items. A NaN becomes the positive quiet one, so
    the bits do not depend on where the NaN came from."""
    if form.native is None:
        return _codes(form)[(values.view(np.uint64) >> np.uint64(49)).astype(np.intp)]
    with np.errstate(invalid="ignore"):
        items = values.astype(form.native).view(f"u{form.bits // 8}")
    items[np.isnan(values)] = form.nan
    return items


def limit(form: FloatFormat, values: F64, *, infinite: bool = False) -> F64:
    """Values limited to the finite range of `form`; inf too if `infinite` or not representable."""
    limited = np.clip(values, form.min, form.max)
    if form.inf and not infinite:
        return np.where(np.isinf(values), values, limited)
    return limited


@cache
def _steps(form: FloatFormat) -> F64:
    """Distance between neighbours of `form`, indexed by the exponent field of a float64."""
    exponents = range(-1023, 1025)
    clipped = [min(max(e, form.emin), 1000) for e in exponents]
    return _powers([e - form.mantissa_at(e) for e in clipped])


def round_into(form: FloatFormat, values: F64, mode: Round) -> F64:
    """Each value rounded once to one that `form` holds, with IEEE overflow.

    Even and odd speak of the significand, so where it has a single bit (e8m0, the smallest
    hifloat8) a RINT tie goes up and ODD goes down. Beyond the largest finite value ODD acts as
    TRUNC. e8m0 has no zero and no sign: 0 and negative values become NaN.
    """
    if form is IEEE_F64:
        return values
    field = (values.view(np.int64) >> 52) & 0x7FF
    step = _steps(form)[field]
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = round_integral(values / step, mode) * step
    if form is POWER_OF_TWO:
        tiny = np.where(values > 0, 2.0**form.emin, np.nan)
        rounded = np.where(rounded < 2.0**form.emin, tiny, rounded)
    return _overflowed(form, rounded, mode)


def _overflowed(form: FloatFormat, rounded: F64, mode: Round) -> F64:
    over = np.abs(rounded) > form.max
    if not over.any():
        return rounded
    infinite = np.isinf(rounded)
    stays = over & ~infinite & _toward_zero(rounded, mode)
    if not form.inf and form.nan is None:
        stays = over
    outside = np.copysign(np.inf, rounded) if form.inf else np.full_like(rounded, np.nan)
    return np.where(stays, np.copysign(form.max, rounded), np.where(over, outside, rounded))


def _toward_zero(values: F64, mode: Round) -> npt.NDArray[np.bool_]:
    """Where `mode` rounds the magnitude down, so that a finite value never becomes infinite."""
    if mode is Round.FLOOR:
        return values > 0
    if mode is Round.CEIL:
        return values < 0
    return np.full(values.shape, mode in (Round.TRUNC, Round.ODD))
