"""Queues in compiled code: rings of counters, and tiles copied into and out of slots.

Slots are in the consumer's buffer or in global memory, as the target defines. Python handles all
other queues, and computes the reason of a wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pto.core.compact import Compact
from pto.core.layout import ND
from pto.core.memory import Space
from pto.core.tile import Role, TileType
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.order import queue, ring
from pto.isa.row import types as t
from pto.isa.row.attributes import Int
from pto.isa.row.traits import Control
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.handle.view import Guarded, wide
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.order.ring import Matrix, Ring, number_of
from pto.run.jit.emit.order.scales import Leaving, leaving
from pto.run.jit.emit.registry import emits
from pto.run.jit.emit.tile import boxes
from pto.run.jit.emit.tile.access import Access, tile_access
from pto.run.jit.emit.tile.move import beside, transfer
from pto.run.jit.llvm.index import Fact
from pto.run.jit.llvm.text import I64, Text, Val, expect
from pto.run.jit.runtime.context import FIRST_SLOT, PEER_BUFFERS, QUEUE_WORDS, QUEUES, Context
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, TileDesc


@emits(ring.INIT_FRONTEND)
def _open(s: OpContext) -> Sequence[Lowered]:
    x, number, table = s.x, number_of(s), s.e.word(QUEUES)
    again, make, done = x.fresh("again"), x.fresh("make"), x.fresh("done")
    stays = _stays(s)
    if stays:
        rows = {w: x.at(table, 8 * QUEUE_WORDS * (2 * number + w - 1)) for w in _ways(s)}
        state = x.load(I64, next(iter(rows.values())), 8)
        x.branch(x.compare("ne", state, 0), again, make)
        x.label(again)
        gm = s.operand("gm_slot_buffer")
        if isinstance(gm, PointerDesc) and s.case.profile.sync.queue_slots == "gm":
            for way, row in rows.items():
                _turn_to(s, gm, row, behind=way == ring.TO_CUBE and len(rows) == 2)
        x.jump(done)
        x.label(make)
    s.e.host_fallback(s.op, "a queue is opened")
    s.e.call(_Opened(number, stays))
    x.jump(done)
    x.label(done)
    return []


def _ways(s: OpContext) -> list[int]:
    mask = s.op.attrs.get("dir_mask")
    value = mask.value if isinstance(mask, Int) else 0
    return [way for way in (ring.TO_VECTOR, ring.TO_CUBE) if value & way]


def _turn_to(s: OpContext, gm: PointerDesc, row: str, *, behind: bool) -> None:
    """Set the slots of this block in global memory; the first agent that opens the queue chooses
    them."""
    x = s.x
    entry = x.at(x.load("ptr", row, 8), 8 * ring.ENTRY)

    def tell() -> None:
        slots = x.mul(x.load(I64, x.at(row, 8), 8), x.load(I64, x.at(row, 16), 8))
        at = x.add(gm.address, slots) if behind else gm.address
        first = x.new(f"ptrtoint ptr {x.at(s.e.base(gm.memory), at)} to i64")
        _store_two(x, entry, first, x.greater(x.sub(s.e.size(gm.memory), at), 0))

    x.when(x.compare("eq", x.load(I64, entry, 8), 0), tell)
    words = x.load(I64, entry, 8), x.load(I64, x.at(entry, 8), 8)
    _store_two(x, x.at(row, 8 * FIRST_SLOT), *words)


def _stays(s: OpContext) -> bool:
    """True if this is the only operation that opens the queue, with constant operands; its slots
    may be at another offset of the same argument."""
    function = next(s.op.around(Control.FUNCTION), s.op)
    alike = [op for op in function.walk() if op.body is ring.INIT_FRONTEND]
    args = [s.e.env.get(id(arg)) for arg in function.regions[0].block.args]
    given = {native.memory for native in args if isinstance(native, PointerDesc)}

    def is_same(native: Lowered | None) -> bool:
        if isinstance(native, PointerDesc):
            return native.memory in given
        return native is None or (isinstance(native, ScalarValue) and isinstance(native.name, int))

    known = (s.operand(o.name) for o in s.op.row.operands) if s.op.row else ()
    return len(alike) == 1 and all(map(is_same, known))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A call of Python that makes an open queue available to compiled code."""

    number: int
    stays: bool
    writes: bool = False

    def __call__(self, context: Context, frame: memoryview) -> None:
        context.open_queue(self.number, self.stays)


