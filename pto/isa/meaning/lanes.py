"""Operations on lanes that families share, in the vocabulary of `core.primitives`.

A lane value is a NumPy array of the element type's `numpy` view, or what compiled code is written
from. Arithmetic of f16, bf16 and f32 is the IEEE operation rounded once (NumPy and ml_dtypes widen,
compute and round); integers wrap; nothing is fused that does not say so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core import convert as conversion
from pto.core.dtypes import DType
from pto.core.floats import Round
from pto.core.primitives import (
    Lanes,
    absolute,
    const,
    fmod,
    greater_of,
    isfinite,
    less_of,
    primitive,
    quotient,
    remainder,
    select,
    shortcut,
)

__all__ = ["Lanes", "absolute", "const", "fmod", "remainder", "select"]

PARTIALS = 16  # partial accumulators of a row: kinds.Fold


@primitive
def convert(
    values: Lanes,
    src: DType,
    dst: DType,
    rounding: Round = Round.RINT,
    saturate: bool = True,
    keep_nan: bool = False,
) -> Lanes:
    """Items of one element type converted to another: `core.convert`."""
    return conversion.convert(values, src, dst, rounding, saturate, keep_nan=keep_nan)


add = operator.add
sub = operator.sub
mul = operator.mul
bit_and = operator.and_
bit_or = operator.or_
bit_xor = operator.xor
bit_not = operator.inv
negative = operator.neg
# The count is read as unsigned; one of the width or more gives 0, or the sign of a signed value.
shift_left, shift_right = operator.lshift, operator.rshift


def is_integer(a: Lanes) -> bool:
    """True for integer lanes. Known when a program is prepared, so it never depends on values."""
    return a.dtype.kind in "iu"


@primitive
def maximum(a: Lanes, b: Lanes) -> Lanes:
    """IEEE 754-2019 maximum: NaN wins, and +0 is greater than -0."""
    greater = np.maximum(a, b)
    if is_integer(a):
        return greater
    zero = greater == 0  # of two zeros it is either one; their sum is +0 unless both are -0
    return np.where(zero & (a == b), a + b, greater) if np.count_nonzero(zero) else greater


@primitive
def minimum(a: Lanes, b: Lanes) -> Lanes:
    """IEEE 754-2019 minimum: NaN wins, and -0 is less than +0."""
    lesser = np.minimum(a, b)
    if is_integer(a):
        return lesser
    zero = lesser == 0
    return np.where(zero & (a == b), -(-a - b), lesser) if np.count_nonzero(zero) else lesser


def relu(a: Lanes) -> Lanes:
    """maximum(a, +0): NaN stays, -0 becomes +0."""
    zero = const(a, 0)
    if a.dtype.itemsize == 2:  # 16-bit types have no hardware addition
        return maximum(a, zero)
    result = greater_of(a, zero)
    return result if is_integer(a) else result + zero


def add_relu(a: Lanes, b: Lanes) -> Lanes:
    return relu(a + b)


def sub_relu(a: Lanes, b: Lanes) -> Lanes:
    return relu(a - b)


def multiply_add(acc: Lanes, a: Lanes, b: Lanes) -> Lanes:
    return fma(a, b, acc)


def _div(a: Lanes, b: Lanes) -> Lanes:
    if not is_integer(a):
        return a / b
    if a.dtype.itemsize == 8:
        return quotient(a, b)
    zero = b == 0
    if zero.any():
        a, b = np.where(zero, const(a, 0), a), np.where(zero, const(b, 1), b)
    # f64 holds both exactly, and its rounding is finer than 1 / b: truncation is exact.
    return np.trunc(widen(a) / widen(b)).astype(np.int64).astype(a.dtype)


@shortcut(_div)
def div(a: Lanes, b: Lanes) -> Lanes:
    """IEEE division; integers truncate toward zero, and x / 0 is 0."""
    return quotient(a, b) if is_integer(a) else a / b


def shift_amount(count: Lanes, like: Lanes) -> Lanes:
    """A count of another width as a lane of `like`; one that is out of range stays out of range."""
    bits = like.dtype.itemsize * 8
    unsigned = count.view(f"u{count.dtype.itemsize}")
    return less_of(unsigned, const(unsigned, bits)).astype(like.dtype)


def width_modulo(count: Lanes) -> Lanes:
    """A shift count taken modulo the width of its lanes."""
    return count & np.asarray(8 * count.dtype.itemsize - 1, count.dtype)


_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def raw(a: Lanes) -> Lanes:
    """The bits of a lane as an unsigned integer."""
    return a.view(_BITS[a.dtype.itemsize])


def from_raw(bits: Lanes, like: Lanes) -> Lanes:
    """Bits as a lane of the type of `like`."""
    return bits.view(like.dtype)


def on_bits(fn: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """fn of the bits of lanes, as a lane of the first one's type."""
    return lambda *sources: from_raw(fn(*map(raw, sources)), sources[0])


