"""Predicates in compiled code: one bit a lane, widened and narrowed between lane widths."""

from __future__ import annotations

from pto.core.constants import VREG_BYTES
from pto.run.jit.text import Text, vector
from pto.run.jit.values import Mask


def at_width(x: Text, mask: Mask, width: int) -> str:
    """The bits that elements of `width` bytes look at: `<256/width x i1>`."""
    if mask.width == width:
        return mask.name
    have, want = VREG_BYTES // mask.width, VREG_BYTES // width
    if width > mask.width:
        step = width // mask.width
        picks = ", ".join(f"i32 {n * step}" for n in range(want))
    else:  # the bits between are off
        step = mask.width // width
        picks = ", ".join(f"i32 {n // step if n % step == 0 else have}" for n in range(want))
    type = vector(have, "i1")
    return x.new(
        f"shufflevector {type} {mask.name}, {type} zeroinitializer, <{want} x i32> <{picks}>"
    )


def to_frame(x: Text, mask: Mask, pointer: str) -> None:
    """The image of 256 bytes, 0 or 1."""
    bits = at_width(x, mask, 1)
    image = x.new(f"zext <{VREG_BYTES} x i1> {bits} to <{VREG_BYTES} x i8>")
    x.store(f"<{VREG_BYTES} x i8>", image, pointer)


def from_frame(x: Text, pointer: str) -> Mask:
    image = x.load(f"<{VREG_BYTES} x i8>", pointer)
    bits = x.new(f"trunc <{VREG_BYTES} x i8> {image} to <{VREG_BYTES} x i1>")
    return Mask((bits,), 1)


def image(x: Text, mask: Mask) -> Mask:
    """The same predicate with a bit for each byte."""
    return Mask((at_width(x, mask, 1),), 1)
