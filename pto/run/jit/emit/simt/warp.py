"""The words of work items (`isa/meaning/simt/items.py`) for the 32 lanes of one warp.

A value is a vector with a lane for each item; a packed value has its elements side by side. Values
of inactive items are computed, and never used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning.lanes import neutral
from pto.isa.meaning.scalar.arith import kind_of
from pto.isa.meaning.simt.items import WARP, Element, Size, held
from pto.isa.row import types as t
from pto.isa.rules.simt import MAX_ITEMS
from pto.run.jit.emit.handle.words import AgentWords
from pto.run.jit.emit.vector.items import gathered, scattered, spilled
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import Kind, unsupported_if
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import I32, I64, Text, vector
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime import context

if TYPE_CHECKING:
    from pto.run.jit.emit.simt.phases import Phases

_INT: Final = np.dtype(np.int64)
_SHORT: Final = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class At:
    """An address for each lane, all in one memory: `Pointers` of compiled code."""

    memory: Val
    addresses: Symbol
    dtype: DType | None

    def within(self, memory: Val | None) -> Symbol:
        """The addresses, which have to be in this memory."""
        unsupported_if(self.memory != memory, "work items point into different memories")
        return self.addresses


def item_of(type: t.Type) -> tuple[Kind, int]:
    """The type of symbols for a value, and the number of elements of an item."""
    elem, count = type, 1
    if isinstance(type, t.Vector):
        elem, count = type.elem, int(np.prod(type.shape))
    kind = kind_of(elem)
    return (kind if kind == kinds.BOOL else kinds.symbol_type(kind)), count


def as_item(found: Symbol, type: t.Type) -> Symbol:
    """The low bits, as the type of a result has them."""
    kind, _ = item_of(type)
    if kind == kinds.BOOL and found.dtype != kind:
        return found.astype(np.uint8).astype(kind)
    return found.astype(kind)


class Warp:
    """Lanes 32 * number .. of the launch, where a phase is written."""

    def __init__(self, phases: Phases, number: Val, bits: str) -> None:
        self.p = phases
        self.x: Text = phases.x
        self.number = number
        self.bits = bits  # of the active lanes, an i32
        self.spot = self.of(WARP)
        self.mask = self.spot.symbol(kinds.BOOL, self.x.new(f"bitcast i32 {bits} to <32 x i1>"))
        self.cell = ""  # error flags of the current instruction
        self.now: Val = 0  # its time

    def of(self, count: int) -> lanes.Lanes:
        return lanes.Lanes(self.x, count)

    def spread(self, kind: Kind, value: Val, count: int = 1) -> Symbol:
        """One scalar in every lane."""
        spot = self.of(WARP * count)
        if isinstance(value, int):
            return spot.constant(kind, np.asarray(value).astype(kind))
        return spot.spread(kind, value)

    def wide(self, mask: Symbol, count: int) -> Symbol:
        """A bool for each element of packed values."""
        return mask.take(np.repeat(np.arange(WARP), count))

    def fault(self, bad: Symbol) -> None:
        """Report an error if this holds in an active lane."""
        self.note(self.cell, (bad & self.mask).bits)

    def note(self, cell: str, bits: str) -> None:
        """Add bits to a word that all warps share."""
        old = self.x.load(I32, cell, 4)
        self.x.store(I32, self.x.new(f"or i32 {old}, {bits}"), cell, 4)

    # ---- what an item knows

    @property
    def active(self) -> Symbol:
        first = self.spread(_INT, self.x.mul(self.number, WARP))
        return first + self.spot.constant(_INT, np.arange(WARP))

    @property
    def size(self) -> Any:
        return Size(*(self.spread(_SHORT, self._short(n)) for n in self.p.size))  # type: ignore[arg-type]

    def _short(self, number: Val) -> Val:
        return number if isinstance(number, int) else self.x.narrow(number, 32)

    @property
    def core(self) -> Any:
        return AgentWords(self.x)

    def clock(self) -> Symbol:
        return self.spread(_INT, self.now)

    def everywhere(self, value: Any) -> Symbol:
        if isinstance(value, Symbol):
            return value.astype(_INT)
        return self.spread(_INT, value.value if isinstance(value, Number) else int(value))

    def meet(self) -> None:
        if self.p.mask != self.p.all:
            every = self.x.load(I32, self.p.mask_at(self.p.all, self.number), 4)
            there = self.x.compare("eq", every, self.bits, I32)
            self.note(self.cell, self.x.new(f"select i1 {there}, i32 0, i32 -1"))

    # ---- exchange between lanes

    def ballot(self, pred: Symbol) -> Symbol:
        return self.spread(_INT, self.x.new(f"zext i32 {(pred & self.mask).bits} to i64"))

    def from_lane(self, value: Symbol, lane: Symbol) -> Symbol:
        here = self.spread(_INT, self.x.new(f"zext i32 {self.bits} to i64"))
        own = self.spot.constant(_INT, np.arange(WARP))
        index = lanes.where(self.spot, ((here >> lane) & 1) != 0, lane, own)
        return self._taken(value, index)

    def element(self, packed: Symbol, index: Symbol) -> Symbol:
        count, at = packed.lanes.count // WARP, index.astype(_INT)
        at = lanes.where(self.spot, (at >= 0) & (at < count), at, at.like(0))
        own = self.spot.constant(_INT, np.arange(WARP) * count)
        return self._taken(packed, own + at, 1)

    def _taken(self, value: Symbol, index: Symbol, count: int = 0) -> Symbol:
        """Elements, or items, of a vector by numbers."""
        count = count or value.lanes.count // WARP
        width = 8 * value.dtype.itemsize * count
        if value.dtype == kinds.BOOL:
            return self._taken(value.astype(np.uint8), index).astype(kinds.BOOL)
        (room,) = spilled(self.p.s, (value.type, value.name))
        found = gathered(self.p.s, width, room, index * np.int64(width // 8))
        return self._seen(found, width, value.dtype, count)

    def _seen(self, name: str, width: int, kind: Kind, count: int) -> Symbol:
        """An integer for each item, as so many numbers."""
        spot = self.of(WARP * count)
        return spot.symbol(kind, self.x.bitcast(name, vector(WARP, f"i{width}"), spot.type(kind)))

    def _whole(self, value: Symbol) -> tuple[str, int]:
        """An integer for each item, and its width."""
        width = 8 * value.dtype.itemsize * (value.lanes.count // WARP)
        return str(self.x.bitcast(value.name, value.type, vector(WARP, f"i{width}"))), width

    def reinterpret(self, value: Symbol, type: t.Type) -> Symbol:
        name, width = self._whole(value)
        return self._seen(name, width, *item_of(type))

    def folded(self, fn: Callable[[Any, Any], Any], value: Symbol) -> Symbol:
        found = lanes.where(self.spot, self.mask, value, value.like(neutral(fn, value.dtype)))
        count = WARP
        while count > 1:
            count //= 2
            found = fn(*(found.take(range(n, n + count)) for n in (0, count)))
        return self.spread(value.dtype, found.lane(0))

    # ---- memory

    def _reached(self, at: At, nbytes: int) -> tuple[str, Symbol]:
        """The start of the memory, and the lanes with an item inside it."""
        e, x = self.p.e, self.x
        if not isinstance(at.memory, int):
            e.unit.ordered = True
        last = self.spread(np.dtype(np.uint64), x.sub(e.size(at.memory), nbytes))
        enough = x.compare("sge", e.size(at.memory), nbytes).in_lanes(self.spot)
        places = at.addresses.view(np.uint64)
        guard = (places <= last) & ((places & np.uint64(nbytes - 1)) == 0) & enough
        if nbytes & (nbytes - 1):
            guard = (places <= last) & (places % np.uint64(nbytes) == 0) & enough
        self.fault(~guard)
        return e.base(at.memory), guard & self.mask

    def _in_line(self, at: At, nbytes: int, on: Symbol) -> tuple[Condition, str]:
        """True if all lanes are active and their items are contiguous; the first address."""
        first = at.addresses.lane(0)
        wanted = self.spread(_INT, first) + self.spot.constant(_INT, np.arange(WARP) * nbytes)
        same: Any = at.addresses == wanted
        return (same & on).every, first

    def load(self, at: At, type: t.Type) -> Symbol:
        elem, x = held(type), self.x
        kind = kinds.symbol_type(elem.kind)
        base, on = self._reached(at, elem.nbytes)
        item, (plain, first) = f"i{8 * elem.nbytes}", self._in_line(at, elem.nbytes, on)
        near = x.fresh("near")
        far = x.fresh("far")
        done = x.fresh("done")
        x.branch(plain, near, far)
        x.label(near)
        whole = x.load(vector(WARP, item), x.at(base, first))
        x.jump(done)
        x.label(far)
        each, ended = gathered(self.p.s, 8 * elem.nbytes, base, at.addresses, on), x.here
        x.jump(done)
        x.label(done)
        name = x.phi(vector(WARP, item), [(whole, near), (each, ended)])
        return self._seen(name, 8 * elem.nbytes, kind, elem.count)

    def store(self, at: At, value: Symbol, type: t.Type) -> None:
        elem, x = held(type), self.x
        stored = value.astype(elem.kind) if kinds.computes(elem.kind) else value
        base, on = self._reached(at, elem.nbytes)
        name, width = self._whole(stored)
        plain, first = self._in_line(at, elem.nbytes, on)
        x.when(
            plain,
            lambda: x.store(vector(WARP, f"i{width}"), name, x.at(base, first)),
            lambda: scattered(self.p.s, width, base, name, at.addresses, on),
        )

    def update(
        self, at: At, new: Callable[..., Symbol], given: Sequence[Symbol], see: Element
    ) -> Symbol:
        """One lane after the other."""
        x = self.x
        (base, on) = self._reached(at, see.nbytes)
        like = given[0]
        spot = self.of(see.count if see.count > 1 else 0)
        one = spot.type(see.kind)
        stored = ((value.type, value.name) for value in (at.addresses, *given))
        before, places, *rooms = spilled(self.p.s, (like.type, None), *stored)

        def lane(i: Val) -> None:
            at_lane = x.mul(i, see.nbytes)
            values = [spot.symbol(see.kind, x.load(one, x.at(r, at_lane))) for r in rooms]
            address = x.load(I64, x.at(places, x.mul(i, 8)), 8)
            old = x.load(one, x.at(base, address))
            after = new(spot.symbol(see.kind, old), *values)
            x.store(one, after.astype(see.kind).name, x.at(base, address))
            x.store(one, old, x.at(before, at_lane))

        bits = on.bits

        def if_on(i: Val) -> None:
            moved = x.new(f"lshr i32 {bits}, {x.narrow(i, 32)}")
            x.when(x.bit(x.new(f"trunc i32 {moved} to i1")), lambda: lane(i))

        x.loop(WARP, 1, if_on)
        return like.lanes.symbol(like.dtype, x.load(like.type, before, 64))

    # ---- what outlives an entry

    def keep(self, slot: int, payload: Symbol) -> None:
        x, bits = self.x, payload
        if payload.dtype != kinds.BOOL:
            bits = payload.view(f"u{payload.dtype.itemsize}")
        wide = bits.astype(np.uint64)
        found = lanes.where(self.spot, self.mask, wide, wide.like(0))
        x.store(I64, self.p.total, x.at(self.p.e.word(context.Word.KEPT), 8 * slot), 8)
        x.store(found.type, found.name, self._slot(slot))

    def resume(self, slot: int, type: t.Type) -> Symbol:
        x, (kind, _) = self.x, item_of(type)
        count = x.load(I64, x.at(self.p.e.word(context.Word.KEPT), 8 * slot), 8)
        self.fault(x.compare("ne", count, self.p.total).in_lanes(self.spot))
        wide = self.spot.symbol(np.dtype(np.uint64), x.load(vector(WARP, I64), self._slot(slot)))
        item = np.dtype(np.uint8) if kind == kinds.BOOL else kind
        return wide.astype(f"u{item.itemsize}").view(item)

    def _slot(self, slot: int) -> str:
        values = self.p.e.word(context.Word.KEPT_VALUES)
        return self.x.at(
            values, self.x.add(slot * MAX_ITEMS * 8, self.x.mul(self.number, WARP * 8))
        )
