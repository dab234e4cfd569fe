"""The words of transfers by pointer (`isa/meaning/memory/words.py`) in compiled code.

Requirements are collected and tested once, before bytes move. If one does not hold, the reference
engine runs the transfer and reports any error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.isa.meaning.memory.burst import BurstLoop
from pto.isa.meaning.memory.words import Bursts
from pto.isa.row import types as t
from pto.run.jit.emit.handle.view import Guarded, PointerAt, bit, emits_in
from pto.run.jit.emit.memory import burst
from pto.run.jit.emit.memory.burst import SMALL, Transfer, move_bursts, plain_writes
from pto.run.jit.emit.operation import WORDS, OpContext
from pto.run.jit.emit.tile import copies
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.ir.kinds import UnsupportedLowering, unsupported_if
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.text import is_integer
from pto.run.jit.llvm.value import TRUE, Condition, Val
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, TileDesc, ViewDesc

_MOST = SMALL >> 12  # of counts and gaps in blocks: products of three fit 64 bits


class Words(Guarded):
    """Emits one transfer in place."""

    def __init__(self, s: OpContext) -> None:
        super().__init__(s)
        self.guard = TRUE  # what is required so far

    # ---- numbers

    def require(self, fact: object, error: Callable[[], PtoError]) -> None:
        self.guard = self.guard & self.fact(fact)

    def fact(self, fact: object) -> Condition:
        return bit(fact)

    def known(self, flag: object) -> bool:
        found = self.fact(flag)
        unsupported_if(not found.is_known, "a conversion that is known only when it runs")
        return found.is_true

    def when(
        self, fact: object, body: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        """A branch without a lowering is a host fallback, when it is taken."""
        x = self.x
        guard = self.guard
        is_known = self.fact(fact).is_known

        def way(run: Callable[[], None]) -> None:
            self.guard = guard
            try:
                with x.part():
                    run()
            except UnsupportedLowering as why:
                if is_known:
                    raise
                self.s.e.host_fallback(self.s.op, str(why), seldom=True)

        other = None if otherwise is None else lambda: way(otherwise)
        super().when(fact, lambda: way(body), other)

    def counts(self, quantity: str, *numbers: Count, least: int = 0) -> None:
        for each in map(self.number, numbers):
            small = self.x.compare("ult", each.value, _MOST)
            self.guard = self.guard & small & (each >= least)

    def bits(self, value: Any, type: t.Scalar) -> Number:
        if not isinstance(value, Number):
            return super().bits(value, type)
        return value & ((1 << (64 if type.dtype is None else type.dtype.bits)) - 1)

    # ---- pointers

    def behind(self, pointer: PointerAt, nbytes: Count) -> PointerAt:
        return replace(pointer, address=pointer.address + nbytes)

    def owned(self, pointer: PointerAt, sub: Count = 0) -> PointerAt:
        number = self.number(sub).known
        return replace(pointer, memory=burst.owner(self.s, pointer.memory, pointer.space, number))

    def aligned(self, pointer: PointerAt, loops: Sequence[BurstLoop] = ()) -> None:
        step = self.s.case.profile.alignment.dma
        self.guard = self.guard & (pointer.address % step == 0)
        for loop in loops:
            count, stride = self.number(loop.count), self.number(loop.destination)
            self.guard = self.guard & ((count <= 1) | (stride % step == 0))

    # ---- bursts

    def move(
        self, src: PointerAt, dst: PointerAt, width: Count, loops: Sequence[BurstLoop]
    ) -> None:
        self.move_padded(src, dst, width, loops, 0, None)

    def move_padded(
        self,
        src: PointerAt,
        dst: PointerAt,
        width: Count,
        loops: Sequence[BurstLoop],
        wider: Count,
        pads: Callable[..., None] | None,
    ) -> None:
        """Move bursts; written ones are `wider` bytes longer, and `pads` writes lines of them."""
        turns = [
            burst.Loop(*(self.number(n).value for n in (p.count, p.source, p.destination)))
            for p in loops or [BurstLoop(1, 0, 0)]
        ]
        payload, room = (self.number(n).value for n in (width, wider))
        transfer = Transfer(src.place, dst.place, payload, turns, room)
        move_bursts(self.s, transfer, self.guard, pads=pads)

    def write(
        self, src: PointerAt, dst: PointerAt, width: Count, loops: Sequence[BurstLoop]
    ) -> None:
        self.guard = self.guard & plain_writes(self.s)
        self.move(src, dst, width, loops)

    def padded(
        self,
        src: PointerAt,
        dst: PointerAt,
        width: Count,
        loops: Sequence[BurstLoop],
        pad: tuple[Number, DType],
        beside: tuple[Number, Number],
    ) -> None:
        x = self.x
        (bits, kind) = pad
        (left, right) = map(self.number, beside)
        size, payload = kind.itemsize, self.number(width)
        for each in (left, right):
            self.guard = self.guard & x.compare("ult", each.value, SMALL)
        for each in (payload, *(self.number(p.destination) for p in loops)):
            self.guard = self.guard & (each % size == 0)
        before, used = left * size, left * size + payload + right * size
        row = (used + (BLOCK_BYTE_SIZE - 1)) // BLOCK_BYTE_SIZE * BLOCK_BYTE_SIZE
        item = self._item(bits, kind)

        def pads(to: Access, from_: Access, rows: Val) -> None:
            last, end = ((before + payload) // size).value, (row // size).value
            side = Access(to.layout.in_items(x, kind), to.pointer)
            if left.known != 0:
                tile_moves.fill(self.s, side, item, (0, rows), (0, left.value))
            tile_moves.fill(self.s, side, item, (0, rows), (last, end))
            middle = Access(to.layout, x.at(to.pointer, before.value))
            tile_moves.transfer(self.s, rows, payload.value, middle, from_)

        self.move_padded(src, dst, payload, loops, row - payload, pads)

    def _item(self, bits: Number, kind: DType) -> Val:
        """The low bits of a number as an element."""
        item, width = copies.element(kind), 8 * kind.itemsize
        if bits.known is not None:
            return tile_moves.bits_item(bits.known & ((1 << width) - 1), item)
        low = bits.value if width == 64 else self.x.new(f"trunc i64 {bits.value} to i{width}")
        return low if item == f"i{width}" else self.x.new(f"bitcast i{width} {low} to {item}")

    def seen(self, native: Lowered | None, type: t.Type | None) -> Any:
        if isinstance(native, TileDesc | ViewDesc):  # a memref as a pointer
            dtype = native.type.dtype if isinstance(native, TileDesc) else native.dtype
            native = PointerDesc((native.memory, native.address), dtype)
        if isinstance(native, PointerDesc):
            space = getattr(type, "space", None)
            return PointerAt(native.memory, Number(self.x, native.address), native.elem, space)
        if not isinstance(native, ScalarValue):
            return native
        if native.types[0] == "i1":
            return self.x.bit(native.name)
        return self.number(native) if is_integer(native.types[0]) else native


WORDS[Bursts] = emits_in(Words)
