"""Element types under their short names: `pto.f32`, `pto.i8`, `pto.f8e4m3`."""

from __future__ import annotations

from pto.core.dtypes import ALL, DType

ELEMENTS: dict[str, DType] = {kind.name: kind for kind in ALL}


def __getattr__(name: str) -> DType:
    if name not in ELEMENTS:
        raise AttributeError(f"there is no element type {name!r}")
    return ELEMENTS[name]
