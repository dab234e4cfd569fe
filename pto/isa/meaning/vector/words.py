"""The words of instructions between registers, masks and UB, here on NumPy.

They extend the words of whole vectors (`vmi/words.py`). Masks are images here (`masks.py`); what is
fixed when a program is prepared (`Access`, `Elements`) is made once, beside the words. The same
meanings run on the words of compiled code (`run/jit/emit/vector/words.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, Make
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Items, block_places, items, positions, whole
from pto.isa.meaning.vmi.words import Words
from pto.isa.rules.rule import Case

Build = Callable[[Items], Any]  # items -> the image made of them, or several; it only moves items
_IN_BLOCK = np.arange(BLOCK_BYTE_SIZE, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Access:
    """`count` items behind a pointer, at a multiple of `align` bytes."""

    at: Callable[[Pointer, int], Items]  # (pointer, byte offset) -> the items, writeable
    dtype: np.dtype[Any]
    count: int
    align: int
    build: Build | None  # None: as they are


def access(
    case: Case,
    dtype: np.dtype[Any],
    count: int,
    build: Build | None = None,
    *,
    align: int = 0,
    misaligned: Callable[[Memory, int], Any] | str = "",
) -> Access:
    """`align` 0 stands for that of an item. `misaligned` raises what is wrong with an address, or
    names what takes other addresses."""
    at, needed = items(case, dtype, count, align, misaligned)
    return Access(at, dtype, count, needed, build)


@dataclass(frozen=True, slots=True)
class Elements:
    """Single elements behind a pointer."""

    case: Case
    dtype: np.dtype[Any]
    of: Callable[[Pointer], tuple[Items, int]]


def elements(case: Case, dtype: np.dtype[Any]) -> Elements:
    return Elements(case, dtype, whole(dtype))


class Gate:
    """Lanes of `width` bytes: how many there are, and the mask of all."""

    __slots__ = ("every", "lanes", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.lanes = masks.lanes_of(width)
        self.every = masks.full(width)


class Registers(Words):
    """At once, on arrays. Every place is checked before anything is read or written."""

    def __init__(self, core: Machine) -> None:
        self.core = core

    def field(self, value: int) -> int:
        """An integer operand as an unsigned field of 16 bits."""
        return value & 0xFFFF

    # ---- items that follow each other

    def load(self, access: Access, source: Pointer, count: int = 0, step: int = 1) -> Any:
        """The image of items, `count` times `step` bytes behind a pointer; it is no view of UB."""
        found = access.at(source, count * step)
        return found.copy() if access.build is None else access.build(found)

    def store(
        self,
        access: Access,
        target: Pointer,
        values: Items,
        on: Lanes | None,
        count: int = 0,
        step: int = 1,
    ) -> None:
        """Items, `count` times `step` bytes behind a pointer; only lanes that are on (None: all)"""
        if on is None:
            access.at(target, count * step)[:] = values
        else:
            np.copyto(access.at(target, count * step), values, where=on)

    def store_apart(
        self, access: Access, target: Pointer, values: Items, apart: int, count: int, step: int
    ) -> None:
        """Items `apart` items from one to the next."""
        access.at(target, count * step)[::apart] = values

    def moved(self, pointer: Pointer, count: int, step: int = 0) -> Pointer:
        """A pointer so many elements on, or `count` times `step` bytes."""
        if not step:
            return pointer.at(count)
        return Pointer(pointer.memory, pointer.address + count * step, pointer.dtype)

    # ---- blocks of 32 bytes

    def blocks(self, case: Case, source: Pointer, offsets: Items, on: Lanes) -> Items:
        """Eight blocks at byte offsets, as bytes; one that is off is 0."""
        places = block_places(case, source, offsets, on)
        out = np.zeros((VLANE_COUNT, BLOCK_BYTE_SIZE), np.uint8)
        out[on] = source.memory.data[places[:, None] + _IN_BLOCK]
        return out.reshape(-1)

    def put_blocks(
        self, case: Case, target: Pointer, offsets: Items, values: Items, on: Lanes
    ) -> None:
        """The blocks of a register that are on, to byte offsets."""
        places = block_places(case, target, offsets, on)
        blocks = values.view(np.uint8).reshape(VLANE_COUNT, BLOCK_BYTE_SIZE)
        target.memory.data[places[:, None] + _IN_BLOCK] = blocks[on]

    # ---- single elements

    def pick(self, of: Elements, source: Pointer, index: Items, on: Lanes | None) -> Items:
        """Elements by their number from a pointer on; 0 in lanes that are off (None: all on)."""
        typed, start = of.of(source)
        found = typed[positions(of.case, typed, start, index, on)]
        if on is None:
            return found
        out = np.zeros(on.size, of.dtype)
        out[on] = found
        return out

    def place(
        self, of: Elements, target: Pointer, index: Items, values: Items, on: Lanes | None
    ) -> None:
        """Elements by their number from a pointer on; of equal numbers the last lane wins."""
        typed, start = of.of(target)
        where = positions(of.case, typed, start, index, on)
        typed[where] = values if on is None else values[on]

    # ---- masks

    def on(self, mask: masks.Mask, gate: Gate) -> Lanes | None:
        """Which lanes are on; None: all, as far as is known."""
        return None if mask is gate.every else mask[:: gate.width]

    def gates(self, mask: masks.Mask, width: int, count: int) -> Lanes:
        """Which of the first `count` lanes of `width` bytes are on."""
        return mask[: count * width : width]

    def first(self, gate: Gate, count: int) -> masks.Mask:
        """A mask of the first lanes: all where there are fewer, none for a negative number."""
        return gate.every if count >= gate.lanes else masks.first(gate.width, max(count, 0))

    def tail(self, gate: Gate, count: int) -> tuple[masks.Mask, int]:
        """The first lanes, and how many are left behind them."""
        if count >= gate.lanes:
            return gate.every, count - gate.lanes
        return masks.first(gate.width, max(count, 0)), 0

    def from_bits(self, found: Items, build: Build) -> masks.Mask:
        """A mask of the bits of bytes, the lowest first, in the order that `build` gives them."""
        return build(np.unpackbits(found, bitorder="little")).view(np.bool_)

    def to_bits(self, mask: masks.Mask, step: int) -> Items:
        """Every `step`-th bit of a mask's image, in bytes."""
        return np.packbits(mask[::step], bitorder="little")

    # ---- registers of the core

    def get(self, register: str) -> int:
        """A register that holds one word; -1: nothing yet."""
        found = registers.get(self.core, register)
        return -1 if found is None else found

    def put(self, register: str, word: int) -> None:
        registers.put(self.core, register, word)

    def word(self, number: int, item: np.dtype[Any]) -> Items:
        """The low bits of a number as one item."""
        return np.array([number & ((1 << 8 * item.itemsize) - 1)], item)

    def squeezed(self, value: Items, mask: masks.Mask, width: int) -> tuple[Items, int]:
        """The active lanes one behind the other, 0 behind them; and how many there are."""
        kept = value[mask[::width]]
        out = np.zeros_like(value)
        out[: kept.size] = kept
        return out, kept.size

    def before(self, dtype: np.dtype[Any], mask: masks.Mask, width: int) -> tuple[Items, int]:
        """How many lanes before each are active, in the low bits; and how many are in all."""
        active = mask[::width]
        up_to = np.cumsum(active)
        return (up_to - active).astype(dtype), int(up_to[-1])


def registers_do(make: Make) -> Do:
    """A meaning in these words."""
    return Do(make, words=Registers)
