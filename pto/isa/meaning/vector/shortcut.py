"""Conversions of one register with `core.convert`, or with a faster way if the values allow it.

A shortcut computes, checks that its result is one for which it is exact, and otherwise calls
`core.convert`. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import BF16, F16, F32, DType
from pto.core.floats import Round
from pto.core.primitives import shortcut
from pto.isa.meaning.lanes import convert
from pto.isa.meaning.vector.ub import Items

Change = Callable[[Items], Items]
_SINGLE = np.dtype(np.float32)
_INTEGRAL: dict[Round, Callable[[Any], Any]] = {
    Round.RINT: np.rint,
    Round.FLOOR: np.floor,
    Round.CEIL: np.ceil,
    Round.TRUNC: np.trunc,
}


def converter(src: DType, dst: DType, mode: Round, saturate: bool) -> Change:
    """fn(items of src) -> items of dst."""

    def general(x: Items) -> Items:
        return convert(x, src, dst, mode, saturate)

    return shortcut(_quick(src, dst, mode, saturate, general))(general)


def _quick(src: DType, dst: DType, mode: Round, saturate: bool, general: Change) -> Change:
    if src in (F16, BF16) and dst is F32:
        return _cast(F32, general)
    if src is F32 and dst in (F16, BF16) and mode is Round.RINT:
        return _cast(dst, general)
    if src in (F16, BF16, F32) and dst.is_integer and mode in _INTEGRAL:
        return _whole(dst, _INTEGRAL[mode], general)
    if src.is_integer and dst.is_integer:
        return _narrowed(dst, saturate, general)
    return general


def _cast(dst: DType, general: Change) -> Change:
    """Convert with NumPy, which rounds to nearest even.

    If the result is finite, the value was finite and did not overflow. Saturation changes only inf,
    NaN and overflow.
    """

    def change(x: Items) -> Items:
        y = x.astype(dst.numpy)
        return y if np.count_nonzero(np.isfinite(y)) == y.size else general(x)

    return change


def _whole(dst: DType, integral: Callable[[Any], Any], general: Change) -> Change:
    """Rounding to an integral f32 is exact.

    The limits of the range are powers of two, also exact.
    """
    low, above = _SINGLE.type(dst.min), _SINGLE.type(2.0 ** (dst.bits - dst.is_signed))

    def change(x: Items) -> Items:
        y = integral(x.astype(_SINGLE, copy=False))
        inside = (y >= low) & (y < above)
        return y.astype(dst.numpy) if np.count_nonzero(inside) == y.size else general(x)

    return change


def _narrowed(dst: DType, saturate: bool, general: Change) -> Change:
    """A cast keeps the low bits. If the value is unchanged, saturation changes nothing."""

    def change(x: Items) -> Items:
        y = x.astype(dst.numpy)
        return y if not saturate or np.count_nonzero(y != x) == 0 else general(x)

    return change
