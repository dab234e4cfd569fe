"""The interface of instructions between registers, masks and UB, implemented on NumPy.

It extends the interface of whole vectors (`vmi/words.py`). Masks are images here (`masks.py`).
Facts known when a program is prepared (`ItemAccess`) are computed once. Compiled code runs
the same meanings on its own implementation (`run/jit/emit/vector/words.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, Make
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory.registers import CoreWords
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Build, ItemAccess, Items, block_places
from pto.isa.meaning.vmi.words import VectorWords
from pto.isa.rules.rule import Case

_IN_BLOCK = np.arange(BLOCK_BYTE_SIZE, dtype=np.int64)


class Gate:
    """Lanes of `width` bytes: their number, and the mask of all."""

    __slots__ = ("every", "lanes", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.lanes = masks.lanes_of(width)
        self.every = masks.full(width)


class Registers(VectorWords, CoreWords):
    """Implementation on arrays. Every address is checked before anything is read or written."""

    def __init__(self, core: Machine, case: Case) -> None:
        VectorWords.__init__(self, case)
        self.core = core

    def field(self, value: int) -> int:
        """An integer operand as an unsigned field of 16 bits."""
        return value & 0xFFFF

    # ---- consecutive items

    def load(self, access: ItemAccess, source: Pointer, count: int = 0, step: int = 1) -> Any:
        """The image of items at `count` times `step` bytes after a pointer.

        It is not a view of UB.
        """
        loaded = access.at(source, count * step)
        return loaded.copy() if access.build is None else access.build(loaded)

    def store(
        self,
        access: ItemAccess,
        target: Pointer,
        values: Items,
        on: Lanes | None,
        count: int = 0,
        step: int = 1,
    ) -> None:
        """Store items at `count` times `step` bytes after a pointer.

        Only active lanes (None: all).
        """
        if on is None:
            access.at(target, count * step)[:] = values
        else:
            np.copyto(access.at(target, count * step), values, where=on)

    def store_apart(
        self, access: ItemAccess, target: Pointer, values: Items, apart: int, count: int, step: int
    ) -> None:
        """Store items with a distance of `apart` items."""
        access.at(target, count * step)[::apart] = values

    def moved(self, pointer: Pointer, count: int, step: int = 0) -> Pointer:
        """A pointer advanced by elements, or by `count` times `step` bytes."""
        if not step:
            return pointer.at(count)
        return Pointer(pointer.memory, pointer.address + count * step, pointer.dtype)

    # ---- blocks of 32 bytes

    def blocks(self, source: Pointer, offsets: Items, on: Lanes) -> Items:
        """Eight blocks at byte offsets, as bytes; an inactive block is 0."""
        places = block_places(self.case, source, offsets, on)
        out = np.zeros((VLANE_COUNT, BLOCK_BYTE_SIZE), np.uint8)
        out[on] = source.memory.data[places[:, None] + _IN_BLOCK]
        return out.reshape(-1)

    def put_blocks(self, target: Pointer, offsets: Items, values: Items, on: Lanes) -> None:
        """Store the active blocks of a register at byte offsets."""
        places = block_places(self.case, target, offsets, on)
        blocks = values.view(np.uint8).reshape(VLANE_COUNT, BLOCK_BYTE_SIZE)
        target.memory.data[places[:, None] + _IN_BLOCK] = blocks[on]

    # ---- masks

    def on(self, mask: masks.Mask, gate: Gate) -> Lanes | None:
        """The active lanes; None: all, as far as is known."""
        return None if mask is gate.every else mask[:: gate.width]

    def gates(self, mask: masks.Mask, width: int, count: int) -> Lanes:
        """The active ones of the first `count` lanes of `width` bytes."""
        return mask[: count * width : width]

    def first(self, gate: Gate, count: int) -> masks.Mask:
        """A mask of the first `count` lanes: all if there are fewer, none for a negative number."""
        return gate.every if count >= gate.lanes else masks.first(gate.width, max(count, 0))

    def tail(self, gate: Gate, count: int) -> tuple[masks.Mask, int]:
        """The mask of the first lanes, and the number left after them."""
        if count >= gate.lanes:
            return gate.every, count - gate.lanes
        return masks.first(gate.width, max(count, 0)), 0

    def from_bits(self, raw_bits: Items, build: Build) -> masks.Mask:
        """A mask from the bits of bytes, lowest first, in the order that `build` gives."""
        return build(np.unpackbits(raw_bits, bitorder="little")).view(np.bool_)

    def to_bits(self, mask: masks.Mask, step: int) -> Items:
        """Every `step`-th bit of a mask's image, in bytes."""
        return np.packbits(mask[::step], bitorder="little")

    def squeezed(self, value: Items, mask: masks.Mask, width: int) -> tuple[Items, int]:
        """The active lanes without gaps, zeros after them; and their number."""
        active = value[mask[::width]]
        out = np.zeros_like(value)
        out[: active.size] = active
        return out, active.size

    def before(self, dtype: np.dtype[Any], mask: masks.Mask, width: int) -> tuple[Items, int]:
        """The number of active lanes before each lane, in the low bits; and the total."""
        active = mask[::width]
        up_to = np.cumsum(active)
        return (up_to - active).astype(dtype), int(up_to[-1])


def registers_do(make: Make) -> Do:
    """A meaning on the interface of registers."""
    return Do(make, words=Registers)
