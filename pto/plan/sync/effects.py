"""The memory accesses and pipes of one operation, from its row, its operands and the plan.

Control flow between operations is in `tree.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pto.core.memory import Space
from pto.ir.graph import Operation, Value
from pto.isa.meaning.handle import config
from pto.isa.meaning.tile import img2col, rearrange
from pto.isa.row import types as t
from pto.isa.row.instr import Instr
from pto.isa.row.order import Free, Notify, Pop
from pto.isa.row.phases import PipeAccess
from pto.isa.row.pipe_of import form_of, inner_flags, phases_of, pipe_of
from pto.isa.rules.rule import Case
from pto.plan.sync.outside import GlobalViews, MemWindow
from pto.plan.sync.storage import Storage, Stretch, popped, queue_of
from pto.target.facts import Profile

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
NUMBER = {name: n for n, name in enumerate(PIPES)}
# Semantics that use only the address or shape of a tile.
_NAMES_ONLY = (
    rearrange.RESHAPE,
    config.SCALE_ADDRESS,
    img2col.SET_FMATRIX,
    img2col.SET_REPEAT,
    img2col.SET_PADDING,
)


@dataclass(frozen=True, slots=True)
class SyncAccess:
    """A read or write of bytes of a local buffer, or of a window of global memory."""

    place: Stretch | MemWindow
    writes: bool
    least: int = 0  # minimum number of bytes accessed


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The accesses of an operation on one pipe."""

    pipe: int
    accesses: tuple[SyncAccess, ...]
    is_scalar: bool = False  # the scalar unit accesses memory
    # a wait for, or a signal to, the other end of a queue: work of its own pipe needs no barrier
    is_handover: bool = False


