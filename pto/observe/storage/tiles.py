"""A run watched tile by tile: the bytes accessed through each allocation.

Finds live tiles that overwrite each other, accesses outside the tile of their pointer, reads
outside a valid region, and reads of a queue slot after it was freed. It needs a further run, so
`Roots.needs_look` is checked first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note, PtoError
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Blocked
from pto.isa.row.order import Free, Pop
from pto.observe.races import counters_text
from pto.observe.storage.in_place import in_place
from pto.observe.storage.roots import Root, Roots, is_local
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Hook
from pto.run.watch.memory import Access, WatchedMemory
from pto.run.watch.phases import WorkingTiles
from pto.target.facts import Profile

_READS, _WRITES = ("in", "inout", "tmp"), ("out", "inout", "tmp")
_NOBODY, _PUSHED = -1, -2  # no named tile; from the other side of a queue
Bits = npt.NDArray[np.bool_]
Raw = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Used:
    """An operand in a run: the tile or pointer, and the allocations it may come from."""

    name: str
    role: str
    value: Any
    roots: tuple[int, ...]


@dataclass(slots=True)
class _Bytes:
    """The state of one buffer: the last writer of each byte, and the bytes of each slot.

    Allocations of one address and size are names of one slot: compilers pass values that way.
    """

    owner: npt.NDArray[np.int32]  # the slot, as an index
    writer: npt.NDArray[np.int32]  # the operation, as an index
    has: dict[int, Bits] = field(default_factory=dict[int, Bits])
    slots: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    names: list[int] = field(default_factory=list[int])  # slot -> the allocation last seen there

    def slot(self, tile: Tile, root: int) -> int:
        number = self.slots.setdefault((tile.address, tile.nbytes), len(self.slots))
        if number == len(self.names):
            self.names.append(root)
        self.names[number] = root
        return number

    @classmethod
    def of(cls, memory: WatchedMemory) -> _Bytes:
        if memory.shadow is None:
            nobody = np.full(memory.size, _NOBODY, np.int32)
            memory.shadow = cls(nobody, nobody.copy())
        return memory.shadow


@dataclass(frozen=True, slots=True)
class _Place:
    op: Operation
    core: Core
    counters: tuple[int, ...]

    def __str__(self) -> str:
        return f"on {self.core.name}{counters_text(self.op, self.counters)}"

    @property
    def name(self) -> str:
        return self.op.name.removeprefix("pto.")


class TileTap(Hook):
    """Watches every operand that is a tile, or a pointer made from one."""

    def __init__(self, roots: Roots, profile: Profile) -> None:
        super().__init__()
        self._roots, self._profile = roots, profile
        self._poisoned = profile.outside_valid == "poison"
        self._slots: dict[tuple[int, int], Tile] = {}  # by core and root
        # by core: roots in the order they were popped, None for one that was copied out of its slot
        self._popped: dict[int, list[int | None]] = {}
        self._freed: dict[tuple[int, int], Operation] = {}
        self._ops: list[Operation] = []
        self._wrote: dict[tuple[int, int], int] = {}  # by core and root: the operation, as an index
        self._found: dict[tuple[str, int, Any], Diagnostic] = {}
        self._before: list[tuple[Any, int, Raw]] = []  # memory, address and bytes: see `_kept`

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def begin(self, core: Core) -> None:
        """Forget what is known of an earlier core that had the id of this one."""
        super().begin(core)
        self._popped.pop(id(core), None)
        for root in range(len(self._roots.all)):
            for table in (self._slots, self._freed, self._wrote):
                table.pop((id(core), root), None)

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        defined = [(compiler.slot(v), self._roots.of(v)) for v in op.results if self._roots.of(v)]
        plan = [
            (operand.name, operand.role, compiler.slot(value), self._roots.of(value))
            for operand in op.row.used_on(compiler.profile.name)
            for value in op.group(operand.name)
            if is_local(value.type)
        ]
        loops = compiler.counters(op)
        around = self._queue_step(op, plan)
        recorder = self.recorder
        number = len(self._ops)
        working = WorkingTiles(compiler, op)
        self._ops.append(op)

        def look(core: Core, regs: Regs, log: list[Access]) -> list[_Used]:
            used = [_Used(n, role, regs[slot], roots) for n, role, slot, roots in plan]
            if log and used:
                site = _Place(op, core, tuple([regs[i] for i in loops]))
                self._judge(site, number, used, log)
            return used

        def watched(core: Core, regs: Regs) -> Any:
            self._before = _kept([(role, regs[slot]) for _, role, slot, _ in plan])
            try:
                result = step(core, regs)
            except PtoError:
                look(core, regs, recorder.take())  # it may have failed because of what it read
                raise
            log = [*working.filled(regs), *recorder.take()]
            if isinstance(result, Blocked):
                return result
            for slot, roots in defined:
                is_own = len(roots) == 1 and self._roots.all[roots[0]].op is op  # no window on it
                if is_own and isinstance(regs[slot], Tile):
                    self._begin(core, roots[0], regs[slot])
            used = look(core, regs, log)
            if around is not None:
                around(core, used, log)
            return result

        return watched

    def _begin(self, core: Core, root: int, tile: Tile) -> None:
        """Begin a new tile for an allocation that runs again: it has no content yet."""
        shadow: Any = getattr(tile.memory, "shadow", None)
        if (id(core), root) in self._slots and isinstance(shadow, _Bytes):
            shadow.has.pop(shadow.slots.get((tile.address, tile.nbytes), -1), None)
        self._slots[id(core), root] = tile

    def _queue_step(
        self, op: Operation, plan: list[tuple[str, str, int, tuple[int, ...]]]
    ) -> Callable[[Core, Sequence[_Used], list[Access]], None] | None:
        order = op.order
        if isinstance(order, Pop):
            popped = [r for v in op.results for r in self._roots.of(v)]
            popped += [r for *_, roots in plan for r in roots]
            return lambda core, used, log: self._pop(op, core, popped, used, log)
        if isinstance(order, Free):
            return lambda core, used, log: self._free(core, op)
        return None

    def _pop(
        self, op: Operation, core: Core, popped: list[int], used: Sequence[_Used], log: list[Access]
    ) -> None:
        for root in popped[:1]:
            self._freed.pop((id(core), root), None)
            tile = self._slots.get((id(core), root))
            bound = next((u.value for u in used if isinstance(u.value, Tile)), tile)
            copied = any(a.writes and a.memory is getattr(bound, "memory", None) for a in log)
            self._popped.setdefault(id(core), []).append(None if copied else root)
            if isinstance(bound, Tile) and isinstance(bound.memory, WatchedMemory):
                self._slots[id(core), root] = bound
                memory = _Bytes.of(bound.memory)
                slot = memory.slot(bound, root)
                if not copied:
                    self._look_lost(_Place(op, core, ()), memory, bound, root)
                self._own(memory, slice_of(bound), slot, _NOBODY)

    def _free(self, core: Core, op: Operation) -> None:
        """Free the oldest popped tile that was not freed."""
        waiting = self._popped.get(id(core), [])
        root = waiting.pop(0) if waiting else None
        if root is not None:
            self._freed[id(core), root] = op

    def _look_lost(self, site: _Place, memory: _Bytes, tile: Tile, root: int) -> None:
        """Report writes to the slot of a pushed tile since the push."""
        owners = memory.owner[slice_of(tile)]
        writers = memory.writer[slice_of(tile)]
        slot = memory.slots[tile.address, tile.nbytes]
        lost = (owners >= 0) & (owners != slot)
        if lost.any() and (owners == _PUSHED).any():
            at = int(np.flatnonzero(lost)[0])
            other = memory.names[int(owners[at])]
            self._overlap(site, root, other, int(writers[at]), tile.memory.space.value)

    def _judge(self, site: _Place, number: int, used: Sequence[_Used], log: list[Access]) -> None:
        self._look_twins(site, [u for u in used if u.role in ("in", "inout")])
        operands = ((u.name, u.role, u.value) for u in used)
        if (finding := in_place(site.op, operands, self._profile, str(site))) is not None:
            self._found.setdefault((finding.code, id(site.op), None), finding)
        for access in sorted(log, key=lambda a: a.writes):
            if access.memory.space.is_local and access.nbytes:
                self._access(site, number, used, access)

    def _access(self, site: _Place, number: int, used: Sequence[_Used], access: Access) -> None:
        roles = _WRITES if access.writes else _READS
        low, high = access.span()
        mine = [u for u in used if u.role in roles and _memory(u.value) is access.memory]
        inside = [u for u in mine if isinstance(u.value, Tile) and _holds(u.value, low, high)]
        if inside:
            operand = inside[0]
            root = self._root(site.core, operand)
            if not access.writes and self._poisoned:
                self._look_outside(site, operand, inside, access)
        else:
            pointers = [u for u in mine if isinstance(u.value, Pointer) and len(u.roots) == 1]
            if len(pointers) != 1:
                if access.writes and not mine:
                    self._own(_Bytes.of(access.memory), access.where(), _PUSHED, number)
                return
            operand, root = pointers[0], pointers[0].roots[0]
            self._look_slot(site, operand, root, low, high)
        tile = None if root is None else self._slots.get((id(site.core), root))
        memory = _Bytes.of(access.memory)
        if root is None or tile is None:
            if access.writes:
                self._own(memory, access.where(), _NOBODY, number)
            return
        slot = memory.slot(tile, root)
        if access.writes:
            self._wrote[id(site.core), root] = number
            if not self._leaves(memory, access, slot):
                self._own(memory, access.where(), slot, number)
        else:
            owners = memory.owner[low:high]
            if ((owners != slot) & (owners >= 0)).any():
                self._look_overlap(site, root, slot, access)
            self._look_freed(site, root)

    def _root(self, core: Core, used: _Used) -> int | None:
        """The allocation of a tile: of several, the one at its address."""
        if len(used.roots) == 1:
            return used.roots[0]
        at = [
            r
            for r in used.roots
            if (slot := self._slots.get((id(core), r))) is not None
            and _holds(slot, used.value.address, used.value.address + used.value.nbytes)
        ]
        return at[0] if len(at) == 1 else None

    def _leaves(self, bytes_of: _Bytes, access: Access, slot: int) -> bool:
        """True if a write onto bytes that the operation reads changes nothing, as the write of a
        part of a tile to its own address: then the new tile is an alias of the old one."""
        low, high = access.span()
        for memory, start, before in self._before:
            if memory is access.memory and start <= low and high <= start + before.size:
                if not np.array_equal(memory.raw[low:high], before[low - start : high - start]):
                    return False
                if slot in bytes_of.has:
                    bytes_of.has[slot][low:high] = False
                return True
        return False

    @staticmethod
    def _own(memory: _Bytes, where: Any, slot: int, number: int) -> None:
        memory.owner[where] = slot
        memory.writer[where] = number
        if slot >= 0:
            has = memory.has.get(slot)
            if has is None:
                has = memory.has[slot] = np.zeros(memory.owner.size, np.bool_)
            has[where] = True

    def _look_twins(self, site: _Place, used: Sequence[_Used]) -> None:
        """Report two allocations of one address, filled separately, that are used as two values."""
        core = id(site.core)
        roots = dict.fromkeys(u.roots[0] for u in used if len(u.roots) == 1)
        slots = [(r, self._slots.get((core, r)), self._wrote.get((core, r))) for r in roots]
        for n, (root, tile, first) in enumerate(slots):
            for other, there, second in slots[n + 1 :]:
                if tile is None or there is None or first is None or second is None:
                    continue
                if first != second and _place_of(tile) == _place_of(there):
                    self._overlap(site, root, other, second, tile.memory.space.value)

    def _look_overlap(self, site: _Place, root: int, slot: int, access: Access) -> None:
        memory = _Bytes.of(access.memory)
        has = memory.has.get(slot)
        if has is None:
            return
        where = access.where()
        owners = memory.owner[where]
        lost = (owners != slot) & (owners >= 0) & has[where]
        if not lost.any():
            return
        other = memory.names[int(owners[lost].flat[0])]
        writer = int(memory.writer[where][lost].flat[0])
        self._overlap(site, root, other, writer, access.memory.space.value)

    def _overlap(self, site: _Place, root: int, other: int, writer: int, space: str) -> None:
        key = ("PTO-M201", id(site.op), (root, other))
        if key in self._found:
            return
        mine, theirs = self._roots.all[root], self._roots.all[other]
        message = (
            f"{site.name} reads {mine.name} {site} after {theirs.name} overwrote its bytes: "
            f"two tiles in use lie on the same bytes of {space.upper()}"
        )
        notes = (
            self._slot_note(site.core, root),
            self._slot_note(site.core, other),
            self._writer_note(writer, theirs),
        )
        self._found[key] = Diagnostic("PTO-M201", message, site.op.loc, notes=notes)

    def _writer_note(self, writer: int, root: Root) -> Note:
        if writer == _NOBODY:
            return Note("overwritten by what was popped here", root.op.loc)
        op = self._ops[writer]
        return Note(f"overwritten by {op.name.removeprefix('pto.')}", op.loc)

    def _slot_note(self, core: Core, root: int) -> Note:
        maker: Root = self._roots.all[root]
        slot = self._slots.get((id(core), root))
        if slot is None:
            return Note(f"{maker.name} is made here", maker.op.loc)
        end = slot.address + slot.nbytes
        return Note(f"{maker.name} is {slot.address:#06x}..{end:#06x}", maker.op.loc)

    def _look_slot(self, site: _Place, operand: _Used, root: int, low: int, high: int) -> None:
        slot = self._slots.get((id(site.core), root))
        if slot is None or _holds(slot, low, high):
            return
        key = ("PTO-M202", id(site.op), operand.name)
        if key in self._found:
            return
        name, space = self._roots.all[root].name, slot.memory.space.value.upper()
        message = (
            f"{site.name} {site} accesses {space}[{low:#06x}..{high:#06x}) through {operand.name}"
            f", outside the tile {name} that it points into"
        )
        notes = (self._slot_note(site.core, root),)
        self._found[key] = Diagnostic("PTO-M202", message, site.op.loc, notes=notes)

    def _look_freed(self, site: _Place, root: int) -> None:
        freed = self._freed.get((id(site.core), root))
        if freed is None:
            return
        maker = self._roots.all[root]
        message = (
            f"{site.name} reads {maker.name} {site} after its slot was given back:"
            " the producer may fill it again"
        )
        notes = (Note("popped here", maker.op.loc), Note("given back here", freed.loc))
        finding = Diagnostic("PTO-V215", message, site.op.loc, notes=notes)
        self._found.setdefault(("PTO-V215", id(site.op), root), finding)

    def _look_outside(
        self, site: _Place, operand: _Used, inside: Sequence[_Used], access: Access
    ) -> None:
        """Report bytes of a tile outside the valid regions of all operands it may be."""
        tile: Tile = operand.value
        valid = tile.known_valid
        if valid == tile.type.shape or None in valid:
            return
        if any(u.value.known_valid == u.value.type.shape for u in inside):
            return
        rows, cols = tile.get_valid()
        starts = tile.offsets()[:rows, :cols].reshape(-1) * tile.type.dtype.storage.itemsize
        allowed = np.zeros(access.memory.size, np.bool_)
        for byte in range(tile.type.dtype.storage.itemsize):
            allowed[starts + tile.address + byte] = True
        if allowed[access.where()].all():
            return
        key = ("PTO-V211", id(site.op), operand.name)
        message = (
            f"'{site.op.name}' op reads {operand.name} outside its valid region: "
            f"{rows}x{cols} of {tile.type.rows}x{tile.type.cols} are valid, {site}"
        )
        self._found.setdefault(key, Diagnostic("PTO-V211", message, site.op.loc))


def _kept(operands: Sequence[tuple[str, Any]]) -> list[tuple[Any, int, Raw]]:
    """The bytes of tiles that an operation is about to write over parts of one it reads."""
    tiles = [(role, tile) for role, tile in operands if isinstance(tile, Tile)]
    return [
        (tile.memory, tile.address, tile.memory.raw[slice_of(tile)].copy())
        for role, tile in tiles
        if role in _WRITES
        and isinstance(tile.memory, WatchedMemory)
        and any(r in _READS and _lies_over(other, tile) for r, other in tiles)
    ]


def _lies_over(a: Tile, b: Tile) -> bool:
    """True if two tiles overlap at different addresses."""
    apart = a.address >= b.address + b.nbytes or b.address >= a.address + a.nbytes
    return a.memory is b.memory and not apart and _place_of(a) != _place_of(b)


def slice_of(tile: Tile) -> slice:
    return slice(tile.address, tile.address + tile.nbytes)


def _place_of(tile: Tile) -> tuple[int, int, int]:
    return id(tile.memory), tile.address, tile.nbytes


def _memory(value: Any) -> Any:
    return value.memory if isinstance(value, Tile | Pointer) else None


def _holds(tile: Tile, low: int, high: int) -> bool:
    return tile.address <= low and high <= tile.address + tile.nbytes
