"""Compares the results of a kernel with expected values, element by element. Nothing runs here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode, encode, numbers_of
from pto.core.errors import fail
from pto.lang.values.arrays import numbers

Values = npt.NDArray[Any]  # exact: float64, int64 or uint64
_TABLE_BITS = 16  # formats up to this width are ranked by listing all their values


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Allowed error of a result: |got - wanted| <= atol + rtol * |wanted|, or `ulp` steps.

    By default the result must equal the wanted value, rounded to the element type.
    """

    rtol: float = 0.0
    atol: float = 0.0
    ulp: int = 0

    def __post_init__(self) -> None:
        for name in ("rtol", "atol", "ulp"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise fail(
                    "PTO-U074", f"{name} is {value}: a tolerance must be a number of at least 0"
                )

    @property
    def is_exact(self) -> bool:
        return not (self.rtol or self.atol or self.ulp)

    def __str__(self) -> str:
        named = (("rtol", self.rtol), ("atol", self.atol), ("ulp", self.ulp))
        bounds = ", ".join(f"{name} {value:g}" for name, value in named if value)
        return f"within {bounds}" if bounds else "exactly"


def values_of(kind: DType, array_like: object) -> Values:
    """Exact values of results or expected results: items of `kind`, or plain numbers."""
    array = numbers(array_like)
    is_items = array.dtype == kind.numpy or (array.dtype == kind.storage and kind.is_float)
    return decode(kind, array) if is_items else numbers_of(array)


def differs(kind: DType, got: Values, wanted: Values, within: Tolerance) -> npt.NDArray[np.bool_]:
    """A mask of wrong elements. NaN equals NaN; the sign of zero is ignored."""
    rounded = _rounded(kind, wanted)
    with np.errstate(all="ignore"):
        same = (got == rounded) | (_is_nan(got) & _is_nan(rounded))
        if within.is_exact:
            return ~same
        if within.rtol or within.atol:
            wide, aim = got.astype(np.float64), wanted.astype(np.float64)
            same |= np.abs(wide - aim) <= within.atol + within.rtol * np.abs(aim)
        if within.ulp:
            near = _steps(rank(kind, got), rank(kind, rounded)) <= within.ulp
            same |= near & ~_is_nan(got) & ~_is_nan(rounded)
    return ~same


def distance(kind: DType, got: object, wanted: object) -> int | None:
    """Representable values from one to the other; None where one is NaN."""
    pair = np.stack([np.asarray(got), _rounded(kind, np.asarray(wanted))])
    if _is_nan(pair).any():
        return None
    first, second = rank(kind, pair)
    return abs(int(first) - int(second))


def rank(kind: DType, values: Values) -> Values:
    """The rank of each value among all values of its type; arbitrary for NaN."""
    if kind.form is None:
        return np.asarray(values)
    if kind.bits <= _TABLE_BITS:
        return np.searchsorted(_all_values(kind), values)
    integer = np.dtype(f"i{kind.itemsize}")
    codes = np.asarray(values).astype(kind.numpy).view(integer).astype(np.int64)
    lowest = np.iinfo(integer).min
    return np.where(codes < 0, lowest - codes, codes)


@lru_cache(maxsize=16)
def _all_values(kind: DType) -> Values:
    codes = np.arange(1 << kind.bits).astype(kind.storage)
    items = codes if not kind.is_packed else codes | codes << np.uint8(4)
    values = decode(kind, items)
    return np.unique(values[~np.isnan(values)])


def _steps(one: Values, other: Values) -> Values:
    apart = np.maximum(one, other) - np.minimum(one, other)
    return apart.view(np.uint64) if apart.dtype == np.int64 else apart  # it may take all 64 bits


def _rounded(kind: DType, wanted: Values) -> Values:
    """Expected values rounded to a float type; unchanged for an integer type."""
    if kind.form is None or not np.size(wanted):
        return wanted
    flat = np.asarray(wanted).reshape(-1)
    if kind.is_packed and flat.size % 2:
        flat = np.append(flat, flat[:1])
    rounded = decode(kind, encode(kind, flat, saturate=False))
    return rounded[: np.size(wanted)].reshape(np.shape(wanted))


def _is_nan(values: Values) -> npt.NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, np.bool_)
