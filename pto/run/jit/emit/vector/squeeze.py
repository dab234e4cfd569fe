"""Squeezes in compiled code, and the stores that go by their count. SQZN and AR are registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning.memory import registers
from pto.isa.meaning.vector import rearrange, unaligned
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.border import context
from pto.run.jit.border.state import register_offset
from pto.run.jit.border.values import Mask, Native, Place, Reg, Stream, Word, register_type
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile.planes import loop
from pto.run.jit.emit.vector.load import access, as_items, as_register, wide
from pto.run.jit.emit.vector.unaligned import append, flush, require_elements
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import Text, Val, vector


def _cell(s: Spot, name: str) -> str:
    """Where a register of the core lies."""
    return s.x.at(s.e.word(context.REGISTERS), register_offset(name))


def _lane_by_lane(s: Spot, name: str, kind: DType, source: str, mask: Mask) -> str:
    """Calls a loop over the lanes, which gives a register and sets the bytes of active lanes."""
    x, count, width = s.x, kind.lanes, 8 * kind.itemsize
    type, bytes_type = vector(count, f"i{width}"), vector(count, "i8")
    bits = masks.at_width(x, mask, kind.itemsize)
    active = x.new(f"zext {masks.type_of(kind.itemsize)} {bits} to {bytes_type}")
    rooms = [x.stack(t) for t in (f"[{count + 1} x i{width}]", type, bytes_type)]
    x.store(type, "zeroinitializer", rooms[0], 64)
    x.store(type, source, rooms[1], 64)
    x.store(bytes_type, active, rooms[2], 64)
    make = {"squeeze": _squeeze, "count": _count}[name]
    call = s.e.unit.shared(f"{name} {width}", lambda found: make(found, width, count))
    total = x.new(f"call i64 {call}({', '.join(f'ptr {r}' for r in rooms)})")
    x.store("i64", x.mul(total, kind.itemsize), _cell(s, registers.SQZN), 8)
    return x.load(type, rooms[0], 64)


Lane = Callable[[Text, Val, Val], None]  # text, number of the lane, active lanes before it


def _squeeze(name: str, width: int, count: int) -> str:
    """Each lane goes to where the next kept one belongs; one that is not kept is overwritten."""

    def lane(x: Text, i: Val, kept: Val) -> None:
        value = x.load(f"i{width}", x.new(f"getelementptr i{width}, ptr %from, i64 {i}"))
        x.store(f"i{width}", value, x.new(f"getelementptr i{width}, ptr %out, i64 {kept}"))

    def end(x: Text, i: Val, kept: Val) -> None:
        x.store(f"i{width}", 0, x.new(f"getelementptr i{width}, ptr %out, i64 {kept}"))

    return _counting(name, count, lane, end)


def _count(name: str, width: int, count: int) -> str:
    def lane(x: Text, i: Val, kept: Val) -> None:
        value = kept if width == 64 else x.new(f"trunc i64 {kept} to i{width}")
        x.store(f"i{width}", value, x.new(f"getelementptr i{width}, ptr %out, i64 {i}"))

    return _counting(name, count, lane, lambda x, i, kept: None)


def _counting(name: str, count: int, lane: Lane, end: Lane) -> str:
    x = Text()
    total = x.stack("i64")
    x.store("i64", 0, total, 8)

    def one(i: Val) -> None:
        kept = x.load("i64", total, 8)
        lane(x, i, kept)
        on = x.load("i8", x.new(f"getelementptr i8, ptr %active, i64 {i}"))
        x.store("i64", x.add(kept, x.new(f"zext i8 {on} to i64")), total, 8)

    loop(x, count, 1, one)
    kept = x.load("i64", total, 8)
    end(x, count, kept)
    x.do(f"ret i64 {kept}")
    return x.function(f"define internal i64 {name}(ptr %out, ptr %from, ptr %active) noinline")


@emits(rearrange.VSQZ)
def _vsqz(s: Spot) -> Sequence[Native]:
    reg, mask = s.need(Reg, "input"), s.need(Mask, "mask")
    width = 8 * reg.dtype.itemsize
    found = _lane_by_lane(s, "squeeze", reg.dtype, as_items(s, reg, width), mask)
    return [as_register(s, reg.dtype, f"i{width}", found)]


@emits(rearrange.VUSQZ)
def _vusqz(s: Spot) -> Sequence[Native]:
    kind = dtype_of(s.case, "result")
    found = _lane_by_lane(s, "count", kind, "zeroinitializer", s.need(Mask, "mask"))
    return [as_register(s, kind, f"i{8 * kind.itemsize}", found)]


@emits(unaligned.SPRCLR)
def _sprclr(s: Spot) -> Sequence[Native]:
    s.x.store("i64", 0, _cell(s, registers.AR), 8)
    return []


@emits(unaligned.SPRSTI, unaligned.SPRSTS)
def _store_register(s: Spot) -> Sequence[Native]:
    """AR as a word; the offset counts words, or bytes."""
    place, count = s.need(Place, "destination"), wide(s, s.need(Word, "offset"))
    offset = s.x.mul(count, 4 if s.body is unaligned.SPRSTI else 1)
    update = bool(s.op.results)
    at = access(s, place, 0 if update else offset, 4, 4)
    s.x.store("i32", s.x.load("i32", _cell(s, registers.AR), 8), at)  # its low bytes come first
    return [place.renamed((place.memory, s.x.add(place.address, offset)))] if update else []


@emits(unaligned.VSTUR)
def _vstur(s: Spot) -> Sequence[Native]:
    base, reg, x = s.need(Place, "base"), s.need(Reg, "value"), s.x
    require_elements(s, base, reg.dtype.itemsize)
    count = x.load("i64", _cell(s, registers.SQZN), 8)
    s.fault_unless(x.compare("ule", count, VREG_BYTES))  # -1: nothing was squeezed
    offset, moves = x.load("i64", _cell(s, registers.AR), 8), s.case.word("mode") == "POST_UPDATE"
    data = register_type(reg.dtype), reg.name
    after = append(s, base.memory, x.add(base.address, offset), data, count, stays=not moves)
    if moves:
        x.store("i64", x.add(offset, count), _cell(s, registers.AR), 8)
    return [after]


@emits(unaligned.VSTAR)
def _vstar(s: Spot) -> Sequence[Native]:
    place = s.need(Place, "destination")
    offset = s.x.load("i64", _cell(s, registers.AR), 8)
    flush(s, s.need(Stream, "value"), place.memory, s.x.add(place.address, offset))
    return []
