"""Rings of queues in compiled code: their words, counters and slots."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.isa.meaning.memory.registers import QUEUE_IDS
from pto.isa.meaning.order import queue, ring
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.text import I64
from pto.run.jit.llvm.value import TRUE, Condition
from pto.run.jit.runtime.context import GLOBAL, LOCAL, PLACE, QUEUE_WORDS, Word


def number_of(s: OpContext) -> int:
    number = int(s.case.word("id") or 0)
    unsupported_if(number >= QUEUE_IDS or s.e.compiler.side == "both", "a queue without a place")
    return number


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of elements in a slot of global memory."""

    kind: DType
    start: Number  # bytes from the first slot
    pitch: Number  # elements
    fits: Condition  # into the slot, and into memory


class Ring:
    """One direction of a queue, for the emitted agent."""

    def __init__(self, s: OpContext, *, out: bool, epilogue: int = 0) -> None:
        """`epilogue`: hash of the epilogue of a push; a pop ignores it."""
        self.s = s
        x, side = s.x, s.e.compiler.side
        self.way = ring.TO_VECTOR if (side == "vector") is not out else ring.TO_CUBE
        self.split = int(s.case.word("split") or 0)
        unsupported_if(
            self.split not in (ring.WHOLE, queue.BY_ROWS, queue.BY_COLS), "halves of an odd size"
        )
        place = 8 * QUEUE_WORDS * (2 * number_of(s) + self.way - 1)
        table = x.at(s.e.word(Word.QUEUES), place)
        self.state = x.load("ptr", table, 8)
        self.slots, self.size, self.local, self.local_slots, kind, first, self.room = (
            Number(x, x.load(I64, x.at(table, 8 * n), 8)) for n in range(1, QUEUE_WORDS)
        )
        self.in_global = s.case.profile.sync.queue_slots == "gm"
        kind = kind if out else kind & PLACE
        self.is_plain: Condition = kind == (GLOBAL if self.in_global else LOCAL) | epilogue
        self.first = x.new(f"inttoptr i64 {first.value} to ptr")
        own = x.load(I64, x.at("%ctx", Word.SUB.offset), 8) if side == "vector" else 0
        self.me = Number(x, own)

    def _at(self, word: Number) -> str:
        return self.s.x.at(self.state, (word * 8).value)

    def count(self, which: int, agent: Count = 0) -> Number:
        return Number(self.s.x, self.s.x.load(I64, self._at(agent + Number(self.s.x, which)), 8))

    def add(self, which: int) -> None:
        place = self._at(self.me + which)
        count = Number(self.s.x, self.s.x.load(I64, place, 8))
        self.s.x.store(I64, (count + 1).value, place, 8)

    @property
    def vectors(self) -> range:
        whole = self.s.case.profile.sync.whole_tile_vectors
        return range(whole if self.split == ring.WHOLE else 2)

    def turn(self, number: Number, slots: Number | None = None) -> Number:
        """The slot of an entry; a ring that compiled code knows has some."""
        slots = self.slots if slots is None else slots
        return Number(self.s.x, self.s.x.rest(number.value, slots.value))

    def slot(self, number: Number) -> Number:
        """The address of an entry in the consumer's buffer."""
        return self.local + self.turn(number) * self.size

    def region(self, number: Number) -> str:
        """Where the extents of an entry are."""
        return self._at(self.turn(number) * 2 + ring.REGIONS)

    def matrix(self, number: Number, split: int, kind: DType, rows: Count, cols: Count) -> Matrix:
        """The view of a slot; of this agent's half, where `split` says that there are halves."""
        row, col = queue.part(split, self.me, rows, cols)
        pitch = queue.whole_of(split, self.me, rows, cols)[1]
        start = (row * pitch + col) * kind.itemsize
        end = ((row + rows - 1) * pitch + col + cols) * kind.itemsize
        slot = self.turn(number) * self.size
        return Matrix(kind, slot + start, pitch, (slot + end <= self.room) & (end <= self.size))

    def side(self, matrix: Matrix) -> Access:
        layout = strided.row_major(matrix.kind, matrix.pitch.value)
        return Access(layout, self.s.x.at(self.first, matrix.start.value))

    def has_room(self, number: Number) -> Condition:
        """True if a slot is free for the next push."""
        x, agents = self.s.x, self.vectors if self.way == ring.TO_VECTOR else range(1)
        few: Condition = self.slots <= 2
        half = (self.slots >> 1).value
        period = Number(x, x.new(f"select i1 {few}, i64 {self.slots.value}, i64 {half}"))
        told = number - self.turn(number, period) - self.slots + period
        guard = TRUE
        for agent in agents:
            guard = guard & (self.count(ring.FREED, agent) >= told)
        return (number < self.slots) | guard

    def has_entry(self, number: Number) -> Condition:
        """True if an entry is available for the next pop."""
        guard = TRUE
        producers = range(1) if self.way == ring.TO_VECTOR else self.vectors
        if self.way == ring.TO_VECTOR:
            guard = self.me < len(self.vectors)
        for agent in producers:
            guard = guard & (self.count(ring.PUSHED, agent) > number)
        return guard
