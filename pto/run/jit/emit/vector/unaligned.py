"""Unaligned streams in compiled code: `Stream` is their state."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.isa.meaning.vector import unaligned
from pto.isa.meaning.vector.ub import dtype_of, element_alignment
from pto.run.jit.border.values import Mask, Native, Place, Reg, Stream, Word, register_type
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile.planes import copy_bytes
from pto.run.jit.emit.vector.load import access, behind, moved_on, wide
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import Val, vector

_HELD = vector(BLOCK_BYTE_SIZE, "i8")
_LOADS = -1  # the count of bytes of a state that loads
_NOTHING = "zeroinitializer"


def _block(s: Spot, address: Val) -> str:
    return s.x.new(f"ashr i64 {address}, {BLOCK_BYTE_SIZE.bit_length() - 1}")


# ---- loads


@emits(unaligned.VLDAS)
def _vldas(s: Spot) -> Sequence[Native]:
    place, address = s.need(Place, "source"), s.need(Place, "source").address
    if s.operand("offset") is not None:
        elements = wide(s, s.need(Word, "offset"))
        address = s.x.add(address, s.x.mul(elements, dtype_of(s.case, "source").itemsize))
    start = s.x.new(f"and i64 {address}, {-BLOCK_BYTE_SIZE}")
    s.fault_unless(s.e.inside(place.memory, start, 1))
    return [Stream((place.memory, _block(s, address), _LOADS, 0, _NOTHING))]


@emits(unaligned.VLDUS)
def _vldus(s: Spot) -> Sequence[Native]:
    place, state, x = s.need(Place, "source"), s.need(Stream, "align"), s.x
    kind = dtype_of(s.case, "result")
    memory, held, count, *_ = state.names
    rest = x.new(f"and i64 {place.address}, {BLOCK_BYTE_SIZE - 1}")
    at_hand = x.both(
        x.compare("eq", count, _LOADS),
        x.both(
            x.compare("eq", held, _block(s, place.address)), x.compare("eq", memory, place.memory)
        ),
    )
    s.fault_unless(x.either(x.compare("eq", rest, 0), at_hand))
    at = access(s, place, 0, VREG_BYTES, element_alignment(s.case, kind.itemsize))
    end = _block(s, x.add(place.address, VREG_BYTES))
    found = Reg((x.load(register_type(kind), at),), kind)
    after = [found, Stream((place.memory, end, _LOADS, 0, _NOTHING))]
    if len(s.op.results) < 3:
        return after
    name = s.case.row.operand_names[-1]
    return [*after, moved_on(s, place, 0 if s.operand(name) is None else behind(s, place, name))]


# ---- stores


@emits(unaligned.INIT_ALIGN)
def _init(s: Spot) -> Sequence[Native]:
    return [Stream((-1, 0, 0, 0, _NOTHING))]


def require_elements(s: Spot, place: Place, size: int) -> None:
    needed = element_alignment(s.case, size)
    good = s.e.inside(place.memory, place.address, 0)
    if needed > 1:
        low = s.x.new(f"and i64 {place.address}, {needed - 1}")
        good = s.x.both(good, s.x.compare("eq", low, 0))
    s.fault_unless(good)


def append(
    s: Spot, memory: Val, start: Val, data: tuple[str, str], nbytes: Val, stays: bool
) -> Stream:
    """`data` (type, name) behind the stream at `start`; blocks that are whole now are written."""
    x, state = s.x, s.need(Stream, "align_in")
    owner, address, count, _, held = state.names
    empty = x.compare("eq", count, 0)
    follows = x.both(x.compare("eq", owner, memory), x.compare("eq", x.add(address, count), start))
    follows = x.both(follows, x.compare("sge", count, 0))
    s.fault_unless(x.either(empty, follows))
    first = _choose(s, empty, start, address)
    end = x.add(start, nbytes)
    s.fault_unless(s.e.inside(memory, first, x.sub(end, first)))
    below = x.new(f"and i64 {end}, {-BLOCK_BYTE_SIZE}")
    whole = _choose(s, x.compare("sgt", below, first), below, first)
    room = x.stack(f"[{VREG_BYTES + 2 * BLOCK_BYTE_SIZE} x i8]")
    x.store(_HELD, held, room, 64)
    x.store(*data, x.at(room, count))
    done = x.sub(whole, first)
    copy_bytes(s.x, s.e.unit.declare, s.pointer(memory, first), room, done)
    rest = x.load(_HELD, x.at(room, done))
    return Stream((memory, whole, x.sub(end, whole), start if stays else end, rest))


def _choose(s: Spot, condition: str, yes: Val, no: Val) -> Val:
    if condition in ("true", "false"):
        return yes if condition == "true" else no
    return s.x.new(f"select i1 {condition}, i64 {yes}, i64 {no}")


@emits(unaligned.VSTUS)
def _vstus(s: Spot) -> Sequence[Native]:
    base, reg, x = s.need(Place, "base"), s.need(Reg, "value"), s.x
    kind, count = reg.dtype, wide(s, s.need(Word, "offset"))
    require_elements(s, base, kind.itemsize)
    s.fault_unless(x.compare("ule", count, kind.lanes))
    nbytes = x.mul(count, kind.itemsize)
    data = register_type(kind), reg.name
    after = append(s, base.memory, base.address, data, nbytes, stays=False)
    return [after, moved_on(s, base, behind(s, base, "offset"))] if s.op.results[1:] else [after]


@emits(unaligned.VSTU)
def _vstu(s: Spot) -> Sequence[Native]:
    base, reg, x = s.need(Place, "base"), s.need(Reg, "value"), s.x
    offset, moves = s.need(Word, "offset_in"), s.case.word("mode") == "POST_UPDATE"
    step = dtype_of(s.case, "base").itemsize
    require_elements(s, base, reg.dtype.itemsize)
    start = x.add(base.address, behind(s, base, "offset_in"))
    data = register_type(reg.dtype), reg.name
    state = append(s, base.memory, start, data, VREG_BYTES, stays=not moves)
    after = x.add(offset.name, VREG_BYTES // step) if moves else offset.name
    return [state, Word((after,), offset.type)]


@emits(unaligned.PSTU)
def _pstu(s: Spot) -> Sequence[Native]:
    base, x = s.need(Place, "base"), s.x
    width = dtype_of(s.case, "base").itemsize
    require_elements(s, base, width)
    count = VREG_BYTES // width
    bits = masks.at_width(x, s.need(Mask, "value"), width)
    image = x.new(f"bitcast <{count} x i1> {bits} to i{count}")
    size = count // 8
    state = append(s, base.memory, base.address, (f"i{count}", image), size, stays=False)
    moved = x.add(base.address, size // width * width)
    return [state, base.renamed((base.memory, moved))]


def flush(s: Spot, state: Stream, memory: Val, named: Val) -> None:
    """Bytes held back go to the place the stream stands at, which must be the one named."""
    x = s.x
    owner, address, count, mark, held = state.names
    empty = x.compare("eq", owner, -1)
    right = x.both(x.compare("eq", owner, memory), x.compare("eq", mark, named))
    right = x.both(right, x.compare("sge", count, 0))
    s.fault_unless(x.either(empty, x.both(right, s.e.inside(memory, address, count))))
    room = x.stack(_HELD)
    x.store(_HELD, held, room, 64)
    nbytes = _choose(s, empty, 0, count)
    copy_bytes(
        s.x, s.e.unit.declare, s.pointer(memory, _choose(s, empty, 0, address)), room, nbytes
    )


@emits(unaligned.VSTAS)
def _vstas(s: Spot) -> Sequence[Native]:
    place = s.need(Place, "destination")
    moved = moved_on(s, place, behind(s, place, "offset"))
    flush(s, s.need(Stream, "value"), place.memory, moved.address)
    return [moved] if s.op.results else []
