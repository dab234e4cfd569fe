"""The memory that a program has allocated on its device, found by address."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pto.core.errors import fail
from pto.core.memory import Memory
from pto.cxx import native as n
from pto.run.machine.device import Device


class ProgramMemory:
    """The device memory of a program, as the machine's global memory for one launch."""

    def __init__(
        self, device: Device, allocations: Sequence[tuple[int, int]], all_memory: bool = False
    ) -> None:
        self._device = device
        self._all_memory = all_memory  # on cpu all memory of the program is global memory
        self._starts = [address for address, _ in allocations]
        self._sizes = [size for _, size in allocations]
        self._memories = [device.attach(n.bytes_at(a, size)) for a, size in allocations]

    def find(self, address: int) -> tuple[Memory, int]:
        """The memory that contains an address, and the offset in it."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address <= self._starts[at] + self._sizes[at]:
            return self._memories[at], address - self._starts[at]
        if self._all_memory and n.is_pointer(address):
            return self._device.attach(n.bytes_at(address, n.UNKNOWN)), 0
        raise fail("PTO-M114", f"{address:#x} is in no memory of the device")
