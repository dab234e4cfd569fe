"""Stores: the bytes of UB that a register and its mask write. Other bytes are unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT, VREG_BYTES
from pto.core.pointer import Pointer
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.load import apart, block_offsets, index_lanes
from pto.isa.meaning.vector.ub import ItemAccess, access, dtype_of, register_access
from pto.isa.meaning.vector.words import Gate, Registers, registers_do
from pto.isa.rules.rule import Case

# fn(words, register, mask) -> lanes to store, and the active ones
Lay = Callable[[Registers, Lanes, Any], tuple[Lanes, Lanes | None]]
STREAM_STORE = "pto.vstus and pto.vstas store to any address"


def _norm(case: Case, dist: str) -> tuple[ItemAccess, Lay]:
    kind = dtype_of(case, "value")
    gate = Gate(kind.itemsize)
    return register_access(case, kind, STREAM_STORE), lambda x, value, mask: (
        value,
        x.on(mask, gate),
    )


def _one_point(case: Case, dist: str) -> tuple[ItemAccess, Lay]:
    """Item 0 only, whatever the mask is."""
    item, first = np.dtype(f"u{int(dist.removeprefix('1PT_B')) // 8}"), np.zeros(1, np.int64)
    return access(case, item, 1), lambda x, value, mask: (
        x.take([x.reinterpret(value, item)], first),
        None,
    )


# Packed stores -> bytes of an item, bytes kept of it; little endian, so the low part is first.
PACKED = {"PK_B16": (2, 1), "PK_B32": (4, 2), "PK_B64": (8, 4), "PK4_B32": (4, 1)}


def _packed(case: Case, dist: str) -> tuple[ItemAccess, Lay]:
    size, bits_kept = PACKED[dist]
    item = np.dtype(f"u{size}")
    part = np.dtype(f"u{bits_kept}")
    gate = Gate(size)
    return access(case, part, VREG_BYTES // size), lambda x, value, mask: (
        x.reinterpret(value, item).astype(part),
        x.on(mask, gate),
    )


# Merged stores -> channels, bytes of an item.
MERGED = {"MRG4CHN_B8": (4, 1), "MRG2CHN_B8": (2, 1), "MRG2CHN_B16": (2, 2)}


def _merged(case: Case, dist: str) -> tuple[ItemAccess, Lay]:
    """Each 32-byte block holds the planes of its channels in order.

    The mask selects whole groups of channels, after the merge.
    """
    channels, size = MERGED[dist]
    item, count = np.dtype(f"u{size}"), VREG_BYTES // size
    order = np.arange(count).reshape(VLANE_COUNT, channels, -1).transpose(0, 2, 1).reshape(-1)
    groups = np.arange(count) // channels

    def lay(x: Registers, value: Lanes, mask: Any) -> tuple[Lanes, Lanes]:
        gates = x.gates(mask, channels * size, count // channels)
        return x.take([x.reinterpret(value, item)], order), x.take([gates], groups)

    return access(case, item, count), lay


_DISTS: dict[str, Callable[[Case, str], tuple[ItemAccess, Lay]]] = {
    **dict.fromkeys(("NORM_B8", "NORM_B16", "NORM_B32"), _norm),
    **dict.fromkeys(("1PT_B8", "1PT_B16", "1PT_B32"), _one_point),
    **dict.fromkeys(PACKED, _packed),
    **dict.fromkeys(MERGED, _merged),
}


def _vsts(case: Case) -> Callable[..., Any]:
    """Store. The post-update form accesses the base itself, and returns the advanced base."""
    dist = case.word("dist") or "NORM_B32"
    (at, lay), step = _DISTS[dist](case, dist), dtype_of(case, "destination").itemsize

    def run(x: Registers, value: Lanes, to: Pointer, offset: Any, mask: Any) -> None:
        x.store(at, to, *lay(x, value, mask), offset, step)

    def update(x: Registers, value: Lanes, to: Pointer, offset: Any, mask: Any) -> Pointer:
        x.store(at, to, *lay(x, value, mask))
        return x.moved(to, offset)

    return update if case.op.results else run


def _vstsx2(case: Case) -> Callable[..., Any]:
    step = dtype_of(case, "destination").itemsize
    item = np.dtype(f"u{int((case.word('dist') or '').removeprefix('INTLV_B')) // 8}")
    count = VREG_BYTES // item.itemsize
    order, at = np.arange(2 * count).reshape(2, count).T.reshape(-1), access(case, item, 2 * count)

    def run(x: Registers, low: Lanes, high: Lanes, to: Pointer, offset: Any, mask: Any) -> None:
        both = [x.reinterpret(half, item) for half in (low, high)]
        x.store(at, to, x.take(both, order), None, offset, step)

    return run


def _vsstb(case: Case) -> Callable[..., Any]:
    """Store strided blocks.

    The post-update form starts at the base and advances it by repeat_stride.

    PTOAS's case vsstb-post-update reads back the data stored at that distance.
    """
    update = bool(case.op.results)

    def run(
        x: Registers, value: Lanes, to: Pointer, block: Any, repeat: Any, mask: Any
    ) -> Pointer | None:
        offsets = block_offsets(x, block, 0 if update else repeat)
        x.put_blocks(to, offsets, value, x.gates(mask, masks.WIDEST, VLANE_COUNT))
        return x.moved(to, x.field(repeat), BLOCK_BYTE_SIZE) if update else None

    return run


def _vscatter(case: Case) -> Callable[..., Any]:
    """Scatter. If two lanes write one place, the higher lane wins; the ISA leaves this open.

    Bytes use the 16-bit offsets with even numbers.
    """
    kind, width = dtype_of(case, "value"), dtype_of(case, "offsets").itemsize
    index = index_lanes(case, "offsets")
    sent, gate = np.arange(0, kind.lanes, width // kind.itemsize), Gate(width)

    def run(x: Registers, value: Lanes, to: Pointer, offsets: Lanes, mask: Any) -> None:
        values = x.take([value.view(kind.storage)], sent)
        x.scatter(to, index(offsets), values, x.on(mask, gate))

    return run


def _vsst(case: Case) -> Callable[..., Any]:
    step, (at, distance) = dtype_of(case, "destination").itemsize, apart(case, "value")

    def run(x: Registers, value: Lanes, to: Pointer, offset: Any) -> None:
        values = x.reinterpret(value, at.dtype)
        x.store_apart(at, to, values, distance, offset, step)

    return run


VSTS = registers_do(_vsts)
VSTSX2 = registers_do(_vstsx2)
VSSTB = registers_do(_vsstb)
VSCATTER = registers_do(_vscatter)
VSST = registers_do(_vsst)
