"""Loads: how a 256-byte register image is built from UB. A register never is a view of UB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_BYTES, VLANE_COUNT, VREG_BYTES
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import (
    At,
    Items,
    block_places,
    dtype_of,
    item_type,
    items,
    positions,
    post_update,
    whole,
)
from pto.isa.rules.rule import Case

Build = Callable[[Items], Items]
_BYTES = np.dtype(np.uint8)
STREAM_LOAD = "pto.vldas and pto.vldus load from any address"


def repeated(times: int) -> Build:
    return lambda x: x.repeat(times)


def every(step: int) -> Build:
    return lambda x: x[::step].copy()


def spread(step: int) -> Build:
    """Items `step` apart, zeros between."""

    def build(x: Items) -> Items:
        out = np.zeros(x.size * step, x.dtype)
        out[::step] = x
        return out

    return build


def _dist(bits: int, read: int, build: Build) -> tuple[int, int, Build]:
    """Items of `bits`, so many of them read, and the image made of them."""
    return bits, read, build


def _by_width(name: str, make: Callable[[int], tuple[int, int, Build]], *bits: int) -> Any:
    return {f"{name}_B{b}": make(b) for b in bits}


def _fill(bits: int) -> int:
    return 8 * VREG_BYTES // bits


# Distribution -> item width, items read, image. vector.yaml#pto.vlds
DISTS: dict[str, tuple[int, int, Build]] = {
    **_by_width("BRC", lambda b: _dist(b, 1, repeated(_fill(b))), 8, 16, 32),
    **_by_width("US", lambda b: _dist(b, _fill(b) // 2, repeated(2)), 8, 16),
    **_by_width("DS", lambda b: _dist(b, 2 * _fill(b) - 1, every(2)), 8, 16),
    **_by_width("UNPK", lambda b: _dist(b, _fill(b) // 2, spread(2)), 8, 16, 32),
    **_by_width("E2B", lambda b: _dist(b, VLANE_COUNT, repeated(8 * VLANE_BYTES // b)), 16, 32),
    **_by_width("SPLT2CHN", lambda b: _dist(b, 2 * _fill(b) - 1, every(2)), 8, 16),
    **_by_width("DINTLV", lambda b: _dist(b, 2 * _fill(b) - 1, every(2)), 32),
    **dict.fromkeys(("SPLT4CHN", "SPLT4CHN_B8"), _dist(8, 4 * VREG_BYTES - 3, every(4))),
    "UNPK4": _dist(8, VREG_BYTES // 4, spread(4)),
    **dict.fromkeys(
        ("BRC_BLK", "BLK"), _dist(8, BLOCK_BYTE_SIZE, lambda x: np.tile(x, VLANE_COUNT))
    ),
}


def _image(case: Case, dist: str) -> tuple[At, Build]:
    """How to read and build the register of a distribution."""
    kind = dtype_of(case, "result")
    if dist == "NORM":
        align = case.profile.alignment.vector
        at = items(case, kind.numpy, kind.lanes, align if align > 1 else 0, STREAM_LOAD)
        return at, np.copy
    bits, read, build = DISTS[dist]
    item = item_type(bits, kind)
    at = items(case, item, read)
    if item == kind.numpy:
        return at, build
    return at, lambda x: build(x).view(kind.numpy)


def _vlds(case: Case) -> Callable[..., Any]:
    at, build = _image(case, case.word("dist") or "NORM")
    step = dtype_of(case, "source").itemsize
    if len(case.op.results) == 2:  # post-update: the access is at the base, which then moves on

        def update(core: Machine, source: Pointer, offset: int) -> tuple[Items, Pointer]:
            return build(at(source, 0)), source.at(offset)

        return update
    if build is np.copy:
        return lambda core, source, offset: at(source, offset * step).copy()
    return lambda core, source, offset: build(at(source, offset * step))


def _vldsx2(case: Case) -> Callable[..., Any]:
    load = _pair_load(case)
    if len(case.op.results) < 3:
        return load
    return post_update(
        lambda core, source, offset: load(core, source, 0),
        lambda source, offset: source.at(offset),
    )


def _pair_load(case: Case) -> Callable[..., tuple[Items, Items]]:
    kind, step = dtype_of(case, "low"), dtype_of(case, "source").itemsize
    dist = case.word("dist") or ""
    if dist == "BDINTLV":
        at = items(case, kind.numpy, 2 * kind.lanes)

        def blocks(core: Machine, source: Pointer, offset: int) -> tuple[Items, Items]:
            x = at(source, offset * step).reshape(VLANE_COUNT, 2, kind.per_vlane)
            return x[:, 0].copy().reshape(-1), x[:, 1].copy().reshape(-1)

        return blocks
    item = item_type(int(dist.removeprefix("DINTLV_B")), kind)
    at = items(case, item, 2 * VREG_BYTES // item.itemsize)

    def pairs(core: Machine, source: Pointer, offset: int) -> tuple[Items, Items]:
        x = at(source, offset * step)
        return x[::2].copy().view(kind.numpy), x[1::2].copy().view(kind.numpy)

    return pairs


_BLOCKS = np.arange(VLANE_COUNT, dtype=np.int64)
_IN_BLOCK = np.arange(BLOCK_BYTE_SIZE, dtype=np.int64)


def block_offsets(block_stride: int, start: int) -> Items:
    """Byte offsets of the 8 blocks; the strides are unsigned 16-bit fields, in blocks."""
    return ((start & 0xFFFF) + _BLOCKS * (block_stride & 0xFFFF)) * BLOCK_BYTE_SIZE


def blocks_on(pointer: Pointer, blocks: int) -> Pointer:
    """A pointer moved on by 32-byte blocks, an unsigned field of 16 bits."""
    start = pointer.address + (blocks & 0xFFFF) * BLOCK_BYTE_SIZE
    return Pointer(pointer.memory, start, pointer.dtype)


def gates(mask: masks.Mask) -> masks.Mask:
    """Lanes 0..7 of the b32 view: one for each block."""
    return mask[: VLANE_COUNT * masks.WIDEST : masks.WIDEST]


def _gather_blocks(case: Case, pointer: Pointer, offsets: Items, active: Items) -> Items:
    places = block_places(case, pointer, offsets, active)
    out = np.zeros((VLANE_COUNT, BLOCK_BYTE_SIZE), np.uint8)
    out[active] = pointer.memory.data[places[:, None] + _IN_BLOCK]
    return out.reshape(-1)


def _vsldb(case: Case) -> Callable[..., Any]:
    """The post-update form begins at the base and moves it on by repeat_stride blocks."""
    kind, update = dtype_of(case, "result").numpy, len(case.op.results) == 2

    def load(core: Machine, source: Pointer, block: int, repeat: int, mask: masks.Mask) -> Items:
        offsets = block_offsets(block, 0 if update else repeat)
        return _gather_blocks(case, source, offsets, gates(mask)).view(kind)

    if not update:
        return load
    return post_update(load, lambda source, block, repeat, mask: blocks_on(source, repeat))


def _vgatherb(case: Case) -> Callable[..., Any]:
    kind = dtype_of(case, "result").numpy

    def load(core: Machine, source: Pointer, offsets: Items, mask: masks.Mask) -> Items:
        where = offsets[:VLANE_COUNT].view(np.uint32)
        return _gather_blocks(case, source, where, gates(mask)).view(kind)

    return load


def index_lanes(case: Case, name: str) -> Build:
    """An index register as numbers: 16-bit indices are unsigned whatever the register is called."""
    kind = dtype_of(case, name)
    return (lambda x: x.view(np.uint16)) if kind.itemsize == 2 else (lambda x: x)


def _vgather2(case: Case) -> Callable[..., Any]:
    """Elements are those of source; bytes are zero-extended into 16-bit lanes."""
    kind, held = dtype_of(case, "result"), dtype_of(case, "source")
    item = held.storage if held.itemsize < kind.itemsize else kind.numpy
    view, index = whole(item), index_lanes(case, "offsets")
    all_lanes, width = masks.full(kind.itemsize), kind.itemsize

    def load(core: Machine, source: Pointer, offsets: Items, mask: masks.Mask | int) -> Items:
        if isinstance(mask, int):
            mask = masks.first(width, min(max(mask, 0), kind.lanes))
        typed, start = view(source)
        active = None if mask is all_lanes else mask[::width]
        found = typed[positions(case, typed, start, index(offsets), active)]
        if item is not kind.numpy:
            found = found.astype(kind.storage).view(kind.numpy)
        if active is None:
            return found
        out = np.zeros(kind.lanes, kind.numpy)
        out[active] = found
        return out

    return load


# Strided tokens -> item width and distance in items. The manual names the tokens only; they are
# read as they are spelled: S3_B16 takes every third 16-bit item.
STRIDES = {
    "STRIDE_S3_B16": (16, 3),
    "STRIDE_S4_B64": (64, 4),
    "STRIDE_S8_B32": (32, 8),
    "STRIDE_S2_B64": (64, 2),
}


def _vsld(case: Case) -> Callable[..., Any]:
    kind, step = dtype_of(case, "result"), dtype_of(case, "source").itemsize
    bits, distance = STRIDES[case.word("stride") or ""]
    item = item_type(bits, kind)
    at = items(case, item, (_fill(bits) - 1) * distance + 1)
    return lambda core, source, offset: (
        at(source, offset * step)[::distance].copy().view(kind.numpy)
    )


VLDS = Do(_vlds)
VLDSX2 = Do(_vldsx2)
VSLDB = Do(_vsldb)
VGATHER2 = Do(_vgather2)
VGATHERB = Do(_vgatherb)
VSLD = Do(_vsld)
