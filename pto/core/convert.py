"""Conversion of items from any element type to any other.

The one general way is exact: decode, then round once (`core/dtypes.py`). Here live the rules that
need both types (which pairs saturate inf and NaN) and shortcuts that give the same bits faster.
Which pairs an instruction offers, and their defaults, live in its row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core import floats
from pto.core.dtypes import (
    BF16,
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    DType,
    decode,
    encode,
    items_of,
    pair_rounding,
)
from pto.core.floats import Round, round_integral, round_mode

__all__ = ["Round", "clamps_specials", "convert", "round_integral", "round_mode"]


def convert(
    values: npt.NDArray[Any],
    src: DType,
    dst: DType,
    rounding: Round = Round.RINT,
    saturate: bool = True,
    *,
    keep_nan: bool = False,
) -> npt.NDArray[Any]:
    """Items of `src` as items of `dst`, both in the types' `numpy` view; always a new array.

    Every value is rounded once. A packed type counts two values an item along the last axis.

    With `saturate`, finite overflow goes to the end of the range of `dst`. From a float into a
    narrower one (`clamps_specials`) so does inf, and NaN becomes 0 (micro-instruction manual,
    vcvt; golden vcvt-f32-special) unless `keep_nan` (`sat(preserve_nan)`) or `dst` has no 0 (e8m0).
    Into a wider float, and into f32 and f64 always, inf and NaN stay. NaN to an integer is 0.

    Without it, floats overflow as IEEE has it: to inf (NaN in e4m3 and e8m0, which have none), or
    to the largest finite value in a mode that rounds toward zero there. float4 has neither inf
    nor NaN: it saturates in both modes, NaN is 0. Integers wrap modulo 2^bits, +inf gives all
    ones, -inf the low bits of -2^63, NaN 0. e8m0 gives NaN for 0 and below.

    A NaN that stays is the positive quiet NaN of `dst`. The sign of zero is kept where `dst` has
    one. Subnormals are never flushed. A conversion of a type to itself copies the bits.
    """
    items = items_of(src, values)
    if src is dst:
        return items.view(dst.numpy).copy()
    mode = pair_rounding(rounding, src.is_float, dst)
    if src.itemsize == 1 and (src.is_packed or not dst.is_packed):
        return _by_table(items, src, dst, mode, saturate, keep_nan)
    if saturate and src in _SINGLE and dst.is_integer and dst.bits in (8, 16, 32):
        return _by_rounding(items.view(src.numpy), dst, mode)
    if dst in _EXACT.get(src, ()) or (mode is Round.RINT and dst in _NEAREST_EVEN.get(src, ())):
        return _by_cast(items.view(src.numpy), src, dst, saturate, keep_nan)
    return _by_value(items, src, dst, mode, saturate, keep_nan)


def clamps_specials(src: DType, dst: DType) -> bool:
    """Whether saturation also takes inf and NaN: from a float into one of smaller range."""
    if src.form is None or dst.form is None or not dst.form.saturates:
        return False
    return dst.max < src.max


# Casts of NumPy and ml_dtypes that round at most once. Absent casts round twice: float64 to bf16
# and 32-bit integers to f16 go through f32.
_EXACT: Final[dict[DType, tuple[DType, ...]]] = {
    F16: (F32, F64),
    BF16: (F32, F64),
    F32: (F64,),
    I16: (F32, F64),
    U16: (F32, F64),
    I32: (F64,),
    U32: (F64,),
}
_NEAREST_EVEN: Final[dict[DType, tuple[DType, ...]]] = {
    F32: (F16, BF16),
    F64: (F16, F32),
    I16: (F16, BF16),
    U16: (BF16,),
    I32: (F32,),
    U32: (F32,),
    I64: (F32, F64),
    U64: (F32, F64),
}


def _by_cast(
    items: npt.NDArray[Any], src: DType, dst: DType, saturate: bool, keep_nan: bool
) -> npt.NDArray[Any]:
    if saturate and clamps_specials(src, dst):
        items = np.clip(items, items.dtype.type(dst.min), items.dtype.type(dst.max))
        if not keep_nan:
            items = _replace_nan(items, 0.0)
    if not src.is_float:
        return np.asarray(items).astype(dst.numpy)
    with np.errstate(invalid="ignore", over="ignore"):
        cast = np.asarray(items).astype(dst.numpy)
    return _replace_nan(cast, np.nan)


_SINGLE: Final = (F16, BF16, F32)  # exact in f32


def _by_rounding(items: npt.NDArray[Any], dst: DType, mode: Round) -> npt.NDArray[Any]:
    """Rounded and limited in a float type that holds every value of `dst`."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide: npt.NDArray[Any] = items.astype(np.float32 if dst.bits < 32 else np.float64)
    rounded = round_integral(wide, mode)
    rounded = np.minimum(
        np.maximum(rounded, rounded.dtype.type(dst.min)), rounded.dtype.type(dst.max)
    )
    return np.asarray(_replace_nan(rounded, 0.0)).astype(dst.numpy)


def _by_table(
    items: npt.NDArray[Any], src: DType, dst: DType, mode: Round, saturate: bool, keep_nan: bool
) -> npt.NDArray[Any]:
    table = byte_table(src, dst, mode, saturate, keep_nan)
    converted = table[items]
    if src.is_packed:
        items = np.atleast_1d(items)
        converted = converted.reshape(*items.shape[:-1], items.shape[-1] * table.shape[1])
    return np.asarray(converted).view(dst.numpy)


@lru_cache(maxsize=1024)
def byte_table(
    src: DType, dst: DType, mode: Round, saturate: bool, keep_nan: bool
) -> npt.NDArray[Any]:
    """Storage items of `dst` for each of the 256 items of `src`; a row each if `src` is packed."""
    every = np.arange(256, dtype=np.uint8)
    if src.is_packed:
        every = every[:, None]
    return _by_value(every, src, dst, mode, saturate, keep_nan).view(dst.storage)


def _by_value(
    items: npt.NDArray[Any], src: DType, dst: DType, mode: Round, saturate: bool, keep_nan: bool
) -> npt.NDArray[Any]:
    numbers = decode(src, items)
    if saturate and dst.form and clamps_specials(src, dst):
        saturate = False  # done here: nothing is left to overflow
        numbers = floats.limit(dst.form, numbers, infinite=True)
        if not keep_nan:  # e8m0 has no 0 and makes it NaN again
            numbers = _replace_nan(numbers, 0.0)
    return encode(dst, numbers, mode, saturate).view(dst.numpy)


def _replace_nan(values: npt.NDArray[Any], by: float) -> npt.NDArray[Any]:
    unknown = np.isnan(values)
    if not unknown.any():
        return values
    return np.where(unknown, values.dtype.type(by), values)
