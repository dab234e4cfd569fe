"""Queues with slots in local buffers, in compiled code: rings of counts, tiles copied into slots.

What a ring cannot give at once, and every other queue, is Python's: it says what an agent waits
for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pto.core.compact import Compact
from pto.core.layout import ND
from pto.core.tile import Role, TileType
from pto.isa.meaning.handle import config
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.order import queue, ring
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.border.context import PEERS, QUEUE_IDS, QUEUE_WORDS, QUEUES, SUB, Context
from pto.run.jit.border.values import Native, TilePlace, Word
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.handle.view import number as index
from pto.run.jit.emit.handle.view import placed
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes
from pto.run.jit.emit.tile.move import Side, tile_side, transfer
from pto.run.jit.llvm.text import I64, NotNative, Val

_L1: Final = 2  # the cube's place among the peers
_SETS_SCALES: Final = (config.QUANT_SCALAR, config.QUANT_VECTOR)


@emits(ring.RESERVE, cheap=True)
def _reserve(s: Spot) -> Sequence[Native]:
    type = s.op.results[0].type
    if not isinstance(type, t.Scalar):
        raise NotNative("a place that is no number")
    return [Word((placed(s),), type)]


@emits(ring.INIT_FRONTEND)
def _open(s: Spot) -> Sequence[Native]:
    number = _number(s)

    def told(context: Context, frame: memoryview) -> None:
        context.open_queue(number)

    s.e.word(QUEUES)
    s.e.run_outside(s.op)
    s.e.call(told)
    return []


def _number(s: Spot) -> int:
    number = int(s.case.word("id") or 0)
    if number >= QUEUE_IDS or s.e.compiler.side == "both":
        raise NotNative("a queue without a place")
    return number


class _Ring:
    """One direction of a queue, as the agent at hand sees it."""

    def __init__(self, s: Spot, *, out: bool) -> None:
        self.s = s
        x, side = s.x, s.e.compiler.side
        self.way = ring.TO_VECTOR if (side == "vector") is not out else ring.TO_CUBE
        self.split = int(s.case.word("split") or 0)
        place = 8 * QUEUE_WORDS * (2 * _number(s) + self.way - 1)
        table = x.at(s.e.word(QUEUES), place)
        self.state = x.load("ptr", table, 8)
        self.slots, self.size, self.local, plain = (
            x.load(I64, x.at(table, 8 * n), 8) for n in range(1, QUEUE_WORDS)
        )
        self.is_plain = x.compare("ne", plain, 0)
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

    def has_room(self, number: Val) -> str:
        """`Ring.room`."""
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
        """`Ring.ready`."""
        x, fine = self.s.x, "true"
        producers = range(1) if self.way == ring.TO_VECTOR else self.vectors
        if self.way == ring.TO_VECTOR:
            fine = x.compare("ult", self.me, len(self.vectors))
        for agent in producers:
            fine = x.both(fine, x.compare("sgt", self.count(ring.PUSHED, agent), number))
        return fine


def _try(
    s: Spot,
    made: _Ring,
    conditions: tuple[Callable[[], str], Callable[[], str]],
    quick: Callable[[], list[Val]],
    again: str,
) -> list[Val]:
    """`quick` where a plain ring gives it at once, the words of its result. What the first of the
    conditions does not hold for is Python's; for the second one waits, and looks from `again` on.
    """
    x = s.x
    words = "look", "fits", "quick", "slow", "stuck", "done"
    look, fits, yes, no, stuck, done = (x.fresh(word) for word in words)
    x.branch(made.is_plain, look, no)
    x.label(look)
    x.branch(conditions[0](), fits, no)
    x.label(fits)
    x.branch(conditions[1](), yes, stuck)
    x.label(stuck)
    coroutine.nap(x, s.e.unit.site(s.op), no, again)
    x.label(no)
    slow = [name for native in s.e.run_outside(s.op, again=again) for name in native.names]
    left = x.here
    x.jump(done)
    x.label(yes)
    fast = quick()
    coroutine.passed(x)
    right = x.here
    x.jump(done)
    x.label(done)
    pairs = zip(slow, fast, strict=True)
    return [x.phi(I64, [(a, left), (b, right)]) for a, b in pairs]


def _begin(s: Spot) -> str:
    """Where a wait is looked at."""
    again = s.x.fresh("again")
    s.x.jump(again)
    s.x.label(again)
    return again


# ---- push


@emits(queue.PUSH_TO)
def _push(s: Spot) -> Sequence[Native]:
    tile = s.need(TilePlace, "tile")
    rows, cols = tile.valid
    if not isinstance(rows, int) or not isinstance(cols, int) or not rows or not cols:
        raise NotNative("a region known only when it runs")
    if tile.pitch is not None or tile.type.compact is not Compact.NULL or _may_scale(s, tile):
        raise NotNative("a tile that is not plain")
    again = _begin(s)
    made = _Ring(s, out=True)
    if made.split not in (ring.WHOLE, queue.BY_ROWS, queue.BY_COLS):
        raise NotNative("halves of an odd size")
    x = s.x
    number: list[Val] = [0]
    parts = _to_vectors if made.way == ring.TO_VECTOR else _to_cube
    slot = _slot_type(made, tile)
    has = s.case.profile.buffers["ub" if made.way == ring.TO_VECTOR else "l1"]

    def fits() -> str:
        number[0] = made.count(ring.TAKEN, made.me)
        inside = x.compare("ule", made.slot(number[0]), has - slot.nbytes)
        return x.both(inside, x.compare("sge", made.size, slot.nbytes))

    def condition() -> str:
        return made.has_room(number[0])

    def quick() -> list[Val]:
        region = x.at(made.state, x.mul(x.add(ring.REGIONS, x.mul(_turn(made, number[0]), 2)), 8))
        whole = (rows, cols) if made.way == ring.TO_VECTOR else _joined(made.split, rows, cols)
        x.store(I64, whole[0], region, 8)
        x.store(I64, whole[1], x.at(region, 8), 8)
        parts(s, made, tile, slot, made.slot(number[0]))
        made.add(ring.TAKEN)
        made.add(ring.PUSHED)
        return []

    _try(s, made, (fits, condition), quick, again)
    return []


def _turn(made: _Ring, number: Val) -> Val:
    return made.s.x.rest(number, made.slots)


def _joined(split: int, rows: int, cols: int) -> tuple[int, int]:
    return rows * (1 + (split == queue.BY_ROWS)), cols * (1 + (split == queue.BY_COLS))


def _may_scale(s: Spot, tile: TilePlace) -> bool:
    """Whether an accumulator may be scaled on its way (`accumulator.outgoing`)."""
    function = next(s.op.around(Control.FUNCTION), s.op)
    return tile.type.role is Role.ACC and any(op.body in _SETS_SCALES for op in function.walk())


def _slot_type(made: _Ring, tile: TilePlace) -> TileType:
    """What lies in a slot: a half for each vector sub-block, or all of it for the cube."""
    (high, wide), type = tile.type.shape, tile.type
    if made.way == ring.TO_CUBE:
        return TileType.of(Role.MAT, type.dtype, *_joined(made.split, high, wide), type.layout)
    high //= 1 + (made.split == queue.BY_ROWS)
    wide //= 1 + (made.split == queue.BY_COLS)
    return TileType.of(Role.VEC, type.dtype, high, wide, ND)


def _peer(s: Spot, number: int) -> str:
    return s.x.load("ptr", s.x.at(s.e.word(PEERS), 8 * number), 8)


def _moved(
    s: Spot, side: Side, tile: TilePlace, at: tuple[int, int], size: tuple[int, int]
) -> tuple[int, Side]:
    """A side that begins at another element: bytes to it, and what it is."""
    skipped: Val = 0
    axes = side.field.rows, side.field.cols
    for first, many, box, along in zip(at, size, tile.type.box, axes, strict=True):
        if first % box and first % box + many > box:
            raise NotNative("a half across boxes")
        skipped = s.x.add(skipped, boxes.position(s.x, along, first))
    if not isinstance(skipped, int):
        raise NotNative("a half whose place is not known")
    nbytes = skipped * tile.type.itemsize
    return nbytes, Side(side.field, s.x.at(side.pointer, nbytes), side.arguments)


def _to_vectors(s: Spot, made: _Ring, tile: TilePlace, slot: TileType, address: Val) -> None:
    rows, cols = (int(n) for n in tile.valid)
    rows //= 1 + (made.split == queue.BY_ROWS)
    cols //= 1 + (made.split == queue.BY_COLS)
    source = tile_side(s, tile)
    for sub in made.vectors:
        part = queue.part(made.split, sub, rows, cols)
        _, half = _moved(s, source, tile, part, (rows, cols))
        target = TilePlace((0, rows, cols), slot)
        to = Side(boxes.field(target), s.x.at(_peer(s, sub), address))
        transfer(s, rows, cols, to, half)


def _to_cube(s: Spot, made: _Ring, tile: TilePlace, slot: TileType, address: Val) -> None:
    rows, cols = (int(n) for n in tile.valid)
    whole = TilePlace((0, *slot.shape), slot)
    begin = Side(boxes.field(whole), s.x.at(_peer(s, _L1), address))
    part = queue.part(made.split, 1, rows, cols)
    skipped, _ = _moved(s, begin, whole, part, (rows, cols))
    to = Side(begin.field, s.x.at(begin.pointer, s.x.mul(made.me, skipped)))
    transfer(s, rows, cols, to, tile_side(s, tile))


# ---- pop


@emits(queue.POP_FROM)
def _pop(s: Spot) -> Sequence[Native]:
    result = s.op.results[0].type
    if not isinstance(result, t.TileBuf) or tile_type(result).compact is not Compact.NULL:
        raise NotNative("an entry in global memory, or a compact tile")
    type = tile_type(result)
    told = [s.operand(name) for name in s.case.row.operand_names]
    words = [None if word is None else index(word) for word in told]
    region = [own if word is None else word for own, word in zip(type.valid, words, strict=True)]
    again = _begin(s)
    made = _Ring(s, out=False)
    number: list[Val] = [0]
    form = TilePlace(("", "", ""), type)

    def fits() -> str:
        number[0] = made.count(ring.POPPED, made.me)
        return s.e.inside(form.memory, made.slot(number[0]), type.nbytes)

    def condition() -> str:
        return made.has_entry(number[0])

    def quick() -> list[Val]:
        pushed = _pushed(made, number[0]) if None in region else (0, 0)
        rows, cols = (p if own is None else own for own, p in zip(region, pushed, strict=True))
        for extent, most in zip((rows, cols), type.shape, strict=True):
            s.fault_unless(s.x.compare("ule", extent, most))
        made.add(ring.POPPED)
        return [made.slot(number[0]), rows, cols]

    found = _try(s, made, (fits, condition), quick, again)
    fixed = [
        own if isinstance(own, int) else word for own, word in zip(region, found[1:], strict=True)
    ]
    return [form.renamed((found[0], *fixed))]


def _pushed(made: _Ring, number: Val) -> tuple[Val, Val]:
    """`queue._sent`: what lies in an entry; for a vector sub-block its half."""
    x = made.s.x
    place = x.at(made.state, x.mul(x.add(ring.REGIONS, x.mul(_turn(made, number), 2)), 8))
    rows, cols = x.load(I64, place, 8), x.load(I64, x.at(place, 8), 8)
    if made.way != ring.TO_VECTOR or made.split == ring.WHOLE:
        return rows, cols
    first = x.new(f"zext i1 {x.compare('eq', made.me, 0)} to i64")
    more = first if queue.is_odd(made.split) else 0

    def half(extent: Val) -> Val:
        return x.over(x.add(extent, more), 2)

    return (half(rows), cols) if queue.by_rows(made.split) else (rows, half(cols))


# ---- free


@emits(queue.FREE_FROM)
def _free(s: Spot) -> Sequence[Native]:
    made, x = _Ring(s, out=False), s.x
    look, yes, no, done = (x.fresh(word) for word in ("look", "quick", "slow", "done"))
    x.branch(made.is_plain, look, no)
    x.label(look)
    freed, popped = made.count(ring.FREED, made.me), made.count(ring.POPPED, made.me)
    x.branch(x.compare("slt", freed, popped), yes, no)
    x.label(no)
    s.e.run_outside(s.op)
    x.jump(done)
    x.label(yes)
    made.add(ring.FREED)
    x.jump(done)
    x.label(done)
    return []
