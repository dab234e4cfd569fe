"""Loads and stores of logical vectors in UB: runs, rows of groups, blocks, single elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.core.primitives import select
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Vectors
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.meaning.vmi.lanewise import Function, require_zeroing
from pto.isa.meaning.vmi.shape import before, groups_of, interleaved, lane_count
from pto.isa.meaning.vmi.words import Run, VectorWords
from pto.isa.rules.rule import Case


def _runs(
    x: VectorWords, kind: DType, count: int, size: int, offset: Any, stride: Any, blocks: Any
) -> list[Run]:
    """A run of `count` elements; or rows of `size`, `stride` elements apart; or 32-byte blocks,
    `blocks` blocks apart.

    The last row may be shorter.
    """
    first = x.number(offset)
    if blocks is not None:
        size = BLOCK_BYTE_SIZE // kind.itemsize
        step = x.number(blocks) * size
    elif stride is not None:
        step = x.number(stride)
    else:
        return [(first, count)]
    return [(first + step * n, min(size, count - at)) for n, at in enumerate(range(0, count, size))]


def _load(case: Case, slots: bool = False) -> Function:
    """Load one or two results.

    One: a run, rows of groups, blocks, or narrow elements widened; with `slots` or `brc` one
    element for all lanes, or for each group. Two: even and odd elements.
    """
    require_zeroing(case)
    if len(case.op.results) == 2:
        return _pairs(case)
    kind = dtype_of(case, "source")
    result = dtype_of(case, "result")
    count = lane_count(case)
    everywhere, groups = slots or case.word("dist_mode") == "brc", groups_of(case)
    read = groups if everywhere else count

    def run(
        x: VectorWords, source: Pointer, offset: Any, stride: Any, blocks: Any = None, *_: Any
    ) -> Lanes:
        runs = _runs(x, kind, read, read // groups, offset, stride, blocks)
        loaded = x.runs(source, kind.storage, runs)
        if everywhere:
            loaded = x.take([loaded], np.arange(count) // (count // groups))
        return loaded.astype(result.storage)  # `unpack`: into the low bits of a wide lane

    return run


def _pairs(case: Case) -> Function:
    """Even and odd elements."""
    count, kind = lane_count(case, case.row.results[0].name), dtype_of(case, "source")

    def run(x: VectorWords, source: Pointer, offset: Any, *_: Any) -> tuple[Lanes, Lanes]:
        both = x.runs(source, kind.storage, [(x.number(offset), 2 * count)])
        return tuple(x.take([both], np.arange(n, 2 * count, 2)) for n in range(2))  # type: ignore[return-value]

    return run


def _store(case: Case) -> Function:
    """Store a run, rows of groups or blocks; a second value is interleaved.

    Memory may hold narrower elements. The older forms name some operands differently.
    """
    require_zeroing(case)
    first, *names = case.row.operand_names
    kind, count = dtype_of(case, "destination"), lane_count(case, first)
    size = count // groups_of(case)

    def run(x: VectorWords, value: Lanes, *operands: Any) -> None:
        by_name = dict(zip(names, operands, strict=True))
        second, mask = by_name.get("second", by_name.get("high")), by_name.get("mask")
        total = count
        if second is not None:
            total = 2 * count
            value = x.take([value, second], interleaved(count))
            mask = None if mask is None else x.take([mask], np.arange(total) // 2)
        stride, blocks = (
            by_name.get("stride", by_name.get("row_stride")),
            by_name.get("block_stride"),
        )
        runs = _runs(x, kind, total, size, by_name["offset"], stride, blocks)
        x.put_runs(by_name["destination"], runs, lanes.raw(value).astype(kind.storage), mask)

    return run


LOAD = Vectors(_load)
LOAD_SLOTS = Vectors(lambda case: _load(case, slots=True))
LOAD_PAIRS = Vectors(_pairs)
STORE = Vectors(_store)


# ---- single elements


def _unsigned(offsets: Lanes) -> Lanes:
    return lanes.raw(offsets).astype(np.int64)


def _gather(case: Case) -> Function:
    require_zeroing(case)
    item = dtype_of(case, "result").storage

    def run(
        x: VectorWords, source: Pointer, offsets: Lanes, mask: Lanes, keep: Lanes | None = None
    ) -> Lanes:
        gathered = x.gather(source, item, _unsigned(offsets), mask)
        return gathered if keep is None else select(mask, gathered, lanes.raw(keep))

    return run


def _gather_blocks(case: Case) -> Function:
    """Gather by byte offsets of 32-byte blocks, one for all lanes of a block."""
    require_zeroing(case)
    kind = dtype_of(case, "result")
    count = lane_count(case)
    number = lane_count(case, "offsets")
    size, lane = BLOCK_BYTE_SIZE // kind.itemsize, np.arange(lane_count(case), dtype=np.int64)
    wrong = fail("PTO-M140", f"'{case.row.name}' op needs a block of 32 bytes for each offset")
    if number * size < count:
        raise wrong

    def run(x: VectorWords, source: Pointer, offsets: Lanes, mask: Lanes) -> Lanes:
        starts = _unsigned(offsets)
        x.require(x.all(starts % BLOCK_BYTE_SIZE == 0), lambda: wrong)
        places = x.take([starts], lane // size) // kind.itemsize + lane % size
        return x.gather(source, kind.storage, places, mask)

    return run


def _scatter(case: Case) -> Function:
    require_zeroing(case)

    def run(x: VectorWords, value: Lanes, target: Pointer, offsets: Lanes, mask: Lanes) -> None:
        x.scatter(target, _unsigned(offsets), lanes.raw(value), mask)

    return run


GATHER = Vectors(_gather)
GATHER_BLOCKS = Vectors(_gather_blocks)
SCATTER = Vectors(_scatter)

# ---- older forms


def _places(case: Case, name: str, packed: bool) -> Function:
    """fn(words, offset, mask): the positions of the lanes; `packed`: active ones without gaps."""
    count = lane_count(case, name)
    number = np.arange(count, dtype=np.int64)

    def places(x: VectorWords, offset: Any, mask: Lanes) -> Lanes:
        return (before(x, mask, count) if packed else number) + x.lanes(x.number(offset), count)

    return places


def _masked_load(packed: bool) -> Vectors:
    """Load active lanes from memory; inactive lanes take `passthru`."""

    def make(case: Case) -> Function:
        item, places = dtype_of(case, "result").storage, _places(case, "result", packed)

        def run(x: VectorWords, source: Pointer, offset: Any, mask: Lanes, keep: Lanes) -> Lanes:
            gathered = x.gather(source, item, places(x, offset, mask), mask)
            return select(mask, gathered, lanes.raw(keep))

        return run

    return Vectors(make)


def _compress_store(case: Case) -> Function:
    places = _places(case, "value", packed=True)

    def run(x: VectorWords, value: Lanes, target: Pointer, offset: Any, mask: Lanes) -> None:
        x.scatter(target, places(x, offset, mask), lanes.raw(value), mask)

    return run


def _strided_load(case: Case) -> Function:
    kind, count = dtype_of(case, "result"), lane_count(case)
    size = BLOCK_BYTE_SIZE // kind.itemsize
    block, inside = np.arange(count, dtype=np.int64) // size, np.arange(count) % size

    def run(
        x: VectorWords, source: Pointer, offset: Any, stride: Any, repeat: Any, mask: Lanes
    ) -> Lanes:
        first, step = (x.lanes(n, count) for n in (x.number(offset), x.number(stride) * size))
        return x.gather(source, kind.storage, first + step * block + inside, mask)

    return run


MASKED_LOAD = _masked_load(packed=False)
EXPAND_LOAD = _masked_load(packed=True)
COMPRESS_STORE = Vectors(_compress_store)
STRIDED_LOAD = Vectors(_strided_load)
