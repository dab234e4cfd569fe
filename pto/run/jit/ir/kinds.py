"""The limits of compiled code: the NumPy types that lanes have, and how a part of it says that it
has no form for something."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import ml_dtypes
import numpy as np

from pto.core.dtypes import DType

Kind = np.dtype[Any]
F32: Final = np.dtype(np.float32)
F64: Final = np.dtype(np.float64)
F16: Final = np.dtype(np.float16)
BF16: Final = np.dtype(ml_dtypes.bfloat16)
BOOL: Final = np.dtype(np.bool_)
SMALL: Final = (F16, BF16)
_FLOATS: Final = (F16, BF16, F32, F64)


def computes(dtype: Kind) -> bool:
    """True if lanes have this type; other types are held as bits."""
    return dtype.kind in "iub" or dtype in _FLOATS


def symbol_type(dtype: DType | Kind) -> Kind:
    """The type of lanes for elements of `dtype`; bits, if there is no arithmetic for it."""
    kind = dtype.numpy if isinstance(dtype, DType) else dtype
    return kind if computes(kind) and kind != BOOL else np.dtype(f"u{kind.itemsize}")


# ---- refusals

_T = TypeVar("_T")


class UnsupportedLowering(Exception):
    """An instruction has no lowering here, for the reason given; the reference engine runs it."""


def unsupported_if(condition: object, reason: str) -> None:
    """Refuse to lower the instruction if a condition holds."""
    if condition:
        raise UnsupportedLowering(reason)


def expect(value: object, kind: type[_T], reason: str) -> _T:
    """The value, which must be of this class; else there is no lowering."""
    if not isinstance(value, kind):
        raise UnsupportedLowering(reason)
    return value


def certain(value: object, kind: type[_T]) -> _T:
    """The value, which is of this class in every program that the verifier accepts."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