def count_ones(a: Lanes) -> Lanes:
    """Set bits of an integer: counted in pairs, nibbles and bytes side by side."""
    width = 8 * a.dtype.itemsize
    every = (1 << width) - 1  # divided by 3, 5, 17, 255: the masks 0x55.., 0x33.., 0x0f.., 0x01..
    x = raw(a)
    x = x - ((x >> const(x, 1)) & const(x, every // 3))
    x = (x & const(x, every // 5)) + ((x >> const(x, 2)) & const(x, every // 5))
    x = (x + (x >> const(x, 4))) & const(x, every // 17)
    return (x * const(x, every // 255) >> const(x, width - 8)).astype(a.dtype)


def count_signs(a: Lanes) -> Lanes:
    """The number of leading bits of an integer that equal its highest bit, including that bit."""
    width = 8 * a.dtype.itemsize
    signed = a.view(f"i{a.dtype.itemsize}")
    rest = raw(select(signed < 0, ~signed, signed))
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < width:
            rest = rest | rest >> const(rest, distance)
    return (const(rest, width) - count_ones(rest)).astype(a.dtype)


def fma(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c rounded once; integers wrap.

    For f16, bf16 and f32 the product is exact in f64, and the sum is rounded to odd there, so the
    last rounding is correct.
    """
    if is_integer(a):
        return a * b + c
    product, addend = widen(a) * widen(b), widen(c)
    return narrow(odd_sum(product, addend, product + addend), a)


def odd_sum(product: Lanes, addend: Lanes, total: Lanes) -> Lanes:
    """The sum of two f64 rounded to odd, given `total`, the sum rounded to nearest.

    A further rounding to a narrower type is then correct.
    """
    part = total - product
    error = (product - (total - part)) + (addend - part)  # exact: the rounding error of the sum
    bits = total.view(np.int64)
    even = isfinite(total) & (error != 0) & ((bits & 1) == 0)
    toward = select((error > 0) == (total > 0), const(bits, 1), const(bits, -1))
    return select(even, bits + toward, bits).view(np.float64)


# NaN is unequal to all and neither above nor below; -0 equals +0.
equal = operator.eq
less = operator.lt
greater = operator.gt
greater_equal = operator.ge
MODES: dict[str, Callable[[Any, Any], Any]] = {
    mode: getattr(operator, mode) for mode in ("eq", "ne", "lt", "le", "gt", "ge")
}

# How atomic writes and reductions combine two values.
COMBINE: dict[str, Callable[[Any, Any], Any]] = {"add": add, "max": maximum, "min": minimum}


def cast(a: Lanes, like: Lanes) -> Lanes:
    """f16, bf16 or f32 as one of these types, to nearest even; overflow is inf."""
    return a if a.dtype == like.dtype else a.astype(like.dtype)


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
    """f64 to a type that ml_dtypes reaches through f32: round to odd in f32 first, then once."""
    single = a.astype(np.float32)
    back = single.astype(np.float64)
    bits = single.view(np.int32)
    inexact = (back != a) & isfinite(single)
    away = absolute(back) > absolute(a)
    odd = select(inexact & away & ((bits & 1) == 0), bits - 1, bits)
    odd = select(inexact & ((odd & 1) == 0), odd | 1, odd)
    return odd.view(np.float32).astype(to)


def neutral(fn: Callable[[Any, Any], Any], kind: np.dtype[Any]) -> Any:
    """The neutral element of `fn`, with which a fold starts."""
    if fn is add:
        return kind.type(0)
    if fn is mul:
        return kind.type(1)
    greatest = fn is minimum
    if kind.kind in "iu":
        return np.iinfo(kind).max if greatest else np.iinfo(kind).min
    return kind.type(np.inf if greatest else -np.inf)


def fold(fn: Callable[[Any, Any], Any], lines: Lanes) -> Lanes:
    """Fold the lines of a C-contiguous array in order: acc = fn(acc, next), from the neutral
    element.
    """
    if fn in _EXTREMES:
        return _extreme(lines, *_EXTREMES[fn])
    ufunc = _ORDERED[fn]
    if lines.shape[1] == 1:  # the only axis: reduce would add in pairs
        folded = ufunc.accumulate(lines, axis=0, dtype=lines.dtype)[-1]
    else:  # not the fast axis: line after line (numpy.sum, Notes)
        folded = ufunc.reduce(lines, axis=0, dtype=lines.dtype)
    return folded + const(folded, 0) if fn is add else folded  # 0 + -0 is +0


def fold_partials(fn: Callable[[Any, Any], Any], values: Lanes, kind: np.dtype[Any]) -> Lanes:
    """Fold each row with PARTIALS partial accumulators, then combine them by halves."""
    rows, cols = values.shape
    if fn in _EXTREMES:
        return _extreme(np.ascontiguousarray(values.T, kind), *_EXTREMES[fn])
    steps = -(-cols // PARTIALS)
    padded = np.full((rows, steps * PARTIALS), neutral(fn, kind), kind)
    padded[:, :cols] = values
    partials = fold(fn, np.ascontiguousarray(padded.reshape(rows, steps, -1).swapaxes(0, 1)))
    while (half := partials.shape[1] // 2) > 0:
        partials = fn(partials[:, :half], partials[:, half:])
    return partials[:, 0]


def fold_pairs(fn: Callable[[Any, Any], Any], lines: Lanes) -> Lanes:
    """Combine neighbouring lines, then neighbouring results; an odd last line joins a pair."""
    while (count := len(lines)) > 1:
        even = count - count % 2
        halves = fn(lines[0:even:2], lines[1:even:2])
        if even < count:
            halves[-1] = fn(lines[-1], halves[-1])
        lines = halves
    return lines[0]


def _extreme(lines: Lanes, ufunc: np.ufunc, sign: bool) -> Lanes:
    """Minimum or maximum in any order: NaN wins, and of two zeros the one with this sign."""
    extreme = ufunc.reduce(lines, axis=0)
    zero = extreme == 0
    if is_integer(lines) or not zero.any():
        return extreme
    wins = ((lines == 0) & (np.signbit(lines) == sign)).any(axis=0)
    return np.where(zero, np.where(wins == sign, const(extreme, -0.0), const(extreme, 0)), extreme)


_ORDERED: dict[Any, np.ufunc] = {add: np.add, mul: np.multiply}
_EXTREMES: dict[Any, tuple[np.ufunc, bool]] = {
    maximum: (np.maximum, False),
    minimum: (np.minimum, True),
}
