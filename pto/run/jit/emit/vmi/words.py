"""The words of logical vectors (`isa/meaning/vmi/words.py`) in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning.kinds import Vectors
from pto.isa.meaning.vector.masks import mask_width
from pto.isa.meaning.vmi.words import NONE, Picks, Run
from pto.isa.row import types as t
from pto.run.jit.emit.handle.view import FAR, Guarded, emits_in, near
from pto.run.jit.emit.operation import KINDS
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.vector.items import counted, gathered, scattered, store_lanes
from pto.run.jit.emit.vector.values import result, spread, symbol
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import Kind
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.lanes import Lanes, Symbol
from pto.run.jit.llvm.text import mangled, scalar_type
from pto.run.jit.llvm.value import TRUE, Condition, Val
from pto.run.jit.runtime.values import (
    Lowered,
    Mask,
    PointerDesc,
    ScalarValue,
    TileDesc,
    Vector,
)


class Words(Guarded):
    """Emits one instruction in place."""

    def _of(self, count: int) -> Lanes:
        return Lanes(self.x, count)

    # ---- memory

    def _reach(
        self, place: PointerDesc, runs: Sequence[Run], size: int
    ) -> tuple[list[Val], Condition]:
        """Byte addresses of runs, and whether all of them lie inside."""
        x = self.x
        found = list[Val]()
        guard = TRUE
        for start, count in runs:
            address = x.add(place.address, x.mul(self.number(start).value, size))
            guard = guard & self.s.e.inside(place.memory, address, count * size)
            found.append(address)
        return found, guard

    def runs(self, source: PointerDesc, item: Kind, runs: Sequence[Run]) -> Symbol:
        addresses, guard = self._reach(source, runs, item.itemsize)
        self.s.fault_unless(guard)
        parts: list[Symbol] = []
        for (_, count), address in zip(runs, addresses, strict=True):
            spot = self._of(count)
            at = self.s.pointer(source.memory, address)
            parts.append(spot.symbol(item, self.x.load(spot.type(item), at)))
        return self._joined(parts)

    def put_runs(
        self, target: PointerDesc, runs: Sequence[Run], values: Symbol, mask: Symbol | None
    ) -> None:
        size = values.dtype.itemsize
        addresses, guard = self._reach(target, runs, size)

        def write() -> None:
            first = 0
            for (_, count), address in zip(runs, addresses, strict=True):
                own = np.arange(first, first + count)
                bits = masks.ALL_ON if mask is None else self.take([mask], own).name
                value, at = self.take([values], own), self.s.pointer(target.memory, address)
                store_lanes(self.s, f"i{8 * size}", count, value.name, at, str(bits))
                first += count

        if mask is None:
            self.s.fault_unless(guard)
            write()
        else:  # the reference engine handles inactive lanes outside the memory
            masked.guarded(self.s, guard, write, "a lane that is off lies outside the memory")

    def _places(self, place: PointerDesc, size: int, places: Any, mask: Symbol) -> Symbol:
        """Byte addresses: those of active lanes lie inside the memory, those of inactive lanes are
        0."""
        x, spot = self.x, mask.lanes
        base = spot.spread(np.dtype(np.int64), place.address)
        address = lanes.in_lanes(spot, places) * np.int64(size) + base
        last = spot.spread(np.dtype(np.uint64), x.sub(self.s.e.size(place.memory), size))
        guard = (address.view(np.uint64) <= last) | ~mask
        self.s.fault_unless(self.all(guard))
        return lanes.where(spot, mask, address, address.like(0))

    def gather(self, source: PointerDesc, item: Kind, places: Any, mask: Symbol) -> Symbol:
        at, spot = self._places(source, item.itemsize, places, mask), mask.lanes
        base, width = self.s.pointer(source.memory, 0), 8 * item.itemsize
        found = spot.symbol(item, gathered(self.s, width, base, at))
        return lanes.where(spot, mask, found, found.like(0))

    def scatter(self, target: PointerDesc, places: Any, values: Symbol, mask: Symbol) -> None:
        at, base = self._places(target, values.dtype.itemsize, places, mask), target.memory
        width = 8 * values.dtype.itemsize
        scattered(self.s, width, self.s.pointer(base, 0), values.name, at, mask)

    # ---- lanes in another order

    def take(self, parts: Sequence[Symbol], picks: Picks) -> Symbol:
        if len(parts) > 2:
            parts = [self._joined(parts)]
        first, *rest = parts
        if not rest:
            return first.take(picks)
        count, item = first.lanes.count, scalar_type(first.dtype)
        widest = max(count, rest[0].lanes.count)
        a, b = (
            part.take(np.minimum(np.arange(widest), part.lanes.count - 1)).name
            for part in (first, rest[0])
        )
        behind = (picks != NONE) & (picks >= count)
        order = np.where(behind, picks - count + widest, picks)
        name = shuffles.shuffle(self.x, item, widest, a, order, b)
        return self._of(len(picks)).symbol(first.dtype, name)

    def _joined(self, parts: Sequence[Symbol]) -> Symbol:
        """Vectors one behind the other, in as few steps as a tree has."""
        while len(parts) > 1:
            pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
            parts = [self.take(pair, np.arange(sum(p.lanes.count for p in pair))) for pair in pairs]
        return parts[0]

    def window(self, parts: Sequence[Symbol | None], start: Number, count: int) -> Symbol:
        x, like = self.x, next(part for part in parts if part is not None)
        nbytes = like.lanes.count * like.dtype.itemsize
        room = x.stack(f"[{len(parts) * nbytes} x i8]")
        for n, part in enumerate(parts):
            value = "zeroinitializer" if part is None else part.name
            x.store(like.type, value, x.at(room, n * nbytes), 1)
        spot, at = self._of(count), x.mul(start.value, like.dtype.itemsize)
        return spot.symbol(like.dtype, x.load(spot.type(like.dtype), x.at(room, at)))

    def by_index(self, value: Symbol, index: Any) -> Symbol:
        x, size = self.x, value.dtype.itemsize
        room = x.stack(value.type)
        x.store(value.type, value.name, room, 64)
        places: Any = index.astype(np.int64) * np.int64(size)
        found = gathered(self.s, 8 * size, room, places)
        return places.lanes.symbol(np.dtype(f"u{size}"), found).view(value.dtype)

    def compress(self, value: Symbol, mask: Symbol) -> Symbol:
        x, item = self.x, scalar_type(value.dtype)
        room, name = x.stack(value.type), f"@llvm.masked.compressstore.v{mask.lanes.count}"
        x.store(value.type, "zeroinitializer", room, 64)
        self.x.declare(f"declare void {name}{mangled(item)}({value.type}, ptr, {mask.type})")
        given = f"{value.type} {value.name}, ptr {room}, {mask.type} {mask.name}"
        x.do(f"call void {name}{mangled(item)}({given})")
        return value.lanes.symbol(value.dtype, x.load(value.type, room, 64))

    def counts(self, value: Symbol, mask: Symbol, bins: int) -> Symbol:
        inside = mask & (value.astype(np.int32) < bins)
        found = counted(self.s, value, inside, bins)
        return self._of(bins).symbol(np.dtype(np.uint16), found)

    def spread(self, value: ScalarValue, kind: DType, count: int) -> Symbol:
        return spread(self._of(count), value, kind)

    def reinterpret(self, value: Symbol, item: Kind) -> Symbol:
        return value.reinterpret(kinds.symbol_type(item))

    # ---- numbers

    def number(self, value: Any) -> Number:
        """A number; one that is so large that arithmetic with it could wrap is replaced by one
        outside all memory."""
        found = super().number(value)
        if not isinstance(value, ScalarValue) or found.known is not None:
            return found
        close = near(self.x, found.value)
        return Number(self.x, self.x.new(f"select i1 {close}, i64 {found.value}, i64 {-FAR}"))

    def lanes(self, number: Number, count: int) -> Any:
        return number.in_lanes(self._of(count))

    def all(self, mask: Symbol) -> Condition:
        return mask.every

    # ---- operands and results

    def seen(self, native: Lowered | None, type: t.Type | None) -> Any:
        if isinstance(native, Vector):
            return symbol(self.x, native)
        if isinstance(native, Mask):
            return self._lanes_on(native, type)
        if isinstance(native, TileDesc):  # a memref as a pointer
            return PointerDesc((native.memory, native.address), native.type.dtype)
        return native

    def _lanes_on(self, mask: Mask, of: t.Type | None) -> Symbol:
        """A bool for each of its lanes."""
        dtypes = (n.dtype for n in self.s.all() if isinstance(n, Vector))
        lanes_of = next(dtype.itemsize for dtype in dtypes if dtype is not None)
        width = mask_width(of, lanes_of) if of is not None else lanes_of
        bits = masks.at_width(self.x, mask, width)
        return self._of(VREG_BYTES // width).symbol(kinds.BOOL, bits)

    def lowered(self, found: Any, type: t.Type) -> Lowered:
        return found if isinstance(found, Lowered) else result(found, type)


KINDS[Vectors] = emits_in(Words)
