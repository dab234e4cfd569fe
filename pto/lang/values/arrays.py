"""Arguments for parameters `pto.Global[...]`: their memory and element type.

Memory of NumPy, torch and DLPack objects: `run/launch/arrays.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import BY_NUMPY, DType, dtype
from pto.core.errors import PtoError
from pto.lang.call.place import located, mistake
from pto.lang.call.session import ValueHandle
from pto.run.launch.arrays import Borrowed, borrow, holds, named_type


def as_array(kernel: str, name: str, wanted: DType | None, value: object) -> tuple[Borrowed, DType]:
    """The memory of an argument, of the element type the parameter has."""
    if type(value) is np.ndarray and value.ndim and value.size:  # as most are
        kind_of_array, flags = wanted or BY_NUMPY.get(value.dtype), value.flags
        if (
            kind_of_array
            and kind_of_array.numpy == value.dtype
            and flags.c_contiguous
            and flags.writeable
        ):
            return Borrowed(value, value), kind_of_array
    if isinstance(value, ValueHandle):
        raise inside_another(kernel)
    try:
        borrowed = borrow(value)
    except PtoError as error:
        raise located(error) from None
    if borrowed is None:
        raise mistake(
            "PTO-U212",
            f"{kernel}: {name} is an array in global memory, got {type(value).__name__}",
            help="pass a NumPy array, a torch tensor on the CPU, or anything with DLPack",
        )
    if borrowed.array.size == 0:
        raise mistake(
            "PTO-U212",
            f"{kernel}: {name} has no elements: its shape is {borrowed.array.shape}",
            help="there is nothing to do for it: leave the launch out",
        )
    kind = wanted or _kind_of(value if hasattr(value, "dtype") else borrowed.array)
    if not holds(borrowed, kind):
        raise _other_type(kernel, name, kind, str(getattr(value, "dtype", borrowed.array.dtype)))
    return replace(
        borrowed, array=borrowed.array.view(kind.numpy)
    ) if borrowed.raw else borrowed, kind


def inside_another(kernel: str) -> Exception:
    """The error for a launch while a kernel is traced."""
    return mistake(
        "PTO-U212",
        f"kernel {kernel} is called inside another kernel: kernels are launched by the host",
        help=f"call its function, which becomes a part of this one: {kernel}.function(...)",
    )


def numbers(value: object) -> npt.NDArray[Any]:
    """An array, a tensor or a number as a NumPy array of its own type."""
    borrowed = None if isinstance(value, np.ndarray) else borrow(value)
    return np.asarray(value) if borrowed is None else borrowed.array


def _other_type(kernel: str, name: str, kind: DType, actual: str) -> Exception:
    if actual.startswith(">"):
        actual += ", which is big-endian"
    return mistake(
        "PTO-U213",
        f"{kernel}: {name} holds {kind}, the array is {actual}",
        help=f"convert it: {name}.astype(np.{kind.numpy.name}); or annotate pto.Global alone to"
        " take any type",
    )


def _kind_of(value: object) -> DType:
    named = None if isinstance(value, np.ndarray) else named_type(value)
    try:
        return named or dtype(getattr(value, "dtype", ""))
    except PtoError as error:
        raise mistake("PTO-U213", error.diagnostics[0].message) from None
