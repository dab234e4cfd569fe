"""Sorting and merging of records, on NumPy.

A record is 8 bytes: a value, zeros up to 4 bytes, then a 32-bit index. The order is descending and
stable; NaN follows every number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.lanes import Lanes, const, is_integer, select
from pto.isa.meaning.tile.regions import put, region

RECORD = 8  # bytes
WAYS = 4  # runs per merge

Records = npt.NDArray[np.uint64]


def descending(values: Lanes) -> npt.NDArray[np.intp]:
    """The permutation that sorts the last axis in descending order."""
    if is_integer(values):
        key = ~values  # -values would overflow
    else:
        key = -values if values.dtype.kind == "f" else -values.astype(np.float32)
    return np.argsort(key, axis=-1, kind="stable")


def sort_key(values: Lanes) -> Lanes:
    """An integer with the same order as the value: zeros are equal, NaN is the least."""
    if is_integer(values):
        return values
    wide = values.astype(np.float32)
    bits = (wide + const(wide, 0)).view(np.int32)  # -0 + 0 is +0
    key = select(bits < 0, np.int32(-(2**31)) - bits, bits)
    return select(wide != wide, np.int32(-(2**31)), key)


def _floor(values: Lanes) -> Lanes:
    """The sort key of each record in a merge: the smallest value up to it in its list.

    In a descending list this is its own value. Sorting by these keys gives the same order as taking
    the largest head of the lists repeatedly; of equal heads the first list's.
    """
    return np.minimum.accumulate(values, axis=-1)


def _records(tile: Tile, kind: DType) -> Records:
    """The records in the valid columns of the only row."""
    rows, cols = tile.get_valid()
    width = cols * kind.itemsize // RECORD * RECORD // kind.itemsize
    return np.ascontiguousarray(region(tile, min(rows, 1), width)).reshape(-1).view(np.uint64)


def _values(records: Records, kind: DType) -> Lanes:
    return records.view(kind.numpy)[:: RECORD // kind.itemsize]


def _store(dst: Tile, records: Records, kind: DType) -> None:
    values = records.view(kind.numpy)
    if values.size > dst.type.cols:
        raise fail(
            "PTO-S057", f"a row of {dst.type} is narrower than {values.size} merged elements"
        )
    put(dst, 1, values.size, values[None, :])


def merge_runs(src: Tile, dst: Tile, run: int, groups: int, kind: DType) -> None:
    """Merge each four consecutive runs of `length` records into one."""
    if groups == 0:
        return
    records = _records(src, kind)[: groups * WAYS * run]
    order = descending(
        _floor(_values(records, kind).reshape(groups, WAYS, run)).reshape(groups, -1)
    )
    merged = np.take_along_axis(records.reshape(groups, -1), order, axis=1)
    _store(dst, merged.reshape(-1), kind)


def merge_lists(tiles: list[Tile], dst: Tile, kind: DType, stop: bool) -> npt.NDArray[np.intp]:
    """Merge lists into dst until it is full; with `stop`, until a list is exhausted.

    Returns the number taken from each.
    """
    lists = [_records(tile, kind) for tile in tiles]
    order = descending(np.concatenate([_floor(_values(records, kind)) for records in lists]))
    lengths = [records.size for records in lists]
    owner = np.repeat(np.arange(len(lists)), lengths)[order]
    count = min(order.size, dst.get_valid()[1] * kind.itemsize // RECORD)
    if stop and order.size:
        # an empty list counts as exhausted after the first record is taken
        ends = [np.flatnonzero(owner == n)[-1] + 1 if size else 1 for n, size in enumerate(lengths)]
        count = min(count, *map(int, ends))
    _store(dst, np.concatenate(lists)[order[:count]], kind)
    return np.bincount(owner[:count], minlength=WAYS)
