"""Buffers that a program places by number: which bytes one of them has lost to another.

A pointer made from a number is the beginning of a buffer that nobody has measured. What was written
through it and is read through it again, and was changed meanwhile through a pointer to another
place, is gone: two buffers in use lie over each other. Pointers to one place are one buffer,
whatever their element types are.
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
from pto.isa.meaning import Blocked
from pto.isa.row import types as t
from pto.observe.lost import span_of
from pto.observe.races import counters_text
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Tap
from pto.run.watch.memory import Access, WatchedMemory

_READS, _WRITES = ("in", "inout", "tmp"), ("out", "inout", "tmp")
_NOBODY = -1
Bytes = npt.NDArray[np.uint8]


def placed(functions: Sequence[Operation]) -> dict[int, list[Value]]:
    """Pointers made from numbers that each value may stand for, by id."""
    out: dict[int, list[Value]] = {}
    for function in functions:
        made = [v for op in function.walk() for v in op.results if _is_made(op, v)]
        for value, roots in aliases(function, made).items():
            out[value] = [made[n] for n in roots]
    return out


def _is_made(op: Operation, value: Value) -> bool:
    is_local = isinstance(value.type, t.Ptr) and value.type.space.is_local
    return is_local and not any(isinstance(v.type, t.Ptr | t.TileBuf) for v in op.operands)


@dataclass(slots=True)
class _Buffer:
    """What was last written through the pointers to one place."""

    value: Value  # one of them
    has: npt.NDArray[np.bool_]
    bytes: Bytes


@dataclass(slots=True)
class _Memory:
    owner: npt.NDArray[np.int64]  # the place through which each byte was last written
    writer: npt.NDArray[np.int32]  # the operation, as an index
    buffers: dict[int, _Buffer] = field(default_factory=dict[int, _Buffer])  # by address


class PlaceTap(Tap):
    """Watches every operand that is a pointer made from a number."""

    def __init__(self, roots: dict[int, list[Value]]) -> None:
        super().__init__()
        self._roots = roots
        self._ops: list[Operation] = []
        self._at: dict[tuple[int, int], int] = {}  # by core and maker: the address it has now
        self._found: dict[tuple[int, int, int], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        if op.row is None:
            return step
        made = [(compiler.slot(v), v) for v in op.results if _is_made(op, v)]
        plan = [
            (operand.role, compiler.slot(value), roots[0])
            for operand in op.row.operands
            for value in op.group(operand.name)
            if len(roots := self._roots.get(id(value), [])) == 1
        ]
        loops, recorder, number = compiler.counters(op), self.recorder, len(self._ops)
        self._ops.append(op)

        def watched(core: Core, regs: Regs) -> Any:
            found = step(core, regs)
            log = recorder.take()
            if isinstance(found, Blocked):
                return found
            for slot, value in made:
                if isinstance(regs[slot], Pointer):
                    self._at[id(core), id(value)] = regs[slot].address
            used = [(role, regs[slot], root) for role, slot, root in plan] if log else []
            for access in sorted(log, key=lambda a: a.writes):
                if access.memory.space.is_local:
                    self._touch(core, number, used, access, lambda: tuple(regs[i] for i in loops))
            return found

        return watched

    def _touch(self, core: Core, number: int, used: Any, access: Access, counters: Any) -> None:
        known, where = _known(access.memory), _where(access)
        roles = _WRITES if access.writes else _READS
        mine = [
            root
            for role, pointer, root in used
            if role in roles and isinstance(pointer, Pointer) and pointer.memory is access.memory
        ]
        place = self._at.get((id(core), id(mine[0]))) if len(mine) == 1 else None
        if access.writes:
            known.owner[where] = _NOBODY if place is None else place
            known.writer[where] = number
        if place is None:
            return
        buffer = known.buffers.get(place)
        if buffer is None:
            size = access.memory.size
            empty = np.zeros(size, np.bool_), np.zeros(size, np.uint8)
            buffer = known.buffers[place] = _Buffer(mine[0], *empty)
        if access.writes:
            buffer.has[where] = True
            buffer.bytes[where] = access.memory.raw[where]
            return
        owners = known.owner[where]
        lost = buffer.has[where] & (owners != place) & (owners != _NOBODY)
        lost &= buffer.bytes[where] != access.memory.raw[where]
        if lost.any():
            first = int(np.flatnonzero(lost)[0])
            theirs = known.buffers[int(owners[first])].value
            writer = int(known.writer[where][first])
            self._tell(core, number, buffer.value, theirs, writer, access, counters())

    def _tell(
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
            f"{f', {inside}' if inside else ''}, whose bytes were overwritten through"
            f" %{theirs.name}: two buffers in use lie on the same bytes of"
            f" {access.memory.space.value.upper()}"
        )
        notes = (
            *(Note(f"%{v.name} is made here", v.maker.loc) for v in (mine, theirs) if v.maker),
            Note(f"overwritten by {other.name.removeprefix('pto.')}", other.loc),
        )
        self._found[key] = Diagnostic("PTO-M201", message, op.loc, notes=notes)


def _known(memory: WatchedMemory) -> _Memory:
    if memory.shadow is None:
        size = memory.size
        memory.shadow = _Memory(np.full(size, _NOBODY, np.int64), np.zeros(size, np.int32))
    return memory.shadow


def _where(access: Access) -> Any:
    """The bytes of an access, as an index."""
    array = access.array
    if array is not None and array.flags.c_contiguous:
        return slice(*span_of(access))
    return (access.addresses()[:, None] + np.arange(access.width)).reshape(-1)