_UNLESS = "the slots of the queue have no place that compiled code knows"


def _known(made: Ring, slow: str) -> None:
    """Continue if compiled code knows the slots of a ring; else Python runs the instruction."""
    x, go = made.s.x, made.s.x.fresh("known")
    x.branch(made.is_plain, go, slow)
    x.label(go)


def _entry(type: TileType | None) -> TileType:
    """The type of an entry, which is a plain tile."""
    plain = type is not None and type.compact is Compact.NULL and not type.dtype.is_packed
    return expect(type if plain else None, TileType, "an entry that is no plain tile")


# ---- push


@emits(queue.PUSH_TO)
def _push(s: OpContext) -> Sequence[Lowered]:
    tile = s.need(TileDesc, "tile")
    _entry(tile.type)
    how, x = leaving(s, tile), s.x

    def begin(slow: str) -> coroutine.Wait:
        made = Ring(s, out=True, epilogue=how.usual.epilogue if how.usual else 0)
        into = _into_global if made.in_global else _into_local
        each = (how.usual, how.next)[: 1 + how.twice]
        ways = [(way, *into(s, made, tile, way)) for way in each]
        _known(made, slow)
        number = made.count(ring.TAKEN, made.me)
        usual, *others = (
            x.both(way.ready(s, tile.valid[1]) if way else "true", fits(number))
            for way, fits, _ in ways
        )
        usual = x.both(how.has_usual(s), usual)

        def take() -> None:
            region = x.at(made.state, x.mul(x.add(ring.REGIONS, x.mul(_turn(made, number), 2)), 8))
            whole = (
                tile.valid if made.way == ring.TO_VECTOR else _joined(x, made.split, *tile.valid)
            )
            x.when(_tells_region(made, whole), lambda: _store_two(x, region, *whole))
            is_usual = how.has_usual(s) if how.twice else "true"
            x.when(is_usual, lambda: ways[0][2](number), lambda: ways[-1][2](number))
            made.add(ring.TAKEN)
            made.add(ring.PUSHED)

        fine = x.either(usual, others[0]) if others else usual
        return fine, lambda: made.has_room(number), take

    coroutine.until(s, begin, _UNLESS)
    return []


def _tells_region(made: Ring, whole: tuple[Val, Val]) -> str:
    """True if this agent stores the region of the tile: of two sub-blocks that push one tile, the
    second may have none of it."""
    if made.way == ring.TO_VECTOR or made.split != ring.WHOLE:
        return "true"
    x = made.s.x
    some = x.both(x.compare("ne", whole[0], 0), x.compare("ne", whole[1], 0))
    return x.either(x.compare("eq", made.me, 0), some)


def _store_two(x: Text, place: str, first: Val, second: Val) -> None:
    x.store(I64, first, place, 8)
    x.store(I64, second, x.at(place, 8), 8)


Way = tuple[Callable[[Val], str], Callable[[Val], None]]  # whether an entry fits, and putting it


def _into_global(s: OpContext, made: Ring, tile: TileDesc, how: Leaving | None) -> Way:
    """Store to global memory: the cube the whole tile, a vector sub-block its half."""
    split = ring.WHOLE if made.way == ring.TO_VECTOR else made.split
    rows, cols = tile.valid
    kind = tile.type.dtype if how is None else how.dtype

    def matrix(number: Val) -> Matrix:
        return made.matrix(number, split, kind, rows, cols)

    def put(number: Val) -> None:
        slot = made.side(matrix(number))
        if how is None:
            transfer(s, rows, cols, slot, tile_access(s, tile))
        else:
            how.send(s, tile, slot)

    return lambda number: matrix(number).fits, put


