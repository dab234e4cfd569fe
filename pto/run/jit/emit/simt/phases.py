"""A launch as phases: loops over warps, each with a run of instructions.

The reference engine runs one instruction for all items, then the next. Here one warp runs several
instructions, then the next warp does. Results are the same if no instruction of the run writes
memory that another one accesses. Values for a later phase are stored in memory, an entry for each
item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.ir.graph import Operation, Value
from pto.isa.meaning.simt.items import WARP
from pto.isa.row import types as t
from pto.isa.rules.simt import MAX_ITEMS
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.simt.warp import At, Warp, as_item, item_of
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import Kind, UnsupportedLowering, certain, unsupported_if
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import I32, I64
from pto.run.jit.llvm.value import TRUE, Val
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.values import (
    Lowered,
    OwnDesc,
    PointerDesc,
    ScalarValue,
    TileDesc,
    ViewDesc,
)

_MASK_BYTES = MAX_ITEMS // 8
_INT = np.dtype(np.int64)
Touch = tuple[str, bool]  # a memory, and whether it is written


@dataclass(frozen=True, slots=True)
class ItemSlot:
    """The scratch memory of a value of all items; of pointers, their addresses."""

    offset: int
    item: Kind
    count: int
    memory: Val | None = None
    dtype: DType | None = None

    @property
    def stride(self) -> int:
        """Bytes of a warp; a bool is a bit."""
        bits = 1 if self.item == kinds.BOOL else 8 * self.item.itemsize
        return WARP * self.count * bits // 8


@dataclass(slots=True)
class Entry:
    """One instruction of a phase."""

    op: Operation
    run: Callable[[Warp, dict[int, Any]], None]
    touches: tuple[Touch, ...] = ()
    faults: bool = False  # the instruction may report an error
    every: bool = False  # warps without active items take part too
    now: Val = 0
    cell: str = field(default="", init=False)


def pointer_to(native: Lowered) -> Lowered:
    """Tiles and views as the addresses of their first elements."""
    if isinstance(native, TileDesc):
        return PointerDesc((native.memory, native.address), native.type.dtype)
    if isinstance(native, ViewDesc):
        return PointerDesc((native.memory, native.address), native.dtype)
    return native


class Phases:
    """The values of a launch, and the instructions that wait to be written."""

    def __init__(
        self, s: OpContext, size: Sequence[Val], total: Val, ops: Iterable[Operation]
    ) -> None:
        self.s = s
        self.e = s.e
        self.x = s.x
        self.size, self.total = size, total
        self.warps = self.x.up(total, WARP)
        self.kept: dict[int, ItemSlot] = {}
        self.wanted: set[int] = set()  # values needed after the launch
        self._users: dict[int, set[int]] = {}
        for op in ops:
            for value in op.operands:
                self._users.setdefault(id(value), set()).add(id(op))
        self._used = 0
        self._entries: list[Entry] = []
        self._touched: set[Touch] = set()
        self.fault: Callable[[Operation], None] = lambda op: None
        self.all = self.mask = self.new_mask()
        self._set_all()

    # ---- masks, in memory: 32 bits a warp

    def room(self, nbytes: int) -> int:
        at, self._used = self._used, self._used + -(-nbytes // 64) * 64
        needs = self.e.unit.needs
        needs.items = max(needs.items, self._used)
        return at

    def new_mask(self) -> int:
        return self.room(_MASK_BYTES)

    def mask_at(self, mask: int, number: Val) -> str:
        return self.x.at(self.e.word(Word.ITEMS), self.x.add(mask, self.x.mul(number, 4)))

    def _set_all(self) -> None:
        x = self.x

        def warp(w: Val) -> None:
            spot = lanes.Lanes(x, WARP)
            first = spot.spread(_INT, x.mul(w, WARP)) + spot.constant(_INT, np.arange(WARP))
            end = spot.spread(_INT, self.total)
            x.store(I32, (first < end).bits, self.mask_at(self.all, w), 4)

        x.loop(self.warps, 1, warp)

    # ---- values

    def is_uniform(self, value: Value) -> bool:
        return id(value) not in self.kept

    def new(self, type: t.Type, like: Value | None = None) -> ItemSlot:
        """Allocate memory for a value of a type; of a pointer, into the memory of `like`."""
        if isinstance(type, t.Scalar | t.Vector):
            item, count = item_of(type)
            return ItemSlot(self.room(MAX_ITEMS * count * item.itemsize), item, count)
        memory = None if like is None else self._memory(like)
        unsupported_if(memory is None, f"work items with a value that is {type.kind}")
        elem = (
            type.elem.dtype if isinstance(type, t.Ptr) and isinstance(type.elem, t.Scalar) else None
        )
        return ItemSlot(self.room(MAX_ITEMS * 8), _INT, 1, memory, elem)

    def _memory(self, value: Value) -> Val | None:
        if id(value) in self.kept:
            return self.kept[id(value)].memory
        native = pointer_to(self.e.value(value))
        return native.memory if isinstance(native, PointerDesc | OwnDesc) else None

    def rename(self, value: Value, source: Value) -> None:
        """A value is another one, whatever that is."""
        self.kept.pop(id(value), None)
        if id(source) in self.kept:
            self.kept[id(value)] = self.kept[id(source)]
        else:
            self.e.bind(value, self.e.value(source))

    def at(self, kept: ItemSlot, number: Val) -> str:
        place = self.x.add(kept.offset, self.x.mul(number, kept.stride))
        return self.x.at(self.e.word(Word.ITEMS), place)

    def read(self, w: Warp, kept: ItemSlot) -> Any:
        spot = w.of(WARP * kept.count)
        found = spot.symbol(kept.item, self.x.load(spot.type(kept.item), self.at(kept, w.number)))
        return found if kept.memory is None else At(kept.memory, found, kept.dtype)

    def value(self, w: Warp, env: dict[int, Any], value: Value) -> Any:
        """The value of the items of a warp."""
        found = env.get(id(value))
        if found is None:
            kept = self.kept.get(id(value))
            found = self.read(w, kept) if kept else self._spread(w, self.e.value(value))
            env[id(value)] = found
        return found

    def _spread(self, w: Warp, native: Lowered) -> Any:
        native = pointer_to(native)
        if isinstance(native, ScalarValue):
            kind, _ = item_of(native.type)
            return w.spread(kind, native.name)
        if isinstance(native, OwnDesc):
            own = w.active * w.spread(_INT, native.names[2])
            return At(native.memory, own + w.spread(_INT, native.address), None)
        if isinstance(native, PointerDesc):
            return At(native.memory, w.spread(_INT, native.address), native.elem)
        raise UnsupportedLowering(f"work items with a value that is {type(native).__name__}")

    def write(self, w: Warp, kept: ItemSlot, found: Any, *, merge: bool = False) -> None:
        """Store the value of a warp; with `merge` only for the active items."""
        values = found.within(kept.memory) if isinstance(found, At) else found
        if merge and self.mask != self.all:
            old = self.read(w, kept)
            old = old.addresses if isinstance(old, At) else old
            mask = w.mask if kept.count == 1 else w.wide(w.mask, kept.count)
            values = lanes.where(values.lanes, mask, values, old)
        self.x.store(values.type, values.name, self.at(kept, w.number))

    # ---- instructions

    def add(self, entry: Entry) -> None:
        clash = any(
            space == other and (writes or wrote)
            for space, writes in entry.touches
            for other, wrote in self._touched
        )
        if clash:
            self.flush()
        self._entries.append(entry)
        self._touched.update(entry.touches)

    def assign(self, op: Operation, to: Sequence[ItemSlot], sources: Sequence[Value]) -> None:
        """Copy values for the active items, all at once."""

        def run(w: Warp, env: dict[int, Any]) -> None:
            found = [self.value(w, env, v) for v in sources]
            for kept, each in zip(to, found, strict=True):
                self.write(w, kept, each, merge=True)

        if to:
            self.add(Entry(op, run))

    def results(self, w: Warp, env: dict[int, Any], op: Operation, found: Sequence[Any]) -> None:
        for result, each in zip(op.results, found, strict=True):
            value = each if isinstance(each, At) else as_item(each, result.type)
            env[id(result)] = value
            if self._is_needed(result):
                self.write(w, self.kept[id(result)], value)

    def _is_needed(self, value: Value) -> bool:
        """True if a later phase, or an error report, needs the value."""
        inside = {id(entry.op): entry.faults for entry in self._running}
        used = any(inside.get(user, True) for user in self._users.get(id(value), ()))
        return used or id(value) in self.wanted

    _running: Sequence[Entry] = ()

    def flush(self) -> None:
        """Emit the phase."""
        entries = self._entries
        self._entries = []
        self._touched = set()
        if not entries:
            return
        x, self._running = self.x, entries
        for entry in entries:
            if entry.faults:
                entry.cell = x.stack(I32)
                x.store(I32, 0, entry.cell, 4)

        def warp(number: Val) -> None:
            bits = x.load(I32, self.mask_at(self.mask, number), 4)

            def all() -> None:
                w, env = Warp(self, number, bits), dict[int, Any]()
                for entry in entries:
                    w.cell, w.now = entry.cell, entry.now
                    entry.run(w, env)

            skip = self.mask != self.all and not any(entry.every for entry in entries)
            x.when(x.compare("ne", bits, 0, I32) if skip else TRUE, all)

        x.loop(self.warps, 1, warp)
        self._running = ()
        for entry in entries:
            if entry.faults:
                bad = x.compare("ne", x.load(I32, entry.cell, 4), 0, I32)
                x.when(bad, lambda op=entry.op: self.fault(op))

    def report(self) -> None:
        """End the phase if an instruction of it may report an error."""
        if any(entry.faults for entry in self._entries):
            self.flush()

    # ---- numbers of a launch of one item

    def single(self, value: Value) -> Lowered:
        kept, x = self.kept[id(value)], self.x
        place, type = x.at(self.e.word(Word.ITEMS), kept.offset), value.type
        if kept.memory is not None:
            return PointerDesc((kept.memory, x.load(I64, place, 8)), kept.dtype)
        empty = ScalarValue(("",), certain(type, t.Scalar))
        if kept.item == kinds.BOOL:
            return empty.renamed((x.new(f"trunc i8 {x.load('i8', place)} to i1"),))
        return empty.renamed((x.load(empty.types[0], place),))
