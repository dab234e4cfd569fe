"""Buffers at addresses from the program: bytes of one that another has overwritten.

A pointer made from a number is the start of a buffer of unknown size. If bytes are written through
it, changed through a pointer to another address, and then read through it again, two live buffers
overlap. Pointers to one address are one buffer with any element types, unless bytes written through
one of them are overwritten unread through the other, and then read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note
from pto.core.pointer import Pointer
from pto.ir.graph import Operation, Value
from pto.ir.liveness import aliases
from pto.isa.meaning.kinds import Blocked
from pto.isa.row import types as t
from pto.observe.races import counters_text
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Hook
from pto.run.watch.memory import Access, WatchedMemory

_READS, _WRITES = ("in", "inout", "tmp"), ("out", "inout", "tmp")
_NOBODY = -1
Bits = npt.NDArray[np.bool_]


def placed(functions: Sequence[Operation]) -> dict[Value, list[Value]]:
    """Pointers made from numbers to which each value may refer."""
    out: dict[Value, list[Value]] = {}
    for function in functions:
        pointers = [v for op in function.walk() for v in op.results if _is_made(op, v)]
        for value, roots in aliases(function, pointers).items():
            out[value] = [pointers[n] for n in roots]
    return out


def has_twins(functions: Sequence[Operation]) -> bool:
    """True if two pointers are made from one number: their writes may look like one buffer's."""
    keys: set[tuple[int, Any, int]] = set()
    for function in functions:
        for op in function.walk():
            number = op.operands[0].number if len(op.operands) == 1 else None
            for value in op.results if number is not None else ():
                if isinstance(value.type, t.Ptr) and _is_made(op, value):
                    key = id(function), value.type.space, int(number or 0)
                    if key in keys:
                        return True
                    keys.add(key)
    return False


def _is_made(op: Operation, value: Value) -> bool:
    is_local = isinstance(value.type, t.Ptr) and value.type.space.is_local
    return is_local and not any(isinstance(v.type, t.Ptr | t.TileBuf) for v in op.operands)


@dataclass(slots=True)
class _Buffer:
    """The last writes through a pointer, or through all pointers to one address."""

    value: Value  # one of them
    has: Bits
    bytes: npt.NDArray[np.uint8]
    gone: Bits  # overwritten unread through another pointer

    @classmethod
    def of(cls, value: Value, size: int) -> _Buffer:
        bits = np.zeros(size, np.bool_)
        return cls(value, bits, np.zeros(size, np.uint8), bits.copy())

    def write(self, where: Any, raw: Any) -> None:
        self.has[where] = True
        self.gone[where] = False
        self.bytes[where] = raw[where]


@dataclass(slots=True)
class _PointerMemory:
    place: npt.NDArray[np.int64]  # address of the pointer of each byte's last write
    writer: npt.NDArray[np.int32]  # the operation, as an index
    unread: Bits  # since the last write
    places: dict[int, _Buffer] = field(default_factory=dict[int, _Buffer])  # by address
    names: dict[tuple[int, int], _Buffer] = field(
        default_factory=dict[tuple[int, int], _Buffer]
    )  # by address and maker

    def overwrite(
        self, number_of_buffer: int | None, value: Value | None, where: Any, number: int
    ) -> None:
        """Record a write of bytes, through a pointer if one is known."""
        for (_, maker), buffer in self.names.items():
            if maker != id(value):
                buffer.gone[where] |= self.unread[where] & buffer.has[where]
                buffer.has[where] = False
        self.place[where] = _NOBODY if number_of_buffer is None else number_of_buffer
        self.writer[where] = number
        self.unread[where] = True


