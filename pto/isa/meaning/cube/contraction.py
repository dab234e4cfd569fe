"""The matrix product on plain arrays: `mad` and the tile matmuls call it.

The order is part of the meaning, and every engine reproduces it bit for bit:

    s = +0; for k = 0, 1, .. K-1: s = round(s + lhs[m,k] * rhs[k,n]); then round(start + s)

in f32, to nearest even. Every product is exact and every sum is rounded once. Output elements are
independent, so the outer loops may run in any order and any width. With scales (MX) the exact term
is lhs*rhs*2^(sa+sb-254). Integers are exact modulo 2^32, in any order. `start` (the old accumulator
or the bias) is added to the finished sum: pto-isa TMatmul.hpp, and goldens mad_acc and
mad_bias.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.constants import MX_BLOCK_SIZE
from pto.core.convert import convert
from pto.core.dtypes import F32, DType, decode
from pto.core.primitives import isnan, select
from pto.isa.meaning.lanes import odd_sum

Array = npt.NDArray[Any]
F32s = npt.NDArray[np.float32]

_EXACT_INTEGERS: Final = 1 << 53  # sums below this are exact in f64, in any order
_MOST: Final = np.float32(np.finfo(np.float32).max)
_LONG: Final = np.uint32(0xFFF)  # set in a significand of more than 12 bits
_BELOW_F32: Final = (1 << 29) - 1  # bits of f64 that f32 lacks
_HALF_F32: Final = 1 << 28
_TINY: Final = 2.0**-126
_MANTISSA: Final = 23  # bits of f32


def values_of(items: Array, kind: DType) -> Array:
    """Items as operands of a product: f32, exactly, or int64.

    A packed type gives two values per item, along the last axis.
    """
    if not kind.is_float:
        return decode(kind, items)
    if kind is F32 or kind.numpy.kind == "f":
        return items.view(kind.numpy).astype(np.float32, copy=False)
    return convert(items.view(kind.numpy), kind, F32)


def rounded_to_tf32(values: F32s, *, away: bool, mantissa: int = 10) -> F32s:
    """f32 with the 10 mantissa bits of tf32: to nearest, ties to even or away from zero.

    micro-instruction manual, mad, tf32_mode. NaN stays NaN.
    """
    bits, dropped = values.view(np.uint32), _MANTISSA - mantissa
    half = np.uint32(1 << (dropped - 1))
    last = np.uint32(0) if away else np.uint32(1) - (bits >> np.uint32(dropped) & 1)
    rounded = (bits + half - last) & ~np.uint32((1 << dropped) - 1)
    return select(isnan(values), values, rounded.view(np.float32))


def finite(values: Array, kind: DType) -> Array:
    """Operands under `sat`: inf becomes the largest value of the type, NaN becomes 0."""
    if values.dtype.kind != "f":
        return values
    bits, most = values.view(np.uint32), np.float32(float(kind.max)).view(np.uint32)
    endless = (bits & np.uint32(0x7FFFFFFF)) == np.uint32(0x7F800000)
    ends = (bits & np.uint32(0x80000000) | most).view(np.float32)
    return select(isnan(values), np.float32(0), select(endless, ends, values))


def contract(
    lhs: Array,
    rhs: Array,
    into: DType,
    *,
    start: Array | None = None,
    scales: tuple[Array, Array] | None = None,
    saturate: bool = False,
) -> Array:
    """lhs (M x K) times rhs (K x N), plus `start`, as items of `into` (i32, f32 or f16).

    Operands come from `values_of`. `start` is (M x N) or (N,) in items of `into`. `scales` are
    numbers, (M x K/32) and (K/32 x N). With `saturate`, every step clamps finite overflow to the
    largest finite value.
    """
    if into.is_integer:
        return _integers(lhs, rhs, into, start)
    left, right = lhs.astype(np.float32, copy=False), rhs.astype(np.float32, copy=False)
    if scales is not None:
        left, right = _scaled(left, scales[0], 1), _scaled(right, scales[1], 0)
    total = _sum(left, right)
    if saturate and not np.isfinite(total).all():
        total = _fused_sum(left, right, saturate=True)
    if start is not None:
        old = start.astype(np.float32, copy=False)
        total = _limited(old + total, old, total) if saturate else old + total
    return total if into is F32 else convert(total, F32, into, saturate=saturate)


def _integers(lhs: Array, rhs: Array, into: DType, start: Array | None) -> Array:
    """Exact: below 2^53 the order of a sum in f64 does not matter."""
    most = float(np.abs(lhs).max(initial=0)) * float(np.abs(rhs).max(initial=0)) * lhs.shape[1]
    if most < _EXACT_INTEGERS:
        total = (lhs.astype(np.float64) @ rhs.astype(np.float64)).astype(np.int64)
    else:
        total = lhs.astype(np.int64) @ rhs.astype(np.int64)
    if start is not None:
        total = total + start
    return total.astype(into.numpy)


def _scaled(values: F32s, scales: Array, axis: int) -> Array:
    """Values times the scale of their group, in f64: exact."""
    spread = np.repeat(scales, MX_BLOCK_SIZE, axis=axis)
    used = spread[:, : values.shape[1]] if axis else spread[: values.shape[0]]
    return values.astype(np.float64) * used


def _sum(left: Array, right: Array) -> F32s:
    """The sum over k in order."""
    if left.dtype == np.float32 and _is_exact(left, right):
        return _plain_sum(left, right)
    return _fused_sum(left, right)


def _is_exact(left: F32s, right: F32s) -> bool:
    """True if f32 holds every product: short significands, exponents far from the limits."""
    if any(np.count_nonzero(v.view(np.uint32) & _LONG) for v in (left, right)):
        return False
    sizes = [np.abs(v) for v in (left, right)]
    most = np.prod([v.max(initial=0) for v in sizes], dtype=np.float64)
    least = np.prod(
        [v.min(initial=np.inf, where=v > 0) for v in sizes],
        dtype=np.float64,
    )
    return bool(most < 2.0**127 and least > 2.0**-127)


def _plain_sum(left: F32s, right: F32s) -> F32s:
    rows, cols = left.shape[0], right.shape[1]
    total = np.zeros((rows, cols), np.float32)
    term = np.empty((rows, cols), np.float32)
    columns = np.ascontiguousarray(left.T)[:, :, None]
    for column, row in zip(columns, right, strict=True):
        np.multiply(column, row, out=term)
        total += term
    return total


def _fused_sum(left: Array, right: Array, saturate: bool = False) -> F32s:
    """The sum with products exact in f64; with `saturate`, sums of finite numbers stay finite.

    A sum in f64 is rounded a second time to f32. This is correct unless the first rounding gives a
    tie of f32, or a subnormal.
    """
    total = np.zeros((left.shape[0], right.shape[1]), np.float32)
    columns = np.ascontiguousarray(left.T, np.float64)[:, :, None]
    for column, row in zip(columns, right.astype(np.float64), strict=True):
        term, old = column * row, total.astype(np.float64)
        new = term + old
        total = new.astype(np.float32)
        doubt = (new.view(np.int64) & _BELOW_F32) == _HALF_F32
        doubt |= (np.abs(new) < _TINY) & (new != 0)
        if np.count_nonzero(doubt):
            total[doubt] = odd_sum(term[doubt], old[doubt], new[doubt]).astype(np.float32)
        if saturate:
            total = _limited(total, term, old)
    return total


def _limited(total: F32s, a: Array, b: Array) -> F32s:
    """A sum that is finite if both numbers are."""
    finite = np.isfinite(a) & np.isfinite(b)
    return np.where(finite, np.clip(total, -_MOST, _MOST), total)
