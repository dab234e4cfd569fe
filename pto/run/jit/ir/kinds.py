"""The NumPy types that lanes of compiled code have."""

from __future__ import annotations

from typing import Any, Final

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
