"""Values of compiled code in its frame, as `border/values.py` reads and writes them."""

from __future__ import annotations

from pto.run.jit.border.values import Mask, Native, Vector
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import Text


def put(x: Text, native: Native, offset: int) -> None:
    """Write a value; of masks a byte for each bit."""
    at = x.at("%frame", offset)
    if isinstance(native, Mask):
        masks.to_frame(x, native, at)
    elif isinstance(native, Vector) and native.dtype is None:
        masks.bits_to_frame(x, native.count, native.name, at)
    else:
        for n, (type, name) in enumerate(native.parts):
            x.store(type, name, x.at("%frame", offset + 8 * n))


def get(x: Text, form: Native, offset: int) -> Native:
    """Read a value of this form."""
    at = x.at("%frame", offset)
    if isinstance(form, Mask):
        return masks.from_frame(x, at)
    if isinstance(form, Vector) and form.dtype is None:
        return form.renamed([masks.bits_from_frame(x, form.count, at)])
    names = [x.load(ty, x.at("%frame", offset + 8 * n)) for n, ty in enumerate(form.types)]
    return form.renamed(names)
