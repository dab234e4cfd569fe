"""Conversions of one register: `core.convert`, by a shorter way where the values allow it.

A shortcut computes, looks whether its result is of the kind for which it is known to be right, and
leaves everything else to `core.convert`. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import BF16, F16, F32, DType
from pto.core.primitives import shortcut
from pto.core.rounding import Round
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
    """NumPy rounds to nearest even. A finite result came from a finite value and did not overflow;
    only inf, NaN and overflow are treated otherwise by saturation."""

    def change(x: Items) -> Items:
        y = x.astype(dst.numpy)
        return y if np.count_nonzero(np.isfinite(y)) == y.size else general(x)

    return change


def _whole(dst: DType, integral: Callable[[Any], Any], general: Change) -> Change:
    """Rounding to an integral f32 is exact. The ends of the range are powers of two, exact too."""
    low, above = _SINGLE.type(dst.min), _SINGLE.type(2.0 ** (dst.bits - dst.is_signed))

    def change(x: Items) -> Items:
        y = integral(x.astype(_SINGLE, copy=False))
        inside = (y >= low) & (y < above)
        return y.astype(dst.numpy) if np.count_nonzero(inside) == y.size else general(x)

    return change


def _narrowed(dst: DType, saturate: bool, general: Change) -> Change:
    """A cast keeps the low bits. Saturation changes nothing where the value stayed the same."""

    def change(x: Items) -> Items:
        y = x.astype(dst.numpy)
        return y if not saturate or np.count_nonzero(y != x) == 0 else general(x)

    return change
