"""Predicates in compiled code: one bit a lane, widened and narrowed between lane widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pto.core.constants import VREG_BYTES
from pto.run.jit.llvm.shuffles import NONE, shuffle, spread
from pto.run.jit.llvm.text import Text, is_integer, mangled, vector, width_of
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.values import Mask

Places = npt.NDArray[np.int64]
_WIDTHS = (8, 4, 2, 1)
ALL_ON = "splat (i1 true)"


def at_width(x: Text, mask: Mask, width: int) -> str:
    """The bits for elements of `width` bytes: `<256/width x i1>`."""
    return strided(x, mask, 0, width)


def first(x: Text, width: int, count: Val) -> Mask:
    """The first `count` lanes of `width` bytes; the count is not negative."""
    lanes = VREG_BYTES // width
    small = x.new(f"trunc i64 {x.smaller(count, lanes)} to i32")
    numbers = ", ".join(f"i32 {n}" for n in range(lanes))
    every = spread(x, "i32", lanes, small)
    return Mask((x.new(f"icmp ult {vector(lanes, 'i32')} <{numbers}>, {every}"),), width)


def strided(x: Text, mask: Mask, start: int, step: int) -> str:
    """The bits `start`, `start + step`, ... of the image."""
    return _picked(x, [mask], np.arange(start, VREG_BYTES, step))


def moved(x: Text, masks: Sequence[Mask], places: Places) -> Mask:
    """A predicate with bit `places[i]` of the concatenated images as its bit i; NONE is off."""
    finest = np.array([m.width for m in masks])[np.maximum(places, 0) // VREG_BYTES]
    can_be_on = np.flatnonzero((places != NONE) & (places % finest == 0))
    width = next(w for w in _WIDTHS if not (can_be_on % w).any())
    return Mask((_picked(x, masks, places[::width]),), width)


def _picked(x: Text, masks: Sequence[Mask], places: Places) -> str:
    """Bits of one or two images."""
    width = min(m.width for m in masks)
    names = [_finer(x, m, width) for m in masks]
    count = VREG_BYTES // width
    picks = np.where((places == NONE) | (places % width != 0), NONE, places // width)
    if (picks == NONE).all():
        return "zeroinitializer"
    if names == [ALL_ON] and not (picks == NONE).any():
        return ALL_ON
    return shuffle(x, "i1", count, names[0], picks, names[1] if len(names) > 1 else None)


def _finer(x: Text, mask: Mask, width: int) -> str:
    """The same predicate with more bits: those between are off."""
    step, count = mask.width // width, VREG_BYTES // width
    picks = [n // step if n % step == 0 else NONE for n in range(count)]
    return mask.name if step == 1 else shuffle(x, "i1", mask.lanes, mask.name, picks)


def alike(x: Text, *masks: Mask) -> tuple[int, list[str]]:
    """The finest width of these predicates, and their bits at that width."""
    width = min(m.width for m in masks)
    return width, [_finer(x, m, width) for m in masks]


def known(image: npt.NDArray[np.bool_]) -> Mask:
    """A predicate of known bits, at the widest lanes that represent it."""
    on = np.flatnonzero(image)
    width = next(w for w in _WIDTHS[1:] if not (on % w).any())
    bits = image[::width]
    if bits.all():
        return Mask((ALL_ON,), width)
    return Mask((f"<{', '.join(f'i1 {int(b)}' for b in bits)}>",), width)


def image(x: Text, mask: Mask) -> Mask:
    """The same predicate with a bit for each byte."""
    return Mask((at_width(x, mask, 1),), 1)


def store(x: Text, item: str, lanes: int, value: Val, pointer: str, bits: str) -> None:
    """Store the lanes of a vector with their bit set; other bytes are unchanged."""
    type, ones = vector(lanes, item), vector(lanes, "i1")
    name = f"@llvm.masked.store.v{lanes}{mangled(item)}.p0"
    x.declare(f"declare void {name}({type}, ptr, i32, {ones})")
    value = _fenced(x, item, lanes, value)
    x.do(f"call void {name}({type} {value}, ptr {pointer}, i32 1, {ones} {bits})")


def _fenced(x: Text, item: str, lanes: int, value: Val) -> Val:
    """The same bits, of which LLVM does not see how they were made.

    LLVM 22 writes one lane of integers that were narrowed as wide as they were before: a store of
    one i16 behind a `trunc` from i32 writes four bytes. Between the two it may not look.
    """
    bits = lanes * width_of(item)
    if not is_integer(item) or bits % 32:
        return value
    type, words = vector(lanes, item), bits // 32
    floats, name = vector(words, "float"), f"@llvm.arithmetic.fence.v{words}f32"
    x.declare(f"declare {floats} {name}({floats})")
    seen = x.new(f"bitcast {type} {value} to {floats}")
    return x.new(f"bitcast {floats} {x.new(f'call {floats} {name}({floats} {seen})')} to {type}")
