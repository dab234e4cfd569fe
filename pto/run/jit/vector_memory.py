"""Registers to and from UB in compiled code, and the predicates that count lanes."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.constants import VREG_BYTES
from pto.isa.meaning.vector import load, predicate, store
from pto.isa.meaning.vector.ub import dtype_of, element_alignment
from pto.run.jit import masks
from pto.run.jit.emit import Spot, emits
from pto.run.jit.text import NotNative, element, vector
from pto.run.jit.values import Mask, Native, Place, Reg, Word, register_type


def access(s: Spot, place: Place, offset: str, nbytes: int, align: int) -> str:
    """The machine address of bytes behind a pointer, checked for bounds and alignment."""
    x = s.x
    address = x.add(place.address, offset)
    inside = s.e.inside(place.memory, address, nbytes)
    if align > 1:
        low = x.new(f"and i64 {address}, {align - 1}")
        inside = x.both(inside, x.compare("eq", low, "0"))
    s.fault_unless(inside)
    return s.pointer(place.memory, address)


def _behind(s: Spot, place: Place, name: str) -> str:
    """An offset in elements of the pointer, in bytes."""
    offset = s.need(Word, name)
    if offset.types[0] != "i64":
        raise NotNative("an offset of another width")
    if place.elem is None:
        raise NotNative("a pointer without elements")
    return s.x.mul(offset.name, str(place.elem.itemsize))


def _vector_alignment(s: Spot, itemsize: int) -> int:
    align = s.case.profile.alignment.vector
    return align if align > 1 else element_alignment(s.case, itemsize)


@emits(load.VLDS)
def _vlds(s: Spot) -> Sequence[Native]:
    if (s.case.word("dist") or "NORM") != "NORM":
        raise NotNative("a distribution")
    kind, place = dtype_of(s.case, "result"), s.need(Place, "source")
    offset = _behind(s, place, "offset")
    update = len(s.op.results) == 2
    at = access(
        s, place, "0" if update else offset, VREG_BYTES, _vector_alignment(s, kind.itemsize)
    )
    reg = Reg((s.x.load(register_type(kind), at),), kind)
    if not update:
        return [reg]
    return [reg, place.renamed((place.memory, s.x.add(place.address, offset)))]


@emits(store.VSTS)
def _vsts(s: Spot) -> Sequence[Native]:
    reg = s.need(Reg, "value")
    if not (s.case.word("dist") or "NORM_B32").startswith("NORM"):
        raise NotNative("a distribution")
    place, mask = s.need(Place, "destination"), s.need(Mask, "mask")
    offset = _behind(s, place, "offset")
    update = bool(s.op.results)
    align = _vector_alignment(s, reg.dtype.itemsize)
    at = access(s, place, "0" if update else offset, VREG_BYTES, align)
    masked_store(s, reg, at, masks.at_width(s.x, mask, reg.dtype.itemsize))
    return [place.renamed((place.memory, s.x.add(place.address, offset)))] if update else []


def masked_store(s: Spot, reg: Reg, pointer: str, bits: str) -> None:
    """Only the lanes whose bit is on."""
    lanes, item = reg.dtype.lanes, element(reg.dtype)
    type = register_type(reg.dtype)
    suffix = {"half": "f16", "float": "f32", "double": "f64"}.get(item, item)
    name = f"@llvm.masked.store.v{lanes}{suffix}.p0"
    s.e.unit.declare(f"declare void {name}({type}, ptr, i32, {vector(lanes, 'i1')})")
    s.x.do(
        f"call void {name}({type} {reg.name}, ptr {pointer}, i32 1, {vector(lanes, 'i1')} {bits})"
    )


def first_lanes(s: Spot, width: int, count: str) -> Mask:
    """The first `count` lanes of `width` bytes; the count is not negative."""
    lanes = VREG_BYTES // width
    most = s.x.smaller(count, str(lanes))
    small = s.x.new(f"trunc i64 {most} to i32")
    type = vector(lanes, "i32")
    one = s.x.new(f"insertelement {type} poison, i32 {small}, i64 0")
    all = s.x.new(f"shufflevector {type} {one}, {type} poison, {type} zeroinitializer")
    numbers = ", ".join(f"i32 {n}" for n in range(lanes))
    return Mask((s.x.new(f"icmp ult {type} <{numbers}>, {all}"),), width)


def _tail(s: Spot) -> Sequence[Native]:
    """The first `scalar` lanes, and how many are left for the next register."""
    count = s.need(Word, "scalar")
    kind, x = count.types[0], s.x
    width = next(w for w in WIDTHS if predicate.tail(w) is s.body)
    lanes = VREG_BYTES // width
    signed = count.name if kind == "i64" else x.new(f"sext {kind} {count.name} to i64")
    positive = x.new(f"call i64 @llvm.smax.i64(i64 {signed}, i64 0)")
    left = x.sub(positive, str(lanes))
    rest = x.new(f"call i64 @llvm.smax.i64(i64 {left}, i64 0)")
    narrow = rest if kind == "i64" else x.new(f"trunc i64 {rest} to {kind}")
    return [first_lanes(s, width, positive), Word((narrow,), count.type)]


def _pattern(s: Spot) -> Sequence[Native]:
    width = next(w for w in WIDTHS if predicate.pattern(w) is s.body)
    lanes = VREG_BYTES // width
    chosen = set(range(lanes)[predicate.pattern_lanes(s.case.word("pattern") or "", lanes)])
    if len(chosen) == lanes:
        return [Mask(("splat (i1 true)",), width)]
    bits = ", ".join(f"i1 {int(n in chosen)}" for n in range(lanes))
    return [Mask((f"<{bits}>",), width)]


WIDTHS = (1, 2, 4)
emits(*(predicate.tail(w) for w in WIDTHS))(_tail)
emits(*(predicate.pattern(w) for w in WIDTHS))(_pattern)
