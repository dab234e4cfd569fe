"""What a caller passes for a parameter `pto.Global[...]`, and the element type it has.

Where its memory comes from (NumPy, torch, DLPack) and goes back to is known in `run/arrays.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pto.core.dtypes import DType, dtype
from pto.core.errors import PtoError
from pto.lang.place import located, mistake
from pto.run.arrays import Borrowed, borrow


def as_array(kernel: str, name: str, wanted: DType | None, value: Any) -> tuple[Borrowed, DType]:
    """The memory of an argument, of the element type the parameter has."""
    try:
        found = borrow(value)
    except PtoError as error:
        raise located(error) from None
    if found is None:
        raise mistake(
            "PTO-U212",
            f"{kernel}: {name} is an array in global memory, got {type(value).__name__}",
            help="pass a NumPy array, a torch tensor on the CPU, or anything with DLPack",
        )
    kind = wanted or _kind_of(value)
    own = found.array.dtype
    raw = found.raw and own.itemsize == kind.itemsize
    if raw and wanted is not None and _kind_of(value) is not wanted:
        raise _other_type(kernel, name, kind, str(value.dtype))
    if not raw and own not in (kind.numpy, kind.storage):
        raise _other_type(kernel, name, kind, own.name)
    return replace(found, array=found.array.view(kind.numpy)) if raw else found, kind


def _other_type(kernel: str, name: str, kind: DType, own: str) -> Exception:
    return mistake(
        "PTO-U213",
        f"{kernel}: {name} holds {kind}, the array is {own}",
        help=f"convert it to {kind.numpy.name}, or annotate pto.Global alone to take any type",
    )


def _kind_of(value: Any) -> DType:
    """NumPy tells its type; torch spells it `torch.bfloat16`."""
    own: Any = getattr(value, "dtype", "")
    try:
        return dtype(str(own).rpartition(".")[2] if "torch" in str(own) else own)
    except PtoError as error:
        raise mistake("PTO-U213", error.diagnostics[0].message) from None
