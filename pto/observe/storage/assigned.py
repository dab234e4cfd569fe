"""Tiles that a C++ kernel assigns to addresses: which of them has lost bytes to another.

A tile inside another is a part of it, and two of the same bytes are names of one. Tiles that lie
over each other in part are two buffers: what was written through one of them, has other values
since a write through the other, and is read through the first again, is gone. A tile reaches as far
as it was written: a window of some columns ends with its last row, not where a whole one would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Blocked
from pto.isa.row import types as t
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Hook
from pto.run.watch.memory import Access, WatchedMemory

_READS, _WRITES = ("in", "inout", "tmp"), ("out", "inout", "tmp")
_NOBODY = -1
_Slot = tuple[int, int]  # the first byte of a tile, and the one behind its last


@dataclass(slots=True)
class _Memory:
    """Through which tile each byte was last written, by which operation, and what tiles hold."""

    owner: npt.NDArray[np.int32]  # a tile, as an index
    writer: npt.NDArray[np.int32]  # an operation, as an index
    slots: list[_Slot] = field(default_factory=list[_Slot])
    has: dict[_Slot, npt.NDArray[np.bool_]] = field(default_factory=dict[_Slot, Any])
    bytes: dict[_Slot, npt.NDArray[np.uint8]] = field(default_factory=dict[_Slot, Any])
    reach: dict[_Slot, int] = field(default_factory=dict[_Slot, int])  # behind the last written

    @classmethod
    def of(cls, memory: WatchedMemory) -> _Memory:
        if memory.shadow is None:
            nobody = np.full(memory.size, _NOBODY, np.int32)
            memory.shadow = cls(nobody, nobody.copy())
        return memory.shadow

    def write(self, slot: _Slot, where: Any, high: int, raw: npt.NDArray[np.uint8]) -> None:
        if slot not in self.has:
            self.slots.append(slot)
            self.has[slot], self.bytes[slot] = np.zeros(raw.size, np.bool_), raw.copy()
        self.owner[where] = self.slots.index(slot)
        self.has[slot][where] = True
        self.bytes[slot][where] = raw[where]
        self.reach[slot] = max(self.reach.get(slot, 0), high)

    def lost(self, slot: _Slot, where: Any, raw: npt.NDArray[np.uint8]) -> int | None:
        """A byte that was written through a tile and is another's now."""
        if slot not in self.has:
            return None
        mine, others = (slot[0], self.reach[slot]), list[int]()
        for n, other in enumerate(self.slots):
            if _lie_across(mine, (other[0], self.reach[other])):
                others.append(n)
        gone = self.has[slot][where] & np.isin(self.owner[where], others)
        gone &= self.bytes[slot][where] != raw[where]
        return int(np.arange(raw.size)[where][np.argmax(gone)]) if gone.any() else None


def _lie_across(a: _Slot, b: _Slot) -> bool:
    """Whether two tiles have bytes in common and neither holds the other."""
    (low, high), (begin, end) = sorted((a, b))
    return low < begin < high < end


class AssignedTap(Hook):
    """Watches every operand that is a tile."""

    def __init__(self) -> None:
        super().__init__()
        self._ops: list[Operation] = []
        self._found: dict[tuple[int, int], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        plan = [
            (operand.role, compiler.slot(value))
            for operand in op.row.used_on(compiler.profile.name)
            for value in op.group(operand.name)
            if isinstance(value.type, t.TileBuf)
        ]
        number, recorder = len(self._ops), self.recorder
        self._ops.append(op)

        def watched(core: Core, regs: Regs) -> Any:
            result = step(core, regs)
            log = recorder.take()
            if isinstance(result, Blocked):
                return result
            used = [(role, regs[slot]) for role, slot in plan] if log else []
            for access in sorted(log, key=lambda a: a.writes):
                if access.memory.space.is_local:
                    self._touch(core, number, used, access)
            return result

        return watched

    def _touch(self, core: Core, number: int, used: Any, access: Access) -> None:
        memory, where = _Memory.of(access.memory), access.where()
        roles = _WRITES if access.writes else _READS
        low, high = access.span()
        slots = {
            (tile.address, tile.address + tile.nbytes)
            for role, tile in used
            if role in roles and isinstance(tile, Tile) and tile.memory is access.memory
        }
        mine = [slot for slot in slots if slot[0] <= low and high <= slot[1]]
        raw = access.memory.raw
        if access.writes:
            memory.owner[where], memory.writer[where] = _NOBODY, number
            if len(mine) == 1:
                memory.write(mine[0], where, high, raw)
        elif len(mine) == 1:
            byte = memory.lost(mine[0], where, raw)
            if byte is not None:
                self._report(core, number, int(memory.writer[byte]), mine[0], memory, byte)

    def _report(
        self, core: Core, number: int, writer: int, mine: _Slot, memory: _Memory, byte: int
    ) -> None:
        op, other = self._ops[number], self._ops[writer]
        theirs = memory.slots[int(memory.owner[byte])]
        message = (
            f"{op.name.removeprefix('pto.')} on {core.name} reads a tile at"
            f" {mine[0]:#06x}..{mine[1]:#06x}; its bytes from {byte:#06x} on were overwritten"
            f" through one at {theirs[0]:#06x}..{theirs[1]:#06x}: two tiles in use lie across each"
            " other"
        )
        note = Note(f"overwritten by {other.name.removeprefix('pto.')}", other.loc)
        finding = Diagnostic("PTO-M201", message, op.loc, notes=(note,))
        self._found.setdefault((number, writer), finding)
