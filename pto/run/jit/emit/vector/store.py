"""Stores of registers in compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT, VREG_BYTES
from pto.isa.meaning.vector import store
from pto.isa.meaning.vector.load import STRIDES
from pto.isa.meaning.vector.ub import element_alignment
from pto.run.jit.border.values import Mask, Native, Place, Reg
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile.planes import loop
from pto.run.jit.emit.vector.arithmetic import under
from pto.run.jit.emit.vector.items import scattered, store_lanes
from pto.run.jit.emit.vector.load import (
    Blocks,
    access,
    as_items,
    behind,
    block_offsets,
    item_places,
    moved_on,
    repeat_stride,
    vector_alignment,
)
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.text import Val, vector

_BLOCK = vector(BLOCK_BYTE_SIZE, "i8")


@emits(store.VSTS)
def _vsts(s: Spot) -> Sequence[Native]:
    reg, place = s.need(Reg, "value"), s.need(Place, "destination")
    offset = behind(s, place, "offset")
    update = bool(s.op.results)
    dist = s.case.word("dist") or "NORM_B32"
    write = next(fn for start, fn in _WRITES.items() if dist.startswith(start))
    write(s, reg, place, 0 if update else offset, dist)
    return [moved_on(s, place, offset)] if update else []


def _norm(s: Spot, reg: Reg, place: Place, offset: Val, dist: str) -> None:
    size = reg.dtype.itemsize
    at = access(s, place, offset, VREG_BYTES, vector_alignment(s, size))
    bits = masks.at_width(s.x, s.need(Mask, "mask"), size)
    items = as_items(s, under(s, reg, bits), 8 * size)
    store_lanes(s, f"i{8 * size}", reg.dtype.lanes, items, at, bits)


def _one_point(s: Spot, reg: Reg, place: Place, offset: Val, dist: str) -> None:
    bits = int(dist.removeprefix("1PT_B"))
    at = access(s, place, offset, bits // 8, element_alignment(s.case, bits // 8))
    type = vector(8 * VREG_BYTES // bits, f"i{bits}")
    first = s.x.new(f"extractelement {type} {as_items(s, reg, bits)}, i64 0")
    s.x.store(f"i{bits}", first, at)


def _packed(s: Spot, reg: Reg, place: Place, offset: Val, dist: str) -> None:
    size, kept = store.PACKED[dist]
    count = VREG_BYTES // size
    at = access(s, place, offset, count * kept, element_alignment(s.case, kept))
    have, want = vector(count, f"i{8 * size}"), vector(count, f"i{8 * kept}")
    low = s.x.new(f"trunc {have} {as_items(s, reg, 8 * size)} to {want}")
    bits = masks.at_width(s.x, s.need(Mask, "mask"), size)
    store_lanes(s, f"i{8 * kept}", count, low, at, bits)


def _merged(s: Spot, reg: Reg, place: Place, offset: Val, dist: str) -> None:
    channels, size = store.MERGED[dist]
    count, item = VREG_BYTES // size, f"i{8 * size}"
    at = access(s, place, offset, VREG_BYTES, element_alignment(s.case, size))
    order = np.arange(count).reshape(VLANE_COUNT, channels, -1).transpose(0, 2, 1).reshape(-1)
    merged = shuffles.shuffle(s.x, item, count, as_items(s, reg, 8 * size), order)
    groups = masks.at_width(s.x, s.need(Mask, "mask"), channels * size)
    bits = shuffles.shuffle(s.x, "i1", count // channels, groups, np.arange(count) // channels)
    store_lanes(s, item, count, merged, at, bits)


_WRITES = {"NORM": _norm, "1PT": _one_point, "PK": _packed, "MRG": _merged}


@emits(store.VSTSX2)
def _vstsx2(s: Spot) -> Sequence[Native]:
    bits = int((s.case.word("dist") or "").removeprefix("INTLV_B"))
    place, item, count = s.need(Place, "destination"), f"i{bits}", 8 * VREG_BYTES // bits
    at = access(
        s, place, behind(s, place, "offset"), 2 * VREG_BYTES, element_alignment(s.case, bits // 8)
    )
    low, high = (as_items(s, s.need(Reg, name), bits) for name in ("low", "high"))
    order = np.arange(2 * count).reshape(2, count).T.reshape(2, count)
    for n in range(2):
        half = shuffles.shuffle(s.x, item, count, low, order[n], high)
        s.x.store(vector(count, item), half, s.x.at(at, n * VREG_BYTES))
    return []


@emits(store.VSSTB)
def _vsstb(s: Spot) -> Sequence[Native]:
    x, update, place = s.x, bool(s.op.results), s.need(Place, "destination")
    repeat = repeat_stride(s)
    value = as_items(s, s.need(Reg, "value"), 8)
    blocks = Blocks(s, place, block_offsets(s, 0 if update else repeat), s.need(Mask, "mask"))
    for n in range(VLANE_COUNT):
        begin = n * BLOCK_BYTE_SIZE
        picks = range(begin, begin + BLOCK_BYTE_SIZE)
        block = shuffles.shuffle(x, "i8", VREG_BYTES, value, picks)
        pointer = blocks.pointer(n)
        x.when(blocks.open(n), lambda b=block, p=pointer: x.store(_BLOCK, b, p))
    return [moved_on(s, place, x.mul(repeat, BLOCK_BYTE_SIZE))] if update else []


@emits(store.VSCATTER)
def _vscatter(s: Spot) -> Sequence[Native]:
    """One lane after the other: where two hit one place the higher wins."""
    reg, place = s.need(Reg, "value"), s.need(Place, "destination")
    kind, index = reg.dtype, s.need(Reg, "offsets").dtype
    places, active = item_places(s, place, index, s.need(Mask, "mask"), kind.itemsize)
    spot = lanes.Lanes(s.x, index.lanes, s.e.unit.declare)
    name = as_items(s, reg, 8 * kind.itemsize)
    if index.lanes != kind.lanes:  # of bytes those of even number
        evens = np.arange(0, kind.lanes, 2)
        name = shuffles.shuffle(s.x, f"i{8 * kind.itemsize}", kind.lanes, name, evens)
    value = spot.symbol(kind.storage, name)
    on, at = spot.symbol(lanes.BOOL, active), spot.symbol(np.dtype(np.int64), places)
    scattered(s, s.e.base(place.memory), value, at, on)
    return []


@emits(store.VSST)
def _vsst(s: Spot) -> Sequence[Native]:
    """The items stand too far apart for one vector: one after the other."""
    reg, place = s.need(Reg, "value"), s.need(Place, "destination")
    bits, distance = STRIDES[s.case.word("stride") or ""]
    size, count = bits // 8, 8 * VREG_BYTES // bits
    nbytes = ((count - 1) * distance + 1) * size
    at = access(s, place, behind(s, place, "offset"), nbytes, element_alignment(s.case, size))
    value, type = as_items(s, reg, bits), vector(count, f"i{bits}")
    room = s.x.stack(type)
    s.x.store(type, value, room, 64)

    def one(i: Val) -> None:
        item = s.x.load(f"i{bits}", s.x.at(room, s.x.mul(i, size)))
        s.x.store(f"i{bits}", item, s.x.at(at, s.x.mul(i, distance * size)))

    loop(s.x, count, 1, one)
    return []
