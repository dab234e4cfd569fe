"""Rings of queues in compiled code: their words, counters and slots."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.isa.meaning.memory.registers import QUEUE_IDS
from pto.isa.meaning.order import queue, ring
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import boxes
from pto.run.jit.emit.tile.access import Access
from pto.run.jit.llvm.text import I64, Val, unsupported_if
from pto.run.jit.runtime.context import GLOBAL, LOCAL, PLACE, QUEUE_WORDS, QUEUES, SUB


def number_of(s: OpContext) -> int:
    number = int(s.case.word("id") or 0)
    unsupported_if(number >= QUEUE_IDS or s.e.compiler.side == "both", "a queue without a place")
    return number


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of elements in a slot of global memory."""

    kind: DType
    start: Val  # bytes from the first slot
    pitch: Val  # elements
    fits: str  # into the slot, and into memory


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
        table = x.at(s.e.word(QUEUES), place)
        self.state = x.load("ptr", table, 8)
        self.slots, self.size, self.local, self.local_slots, kind, first, self.room = (
            x.load(I64, x.at(table, 8 * n), 8) for n in range(1, QUEUE_WORDS)
        )
        self.in_global = s.case.profile.sync.queue_slots == "gm"
        kind = kind if out else x.new(f"and i64 {kind}, {PLACE}")
        self.is_plain = x.compare("eq", kind, (GLOBAL if self.in_global else LOCAL) | epilogue)
        self.first = x.new(f"inttoptr i64 {first} to ptr")
        self.me: Val = x.load(I64, x.at("%ctx", 8 * SUB), 8) if side == "vector" else 0

    def place(self, which: int, agent: Val) -> str:
        return self.s.x.at(self.state, self.s.x.mul(self.s.x.add(which, agent), 8))

    def count(self, which: int, agent: Val) -> Val:
        return self.s.x.load(I64, self.place(which, agent), 8)

    def add(self, which: int) -> None:
        x, place = self.s.x, self.place(which, self.me)
        x.store(I64, x.add(x.load(I64, place, 8), 1), place, 8)

    @property
    def vectors(self) -> range:
        whole = self.s.case.profile.sync.whole_tile_vectors
        return range(whole if self.split == ring.WHOLE else 2)

    def slot(self, number: Val) -> Val:
        """The address of an entry in the consumer's buffer."""
        x = self.s.x
        return x.add(self.local, x.mul(x.rest(number, self.slots), self.size))

    def matrix(self, number: Val, split: int, kind: DType, rows: Val, cols: Val) -> Matrix:
        """The view of a slot; of this agent's half, where `split` says that there are halves."""
        x, size = self.s.x, kind.itemsize
        row = x.mul(self.me, rows) if split == queue.BY_ROWS else 0
        col = x.mul(self.me, cols) if split == queue.BY_COLS else 0
        pitch = x.mul(cols, 2) if split == queue.BY_COLS else cols
        start = x.mul(x.add(x.mul(row, pitch), col), size)
        last = x.mul(x.sub(x.add(row, rows), 1), pitch)
        end = x.mul(x.add(last, x.add(col, cols)), size)
        slot = x.mul(x.rest(number, self.slots), self.size)
        inside = x.compare("sle", x.add(slot, end), self.room)
        fits = x.both(inside, x.compare("sle", end, self.size))
        return Matrix(kind, x.add(slot, start), pitch, fits)

    def side(self, matrix: Matrix) -> Access:
        field = boxes.plain(matrix.kind, matrix.pitch)
        return Access(field, self.s.x.at(self.first, matrix.start))

    def has_room(self, number: Val) -> str:
        """True if a slot is free for the next push."""
        x, agents = self.s.x, self.vectors if self.way == ring.TO_VECTOR else range(1)
        half = x.new(f"lshr i64 {self.slots}, 1")
        few = x.compare("ule", self.slots, 2)
        period = x.new(f"select i1 {few}, i64 {self.slots}, i64 {half}")
        told = x.add(x.sub(x.sub(number, x.rest(number, period)), self.slots), period)
        fine = "true"
        for agent in agents:
            fine = x.both(fine, x.compare("sge", self.count(ring.FREED, agent), told))
        return x.either(x.compare("slt", number, self.slots), fine)

    def has_entry(self, number: Val) -> str:
        """True if an entry is available for the next pop."""
        x, fine = self.s.x, "true"
        producers = range(1) if self.way == ring.TO_VECTOR else self.vectors
        if self.way == ring.TO_VECTOR:
            fine = x.compare("ult", self.me, len(self.vectors))
        for agent in producers:
            fine = x.both(fine, x.compare("sgt", self.count(ring.PUSHED, agent), number))
        return fine
