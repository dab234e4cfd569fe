"""Loads and stores of values in the argument buffer, in the format of `runtime/values.py`."""

from __future__ import annotations

from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import Text
from pto.run.jit.runtime.values import Lowered, Mask, Vector


def put(x: Text, native: Lowered, offset: int) -> None:
    """Store a value; a mask takes a byte for each bit."""
    at = x.at("%frame", offset)
    if isinstance(native, Mask):
        masks.to_frame(x, native, at)
    elif isinstance(native, Vector) and native.dtype is None:
        masks.bits_to_frame(x, native.count, native.name, at)
    else:
        for n, (type, name) in enumerate(native.parts):
            x.store(type, name, x.at("%frame", offset + 8 * n))


def get(x: Text, form: Lowered, offset: int) -> Lowered:
    """Read a value of this form."""
    at = x.at("%frame", offset)
    if isinstance(form, Mask):
        return masks.from_frame(x, at)
    if isinstance(form, Vector) and form.dtype is None:
        return form.renamed([masks.bits_from_frame(x, form.count, at)])
    names = [x.load(ty, x.at("%frame", offset + 8 * n)) for n, ty in enumerate(form.types)]
    return form.renamed(names)
