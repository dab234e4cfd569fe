"""The accesses of one executed operation by phase, including those to scratch space.

The semantics compute a result in one step and access no scratch space; the library on a chip runs
the phases of the row. Here each recorded access is assigned to a phase by its bytes, and a scratch
operand counts as accessed in every phase that names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pto.core.global_tensor import GlobalTensor
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.meaning.handle.view import as_tile, as_view
from pto.isa.row import types as t
from pto.isa.row.flag import Flag
from pto.isa.row.phases import InnerFlag, PipeAccess, Step
from pto.isa.row.pipe_of import phases_of
from pto.isa.rules.rule import Case
from pto.run.order import effects as fx
from pto.run.reference.code import Regs
from pto.run.watch.memory import Access

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

_SPACES = (t.TileBuf, t.View, t.MemRef)


class PhaseEvent(NamedTuple):
    """One event of an operation: accesses on a pipe, or one side of an internal flag."""

    pipe: str
    accesses: list[Access]
    effect: fx.Effect | None = None


def is_plain(case: Case) -> bool:
    """True if an operation is one phase and has no scratch space."""
    return len(phases_of(case)) < 2 and not scratch_of(case)


def scratch_of(case: Case) -> list[str]:
    """Scratch operands that are present and that the profile and this form use."""
    return [
        o.name
        for o in case.row.operands
        if o.role == "tmp" and case.profile.name not in o.idle
        if o.planned is None or o.planned(case) is not None
        if any(isinstance(v.type, _SPACES) for v in case.op.group(o.name))
    ]


class WorkingTiles:
    """The scratch operands of an operation that it fills."""

    def __init__(self, compiler: Compiler, op: Operation) -> None:
        case = Case(op, compiler.profile)
        names = scratch_of(case)
        self._slots = [(compiler.slot(v), v.type) for name in names for v in op.group(name)]

    def filled(self, regs: Regs) -> list[Access]:
        """Accesses that write all their bytes."""
        spaces = [_space(regs[slot], type) for slot, type in self._slots]
        return [_whole(space, writes=True) for space in spaces if space is not None]


def handoff(step: InnerFlag) -> tuple[PhaseEvent, PhaseEvent]:
    """The two sides of an internal flag: set on one pipe, wait on the other."""
    flag = Flag(step.src, step.dst, fx.INNER)
    sets, waits = fx.FlagSet(flag, flag), fx.FlagWait(flag, flag)
    return PhaseEvent(step.src, [], sets), PhaseEvent(step.dst, [], waits)


class PhaseSplit:
    """Splits the accesses of an operation by phase. `slots`: the value slots of each operand."""

    def __init__(self, case: Case, slots: dict[str, list[int]]) -> None:
        self._steps: tuple[Step, ...] = phases_of(case) or (PipeAccess("S"),)
        self._slots = slots
        self._scratch = {
            name: [
                (slot, value.type)
                for slot, value in zip(slots[name], case.op.group(name), strict=True)
            ]
            for name in scratch_of(case)
        }
        self._touches = [s for s in self._steps if isinstance(s, PipeAccess)]

    def of(self, accesses: list[Access], regs: Regs) -> Iterator[PhaseEvent]:
        """The parts in the order of the phases; phases without accesses are left out."""
        shares = self._shares(accesses, regs)
        number = 0
        for step in self._steps:
            if isinstance(step, InnerFlag):
                yield from handoff(step)
                continue
            touched_now = [*shares[number], *self._working(step, regs)]
            number += 1
            if touched_now:
                yield PhaseEvent(step.pipe, touched_now)

    def _shares(self, accesses: list[Access], regs: Regs) -> list[list[Access]]:
        """The recorded accesses of each phase."""
        if len(self._touches) == 1:
            return [accesses]
        out: list[list[Access]] = [[] for _ in self._touches]
        for access in accesses:
            out[self._phase(access, regs)].append(access)
        return out

    def _phase(self, access: Access, regs: Regs) -> int:
        """The first phase with an operand that has these bytes and this kind of access."""
        at = _first_byte(access)
        for how in (access.writes, not access.writes):
            for n, touch in enumerate(self._touches):
                names = touch.writes if how else touch.reads
                if any(_has(value, access, at) for value in self._values(names, regs)):
                    return n
        return len(self._touches) - 1

    def _working(self, touch: PipeAccess, regs: Regs) -> Iterator[Access]:
        """The accesses of a phase to scratch space: it reads what an earlier phase has written."""
        only_read = [name for name in touch.reads if name not in touch.writes]
        for names, writes in ((only_read, False), (touch.writes, True)):
            for slot, type in (pair for name in names for pair in self._scratch.get(name, ())):
                space = _space(regs[slot], type)
                if space is not None and space.nbytes:
                    yield _whole(space, writes)

    def _values(self, names: Iterable[str], regs: Regs) -> Iterator[Any]:
        return (regs[slot] for name in names for slot in self._slots[name])


def _first_byte(access: Access) -> int:
    if access.array is not None or access.places is None:
        return access.start
    return int(access.places[0]) if access.places.size else 0


def _has(value: Any, access: Access, at: int) -> bool:
    if getattr(value, "memory", None) is not access.memory:
        return False
    end = getattr(value, "nbytes", None)
    return value.address <= at and (end is None or at < value.address + end)


def _space(value: Any, type: t.Type) -> Tile | GlobalTensor | None:
    """The tile or view of a scratch operand; a lowered operand is a pointer with a shaped type."""
    if isinstance(value, Tile | GlobalTensor):
        return value
    if not isinstance(value, Pointer) or not isinstance(type, t.MemRef) or None in type.shape:
        return None
    return as_tile(value, type) if type.space.is_local else as_view(value, type)


def _whole(value: Tile | GlobalTensor, writes: bool) -> Access:
    """An access to all bytes of a scratch space."""
    memory: Any = value.memory
    start, end = value.address, value.address + value.nbytes
    return Access(writes, memory, memory.raw[start:end], None, 1, start, True)
