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


def _run(x: VectorWords, count: int, offset: Any) -> list[Run]:
    """Consecutive elements."""
    return [(x.number(offset), count)]


def _rows(x: VectorWords, count: int, size: int, offset: Any, stride: Any) -> list[Run]:
    """Rows of `size` elements, `stride` elements apart; the last may be shorter."""
    first, step, starts = x.number(offset), x.number(stride), range(0, count, size)
    return [(first + step * n, min(size, count - at)) for n, at in enumerate(starts)]


def _blocks(x: VectorWords, count: int, kind: DType, offset: Any, stride: Any) -> list[Run]:
    """32-byte blocks, `stride` blocks apart."""
    size = BLOCK_BYTE_SIZE // kind.itemsize
    return _rows(x, count, size, offset, x.number(stride) * size)


def _load(case: Case) -> Function:
    """Load one or two results.

    One: a run, rows, blocks, one element for all lanes (or for each group), or narrow elements
    widened. Two: even and odd elements.
    """
    require_zeroing(case)
    if len(case.op.results) == 2:
        return _pairs(case, "source", "result")
    kind, result, count = dtype_of(case, "source"), dtype_of(case, "result"), lane_count(case)
    groups, is_grouped = groups_of(case), case.word("group") is not None
    everywhere = case.word("dist_mode") == "brc"

    def run(
        x: VectorWords, source: Pointer, offset: Any, stride: Any, blocks: Any, repeat: Any
    ) -> Lanes:
        if blocks is not None:
            runs = _blocks(x, count, kind, offset, blocks)
        elif is_grouped:
            runs = _rows(
                x, *(groups, 1) if everywhere else (count, count // groups), offset, stride
            )
        else:
            runs = _run(x, 1 if everywhere else count, offset)
        found = x.runs(source, kind.storage, runs)
        if everywhere:
            found = x.take([found], np.arange(count) // (count // groups if is_grouped else count))
        return found.astype(result.storage)  # `unpack`: into the low bits of a wide lane

    return run


def _pairs(case: Case, source: str, result: str) -> Function:
    """Even and odd elements."""
    count, kind = lane_count(case, result), dtype_of(case, source)

    def run(x: VectorWords, source: Pointer, offset: Any, *_: Any) -> tuple[Lanes, Lanes]:
        both = x.runs(source, kind.storage, _run(x, 2 * count, offset))
        return tuple(x.take([both], np.arange(n, 2 * count, 2)) for n in range(2))  # type: ignore[return-value]

    return run


def _store(case: Case) -> Function:
    """Store runs, rows or blocks; a second value is interleaved.

    Memory may hold narrower elements.
    """
    require_zeroing(case)
    kind, groups = dtype_of(case, "destination"), groups_of(case)
    count, is_grouped = lane_count(case, "value"), case.word("group") is not None

    def run(
        x: VectorWords,
        value: Lanes,
        second: Lanes | None,
        target: Pointer,
        offset: Any,
        stride: Any,
        blocks: Any,
        repeat: Any,
        mask: Lanes | None,
    ) -> None:
        if blocks is not None:
            runs = _blocks(x, count, kind, offset, blocks)
        elif is_grouped:
            runs = _rows(x, count, count // groups, offset, stride)
        elif second is not None:
            runs = _run(x, 2 * count, offset)
            value = x.take([value, second], interleaved(count))
            mask = None if mask is None else x.take([mask], np.arange(2 * count) // 2)
        else:
            runs = _run(x, count, offset)
        x.put_runs(target, runs, lanes.raw(value).astype(kind.storage), mask)

    return run


def _store_blocks(case: Case) -> Function:
    """Store by blocks, the only form of vstore."""
    store = _store(case)
    return lambda x, value, target, offset, stride, mask: store(
        x, value, None, target, offset, None, stride, None, mask
    )


LOAD = Vectors(_load)
STORE = Vectors(_store)
STORE_BLOCKS = Vectors(_store_blocks)


# ---- single elements


def _unsigned(offsets: Lanes) -> Lanes:
    return lanes.raw(offsets).astype(np.int64)


def _gather(case: Case) -> Function:
    require_zeroing(case)
    item = dtype_of(case, "result").storage

    def run(
        x: VectorWords, source: Pointer, offsets: Lanes, mask: Lanes, keep: Lanes | None = None
    ) -> Lanes:
        found = x.gather(source, item, _unsigned(offsets), mask)
        return found if keep is None else select(mask, found, lanes.raw(keep))

    return run


def _gather_blocks(case: Case) -> Function:
    """Gather by byte offsets of 32-byte blocks, one for all lanes of a block."""
    require_zeroing(case)
    kind, count, number = dtype_of(case, "result"), lane_count(case), lane_count(case, "offsets")
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


def _grouped_load(slots: bool) -> Vectors:
    """Load rows of L / groups elements.

    With `slots` one element per group, broadcast to its lanes.
    """

    def make(case: Case) -> Function:
        item, count, groups = dtype_of(case, "result").storage, lane_count(case), groups_of(case)

        def run(x: VectorWords, source: Pointer, offset: Any, stride: Any) -> Lanes:
            if not slots:
                return x.runs(source, item, _rows(x, count, count // groups, offset, stride))
            each = x.runs(source, item, _rows(x, groups, 1, offset, stride))
            return x.take([each], np.arange(count) // (count // groups))

        return run

    return Vectors(make)


def _grouped_store(case: Case) -> Function:
    count, groups = lane_count(case, "value"), groups_of(case)

    def run(x: VectorWords, value: Lanes, target: Pointer, offset: Any, stride: Any) -> None:
        x.put_runs(target, _rows(x, count, count // groups, offset, stride), lanes.raw(value), None)

    return run


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
            found = x.gather(source, item, places(x, offset, mask), mask)
            return select(mask, found, lanes.raw(keep))

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


def _strided_store(case: Case) -> Function:
    kind, count = dtype_of(case, "value"), lane_count(case, "value")

    def run(
        x: VectorWords,
        value: Lanes,
        target: Pointer,
        offset: Any,
        stride: Any,
        repeat: Any,
        mask: Lanes,
    ) -> None:
        x.put_runs(target, _blocks(x, count, kind, offset, stride), lanes.raw(value), mask)

    return run


def _store_pairs(case: Case) -> Function:
    order = interleaved(lane_count(case, "low"))

    def run(x: VectorWords, low: Lanes, high: Lanes, target: Pointer, offset: Any) -> None:
        both = x.take([lanes.raw(low), lanes.raw(high)], order)
        x.put_runs(target, _run(x, order.size, offset), both, None)

    return run


GROUP_LOAD = _grouped_load(slots=False)
GROUP_SLOTS = _grouped_load(slots=True)
GROUP_STORE = Vectors(_grouped_store)
MASKED_LOAD = _masked_load(packed=False)
EXPAND_LOAD = _masked_load(packed=True)
COMPRESS_STORE = Vectors(_compress_store)
STRIDED_LOAD = Vectors(_strided_load)
STRIDED_STORE = Vectors(_strided_store)
LOAD_PAIRS = Vectors(lambda case: _pairs(case, "source", "low"))
STORE_PAIRS = Vectors(_store_pairs)
