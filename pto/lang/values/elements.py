"""Element types under their short names: `pto.f32`, `pto.i8`, `pto.f8e4m3`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.dtypes import ALL, DType, dtype
from pto.core.errors import PtoError
from pto.lang.call.place import located, mistake

ELEMENTS: dict[str, DType] = {kind.name: kind for kind in ALL}


def element(given: Any) -> DType:
    """The element type for `pto.f32`, "f32", np.float32 or an array's dtype."""
    if isinstance(given, DType):
        return given
    try:
        return dtype(given if isinstance(given, str) else np.dtype(given))
    except PtoError as error:
        raise located(error) from None
    except TypeError:
        raise mistake(
            "PTO-T207", f"{given!r} is not an element type", help="use pto.f32, pto.i8, ..."
        ) from None


def __dir__() -> list[str]:
    return sorted(ELEMENTS)


def __getattr__(name: str) -> DType:
    if name not in ELEMENTS:
        raise AttributeError(f"there is no element type {name!r}")
    return ELEMENTS[name]
