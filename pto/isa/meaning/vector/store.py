"""Stores: which bytes of UB a register and its mask write. Bytes between and behind stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT, VREG_BYTES
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.load import STRIDES, block_offsets, blocks_on, gates, index_lanes
from pto.isa.meaning.vector.ub import (
    Items,
    block_places,
    dtype_of,
    item_type,
    items,
    positions,
    whole,
)
from pto.isa.rules.rule import Case

Write = Callable[[Items, Pointer, int, masks.Mask], None]
STREAM_STORE = "pto.vstus and pto.vstas store to any address"
_IN_BLOCK = np.arange(BLOCK_BYTE_SIZE, dtype=np.int64)


def _norm(case: Case, dist: str) -> Write:
    kind = dtype_of(case, "value")
    align = case.profile.alignment.vector
    at = items(case, kind.numpy, kind.lanes, align if align > 1 else 0, STREAM_STORE)
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize

    def write(value: Items, pointer: Pointer, offset: int, mask: masks.Mask) -> None:
        if mask is all_lanes:
            at(pointer, offset)[:] = value
        else:
            np.copyto(at(pointer, offset), value, where=mask[::width])

    return write


def _one_point(case: Case, dist: str) -> Write:
    """Item 0 alone, whatever the mask says."""
    item = item_type(int(dist.removeprefix("1PT_B")), dtype_of(case, "value"))
    at = items(case, item, 1)

    def write(value: Items, pointer: Pointer, offset: int, mask: masks.Mask) -> None:
        at(pointer, offset)[:] = value.view(item)[:1]

    return write


# Packed stores -> bytes of an item, bytes kept of it; little endian, so the low part comes first.
PACKED = {"PK_B16": (2, 1), "PK_B32": (4, 2), "PK_B64": (8, 4), "PK4_B32": (4, 1)}


def _packed(case: Case, dist: str) -> Write:
    size, kept = PACKED[dist]
    part = np.dtype(f"u{kept}")
    at = items(case, part, VREG_BYTES // size)
    all_lanes, step = masks.full(size), size // kept

    def write(value: Items, pointer: Pointer, offset: int, mask: masks.Mask) -> None:
        low = value.view(part)[::step]
        if mask is all_lanes:
            at(pointer, offset)[:] = low
        else:
            np.copyto(at(pointer, offset), low, where=mask[::size])

    return write


# Merged stores -> channels, bytes of an item.
MERGED = {"MRG4CHN_B8": (4, 1), "MRG2CHN_B8": (2, 1), "MRG2CHN_B16": (2, 2)}


def _merged(case: Case, dist: str) -> Write:
    """Each 32-byte block holds the planes of its channels one after the other; the mask gates
    whole groups of channels, after the merge."""
    channels, size = MERGED[dist]
    item = np.dtype(f"u{size}")
    at = items(case, item, VREG_BYTES // size)
    group = channels * size

    def write(value: Items, pointer: Pointer, offset: int, mask: masks.Mask) -> None:
        planes = value.view(item).reshape(VLANE_COUNT, channels, -1)
        merged = planes.transpose(0, 2, 1).reshape(-1, channels)
        target = at(pointer, offset).reshape(-1, channels)
        np.copyto(target, merged, where=mask[::group, None])

    return write


_DISTS: dict[str, Callable[[Case, str], Write]] = {
    **dict.fromkeys(("NORM_B8", "NORM_B16", "NORM_B32"), _norm),
    **dict.fromkeys(("1PT_B8", "1PT_B16", "1PT_B32"), _one_point),
    **dict.fromkeys(PACKED, _packed),
    **dict.fromkeys(MERGED, _merged),
}


def _vsts(case: Case) -> Callable[..., Any]:
    dist = case.word("dist") or "NORM_B32"
    write, step = _DISTS[dist](case, dist), dtype_of(case, "destination").itemsize
    if case.op.results:  # post-update: the access is at the base, which then moves on

        def update(
            core: Machine, value: Items, destination: Pointer, offset: int, mask: masks.Mask
        ) -> Pointer:
            write(value, destination, 0, mask)
            return destination.at(offset)

        return update
    return lambda core, value, destination, offset, mask: write(
        value, destination, offset * step, mask
    )


def _vstsx2(case: Case) -> Callable[..., Any]:
    step = dtype_of(case, "destination").itemsize
    bits = int((case.word("dist") or "").removeprefix("INTLV_B"))
    item = item_type(bits, dtype_of(case, "low"))
    at = items(case, item, 2 * VREG_BYTES // item.itemsize)

    def store(
        core: Machine, low: Items, high: Items, to: Pointer, offset: int, mask: masks.Mask
    ) -> None:
        target = at(to, offset * step)
        target[::2] = low.view(item)
        target[1::2] = high.view(item)

    return store


def _vsstb(case: Case) -> Callable[..., Any]:
    """The post-update form begins at the base and moves it on by repeat_stride: PTOAS's case
    vsstb-post-update reads back what it stored that far behind."""
    update = bool(case.op.results)

    def store(
        core: Machine, value: Items, to: Pointer, block: int, repeat: int, mask: masks.Mask
    ) -> Pointer | None:
        active = gates(mask)
        places = block_places(case, to, block_offsets(block, 0 if update else repeat), active)
        blocks = value.view(np.uint8).reshape(VLANE_COUNT, BLOCK_BYTE_SIZE)
        to.memory.data[places[:, None] + _IN_BLOCK] = blocks[active]
        if not update:
            return None
        return blocks_on(to, repeat)

    return store


def _vscatter(case: Case) -> Callable[..., Any]:
    """Where two lanes hit one place the higher lane wins; the ISA leaves open which does.

    Bytes go by 16-bit offsets: those of even number.
    """
    kind, width = dtype_of(case, "value"), dtype_of(case, "offsets").itemsize
    view, index = whole(kind.numpy), index_lanes(case, "offsets")
    all_lanes, step = masks.full(width), width // kind.itemsize

    def store(core: Machine, value: Items, to: Pointer, offsets: Items, mask: masks.Mask) -> None:
        typed, start = view(to)
        active = None if mask is all_lanes else mask[::width]
        where = positions(case, typed, start, index(offsets), active)
        sent = value[::step]
        typed[where] = sent if active is None else sent[active]

    return store


def _vsst(case: Case) -> Callable[..., Any]:
    kind, step = dtype_of(case, "value"), dtype_of(case, "destination").itemsize
    bits, distance = STRIDES[case.word("stride") or ""]
    item = item_type(bits, kind)
    at = items(case, item, (8 * VREG_BYTES // bits - 1) * distance + 1)

    def store(core: Machine, value: Items, destination: Pointer, offset: int) -> None:
        at(destination, offset * step)[::distance] = value.view(item)

    return store


VSTS = Do(_vsts)
VSTSX2 = Do(_vstsx2)
VSSTB = Do(_vsstb)
VSCATTER = Do(_vscatter)
VSST = Do(_vsst)