def _into_local(s: OpContext, made: Ring, tile: TileDesc, how: Leaving | None) -> Way:
    x, slot, to_vector = s.x, _slot_type(made, tile, how), made.way == ring.TO_VECTOR
    half = _divided(x, made.split, *tile.valid) if to_vector else tile.valid
    apart = _in_boxes(x, made, tile.type.box if to_vector else slot.box, half)
    has = s.case.profile.buffers["ub" if to_vector else "l1"]

    def fits(number: Val) -> str:
        inside = x.compare("ule", made.slot(number), has - slot.nbytes)
        return x.both(apart, x.both(inside, x.compare("sge", made.size, slot.nbytes)))

    def put(number: Val) -> None:
        if to_vector:
            _to_vectors(s, made, tile, slot, made.slot(number), how)
        else:
            _to_cube(s, made, tile, slot, made.slot(number))

    return fits, put


def _divided(x: Text, split: int, rows: Val, cols: Val) -> tuple[Val, Val]:
    """The half of a region."""
    return (x.over(rows, 1 + (split == queue.BY_ROWS)), x.over(cols, 1 + (split == queue.BY_COLS)))


def _second(split: int, rows: Val, cols: Val) -> tuple[Val, Val]:
    """The start of the second half of a region."""
    return rows if split == queue.BY_ROWS else 0, cols if split == queue.BY_COLS else 0


def _in_boxes(x: Text, made: Ring, box: tuple[int, int], half: tuple[Val, Val]) -> str:
    """True if the second half starts at a box, or lies inside one."""
    fine = "true"
    for first, many, side in zip(_second(made.split, *half), half, box, strict=True):
        into = x.rest(first, side)
        near = x.compare("sle", x.add(into, many), side)
        fine = x.both(fine, x.either(x.compare("eq", into, 0), near))
    return fine


def _turn(made: Ring, number: Val) -> Val:
    return made.s.x.rest(number, made.slots)


def _joined(x: Text, split: int, rows: Val, cols: Val) -> tuple[Val, Val]:
    """Both halves."""
    by_rows, by_cols = split == queue.BY_ROWS, split == queue.BY_COLS
    return x.mul(rows, 1 + by_rows), x.mul(cols, 1 + by_cols)


def _slot_type(made: Ring, tile: TileDesc, how: Leaving | None) -> TileType:
    """The type of a slot: a half for each vector sub-block, or the whole tile for the cube."""
    (high, wide), type = tile.type.shape, tile.type
    if made.way == ring.TO_CUBE:
        high, wide = (
            high * (1 + (made.split == queue.BY_ROWS)),
            wide * (1 + (made.split == queue.BY_COLS)),
        )
        return TileType.of(Role.MAT, type.dtype, high, wide, type.layout)
    high //= 1 + (made.split == queue.BY_ROWS)
    wide //= 1 + (made.split == queue.BY_COLS)
    if how is not None:
        return TileType.of(Role.VEC, how.dtype, high, wide, how.layout)
    return TileType.of(Role.VEC, type.dtype, high, wide, ND)


def _to_vectors(
    s: OpContext, made: Ring, tile: TileDesc, slot: TileType, address: Val, how: Leaving | None
) -> None:
    x, source = s.x, tile_access(s, tile)
    rows, cols = _divided(x, made.split, *tile.valid)
    for sub in made.vectors:
        at = _second(made.split, rows, cols) if sub else (0, 0)
        half = Access(source.field, source.field.at(x, source.pointer, *at))
        target = TileDesc((0, rows, cols), slot)
        to = Access(boxes.field(target), x.at(s.e.base(PEER_BUFFERS[Space.UB, sub]), address))
        if how is None:
            transfer(s, rows, cols, to, half)
        else:
            how.send(s, tile, to)


