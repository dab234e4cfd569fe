"""Pointers: a place in a memory and what lies there. Arithmetic counts elements, never bytes."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Bytes, Memory


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in one memory. `dtype` is what it points to; None for an untyped address."""

    memory: Memory
    address: int
    dtype: DType | None

    def at(self, elements: int) -> Pointer:
        """This pointer, moved by a number of elements."""
        return Pointer(self.memory, self.address + elements * self.itemsize, self.dtype)

    @property
    def itemsize(self) -> int:
        if self.dtype is None:
            raise fail("PTO-M110", "this pointer has no element type to count in")
        return self.dtype.itemsize

    def bytes(self, offset: int, nbytes: int) -> Bytes:
        """A bounds-checked view of the bytes at `offset` bytes from here."""
        return self.memory.view(self.address + offset, nbytes)
