"""Queues in compiled code: rings of counters, and tiles copied into and out of slots.

Slots are in the consumer's buffer or in global memory, as the target defines. Python handles all
other queues, and computes the reason of a wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pto.core.compact import Compact
from pto.core.layout import ND
from pto.core.memory import Space
from pto.core.tile import TileType
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.order import queue, ring
from pto.isa.row import types as t
from pto.isa.row.attributes import integer
from pto.isa.row.traits import Control
from pto.run.jit.emit import coroutine
from pto.run.jit.emit.handle.view import Guarded, wide_number
from pto.run.jit.emit.operation import OpContext, emits
from pto.run.jit.emit.order.epilogue import PushConversion, push_conversion
from pto.run.jit.emit.order.ring import Matrix, Ring, number_of
from pto.run.jit.emit.tile import tile_layouts
from pto.run.jit.emit.tile.move import beside, transfer
from pto.run.jit.emit.tile.tile_layouts import tile_access
from pto.run.jit.ir.kinds import expect
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import TRUE, Condition, Val
from pto.run.jit.runtime.context import FIRST_SLOT, PEER_BUFFERS, QUEUE_WORDS, Context, Word
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, TileDesc


@emits(ring.INIT_FRONTEND)
def _open(s: OpContext) -> Sequence[Lowered]:
    x = s.x
    number = number_of(s)
    table = s.e.word(Word.QUEUES)
    again = x.fresh("again")
    make = x.fresh("make")
    done = x.fresh("done")
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
    value = integer(s.op.attrs, "dir_mask") or 0
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

    known = (s.operand(o.name) for o in s.op.row.operands)
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
    how, x = push_conversion(s, tile), s.x

    def begin(slow: str) -> coroutine.Wait:
        made = Ring(s, out=True, epilogue=how.epilogue if how else 0)
        into = _into_global if made.in_global else _into_local
        fits, put = into(s, made, tile, how)
        _known(made, slow)
        number = made.count(ring.TAKEN, made.me)

        def take() -> None:
            region, whole = made.region(number), _valid(s, tile)
            if made.way == ring.TO_CUBE:
                whole = queue.whole_of(made.split, made.me, *whole)
            words = (n.value for n in whole)
            x.when(_tells_region(made, whole), lambda: _store_two(x, region, *words))
            put(number)
            made.add(ring.TAKEN)
            made.add(ring.PUSHED)

        return fits(number), lambda: made.has_room(number), take

    coroutine.until(s, begin, _UNLESS)
    return []


def _valid(s: OpContext, tile: TileDesc) -> Sequence[Number]:
    """The valid region of a tile, as numbers."""
    return [Number(s.x, n) for n in tile.valid]


def _tells_region(made: Ring, whole: Sequence[Count]) -> Condition:
    """True if this agent stores the region of the tile: of two sub-blocks that push one tile, the
    second may have none of it."""
    if made.way == ring.TO_VECTOR or made.split != ring.WHOLE:
        return TRUE
    some = (whole[0] != 0) & (whole[1] != 0)
    return (made.me == 0) | some


def _store_two(x: Text, place: str, first: Val, second: Val) -> None:
    x.store(I64, first, place, 8)
    x.store(I64, second, x.at(place, 8), 8)


Way = tuple[
    Callable[[Number], Condition], Callable[[Number], None]
]  # does an entry fit; putting it


def _into_global(s: OpContext, made: Ring, tile: TileDesc, how: PushConversion | None) -> Way:
    """Store to global memory: the cube the whole tile, a vector sub-block its half."""
    split = ring.WHOLE if made.way == ring.TO_VECTOR else made.split
    kind = tile.type.dtype if how is None else how.dtype

    def matrix(number: Number) -> Matrix:
        return made.matrix(number, split, kind, *_valid(s, tile))

    def put(number: Number) -> None:
        slot = made.side(matrix(number))
        if how is None:
            transfer(s, *tile.valid, slot, tile_access(s, tile))
        else:
            how.send(s, tile, slot)

    return lambda number: matrix(number).fits, put


def _into_local(s: OpContext, made: Ring, tile: TileDesc, how: PushConversion | None) -> Way:
    to_vector, type = made.way == ring.TO_VECTOR, tile.type
    sent = type if how is None else replace(type, dtype=how.dtype)
    slot = queue.slot_type(made.way, made.split, sent, ND if how is None else how.layout)
    valid = _valid(s, tile)
    half = queue.half_of(made.split, 0, *valid) if to_vector else valid
    apart = _in_boxes(s.x, made, type.box if to_vector else slot.box, half)
    has = s.case.profile.buffers["ub" if to_vector else "l1"]

    def fits(number: Number) -> Condition:
        inside = s.x.compare("ule", made.slot(number).value, has - slot.nbytes)
        return apart & inside & (made.size >= slot.nbytes)

    def put(number: Number) -> None:
        if to_vector:
            _to_vectors(s, made, tile, slot, made.slot(number), how)
        else:
            _to_cube(s, made, tile, slot, made.slot(number))

    return fits, put


def _in_boxes(x: Text, made: Ring, box: tuple[int, int], half: Sequence[Count]) -> Condition:
    """True if the second half starts at a box, or lies inside one."""
    guard = TRUE
    for first, many, side in zip(queue.part(made.split, 1, *half), half, box, strict=True):
        into = Number(x, 0) + first % side
        guard = guard & ((into == 0) | (into + many <= side))
    return guard


def _to_vectors(
    s: OpContext,
    made: Ring,
    tile: TileDesc,
    slot: TileType,
    address: Number,
    how: PushConversion | None,
) -> None:
    x, source = s.x, tile_access(s, tile)
    region = queue.half_of(made.split, 0, *_valid(s, tile))
    rows, cols = _values(region)
    for sub in made.vectors:
        at = _values(queue.part(made.split, sub, *region))
        half = Access(source.layout, source.layout.at(x, source.pointer, *at))
        target = TileDesc((0, rows, cols), slot)
        to = Access(
            tile_layouts.tile_layout(target),
            x.at(s.e.base(PEER_BUFFERS[Space.UB, sub]), address.value),
        )
        if how is None:
            transfer(s, rows, cols, to, half)
        else:
            how.send(s, tile, to)


def _to_cube(s: OpContext, made: Ring, tile: TileDesc, slot: TileType, address: Number) -> None:
    x, whole = s.x, TileDesc((0, *slot.shape), slot)
    begin = Access(
        tile_layouts.tile_layout(whole), x.at(s.e.base(PEER_BUFFERS[Space.L1, 0]), address.value)
    )
    at = _values(queue.part(made.split, made.me, *_valid(s, tile)))
    to = Access(begin.layout, begin.layout.at(x, begin.pointer, *at))
    transfer(s, *tile.valid, to, tile_access(s, tile))


def _values(numbers: Sequence[Count]) -> list[Val]:
    return [n.value if isinstance(n, Number) else n for n in numbers]


# ---- pop


@emits(queue.POP_FROM)
def _pop(s: OpContext) -> Sequence[Lowered]:
    result = s.op.results[0].type
    type = _entry(tile_type(result) if isinstance(result, t.TileBuf) else None)
    told = [s.operand(name) for name in ("valid_row", "valid_col")]
    words = [None if word is None else wide_number(s, word) for word in told]
    region = [own if word is None else word for own, word in zip(type.valid, words, strict=True)]
    form, x = TileDesc(("", "", ""), type), s.x

    def begin(slow: str) -> coroutine.Wait:
        made = Ring(s, out=False)
        _known(made, slow)
        number = made.count(ring.POPPED, made.me)
        if made.in_global:  # the place of an entry in the buffer of the consumer
            at = (made.local + made.turn(number, made.local_slots) * made.size).value
        else:
            at = made.slot(number).value

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


def _out_of_global(s: OpContext, made: Ring, number: Number, tile: TileDesc) -> None:
    """Read a slot: the cube takes the whole tile, a vector sub-block its half."""
    split = made.split if made.way == ring.TO_VECTOR else ring.WHOLE
    rows, cols = _valid(s, tile)
    source, target = made.matrix(number, split, tile.type.dtype, rows, cols), tile_access(s, tile)
    s.fault_unless(source.fits | (rows == 0) | (cols == 0))
    transfer(s, *tile.valid, target, made.side(source))
    beside(s, tile, target)


def _pushed(made: Ring, number: Number) -> Sequence[Val]:
    """The region of an entry; for a vector sub-block its half."""
    x, place = made.s.x, made.region(number)
    whole: list[Number] = [Number(x, x.load(I64, x.at(place, at), 8)) for at in (0, 8)]
    return _values(queue.half_of(made.split, 0, *whole) if made.way == ring.TO_VECTOR else whole)


# ---- free


@emits(queue.FREE_FROM)
def _free(s: OpContext) -> Sequence[Lowered]:
    made, guard = Ring(s, out=False), Guarded(s)
    guard.leave_unless(made.is_plain, _UNLESS)
    freed, popped = made.count(ring.FREED, made.me), made.count(ring.POPPED, made.me)
    guard.leave_unless(freed < popped, _UNLESS)
    made.add(ring.FREED)
    guard.finish()
    return []
