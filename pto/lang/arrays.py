"""What a caller passes as an array: NumPy, ml_dtypes, torch on the CPU, anything with DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, dtype
from pto.core.errors import PtoError
from pto.lang.place import mistake


class Array:
    """A caller's array as contiguous memory, and the way back into it."""

    __slots__ = ("_original", "data", "dtype")

    def __init__(self, original: npt.NDArray[Any], kind: DType) -> None:
        direct = original.flags.c_contiguous and original.flags.writeable
        self.data = original if direct else np.ascontiguousarray(original)
        if not direct and not self.data.flags.writeable:
            self.data = self.data.copy()
        self._original = original
        self.dtype = kind

    def give_back(self) -> None:
        """Copy results into an array that could not be used in place."""
        if self.data is not self._original and self._original.flags.writeable:
            self._original[...] = self.data


def as_array(kernel: str, name: str, wanted: DType | None, value: Any) -> Array:
    """The argument of a parameter `pto.Global[...]`."""
    found = _numpy(value)
    if found is None:
        raise mistake(
            "PTO-U212",
            f"{kernel}: {name} is an array in global memory, got {type(value).__name__}",
            help="pass a NumPy array, a torch tensor on the CPU, or anything with DLPack",
        )
    if found.ndim == 0:
        raise mistake("PTO-U212", f"{kernel}: {name} needs at least one dimension")
    kind = wanted or _kind_of(found)
    if found.dtype not in (kind.numpy, kind.storage):
        raise mistake(
            "PTO-U213",
            f"{kernel}: {name} holds {kind}, the array is {found.dtype.name}",
            help=f"convert it with .astype({kind.numpy.name!r}), or annotate pto.Global alone to"
            " take any type",
        )
    return Array(found, kind)


def _numpy(value: Any) -> npt.NDArray[Any] | None:
    if isinstance(value, np.ndarray):
        return value  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "detach") and str(getattr(value, "dtype", "")) == "torch.bfloat16":
        import ml_dtypes
        import torch  # pyright: ignore[reportMissingImports]

        return value.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return None


def _kind_of(array: npt.NDArray[Any]) -> DType:
    try:
        return dtype(array.dtype)
    except PtoError as error:
        raise mistake("PTO-U213", error.diagnostics[0].message) from None