class SyncFlag(NamedTuple):
    """A flag inside an operation: `target` continues after all earlier work of `source`."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, eq=False)
class SyncWork:
    """The memory accesses of an operation, phase by phase."""

    parts: tuple[Phase | SyncFlag, ...]
    inner: tuple[tuple[str, str, int], ...] = ()  # internal flags: (source, target, id)

    @property
    def phases(self) -> list[Phase]:
        return [part for part in self.parts if isinstance(part, Phase)]

    @property
    def pipe(self) -> int:
        """The pipe of its last phase."""
        return self.phases[-1].pipe


class Effects:
    """The effects of the operations of one function on one profile."""

    def __init__(
        self, function: Operation, storage: Storage, profile: Profile, outside: GlobalViews
    ) -> None:
        self.storage = storage
        self.profile = profile
        self.outside = outside
        self._pops = [op for op in function.walk() if isinstance(op.order, Pop)]

    def of(self, op: Operation) -> SyncWork | None:
        """The accesses of an operation; None if there are none."""
        row = op.row
        if row.body in _NAMES_ONLY or op.control is not None:
            return None  # the end of a region only yields names
        case = Case(op, self.profile)
        if form_of(case) is not None:
            return self._in_phases(op, row, case)
        pipe = pipe_of(case)
        if pipe == "none" and row.family.section == "comm":
            pipe = "S"
        if pipe not in NUMBER:
            return None
        accesses = dict.fromkeys(self._accesses(op, row, pipe))
        if not accesses:
            return None
        is_scalar = pipe_of(case) == "S" and not isinstance(row.order, Free | Notify)
        in_place = self.profile.sync.queue_slots != "gm" and pipe != "MTE2"
        is_handover = in_place and isinstance(row.order, Pop | Free)
        return SyncWork((Phase(NUMBER[pipe], tuple(accesses), is_scalar, is_handover),))

    def _in_phases(self, op: Operation, row: Instr, case: Case) -> SyncWork | None:
        """The accesses of an operation with phases in its row."""
        parts: list[Phase | SyncFlag] = []
        for step in phases_of(case):
            if not isinstance(step, PipeAccess):
                parts.append(SyncFlag(NUMBER[step.src], NUMBER[step.dst]))
                continue
            touched = dict.fromkeys((*step.writes, *step.reads))
            accesses = dict.fromkeys(
                access
                for name in touched
                for value in op.group(name)
                for access in self._touch(value, name in step.writes)
            )
            if accesses:
                parts.append(Phase(NUMBER[step.pipe], tuple(accesses), step.pipe == "S"))
        work = SyncWork(tuple(parts), inner_flags(case))
        return work if work.phases else None

    def barred(self, op: Operation, row: Instr) -> frozenset[int]:
        """The pipes of a barrier: one, else all."""
        pipe = pipe_of(Case(op, self.profile))
        return frozenset([NUMBER[pipe]] if pipe in NUMBER else NUMBER.values())

    def pipes(self, op: Operation) -> set[int]:
        """The pipes that an operation of another function uses, without its accesses."""
        row = op.row
        touches = any(isinstance(v.type, t.PLACES) for v in op.operands)
        if op.control is not None or row.family.section == "support":
            return set()
        if not (touches or row.order):
            return set()
        case = Case(op, self.profile)
        form, pipe = form_of(case), pipe_of(case)
        if form is not None:
            return {NUMBER[pipe_name] for pipe_name in form.pipes()}
        if pipe in NUMBER:
            return {NUMBER[pipe]}
        is_quiet = pipe == "none" and row.order is None and row.family.section != "comm"
        return set() if is_quiet else set(NUMBER.values())

    def of_scope(self, op: Operation) -> SyncWork | None:
        """A vector scope, or a section of work items, as one operation of V."""
        accesses: dict[SyncAccess, None] = {}
        for inner in op.walk():
            if inner is not op:
                accesses.update(dict.fromkeys(self._accesses(inner, inner.row, "V")))
        return SyncWork((Phase(NUMBER["V"], tuple(accesses)),)) if accesses else None

    def _accesses(self, op: Operation, row: Instr, pipe: str) -> Iterator[SyncAccess]:
        if row.family.section == "support":
            return
        if isinstance(row.order, Free):
            yield from self._freed(op)
            return
        if isinstance(row.order, Pop):
            yield from self._taken(op, pipe)
            return
        if isinstance(row.order, Notify):
            yield SyncAccess(_ANYWHERE, writes=True)
            return
        for operand in row.operands:
            if self.profile.name in operand.idle:
                continue
            for value in op.group(operand.name):
                yield from self._touch(value, operand.role != "in")

    def _touch(self, value: Value, writes: bool) -> Iterator[SyncAccess]:
        """The accesses of an operand. A write needs the order of a read as well."""
        window = self.outside.of(value)
        if window is not None:
            yield SyncAccess(window, writes)
        least = _valid_bytes(value.type)
        yield from (SyncAccess(stretch, writes, least) for stretch in self.storage.of(value))

    def _taken(self, op: Operation, pipe: str) -> Iterator[SyncAccess]:
        """The accesses of a pop. It copies its slot out of global memory; else the tile has come
        for the pipe that waits, and for others behind it."""
        if self.profile.sync.queue_slots == "gm" or pipe == "MTE2":
            yield SyncAccess(_SLOTS, writes=False)
        for value in (*op.results, *op.group("tile")):
            yield from self._touch(value, writes=True)

    def _freed(self, op: Operation) -> Iterator[SyncAccess]:
        """The accesses of a free: the slot may be overwritten at once, so all uses must be done.

        A pop that copies its slot out of global memory has freed it.
        """
        if self.profile.sync.queue_slots == "gm" and not op.group("entry"):
            return
        yield SyncAccess(_SLOTS, writes=True)
        pops = [pop for pop in self._pops if queue_of(pop) == queue_of(op)]
        for value in op.group("entry") or [v for pop in pops for v in popped(pop)]:
            yield from self._touch(value, writes=True)


# Global memory that another rank may access: filled, or free to be filled again.
_ANYWHERE = MemWindow(None)
# The slots of queues, at unknown addresses.
_SLOTS = Stretch(Space.GM, 0, 1)


def _valid_bytes(type: t.Type) -> int:
    """The bytes of the valid region of a tile, if it is static; else 0."""
    if not isinstance(type, t.TileBuf):
        return 0
    rows, cols = type.tile.valid
    return 0 if rows is None or cols is None else rows * cols * type.tile.itemsize
