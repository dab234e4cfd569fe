"""Sorting on tiles. A record is 8 bytes: a value, zeros up to 4 bytes, then a 32-bit index.

Values sort descending and stably; a NaN stands behind every number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import as_tile
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes, is_integer
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, region
from pto.isa.rules.rule import Case

RECORD = 8  # bytes
BLOCK = 32  # records that tsort32 sorts together
WAYS = 4  # runs that one merge takes
RUN_STEP = 64  # elements: what the length of a run is a multiple of
_BINS = 256

Records = npt.NDArray[np.uint64]


def descending(values: Lanes) -> npt.NDArray[np.intp]:
    """The order of the last axis."""
    if is_integer(values):
        key = ~values  # -values would overflow
    else:
        key = -values if values.dtype.kind == "f" else -values.astype(np.float32)
    return np.argsort(key, axis=-1, kind="stable")


# ---- tsort32


def _sort_blocks(case: Case) -> Callable[..., None]:
    """Domain: dst's valid rows, src's valid columns. Only records of valid elements are written."""
    types = [case.type(name) for name in ("src", "idx", "dst")]
    kind = element(case, "src")
    per_record = RECORD // kind.itemsize

    def sort(core: Machine, src: Any, idx: Any, tmp: Any, dst: Any) -> None:
        values, numbers, out = map(as_tile, (src, idx, dst), types)
        rows, cols = out.get_valid()[0], values.get_valid()[1]
        if rows == 0 or cols == 0:
            return
        _require_room(out, cols, per_record)
        scores = region(values, rows, cols)
        indices = _indices(numbers, rows, cols)
        whole = cols - cols % BLOCK
        records = np.empty((rows, cols), np.uint64)
        for part in (slice(0, whole), slice(whole, cols)):
            if part.start < part.stop:
                records[:, part] = _sorted(scores[:, part], indices[:, part], kind)
        put(out, rows, cols * per_record, records.view(kind.numpy))

    return sort


def _sorted(scores: Lanes, indices: Lanes, kind: DType) -> Records:
    """Each block of a row as records in order; a tail of less than a block is one block."""
    rows, cols = scores.shape
    shape = (rows, -1, min(cols, BLOCK))
    scores = np.ascontiguousarray(scores).reshape(shape)
    order = descending(scores)
    low = np.take_along_axis(scores, order, axis=2).view(kind.storage)
    high = np.take_along_axis(np.broadcast_to(indices, (rows, cols)).reshape(shape), order, axis=2)
    return (low | (high.astype(np.uint64) << np.uint64(32))).reshape(rows, cols)


def _indices(tile: Tile, rows: int, cols: int) -> Lanes:
    """One row of indices may serve all rows."""
    have = tile.get_valid()
    if have[0] not in (1, rows) or have[1] != cols:
        raise fail("PTO-S058", f"idx is {have[0]}x{have[1]}, {rows}x{cols} elements are sorted")
    return region(tile, have[0], cols).view(np.uint32)


def _require_room(dst: Tile, records: int, per_record: int) -> None:
    room = dst.type.cols // per_record
    if room < records:
        raise fail("PTO-S057", f"a row of {dst.type} holds {room} records, src has {records}")


SORT_BLOCKS = Do(_sort_blocks)

# ---- tmrgsort


def _floor(values: Lanes) -> Lanes:
    """What a merge sees of lists: an element waits for all before it in its list.

    In a descending list that is its own value. In any other it goes as early as the smallest value
    before it lets it; sorting by these gives the order in which taking the largest first element,
    of equals from the first list, would.
    """
    return np.minimum.accumulate(values, axis=-1)


def _merge(case: Case) -> Callable[..., None]:
    kind, stop = element(case, "srcs"), case.word("exhausted") == "true"
    types = [value.type for value in case.op.group("srcs")]
    dst_type = case.type("dsts")

    def merge(
        core: Machine, srcs: list[Any], length: int | None, dsts: list[Any], tmp: Any, counts: Any
    ) -> None:
        lists = [_records(as_tile(s, type), kind) for s, type in zip(srcs, types, strict=True)]
        dst = as_tile(dsts[0], dst_type)
        if length is None:
            counts[...] = _merge_lists(lists, dst, kind, stop).astype(counts.dtype)
        else:
            _merge_runs(lists[0], dst, _run(length, kind), kind)

    return merge


def _records(tile: Tile, kind: DType) -> Records:
    """The valid columns of the only row."""
    rows, cols = tile.get_valid()
    whole = cols * kind.itemsize // RECORD * RECORD // kind.itemsize
    return np.ascontiguousarray(region(tile, min(rows, 1), whole)).reshape(-1).view(np.uint64)


def _values(records: Records, kind: DType) -> Lanes:
    return records.view(kind.numpy)[:: RECORD // kind.itemsize]


def _store(dst: Tile, records: Records, kind: DType) -> None:
    values = records.view(kind.numpy)
    if values.size > dst.type.cols:
        raise fail(
            "PTO-S057", f"a row of {dst.type} is narrower than {values.size} merged elements"
        )
    put(dst, 1, values.size, values[None, :])


def _run(length: int, kind: DType) -> int:
    """Elements of a run as records."""
    if length <= 0 or length % RUN_STEP:
        raise fail("PTO-S056", f"blockLen is {length}, no positive multiple of {RUN_STEP}")
    return length * kind.itemsize // RECORD


def _merge_runs(records: Records, dst: Tile, run: int, kind: DType) -> None:
    """Each four runs into one; what is left of src after whole groups is not merged."""
    groups = records.size // (WAYS * run)
    if groups == 0:
        return
    kept = records[: groups * WAYS * run]
    order = descending(_floor(_values(kept, kind).reshape(groups, WAYS, run)).reshape(groups, -1))
    found = np.take_along_axis(kept.reshape(groups, -1), order, axis=1)
    _store(dst, found.reshape(-1), kind)


def _merge_lists(lists: list[Records], dst: Tile, kind: DType, stop: bool) -> npt.NDArray[np.intp]:
    """As many records as dst has room for; with `stop`, until a list runs out. How many of each."""
    order = descending(np.concatenate([_floor(_values(each, kind)) for each in lists]))
    lengths = [each.size for each in lists]
    owner = np.repeat(np.arange(len(lists)), lengths)[order]
    count = min(order.size, dst.get_valid()[1] * kind.itemsize // RECORD)
    if stop and order.size:
        # an empty list counts as run out once something has been taken
        ends = [np.flatnonzero(owner == n)[-1] + 1 if size else 1 for n, size in enumerate(lengths)]
        count = min(count, *map(int, ends))
    _store(dst, np.concatenate(lists)[order[:count]], kind)
    return np.bincount(owner[:count], minlength=WAYS)


MERGE = Do(_merge)

# ---- thistogram


def counted_byte(case: Case) -> int | None:
    """Which byte is counted, 0 the least significant; None where the source type is not known."""
    src, word = case.elem("src"), case.word("byte")
    if word is not None:
        return int(word)
    if src is None or src.dtype is None:
        return None
    return src.dtype.itemsize - 1 if case.word("isMSB") == "true" else 0


def _histogram(case: Case) -> Callable[..., None]:
    """dst[i,b]: how many src[i,j] have a byte <= b, and the higher bytes that idx asks for."""
    types = [case.type(name) for name in ("src", "idx", "dst")]
    byte, last = counted_byte(case) or 0, element(case, "src").itemsize - 1

    def histogram(core: Machine, src: Any, idx: Any, dst: Any) -> None:
        values, wanted, out = map(as_tile, (src, idx, dst), types)
        rows, cols = values.get_valid()
        if rows == 0:
            return
        parts = np.ascontiguousarray(region(values, rows, cols)).view(np.uint8)
        parts = parts.reshape(rows, cols, last + 1)
        bins = parts[:, :, byte] + np.arange(rows)[:, None] * _BINS
        if byte < last:
            above = _wanted(wanted, rows, last, byte)
            bins = bins[(parts[:, :, byte + 1 :] == above).all(axis=2)]
        counts = np.bincount(bins.reshape(-1), minlength=rows * _BINS).reshape(rows, _BINS)
        put(out, rows, _BINS, counts.cumsum(axis=1).astype(np.uint32))

    return histogram


def _wanted(idx: Tile, rows: int, last: int, byte: int) -> Lanes:
    """The higher bytes to look for, the highest last: one for each row, or the same for all."""
    if last == 1:
        return region(idx, rows, 1)[:, :, None]
    return region(idx, last - byte, 1)[::-1, 0]


HISTOGRAM = Do(_histogram)
