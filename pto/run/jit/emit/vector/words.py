"""The words between registers, masks and UB (`isa/meaning/vector/words.py`) in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.core.pointer import FARTHEST
from pto.isa.meaning.vector.ub import Build, ItemAccess
from pto.isa.meaning.vector.unaligned import Streams
from pto.isa.meaning.vector.words import Gate, Registers
from pto.isa.row import types as t
from pto.run.jit.emit.handle.view import emits_in, near
from pto.run.jit.emit.operation import WORDS
from pto.run.jit.emit.tile.masked import copy_bytes
from pto.run.jit.emit.vector.items import gathered, squeezed, store_lanes
from pto.run.jit.emit.vmi import words as vmi
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import Kind, unsupported_if
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import vector
from pto.run.jit.llvm.value import Condition, Val, all_of, facts
from pto.run.jit.runtime.values import Lowered, Mask, PointerDesc, Stream

_BLOCK = vector(BLOCK_BYTE_SIZE, "i8")
_LOADS = -1  # the count of bytes of a stream that loads
_NOTHING = "zeroinitializer"


class Words(vmi.Words):
    """Emits one instruction in place."""

    # ---- numbers

    def number(self, value: Any) -> Number:
        return super(vmi.Words, self).number(value)

    def _distance(self, count: Count, step: int) -> Number:
        """Bytes that an address is moved by; the count is not so large that this wraps."""
        found = self.number(count)
        self.s.fault_unless(near(self.x, found.value))
        return found * step

    def field(self, value: Any) -> Number:
        return self.number(value) & 0xFFFF

    def word(self, number: Number, storage: Kind) -> Symbol:
        low = self.x.new(f"trunc i64 {number.value} to i{8 * storage.itemsize}")
        return self._of(1).spread(storage, low)

    # ---- items that follow each other

    def _at(self, access: ItemAccess, place: PointerDesc, count: Count, step: int) -> str:
        """The machine address of an access, checked for bounds and alignment."""
        x, nbytes = self.x, access.count * access.dtype.itemsize
        address = x.add(place.address, self._distance(count, step).value)
        guard = self.s.e.inside(place.memory, address, nbytes)
        if access.align > 1:
            low = x.new(f"and i64 {address}, {access.align - 1}")
            guard = guard & x.compare("eq", low, 0)
        self.s.fault_unless(guard)
        return self.s.pointer(place.memory, address)

    def load(self, access: ItemAccess, source: PointerDesc, count: Count = 0, step: int = 1) -> Any:
        at, item = self._at(access, source, count, step), kinds.symbol_type(access.dtype)
        if access.build is None:
            spot = self._of(access.count)
            return spot.symbol(item, self.x.load(spot.type(item), at))
        picks = access.build(np.arange(1, access.count + 1))  # what an image leaves 0 is no item
        several = picks if isinstance(picks, tuple) else (picks,)
        found = [self._picked(access, at, each - 1) for each in several]
        return tuple(found) if isinstance(picks, tuple) else found[0]

    def _picked(self, access: ItemAccess, at: str, picks: Any) -> Symbol:
        """Items of an access in another order; never a byte beyond them is log_access."""
        x = self.x
        size = access.dtype.itemsize
        read = access.count
        item, fill = f"i{8 * size}", VREG_BYTES // size
        spot, kind = self._of(len(picks)), np.dtype(f"u{size}")
        if read == 1:
            return spot.symbol(kind, shuffles.spread(x, item, fill, x.load(item, at)))
        if read <= fill:
            whole = x.load(vector(read, item), at)
            return spot.symbol(kind, shuffles.shuffle(x, item, read, whole, picks))
        starts = [*range(0, read - fill, fill), read - fill]
        if len(starts) % 2:
            places = spot.constant(np.dtype(np.int64), picks * size)
            return spot.symbol(kind, gathered(self.s, 8 * size, at, places))
        loaded = [x.load(vector(fill, item), x.at(at, n * size)) for n in starts]
        parts: list[str] = []
        for n, part in enumerate(np.split(picks, len(starts) // 2)):
            low, high = starts[2 * n : 2 * n + 2]
            places = np.where(part < low + fill, part - low, part - high + fill)
            pair = loaded[2 * n : 2 * n + 2]
            parts.append(shuffles.shuffle(x, item, fill, pair[0], places, pair[1]))
        return spot.symbol(kind, shuffles.joined(x, item, len(picks) // len(parts), parts))

    def store(
        self,
        access: ItemAccess,
        target: PointerDesc,
        values: Symbol,
        on: Symbol | None,
        count: Count = 0,
        step: int = 1,
    ) -> None:
        at, bits = self._at(access, target, count, step), "" if on is None else str(on.name)
        masked = facts(values.name).masked
        if masked is not None and bits and masked.mask == bits:  # what is off is not stored
            values = values.lanes.symbol(values.dtype, masked.lanes)
        item = np.dtype(f"u{access.dtype.itemsize}")
        name = self.reinterpret(values, item).name
        kind = f"i{8 * item.itemsize}"
        store_lanes(self.s, kind, access.count, name, at, bits or masks.ALL_ON)

    def store_apart(
        self,
        access: ItemAccess,
        target: PointerDesc,
        values: Symbol,
        apart: int,
        count: Count,
        step: int,
    ) -> None:
        """Store items that are too far apart for one vector, one by one."""
        x = self.x
        at = self._at(access, target, count, step)
        size = access.dtype.itemsize
        room = x.stack(values.type)
        x.store(values.type, values.name, room, 64)

        def one(i: Val) -> None:
            item = x.load(f"i{8 * size}", x.at(room, x.mul(i, size)))
            x.store(f"i{8 * size}", item, x.at(at, x.mul(i, apart * size)))

        x.loop(values.lanes.count, 1, one)

    def moved(self, pointer: PointerDesc, count: Count, step: int = 0) -> PointerDesc:
        size = step or (pointer.elem.itemsize if pointer.elem is not None else 0)
        unsupported_if(not size, "a pointer without elements")
        address = self.x.add(pointer.address, self._distance(count, size).value)
        if not step:
            self.s.fault_unless(near(self.x, address, FARTHEST))
        return PointerDesc((pointer.memory, address), pointer.elem)

    # ---- blocks of 32 bytes

    def _blocks(self, place: PointerDesc, offsets: Symbol, on: Symbol) -> list[str]:
        """The machine addresses of blocks. Blocks that are on lie inside the memory; the address of
        one that is off is the start of the memory."""
        x, spot = self.x, on.lanes
        places = offsets + spot.spread(np.dtype(np.int64), place.address)
        last = spot.spread(np.dtype(np.uint64), x.sub(self.s.e.size(place.memory), BLOCK_BYTE_SIZE))
        guard, align = places.view(np.uint64) <= last, self.s.case.profile.alignment.vector
        if align > 1:
            guard = guard & (places & np.int64(align - 1) == np.int64(0))
        self.s.fault_unless(self.all(guard | ~on))
        safe = lanes.where(spot, on, places, places.like(0))
        return [self.s.pointer(place.memory, safe.lane(n)) for n in range(spot.count)]

    def blocks(self, source: PointerDesc, offsets: Symbol, on: Symbol) -> Symbol:
        x, parts = self.x, list[str]()
        for n, place in enumerate(self._blocks(source, offsets, on)):
            chosen = f"select i1 {on.lane(n)}, {_BLOCK} {x.load(_BLOCK, place)}"
            parts.append(x.new(f"{chosen}, {_BLOCK} zeroinitializer"))
        found = shuffles.joined(x, "i8", BLOCK_BYTE_SIZE, parts)
        return self._of(VREG_BYTES).symbol(np.dtype(np.uint8), found)

    def put_blocks(self, target: PointerDesc, offsets: Symbol, values: Symbol, on: Symbol) -> None:
        x, whole = self.x, self.reinterpret(values, np.dtype(np.uint8)).name
        for n, place in enumerate(self._blocks(target, offsets, on)):
            picks = range(n * BLOCK_BYTE_SIZE, (n + 1) * BLOCK_BYTE_SIZE)
            block = shuffles.shuffle(x, "i8", VREG_BYTES, whole, picks)
            x.when(x.bit(on.lane(n)), lambda b=block, p=place: x.store(_BLOCK, b, p))

    # ---- masks

    def on(self, mask: Mask, gate: Gate) -> Symbol:
        return self.gates(mask, gate.width, gate.lanes)

    def gates(self, mask: Mask, width: int, count: int) -> Symbol:
        spot, bits = self._of(VREG_BYTES // width), masks.at_width(self.x, mask, width)
        return self.take([spot.symbol(kinds.BOOL, bits)], np.arange(count))

    def first(self, gate: Gate, count: Count) -> Mask:
        least = self.greatest(self.number(count), Number(self.x, 0))
        return masks.first(self.x, gate.width, least.value)

    def tail(self, gate: Gate, count: Count) -> tuple[Mask, Number]:
        left = self.number(count) - gate.lanes
        return self.first(gate, count), self.greatest(left, Number(self.x, 0))

    def from_bits(self, raw_bits: Symbol, build: Build) -> Mask:
        count = 8 * raw_bits.lanes.count
        bits = self.x.new(f"bitcast {raw_bits.type} {raw_bits.name} to <{count} x i1>")
        return Mask((shuffles.shuffle(self.x, "i1", count, bits, build(np.arange(count))),), 1)

    def to_bits(self, mask: Mask, step: int) -> Symbol:
        spot, bits = self._of(VREG_BYTES // step // 8), masks.strided(self.x, mask, 0, step)
        kind = np.dtype(np.uint8)
        count = 8 * spot.count
        return spot.symbol(kind, self.x.new(f"bitcast <{count} x i1> {bits} to {spot.type(kind)}"))

    def squeezed(self, value: Symbol, mask: Mask, width: int) -> tuple[Symbol, Number]:
        kind = np.dtype(f"u{width}")
        return self._squeezed(kind, self.reinterpret(value, kind).name, mask)

    def before(self, dtype: Kind, mask: Mask, width: int) -> tuple[Symbol, Number]:
        return self._squeezed(np.dtype(f"u{width}"), None, mask)

    def _squeezed(self, kind: Kind, source: Val | None, mask: Mask) -> tuple[Symbol, Number]:
        bits = masks.at_width(self.x, mask, kind.itemsize)
        found, total = squeezed(self.s, kind.itemsize, source, bits)
        spot = self._of(VREG_BYTES // kind.itemsize)
        return spot.symbol(kind, found), Number(self.x, total)

    # ---- streams

    def prime(self, source: PointerDesc) -> Stream:
        start = self.x.new(f"and i64 {source.address}, {-BLOCK_BYTE_SIZE}")
        self.s.fault_unless(self.s.e.inside(source.memory, start, 1))
        return self._loads(source.memory, source.address)

    def _loads(self, memory: Val, address: Val) -> Stream:
        return Stream((memory, self._block(address), _LOADS, 0, _NOTHING))

    def _block(self, address: Val) -> str:
        return self.x.new(f"ashr i64 {address}, {BLOCK_BYTE_SIZE.bit_length() - 1}")

    def follow(self, state: Stream, source: PointerDesc) -> Stream:
        x, (memory, held, count, *_) = self.x, state.names
        rest = x.new(f"and i64 {source.address}, {BLOCK_BYTE_SIZE - 1}")
        here = x.compare("eq", held, self._block(source.address))
        here = here & x.compare("eq", memory, source.memory)
        here = x.compare("eq", rest, 0) | here
        self.s.fault_unless(here & x.compare("eq", count, _LOADS))
        return self._loads(source.memory, x.add(source.address, VREG_BYTES))

    def begin(self) -> Stream:
        return Stream((-1, 0, 0, 0, _NOTHING))

    def append(
        self, state: Stream, to: PointerDesc, data: Symbol, nbytes: Count, stays: bool
    ) -> Stream:
        x = self.x
        s = self.s
        (memory, start) = (to.memory, to.address)
        owner, address, count, _, held = state.names
        empty = x.compare("eq", count, 0)
        behind = x.compare("eq", x.add(address, count), start)
        follows = x.compare("eq", owner, memory) & behind & x.compare("sge", count, 0)
        s.fault_unless(empty | follows)
        first, end = self._choose(empty, start, address), x.add(start, self.number(nbytes).value)
        s.fault_unless(s.e.inside(memory, first, x.sub(end, first)))
        below = x.new(f"and i64 {end}, {-BLOCK_BYTE_SIZE}")
        whole = self._choose(x.compare("sgt", below, first), below, first)
        room = x.stack(f"[{VREG_BYTES + 2 * BLOCK_BYTE_SIZE} x i8]")
        x.store(_BLOCK, held, room, 64)
        x.store(data.type, data.name, x.at(room, count))
        done = x.sub(whole, first)
        copy_bytes(x, s.pointer(memory, first), room, done)
        rest = x.load(_BLOCK, x.at(room, done))
        return Stream((memory, whole, x.sub(end, whole), start if stays else end, rest))

    def flush(self, state: Stream, to: PointerDesc) -> None:
        x, s = self.x, self.s
        owner, address, count, mark, held = state.names
        empty = x.compare("eq", owner, -1)
        right = all_of(
            x.compare("eq", owner, to.memory),
            x.compare("eq", mark, to.address),
            x.compare("sge", count, 0),
            s.e.inside(to.memory, address, count),
        )
        s.fault_unless(empty | right)
        room = x.stack(_BLOCK)
        x.store(_BLOCK, held, room, 64)
        place, nbytes = self._choose(empty, 0, address), self._choose(empty, 0, count)
        copy_bytes(x, s.pointer(to.memory, place), room, nbytes)

    def _choose(self, condition: Condition, yes: Val, no: Val) -> Val:
        if condition.is_known:
            return yes if condition.is_true else no
        return self.x.new(f"select i1 {condition}, i64 {yes}, i64 {no}")

    def align(self, pointer: PointerDesc, needed: int) -> None:
        x, guard = self.x, self.s.e.inside(pointer.memory, pointer.address, 0)
        if needed > 1:
            low = x.new(f"and i64 {pointer.address}, {needed - 1}")
            guard = guard & x.compare("eq", low, 0)
        self.s.fault_unless(guard)

    def seen(self, native: Lowered | None, type: t.Type | None) -> Any:
        """Masks and streams as they are, else as the words of vectors see an operand."""
        return native if isinstance(native, Mask | Stream) else super().seen(native, type)

    def lowered(self, found: Any, type: t.Type) -> Lowered:
        if isinstance(found, Number) and isinstance(type, t.Scalar):
            return self.scalar(found, type)
        return super().lowered(found, type)


WORDS[Registers] = WORDS[Streams] = emits_in(Words)
