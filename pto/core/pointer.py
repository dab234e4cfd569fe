"""Pointers: an address in a memory with an element type. Arithmetic counts elements, not bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Bytes, Memory

FAR: Final = 1 << 48  # elements a pointer is moved by at once; no memory is so large
FARTHEST: Final = FAR << 8  # bytes; no offset brings an address beyond this back into a memory


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in one memory. `dtype` is what it points to; None for an untyped address."""

    memory: Memory
    address: int
    dtype: DType | None

    def at(self, elements: int) -> Pointer:
        """This pointer, moved by a number of elements."""
        address = self.address + elements * self.itemsize
        if not -FAR <= elements < FAR or not -FARTHEST <= address < FARTHEST:
            raise fail(
                "PTO-M115",
                f"a pointer at {self.address:#x} is moved by {elements} elements of"
                f" {self.itemsize} bytes, beyond every memory",
            )
        return Pointer(self.memory, address, self.dtype)

    @property
    def itemsize(self) -> int:
        if self.dtype is None:
            raise fail(
                "PTO-M110", "this pointer has no element type, so it cannot be moved by elements"
            )
        return self.dtype.itemsize

    def bytes(self, offset: int, nbytes: int) -> Bytes:
        """A bounds-checked view of the bytes at `offset` bytes from here."""
        return self.memory.view(self.address + offset, nbytes)