class PlaceTap(Hook):
    """Watches every operand that is a pointer made from a number."""

    def __init__(self, roots: dict[Value, list[Value]]) -> None:
        super().__init__()
        self._roots = roots
        self._ops: list[Operation] = []
        self._at: dict[tuple[int, int], int] = {}  # by core and maker: its current address
        self._found: dict[tuple[int, int, int], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        slots = [(compiler.slot(v), v) for v in op.results if _is_made(op, v)]
        plan = [
            (operand.role, compiler.slot(value), roots[0])
            for operand in op.row.used_on(compiler.profile.name)
            for value in op.group(operand.name)
            if len(roots := self._roots.get(value, [])) == 1
        ]
        loops = compiler.counters(op)
        recorder = self.recorder
        number = len(self._ops)
        self._ops.append(op)

        def watched(core: Core, regs: Regs) -> Any:
            result = step(core, regs)
            log = recorder.take()
            if isinstance(result, Blocked):
                return result
            for slot, value in slots:
                if isinstance(regs[slot], Pointer):
                    self._at[id(core), id(value)] = regs[slot].address
            used = [(role, regs[slot], root) for role, slot, root in plan] if log else []
            used = [use for use in used if isinstance(use[1], Pointer)]
            for access in sorted(log, key=lambda a: a.writes):
                if access.memory.space.is_local:
                    self._touch(core, number, used, access, lambda: tuple(regs[i] for i in loops))
            return result

        return watched

    def _touch(self, core: Core, number: int, used: Any, access: Access, counters: Any) -> None:
        memory, where = _known(access.memory), access.where()
        roles = _WRITES if access.writes else _READS
        space = access.memory.space  # a cube addresses the buffers of vector cores by its own names
        mine = [root for role, at, root in used if role in roles and at.memory.space is space]
        slot = self._at.get((id(core), id(mine[0]))) if len(mine) == 1 else None
        if access.writes:
            memory.overwrite(slot, mine[0] if slot is not None else None, where, number)
        else:
            memory.unread[where] = False
        if slot is None:
            return
        size = access.memory.size
        raw = access.memory.raw
        name = (slot, id(mine[0]))
        if slot not in memory.places:
            memory.places[slot] = _Buffer.of(mine[0], size)
        if name not in memory.names:
            memory.names[name] = _Buffer.of(mine[0], size)
        buffer, named = memory.places[slot], memory.names[name]
        if access.writes:
            buffer.write(where, raw)
            named.write(where, raw)
            return
        others = memory.place[where]
        lost = buffer.has[where] & (others != slot) & (others != _NOBODY)
        lost &= buffer.bytes[where] != raw[where]
        lost |= named.gone[where] & (others != _NOBODY) & (named.bytes[where] != raw[where])
        if lost.any():
            first = int(np.flatnonzero(lost)[0])
            theirs = memory.places[int(others[first])].value
            writer = int(memory.writer[where][first])
            self._report(core, number, named.value, theirs, writer, access, counters())

    def _report(
        self,
        core: Core,
        number: int,
        mine: Value,
        theirs: Value,
        writer: int,
        access: Access,
        counters: tuple[int, ...],
    ) -> None:
        op, other = self._ops[number], self._ops[writer]
        key = number, writer, id(mine)
        if key in self._found:
            return
        inside = counters_text(op, counters)
        message = (
            f"{op.name.removeprefix('pto.')} reads %{mine.name} on {core.name}"
            f"{inside}after its bytes were overwritten through"
            f" %{theirs.name}: two buffers in use lie on the same bytes of"
            f" {access.memory.space.value.upper()}"
        )
        notes = (
            *(Note(f"%{v.name} is made here", v.maker.loc) for v in (mine, theirs) if v.maker),
            Note(f"overwritten by {other.name.removeprefix('pto.')}", other.loc),
        )
        self._found[key] = Diagnostic("PTO-M201", message, op.loc, notes=notes)


def _known(memory: WatchedMemory) -> _PointerMemory:
    if memory.shadow is None:
        size = memory.size
        nobody, nothing = np.full(size, _NOBODY, np.int64), np.zeros(size, np.int32)
        memory.shadow = _PointerMemory(nobody, nothing, np.zeros(size, np.bool_))
    return memory.shadow
