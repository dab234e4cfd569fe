"""Logical vectors from and to UB: runs, rows of groups, 32-byte blocks, single elements.

Every access is a list of places, one a lane, checked before anything is read or written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector.ub import Items, dtype_of, positions, whole
from pto.isa.meaning.vmi.lanewise import Function, require_zeroing
from pto.isa.meaning.vmi.shape import groups_of, lane_count
from pto.isa.rules.rule import Case

Places = npt.NDArray[np.int64]


class _Elements:
    """UB as elements of one type, from a pointer on."""

    def __init__(self, case: Case, kind: np.dtype[Any]) -> None:
        self._case, self._whole = case, whole(kind)

    def read(self, source: Pointer, places: Places, active: Items | None = None) -> Items:
        typed, start = self._whole(source)
        return typed[positions(self._case, typed, start, places, active)]

    def write(self, target: Pointer, places: Places, values: Items, active: Items | None) -> None:
        typed, start = self._whole(target)
        where = positions(self._case, typed, start, places, active)
        typed[where] = values if active is None else values[active]


def _rows(count: int, groups: int, offset: int, stride: int) -> Places:
    """Lane i of group g at offset + g * stride + i; one element a group where there are as many."""
    size = count // groups
    lane = np.arange(count, dtype=np.int64)
    return offset + lane // size * stride + lane % size


def _blocks(count: int, kind: DType, offset: int, stride: int) -> Places:
    """32-byte blocks, `stride` blocks from one to the next."""
    size = BLOCK_BYTE_SIZE // kind.itemsize
    lane = np.arange(count, dtype=np.int64)
    return offset + lane // size * stride * size + lane % size


def _load(case: Case) -> Function:
    """One result: a run, rows, blocks, one element everywhere, or narrow ones widened; two
    results: even and odd elements."""
    require_zeroing(case)
    results, kind = case.op.results, dtype_of(case, "source")
    count, mode = lane_count(case), case.word("dist_mode") or "continuous"
    groups, elements = groups_of(case), _Elements(case, kind.numpy)
    is_grouped = case.word("group") is not None
    result = dtype_of(case, "result")

    def run(
        core: Machine,
        source: Pointer,
        offset: int,
        stride: int | None,
        blocks: int | None,
        repeat: int | None,
    ) -> Any:
        if len(results) == 2:
            both = elements.read(source, offset + np.arange(2 * count, dtype=np.int64))
            return both[::2].copy(), both[1::2].copy()
        if blocks is not None:
            places = _blocks(count, kind, offset, blocks)
        elif is_grouped:
            places = _rows(count, groups, offset, stride or 0)
        elif mode == "brc":
            places = np.full(count, offset, np.int64)
        else:
            places = offset + np.arange(count, dtype=np.int64)
        return _widened(elements.read(source, places), kind, result)

    return run


def _widened(values: Items, kind: DType, result: DType) -> Items:
    """`unpack` puts a narrow element into the low bits of a wide lane."""
    if kind.itemsize == result.itemsize:
        return values.view(result.numpy)
    wide = values.view(kind.storage).astype(result.storage)
    return wide.view(result.numpy)


def _narrowed(value: Items, kind: DType) -> Items:
    """The low bits of wide lanes, where memory holds narrower elements."""
    if value.itemsize == kind.itemsize:
        return value.view(kind.numpy)
    return value.view(f"u{value.itemsize}").astype(kind.storage).view(kind.numpy)


def _store(case: Case) -> Function:
    require_zeroing(case)
    kind, count, groups = dtype_of(case, "destination"), lane_count(case, "value"), groups_of(case)
    elements, is_grouped = _Elements(case, kind.numpy), case.word("group") is not None

    def run(
        core: Machine,
        value: Items,
        second: Items | None,
        target: Pointer,
        offset: int,
        stride: int | None,
        blocks: int | None,
        repeat: int | None,
        mask: Items | None,
    ) -> None:
        if second is not None:
            value = np.stack([value, second], axis=1).reshape(-1)
            mask = None if mask is None else np.repeat(mask, 2)
        if blocks is not None:
            places = _blocks(count, kind, offset, blocks)
        elif is_grouped:
            places = _rows(count, groups, offset, stride or 0)
        else:
            places = offset + np.arange(value.size, dtype=np.int64)
        elements.write(target, places, _narrowed(value, kind), mask)

    return run


LOAD = Do(_load)
STORE = Do(_store)


def _blocks_store(case: Case) -> Function:
    """vstore by blocks, its only form."""
    store = _store(case)
    return lambda core, value, target, offset, stride, mask: store(
        core, value, None, target, offset, None, stride, None, mask
    )


STORE_BLOCKS = Do(_blocks_store)

# ---- by index


def _gather(case: Case) -> Function:
    require_zeroing(case)
    kind = dtype_of(case, "result")
    elements = _Elements(case, kind.numpy)

    def run(
        core: Machine, source: Pointer, offsets: Items, mask: Items, keep: Items | None = None
    ) -> Items:
        out = np.zeros(mask.size, kind.numpy) if keep is None else keep.copy()
        out[mask] = elements.read(source, _unsigned(offsets), mask)
        return out

    return run


def _unsigned(offsets: Items) -> Places:
    return offsets.view(f"u{offsets.itemsize}").astype(np.int64)


def _gather_blocks(case: Case) -> Function:
    """Byte offsets of 32-byte blocks, one for as many lanes as a block has."""
    kind, count = dtype_of(case, "result"), lane_count(case)
    size = BLOCK_BYTE_SIZE // kind.itemsize
    elements, lane = _Elements(case, kind.numpy), np.arange(count, dtype=np.int64)

    def run(core: Machine, source: Pointer, offsets: Items, mask: Items) -> Items:
        starts = _unsigned(offsets)
        if starts.size * size < count or (starts % BLOCK_BYTE_SIZE).any():
            raise fail(
                "PTO-M140", f"'{case.row.name}' op needs a block of 32 bytes for each offset"
            )
        places = starts[lane // size] // kind.itemsize + lane % size
        out = np.zeros(count, kind.numpy)
        out[mask] = elements.read(source, places, mask)
        return out

    return run


def _scatter(case: Case) -> Function:
    require_zeroing(case)
    kind = dtype_of(case, "value")
    elements = _Elements(case, kind.numpy)

    def run(core: Machine, value: Items, target: Pointer, offsets: Items, mask: Items) -> None:
        elements.write(target, _unsigned(offsets), value, mask)

    return run


GATHER = Do(_gather)
GATHER_BLOCKS = Do(_gather_blocks)
SCATTER = Do(_scatter)

# ---- older forms


def _grouped_load(slots: bool) -> Do:
    """Rows of L / groups elements; with `slots` one element a group, spread over its lanes."""

    def make(case: Case) -> Function:
        kind, count, groups = dtype_of(case, "result"), lane_count(case), groups_of(case)
        elements = _Elements(case, kind.numpy)

        def run(core: Machine, source: Pointer, offset: int, stride: int) -> Items:
            if not slots:
                return elements.read(source, _rows(count, groups, offset, stride))
            each = elements.read(source, offset + np.arange(groups, dtype=np.int64) * stride)
            return np.repeat(each, count // groups)

        return run

    return Do(make)


def _grouped_store(case: Case) -> Function:
    kind, count, groups = dtype_of(case, "value"), lane_count(case, "value"), groups_of(case)
    elements = _Elements(case, kind.numpy)
    return lambda core, value, target, offset, stride: elements.write(
        target, _rows(count, groups, offset, stride), value, None
    )


def _masked_load(packed: bool) -> Do:
    """Lanes that are on from memory, the others from `passthru`; `packed`: without gaps."""

    def make(case: Case) -> Function:
        elements = _Elements(case, dtype_of(case, "result").numpy)

        def run(core: Machine, source: Pointer, offset: int, mask: Items, keep: Items) -> Items:
            lane = np.cumsum(mask) - mask if packed else np.arange(mask.size)
            out = keep.copy()
            out[mask] = elements.read(source, offset + lane.astype(np.int64), mask)
            return out

        return run

    return Do(make)


def _compress_store(case: Case) -> Function:
    elements = _Elements(case, dtype_of(case, "value").numpy)

    def run(core: Machine, value: Items, target: Pointer, offset: int, mask: Items) -> None:
        lane = (np.cumsum(mask) - mask).astype(np.int64)
        elements.write(target, offset + lane, value, mask)

    return run


def _strided_load(case: Case) -> Function:
    kind, count = dtype_of(case, "result"), lane_count(case)
    elements = _Elements(case, kind.numpy)

    def run(
        core: Machine, source: Pointer, offset: int, stride: int, repeat: int, mask: Items
    ) -> Items:
        out = np.zeros(count, kind.numpy)
        out[mask] = elements.read(source, _blocks(count, kind, offset, stride), mask)
        return out

    return run


def _strided_store(case: Case) -> Function:
    kind, count = dtype_of(case, "value"), lane_count(case, "value")
    elements = _Elements(case, kind.numpy)

    def run(
        core: Machine,
        value: Items,
        target: Pointer,
        offset: int,
        stride: int,
        repeat: int,
        mask: Items,
    ) -> None:
        elements.write(target, _blocks(count, kind, offset, stride), value, mask)

    return run


def _load_pairs(case: Case) -> Function:
    count, elements = lane_count(case, "low"), _Elements(case, dtype_of(case, "low").numpy)

    def run(core: Machine, source: Pointer, offset: int) -> tuple[Items, Items]:
        both = elements.read(source, offset + np.arange(2 * count, dtype=np.int64))
        return both[::2].copy(), both[1::2].copy()

    return run


def _store_pairs(case: Case) -> Function:
    elements = _Elements(case, dtype_of(case, "low").numpy)

    def run(core: Machine, low: Items, high: Items, target: Pointer, offset: int) -> None:
        both = np.stack([low, high], axis=1).reshape(-1)
        elements.write(target, offset + np.arange(both.size, dtype=np.int64), both, None)

    return run


GROUP_LOAD = _grouped_load(slots=False)
GROUP_SLOTS = _grouped_load(slots=True)
GROUP_STORE = Do(_grouped_store)
MASKED_LOAD = _masked_load(packed=False)
EXPAND_LOAD = _masked_load(packed=True)
COMPRESS_STORE = Do(_compress_store)
STRIDED_LOAD = Do(_strided_load)
STRIDED_STORE = Do(_strided_store)
LOAD_PAIRS = Do(_load_pairs)
STORE_PAIRS = Do(_store_pairs)