def _to_cube(s: OpContext, made: Ring, tile: TileDesc, slot: TileType, address: Val) -> None:
    x, whole = s.x, TileDesc((0, *slot.shape), slot)
    begin = Access(boxes.field(whole), x.at(s.e.base(PEER_BUFFERS[Space.L1, 0]), address))
    at = (x.mul(made.me, n) for n in _second(made.split, *tile.valid))
    to = Access(begin.field, begin.field.at(x, begin.pointer, *at))
    transfer(s, *tile.valid, to, tile_access(s, tile))


# ---- pop


@emits(queue.POP_FROM)
def _pop(s: OpContext) -> Sequence[Lowered]:
    result = s.op.results[0].type
    type = _entry(tile_type(result) if isinstance(result, t.TileBuf) else None)
    told = [s.operand(name) for name in ("valid_row", "valid_col")]
    words = [None if word is None else wide(s, word) for word in told]
    region = [own if word is None else word for own, word in zip(type.valid, words, strict=True)]
    form, x = TileDesc(("", "", ""), type), s.x

    def begin(slow: str) -> coroutine.Wait:
        made = Ring(s, out=False)
        _known(made, slow)
        number = made.count(ring.POPPED, made.me)
        if made.in_global:  # the place of an entry in the buffer of the consumer
            at = x.add(made.local, x.mul(x.rest(number, made.local_slots), made.size))
        else:
            at = made.slot(number)

        def take() -> list[Val]:
            pushed = _pushed(made, number) if None in region else (0, 0)
            rows, cols = (p if own is None else own for own, p in zip(region, pushed, strict=True))
            for extent, most in zip((rows, cols), type.shape, strict=True):
                s.fault_unless(x.compare("ule", extent, most))
            if made.in_global:
                _out_of_global(s, made, number, TileDesc((at, rows, cols), type))
            made.add(ring.POPPED)
            return [at, rows, cols]

        fits = s.e.inside(form.memory, at, type.nbytes)
        return fits, lambda: made.has_entry(number), take

    found = coroutine.until(s, begin, _UNLESS)
    fixed = [
        own if isinstance(own, int) else word for own, word in zip(region, found[1:], strict=True)
    ]
    return [form.renamed((found[0], *fixed))]


def _out_of_global(s: OpContext, made: Ring, number: Val, tile: TileDesc) -> None:
    """Read a slot: the cube takes the whole tile, a vector sub-block its half."""
    split = made.split if made.way == ring.TO_VECTOR else ring.WHOLE
    rows, cols = tile.valid
    source, target = made.matrix(number, split, tile.type.dtype, rows, cols), tile_access(s, tile)
    some = s.x.both(s.x.compare("ne", rows, 0), s.x.compare("ne", cols, 0))
    s.fault_unless(s.x.either(source.fits, s.x.negated(some)))
    transfer(s, rows, cols, target, made.side(source))
    beside(s, tile, target)


def _pushed(made: Ring, number: Val) -> tuple[Val, Val]:
    """The region of an entry; for a vector sub-block its half."""
    x = made.s.x
    place = x.at(made.state, x.mul(x.add(ring.REGIONS, x.mul(_turn(made, number), 2)), 8))
    rows, cols = x.load(I64, place, 8), x.load(I64, x.at(place, 8), 8)
    if made.way != ring.TO_VECTOR or made.split == ring.WHOLE:
        return rows, cols
    return (x.over(rows, 2), cols) if made.split == queue.BY_ROWS else (rows, x.over(cols, 2))


# ---- free


@emits(queue.FREE_FROM)
def _free(s: OpContext) -> Sequence[Lowered]:
    made, x, guard = Ring(s, out=False), s.x, Guarded(s)
    guard.leave_unless(Fact(x, made.is_plain), _UNLESS)
    freed, popped = made.count(ring.FREED, made.me), made.count(ring.POPPED, made.me)
    guard.leave_unless(Fact(x, x.compare("slt", freed, popped)), _UNLESS)
    made.add(ring.FREED)
    guard.finish()
    return []
