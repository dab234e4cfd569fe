"""The interface of transfers by pointer, implemented on NumPy: bursts of bytes, and their
conversion.

It extends the interface of moves (`tile/mover.py`) by numbers and registers. Compiled code runs the
same meanings on its own implementation (`run/jit/emit/memory/words.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, Make
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.burst import BurstLoop
from pto.isa.meaning.tile.mover import Mover


def up(count: Any, step: int) -> Any:
    """number / step, rounded up."""
    return (count + (step - 1)) // step


class Bursts(Mover):
    """Moves bursts of bytes. Everything is checked, then read, then written."""

    __slots__ = ()

    def known(self, flag: Any) -> bool:
        """A flag that selects what is computed; compiled code must know it when it compiles."""
        return bool(flag)

    @property
    def name(self) -> str:
        """The instruction, as findings name it."""
        return self.case.row.name

    def counts(self, quantity: str, *numbers: int, least: int = 0) -> None:
        """Check that numbers are not negative, or at least `least`."""
        if min(numbers) < least:
            raise fail("PTO-S160", f"'{self.name}' op: {quantity} is {min(numbers)}")

    def behind(self, pointer: Pointer, nbytes: int) -> Pointer:
        """A pointer `count` bytes further."""
        return Pointer(pointer.memory, pointer.address + nbytes, pointer.dtype)

    def owned(self, pointer: Pointer, sub: int = 0) -> Pointer:
        """The same address in the buffer of the agent that owns it; `sub` is a vector sub-block."""
        return burst.owned(self.core, pointer, sub)

    def aligned(self, pointer: Pointer, loops: Sequence[BurstLoop] = ()) -> None:
        """Check the alignment of bursts in a local buffer.

        `loops` give their destination strides there.
        """
        burst.aligned(self.name, pointer, self.case.profile.alignment.dma, loops)

    def move(self, src: Pointer, dst: Pointer, width: int, loops: Sequence[BurstLoop]) -> None:
        """Copy bursts of `width` bytes; `loops` are listed from inner to outer."""
        burst.move(self.name, src, dst, width, loops)

    def write(self, src: Pointer, dst: Pointer, width: int, loops: Sequence[BurstLoop]) -> None:
        """Copy bursts, or combine them with memory if CTRL selects an atomic type."""
        how = registers.selected_atomic(self.core)
        if how is None:
            burst.move(self.name, src, dst, width, loops)
        else:
            burst.combine(self.name, src, dst, width, loops, how)

    def padded(
        self,
        src: Pointer,
        dst: Pointer,
        width: int,
        loops: Sequence[BurstLoop],
        pad: tuple[int, DType],
        beside: tuple[int, int],
    ) -> None:
        """Copy bursts with padding: `beside` gives the elements on the left and right.

        The burst is then padded to a multiple of 32 bytes. `pad` is the bits and the type of one
        element.
        """
        (bits, kind), (left, right) = pad, beside
        if left < 0 or right < 0:
            raise fail("PTO-S160", f"'{self.name}' op: pad counts are {left} and {right}")
        pattern = np.array([bits & ((1 << 8 * kind.itemsize) - 1)], kind.storage).view(np.uint8)
        before = left * pattern.size
        row = before + width + right * pattern.size
        row += -row % BLOCK_BYTE_SIZE
        both_sides = burst.sides(self.name, src, dst, width, loops, row - width)
        if both_sides is None:
            return
        reads, writes = both_sides
        rows = np.empty((*reads.counts, row), np.uint8)
        rows[...] = np.resize(pattern, row)
        rows[..., before : before + width] = reads.bytes
        burst.put(writes, rows)


def bursts(make: Make) -> Do:
    """A meaning on the interface of bursts."""
    return Do(make, words=Bursts)
