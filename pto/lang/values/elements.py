"""Element types under their short names: `pto.f32`, `pto.i8`, `pto.f8e4m3`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.dtypes import ALL, DType, dtype
from pto.core.errors import PtoError
from pto.lang.call.place import located, mistake

ELEMENTS: dict[str, DType] = {kind.name: kind for kind in ALL}


def element(element_type: Any) -> DType:
    """The element type for `pto.f32`, "f32", np.float32 or an array's dtype."""
    if isinstance(element_type, DType):
        return element_type
    try:
        return dtype(element_type if isinstance(element_type, str) else np.dtype(element_type))
    except PtoError as error:
        raise located(error) from None
    except TypeError:
        raise mistake(
            "PTO-T207", f"{element_type!r} is not an element type", help="use pto.f32, pto.i8, ..."
        ) from None


def __dir__() -> list[str]:
    return sorted(ELEMENTS)


def __getattr__(name: str) -> DType:
    if name not in ELEMENTS:
        raise AttributeError(f"there is no element type {name!r}")
    return ELEMENTS[name]
