"""Loads of registers in compiled code. How an image is built is derived from the meaning itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT, VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning.vector import load, unaligned
from pto.isa.meaning.vector.masks import WIDEST
from pto.isa.meaning.vector.ub import dtype_of, element_alignment
from pto.run.jit.border.values import Mask, Native, Place, Reg, Word, register_type
from pto.run.jit.emit.handle.view import near
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.items import gathered
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import shuffles
from pto.run.jit.llvm.shuffles import Picks
from pto.run.jit.llvm.text import NotNative, Val, vector

_BYTES = vector(VREG_BYTES, "i8")
_BLOCK = vector(BLOCK_BYTE_SIZE, "i8")


def access(s: Spot, place: Place, offset: Val, nbytes: int, align: int) -> str:
    """The machine address of bytes behind a pointer, checked for bounds and alignment."""
    x = s.x
    address = x.add(place.address, offset)
    inside = s.e.inside(place.memory, address, nbytes)
    if align > 1:
        low = x.new(f"and i64 {address}, {align - 1}")
        inside = x.both(inside, x.compare("eq", low, 0))
    s.fault_unless(inside)
    return s.pointer(place.memory, address)


def behind(s: Spot, place: Place, name: str) -> Val:
    """An offset in elements of the pointer, in bytes."""
    if place.elem is None:
        raise NotNative("a pointer without elements")
    count = wide(s, s.need(Word, name))
    s.fault_unless(near(s.x, count))
    return s.x.mul(count, place.elem.itemsize)


def moved_on(s: Spot, place: Place, nbytes: Val) -> Place:
    """A base after the access, in the post-update form."""
    return Place((place.memory, s.x.add(place.address, nbytes)), place.elem)


def wide(s: Spot, word: Word, signed: bool = True) -> Val:
    """A scalar as 64 bits."""
    kind = word.types[0]
    if kind == "i64":
        return word.name
    if kind not in ("i8", "i16", "i32"):
        raise NotNative("a scalar that is no integer")
    return s.x.new(f"{'sext' if signed else 'zext'} {kind} {word.name} to i64")


def vector_alignment(s: Spot, itemsize: int) -> int:
    align = s.case.profile.alignment.vector
    return align if align > 1 else element_alignment(s.case, itemsize)


def as_register(s: Spot, kind: DType, item: str, name: str) -> Reg:
    """256 bytes held as lanes of `item`, as a register."""
    lanes = 8 * VREG_BYTES // int(item[1:])
    have, want = vector(lanes, item), register_type(kind)
    return Reg((name if have == want else s.x.new(f"bitcast {have} {name} to {want}"),), kind)


def as_items(s: Spot, reg: Reg, bits: int) -> str:
    """A register as lanes of so many bits."""
    have, want = register_type(reg.dtype), vector(8 * VREG_BYTES // bits, f"i{bits}")
    return reg.name if have == want else s.x.new(f"bitcast {have} {reg.name} to {want}")


def picked(s: Spot, bits: int, read: int, at: str, picks: Picks) -> str:
    """A register's lanes of the `read` items at a place; never a byte beyond them is touched."""
    item, fill = f"i{bits}", 8 * VREG_BYTES // bits
    size = bits // 8
    wanted = np.asarray(picks)
    if read == 1:
        return shuffles.spread(s.x, item, fill, s.x.load(item, at))
    if read <= fill:
        return shuffles.shuffle(s.x, item, read, s.x.load(vector(read, item), at), wanted)
    starts = [*range(0, read - fill, fill), read - fill]
    loaded = [s.x.load(vector(fill, item), s.x.at(at, n * size)) for n in starts]
    parts: list[str] = []
    pairs = len(starts) // 2
    for n, part in enumerate(np.split(wanted, pairs)):
        low, high = starts[2 * n], starts[2 * n + 1]
        places = np.where(part < low + fill, part - low, part - high + fill)
        parts.append(shuffles.shuffle(s.x, item, fill, loaded[2 * n], places, loaded[2 * n + 1]))
    return shuffles.joined(s.x, item, fill // pairs, parts)


@emits(load.VLDS)
def _vlds(s: Spot) -> Sequence[Native]:
    kind, place = dtype_of(s.case, "result"), s.need(Place, "source")
    offset = behind(s, place, "offset")
    update = len(s.op.results) == 2
    reg = _distributed(s, kind, place, 0 if update else offset)
    if not update:
        return [reg]
    return [reg, moved_on(s, place, offset)]


def _distributed(s: Spot, kind: DType, place: Place, offset: Val) -> Reg:
    dist = s.case.word("dist") or "NORM"
    if dist == "NORM":
        at = access(s, place, offset, VREG_BYTES, vector_alignment(s, kind.itemsize))
        return Reg((s.x.load(register_type(kind), at),), kind)
    bits, read, build = load.DISTS[dist]
    at = access(s, place, offset, read * bits // 8, element_alignment(s.case, bits // 8))
    picks = build(np.arange(1, read + 1)) - 1  # what a distribution leaves 0 is no item
    return as_register(s, kind, f"i{bits}", picked(s, bits, read, at, picks))


@emits(load.VLDSX2)
def _vldsx2(s: Spot) -> Sequence[Native]:
    kind, place = dtype_of(s.case, "low"), s.need(Place, "source")
    dist = s.case.word("dist") or ""
    blocks = dist == "BDINTLV"
    bits = 8 * kind.itemsize if blocks else int(dist.removeprefix("DINTLV_B"))
    count = 2 * 8 * VREG_BYTES // bits
    offset, update = behind(s, place, "offset"), len(s.op.results) == 3
    align = element_alignment(s.case, bits // 8)
    at = access(s, place, 0 if update else offset, 2 * VREG_BYTES, align)
    order = np.arange(count).reshape(VLANE_COUNT, 2, -1) if blocks else np.arange(count)
    halves = (order[:, 0], order[:, 1]) if blocks else (order[::2], order[1::2])
    item, fill = f"i{bits}", count // 2
    low, high = (s.x.load(vector(fill, item), s.x.at(at, n * VREG_BYTES)) for n in range(2))
    found = [
        as_register(s, kind, item, shuffles.shuffle(s.x, item, fill, low, half.reshape(-1), high))
        for half in halves
    ]
    return [*found, moved_on(s, place, offset)] if update else found


@emits(load.VSLD)
def _vsld(s: Spot) -> Sequence[Native]:
    kind, place = dtype_of(s.case, "result"), s.need(Place, "source")
    bits, distance = load.STRIDES[s.case.word("stride") or ""]
    size, fill = bits // 8, 8 * VREG_BYTES // bits
    nbytes = ((fill - 1) * distance + 1) * size
    at = access(s, place, behind(s, place, "offset"), nbytes, element_alignment(s.case, size))
    places = [n * distance * size for n in range(fill)]
    found = gathered(s, bits, at, shuffles.constants("i64", places), fill)
    return [as_register(s, kind, f"i{bits}", found)]


@emits(unaligned.UVLD)
def _uvld(s: Spot) -> Sequence[Native]:
    kind, place = dtype_of(s.case, "result"), s.need(Place, "source")
    align = element_alignment(s.case, kind.itemsize)
    at = access(s, place, behind(s, place, "offset"), VREG_BYTES, align)
    return [Reg((s.x.load(register_type(kind), at),), kind)]


# ---- blocks


class Blocks:
    """Eight blocks of 32 bytes, each with a gate; those that are open lie inside."""

    def __init__(self, s: Spot, place: Place, offsets: str, mask: Mask) -> None:
        x, type, bits = s.x, vector(VLANE_COUNT, "i64"), vector(VLANE_COUNT, "i1")
        gates = masks.at_width(x, mask, WIDEST)
        count = VREG_BYTES // WIDEST
        self.gates = shuffles.shuffle(x, "i1", count, gates, range(VLANE_COUNT))
        base = shuffles.spread(x, "i64", VLANE_COUNT, place.address)
        places = x.new(f"add {type} {offsets}, {base}")
        last = shuffles.spread(
            x, "i64", VLANE_COUNT, x.sub(s.e.size(place.memory), BLOCK_BYTE_SIZE)
        )
        good = x.new(f"icmp ule {type} {places}, {last}")
        align = s.case.profile.alignment.vector
        if align > 1:
            low = x.new(f"and {type} {places}, splat (i64 {align - 1})")
            even = x.new(f"icmp eq {type} {low}, zeroinitializer")
            good = x.new(f"and {bits} {good}, {even}")
        shut = x.new(f"xor {bits} {self.gates}, splat (i1 true)")
        good = x.new(f"or {bits} {good}, {shut}")
        s.fault_unless(x.compare("eq", shuffles.bits_of(x, VLANE_COUNT, good), -1, "i8"))
        safe = x.new(f"select {bits} {self.gates}, {type} {places}, {type} zeroinitializer")
        self._s, self._memory, self._places = s, place.memory, safe

    def open(self, n: int) -> str:
        return self._s.x.new(f"extractelement <{VLANE_COUNT} x i1> {self.gates}, i64 {n}")

    def pointer(self, n: int) -> str:
        """Of a shut block: the begin of the memory."""
        address = self._s.x.new(f"extractelement <{VLANE_COUNT} x i64> {self._places}, i64 {n}")
        return self._s.pointer(self._memory, address)


def block_offsets(s: Spot, start: Val) -> str:
    """Byte offsets of the blocks; the strides are unsigned 16-bit fields, in blocks."""
    x, type = s.x, vector(VLANE_COUNT, "i64")
    stride = wide(s, s.need(Word, "block_stride"), signed=False)
    stride = shuffles.spread(x, "i64", VLANE_COUNT, x.new(f"and i64 {stride}, 65535"))
    steps = x.new(f"mul {type} {stride}, {shuffles.constants('i64', range(VLANE_COUNT))}")
    begin = shuffles.spread(x, "i64", VLANE_COUNT, start)
    return x.new(
        f"mul {type} {x.new(f'add {type} {steps}, {begin}')}, splat (i64 {BLOCK_BYTE_SIZE})"
    )


def repeat_stride(s: Spot) -> str:
    found = wide(s, s.need(Word, "repeat_stride"), signed=False)
    return s.x.new(f"and i64 {found}, 65535")


def _load_blocks(s: Spot, offsets: str) -> Sequence[Native]:
    kind, x = dtype_of(s.case, "result"), s.x
    blocks = Blocks(s, s.need(Place, "source"), offsets, s.need(Mask, "mask"))
    parts: list[str] = []
    for n in range(VLANE_COUNT):
        block = x.load(_BLOCK, blocks.pointer(n))
        parts.append(
            x.new(f"select i1 {blocks.open(n)}, {_BLOCK} {block}, {_BLOCK} zeroinitializer")
        )
    return [as_register(s, kind, "i8", shuffles.joined(x, "i8", BLOCK_BYTE_SIZE, parts))]


@emits(load.VSLDB)
def _vsldb(s: Spot) -> Sequence[Native]:
    repeat, update = repeat_stride(s), len(s.op.results) == 2
    found = _load_blocks(s, block_offsets(s, 0 if update else repeat))
    step = s.x.mul(repeat, BLOCK_BYTE_SIZE)
    return [*found, moved_on(s, s.need(Place, "source"), step)] if update else found


@emits(load.VGATHERB)
def _vgatherb(s: Spot) -> Sequence[Native]:
    offsets = s.need(Reg, "offsets")
    if offsets.dtype.itemsize != 4:
        raise NotNative("offsets that are not 32 bits wide")
    words = shuffles.shuffle(
        s.x, "i32", offsets.dtype.lanes, as_items(s, offsets, 32), range(VLANE_COUNT)
    )
    type = vector(VLANE_COUNT, "i64")
    return _load_blocks(s, s.x.new(f"zext <{VLANE_COUNT} x i32> {words} to {type}"))


# ---- items by index


def item_places(
    s: Spot, place: Place, kind: DType, mask: Mask, size: int | None = None
) -> tuple[str, str]:
    """Byte addresses of the items that `offsets` names, those of active lanes checked; the bits.
    Items are as wide as lanes, or `size` bytes."""
    x, index = s.x, s.need(Reg, "offsets")
    if index.dtype.lanes != kind.lanes:
        raise NotNative("indices of another width")
    count, size = kind.lanes, size or kind.itemsize
    type, bits = vector(count, "i64"), vector(count, "i1")
    signed = index.dtype.is_signed and index.dtype.itemsize != 2
    name = as_items(s, index, 8 * index.dtype.itemsize)
    if index.dtype.itemsize < 8:
        op = "sext" if signed else "zext"
        name = x.new(f"{op} {vector(count, f'i{8 * index.dtype.itemsize}')} {name} to {type}")
    active = masks.at_width(x, mask, kind.itemsize)
    base = shuffles.spread(x, "i64", count, place.address)
    places = x.new(f"add {type} {x.new(f'mul {type} {name}, splat (i64 {size})')}, {base}")
    last = shuffles.spread(x, "i64", count, x.sub(s.e.size(place.memory), size))
    good = x.new(f"icmp ule {type} {places}, {last}")
    shut = x.new(f"xor {bits} {active}, splat (i1 true)")
    good = x.new(f"or {bits} {good}, {shut}")
    s.fault_unless(x.compare("eq", shuffles.bits_of(x, count, good), -1, f"i{count}"))
    return places, active


@emits(load.VGATHER2)
def _vgather2(s: Spot) -> Sequence[Native]:
    """Narrow items are extended by zeros."""
    kind, held, x = dtype_of(s.case, "result"), dtype_of(s.case, "source"), s.x
    size = min(held.itemsize, kind.itemsize)
    place, mask, count = s.need(Place, "source"), s.operand("mask"), kind.lanes
    if isinstance(mask, Word):
        positive = x.new(f"call i64 @llvm.smax.i64(i64 {wide(s, mask)}, i64 0)")
        mask = masks.first(x, kind.itemsize, positive)
    if not isinstance(mask, Mask):
        raise NotNative("a mask of another form")
    places, active = item_places(s, place, kind, mask, size)
    type, bits, item = vector(count, "i64"), vector(count, "i1"), f"i{8 * kind.itemsize}"
    safe = x.new(f"select {bits} {active}, {type} {places}, {type} zeroinitializer")
    found = gathered(s, 8 * size, s.e.base(place.memory), safe, count)
    items = vector(count, item)
    if size < kind.itemsize:
        found = x.new(f"zext {vector(count, f'i{8 * size}')} {found} to {items}")
    found = x.new(f"select {bits} {active}, {items} {found}, {items} zeroinitializer")
    return [as_register(s, kind, item, found)]
