"""Vector instructions of a2a3 by pointer: repeats of eight blocks under the mask register."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.isa.meaning.kinds import Repeats
from pto.isa.meaning.memory import registers
from pto.isa.meaning.vector import raw
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.emit.handle.view import wide_number
from pto.run.jit.emit.operation import KINDS, OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.vector.items import store_lanes
from pto.run.jit.ir.kinds import symbol_type
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.lanes import items_of
from pto.run.jit.llvm.text import vector
from pto.run.jit.llvm.value import Condition, Val, all_of
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue

_SMALL = 1 << 20  # repeats and strides; larger ones are left to the reference engine


@dataclass(frozen=True, slots=True)
class _Way:
    """The strides of an operand in bytes: from block to block, and from repeat to repeat."""

    place: PointerDesc
    block: Val
    step: Val

    def address(self, s: OpContext, turn: Val, n: int) -> Val:
        x = s.x
        return x.add(self.place.address, x.add(x.mul(turn, self.step), x.mul(n, self.block)))


def _emit(s: OpContext) -> Sequence[Lowered]:
    body: Repeats = s.body
    if raw.does_nothing(s.case):
        return []
    x, kind = s.x, dtype_of(s.case, "dst")
    per = kind.per_vlane * raw.BLOCKS
    names = raw.pointers(s.case)
    strides = [
        wide_number(s, s.need(ScalarValue, f"{n}{w}Stride"))
        for n in names
        for w in ("Block", "Repeat")
    ]
    blocks = [x.mul(stride, BLOCK_BYTE_SIZE) for stride in strides]
    ways = [_Way(s.need(PointerDesc, n), *blocks[2 * k : 2 * k + 2]) for k, n in enumerate(names)]
    masks = _Masks(s, per)
    repeat = masks.repeat(wide_number(s, s.need(ScalarValue, "repeat")))
    small = [x.compare("ult", n, _SMALL) for n in (*strides, x.sub(repeat, 1))]
    guard = all_of(*small, *(_inside(s, way, repeat) for way in ways))

    def turns() -> None:
        spot = lanes.Lanes(x, per)
        scalar = [_scalar(s, spot, body)] if body.scalar else []

        def turn(i: Val) -> None:
            given = [spot.symbol(symbol_type(kind), _load(s, way, i)) for way in ways[1:]]
            found = items_of(spot, body.fn(*given, *scalar), kind)
            _store(s, ways[0], i, found, masks.bits(i))

        x.loop(repeat, 1, turn)

    masked.guarded(s, guard, turns, "a stride or a repeat is out of range")
    return []


def _inside(s: OpContext, way: _Way, repeat: Val) -> Condition:
    """True if all blocks lie inside, at multiples of their size."""
    x, first = s.x, way.place.address
    last = way.address(s, x.sub(repeat, 1), raw.BLOCKS - 1)
    nbytes = x.add(x.sub(last, first), BLOCK_BYTE_SIZE)
    aligned = x.compare("eq", x.rest(first, BLOCK_BYTE_SIZE), 0)
    return aligned & s.e.inside(way.place.memory, first, nbytes)


def _scalar(s: OpContext, spot: lanes.Lanes, body: Repeats) -> lanes.Symbol:
    x, kind = s.x, dtype_of(s.case, "dst")
    word = wide_number(s, s.need(ScalarValue, s.case.row.operands[len(raw.pointers(s.case))].name))
    if body.scalar == "shift":
        width = 8 * kind.itemsize
        word = x.new(f"select i1 {x.compare('ult', word, width)}, i64 {word}, i64 {width}")
    low = x.narrow(word, 8 * kind.itemsize)
    return spot.spread(np.dtype(f"u{kind.itemsize}"), low).view(symbol_type(kind))


def _load(s: OpContext, way: _Way, turn: Val) -> str:
    """The eight blocks of a repeat, side by side."""
    kind = dtype_of(s.case, "dst")
    item, count = lanes.scalar_type(symbol_type(kind)), kind.per_vlane
    parts = [
        s.x.load(vector(count, item), s.pointer(way.place.memory, way.address(s, turn, n)))
        for n in range(raw.BLOCKS)
    ]
    return shuffles.joined(s.x, item, count, parts)


def _store(s: OpContext, way: _Way, turn: Val, found: lanes.Symbol, bits: str) -> None:
    """Store block by block: of overlapping blocks the later one wins."""
    width = found.dtype.itemsize
    found = found.view(f"u{width}")
    item, many = f"i{8 * width}", found.lanes.count // raw.BLOCKS
    for n in range(raw.BLOCKS):
        own = np.arange(n * many, (n + 1) * many)
        value = shuffles.shuffle(s.x, item, found.lanes.count, found.name, own)
        mask = shuffles.shuffle(s.x, "i1", found.lanes.count, bits, own)
        pointer = s.pointer(way.place.memory, way.address(s, turn, n))
        store_lanes(s, item, many, value, pointer, mask)


class _Masks:
    """The mask register, as it is when the instruction begins."""

    def __init__(self, s: OpContext, per: int) -> None:
        self._s, self._per = s, per
        self._low, high = (s.register(registers.LANES, n) for n in range(2))
        self._counts = s.x.compare("ne", s.register(registers.COUNTS), 0)
        both = [s.x.new(f"zext i64 {word} to i256") for word in (self._low, high)]
        every = s.x.new(f"or i256 {both[0]}, {s.x.new(f'shl i256 {both[1]}, 64')}")
        own = every if per == 256 else s.x.new(f"trunc i256 {every} to i{per}")
        self._fixed = s.x.new(f"bitcast i{per} {own} to <{per} x i1>")

    def repeat(self, given: Val) -> Val:
        """The number of repeats, which a counting mask determines; 0 if it exceeds any memory."""
        x = self._s.x
        most = x.new(f"select i1 {x.compare('ult', self._low, 1 << 40)}, i64 {self._low}, i64 0")
        return x.new(f"select i1 {self._counts}, i64 {x.up(most, self._per)}, i64 {given}")

    def bits(self, turn: Val) -> str:
        """The active lanes of a repeat."""
        x, spot = self._s.x, lanes.Lanes(self._s.x, self._per)
        first = spot.spread(np.dtype(np.int64), x.mul(turn, self._per))
        end = spot.spread(np.dtype(np.int64), self._low)
        before = (first + spot.constant(np.dtype(np.int64), np.arange(self._per))) < end
        type = before.type
        return x.new(f"select i1 {self._counts}, {type} {before.name}, {type} {self._fixed}")


KINDS[Repeats] = _emit
