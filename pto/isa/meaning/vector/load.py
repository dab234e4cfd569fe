"""Loads: construction of a 256-byte register image from UB. A register is never a view of UB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_BYTES, VLANE_COUNT, VREG_BYTES
from pto.core.pointer import Pointer
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import (
    Build,
    ItemAccess,
    Items,
    access,
    dtype_of,
    item_type,
    register_access,
)
from pto.isa.meaning.vector.words import Gate, Registers, registers_do
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

STREAM_LOAD = "pto.vldas and pto.vldus load from any address"


def repeated(times: int) -> Build:
    return lambda x: x.repeat(times)


def every(step: int) -> Build:
    return lambda x: x[::step].copy()


def spread(step: int) -> Build:
    """Items `step` lanes apart, zeros between."""

    def build(x: Items) -> Items:
        out = np.zeros(x.size * step, x.dtype)
        out[::step] = x
        return out

    return build


def _by_width(name: str, make: Callable[[int], tuple[int, int, Build]], *bits: int) -> Any:
    return {f"{name}_B{b}": make(b) for b in bits}


def _fill(bits: int) -> int:
    return 8 * VREG_BYTES // bits


# Distribution -> item width, items read, image. micro-instruction manual, vlds
DISTS: dict[str, tuple[int, int, Build]] = {
    **_by_width("BRC", lambda b: (b, 1, repeated(_fill(b))), 8, 16, 32),
    **_by_width("US", lambda b: (b, _fill(b) // 2, repeated(2)), 8, 16),
    **_by_width("DS", lambda b: (b, 2 * _fill(b) - 1, every(2)), 8, 16),
    **_by_width("UNPK", lambda b: (b, _fill(b) // 2, spread(2)), 8, 16, 32),
    **_by_width("E2B", lambda b: (b, VLANE_COUNT, repeated(8 * VLANE_BYTES // b)), 16, 32),
    **_by_width("SPLT2CHN", lambda b: (b, 2 * _fill(b) - 1, every(2)), 8, 16),
    **_by_width("DINTLV", lambda b: (b, 2 * _fill(b) - 1, every(2)), 32),
    **dict.fromkeys(("SPLT4CHN", "SPLT4CHN_B8"), (8, 4 * VREG_BYTES - 3, every(4))),
    "UNPK4": (8, VREG_BYTES // 4, spread(4)),
    **dict.fromkeys(("BRC_BLK", "BLK"), (8, BLOCK_BYTE_SIZE, lambda x: np.tile(x, VLANE_COUNT))),
}


def _image(case: Case, dist: str) -> ItemAccess:
    """The access and the image of a distribution."""
    kind = dtype_of(case, "result")
    if dist == "NORM":
        return register_access(case, kind, STREAM_LOAD)
    bits, read, build = DISTS[dist]
    return access(case, item_type(bits, kind), read, build)


def _loaded(case: Case, image: ItemAccess, name: str = "result") -> Callable[..., Any]:
    """fn(words, source, offset): loads the registers of an image.

    The post-update form, with one more result, accesses the base itself and returns the advanced
    base.
    """
    kind, step = dtype_of(case, name), dtype_of(case, "source").itemsize
    update = len(case.op.results) > (1 if name == "result" else 2)
    if image.dtype == kind.numpy and not update:
        return lambda x, source, offset: x.load(image, source, offset, step)

    def run(x: Registers, source: Pointer, offset: Any) -> Any:
        loaded = x.load(image, source) if update else x.load(image, source, offset, step)
        several = loaded if isinstance(loaded, tuple) else (loaded,)
        results: list[Any] = [x.reinterpret(register, kind.numpy) for register in several]
        if update:
            results.append(x.moved(source, offset))
        return tuple(results) if len(results) > 1 else results[0]

    return run


def _pairs(case: Case) -> ItemAccess:
    kind, dist = dtype_of(case, "low"), case.word("dist") or ""
    if dist == "BDINTLV":
        return access(case, kind.numpy, 2 * kind.lanes, _blocks_apart)
    item = item_type(int(dist.removeprefix("DINTLV_B")), kind)
    count = 2 * VREG_BYTES // item.itemsize
    return access(case, item, count, lambda x: (x[::2].copy(), x[1::2].copy()))


def _blocks_apart(x: Items) -> tuple[Items, Items]:
    """The blocks with even numbers and those with odd numbers."""
    blocks = x.reshape(VLANE_COUNT, 2, -1)
    return blocks[:, 0].copy().reshape(-1), blocks[:, 1].copy().reshape(-1)


BLOCK_NUMBERS = np.arange(VLANE_COUNT, dtype=np.int64)


def block_offsets(x: Registers, block_stride: Any, start: Any) -> Lanes:
    """Byte offsets of the 8 blocks; the strides are unsigned 16-bit fields, in blocks."""
    first, step = (x.lanes(x.field(n), VLANE_COUNT) for n in (start, block_stride))
    return (first + step * BLOCK_NUMBERS) * np.int64(BLOCK_BYTE_SIZE)


def _vsldb(case: Case) -> Callable[..., Any]:
    """Load strided blocks.

    The post-update form starts at the base and advances it by repeat_stride blocks.
    """
    kind, update = dtype_of(case, "result").numpy, len(case.op.results) == 2

    def run(x: Registers, source: Pointer, block: Any, repeat: Any, mask: Any) -> Any:
        offsets = block_offsets(x, block, 0 if update else repeat)
        loaded = x.blocks(source, offsets, x.gates(mask, masks.WIDEST, VLANE_COUNT))
        image = x.reinterpret(loaded, kind)
        return (image, x.moved(source, x.field(repeat), BLOCK_BYTE_SIZE)) if update else image

    return run


def _vgatherb(case: Case) -> Callable[..., Any]:
    kind = dtype_of(case, "result").numpy

    def run(x: Registers, source: Pointer, offsets: Lanes, mask: Any) -> Lanes:
        words = x.take([x.reinterpret(offsets, np.dtype(np.uint32))], BLOCK_NUMBERS)
        on = x.gates(mask, masks.WIDEST, VLANE_COUNT)
        return x.reinterpret(x.blocks(source, words.astype(np.int64), on), kind)

    return run


def index_lanes(case: Case, name: str) -> Callable[[Lanes], Lanes]:
    """An index register as numbers: 16-bit indices are unsigned, for every register type."""
    kind = dtype_of(case, name)
    if kind.itemsize == 2:
        return lambda x: x.view(np.uint16).astype(np.int64)
    return lambda x: x.astype(np.int64)


def _vgather2(case: Case) -> Callable[..., Any]:
    """Gather elements of source; bytes are zero-extended into 16-bit lanes."""
    kind, stored = dtype_of(case, "result"), dtype_of(case, "source")
    item = stored.storage if stored.itemsize < kind.itemsize else kind.storage
    index = index_lanes(case, "offsets")
    counts, gate = isinstance(case.type("mask"), t.Scalar), Gate(kind.itemsize)

    def run(x: Registers, source: Pointer, offsets: Lanes, mask: Any) -> Lanes:
        image = x.first(gate, mask) if counts else mask
        gathered = x.gather(source, item, index(offsets), x.on(image, gate))
        return gathered.astype(kind.storage).view(kind.numpy)

    return run


# Strided tokens -> item width and distance in items. The manual only lists the tokens, so they
# are read literally: S3_B16 takes every third 16-bit item.
STRIDES = {
    "STRIDE_S3_B16": (16, 3),
    "STRIDE_S4_B64": (64, 4),
    "STRIDE_S8_B32": (32, 8),
    "STRIDE_S2_B64": (64, 2),
}


def apart(case: Case, name: str) -> tuple[ItemAccess, int]:
    """The items of a register with gaps between them, and their distance."""
    bits, distance = STRIDES[case.word("stride") or ""]
    item, count = item_type(bits, dtype_of(case, name)), (_fill(bits) - 1) * distance + 1
    return access(case, item, count, every(distance)), distance


VLDS = registers_do(lambda case: _loaded(case, _image(case, case.word("dist") or "NORM")))
VLDSX2 = registers_do(lambda case: _loaded(case, _pairs(case), "low"))
VSLDB = registers_do(_vsldb)
VGATHER2 = registers_do(_vgather2)
VGATHERB = registers_do(_vgatherb)
VSLD = registers_do(lambda case: _loaded(case, apart(case, "result")[0]))
