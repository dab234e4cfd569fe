"""Sorting of tiles. A record is 8 bytes: a value, zeros up to 4 bytes, then a 32-bit index.

The order is descending and stable; NaN follows every number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, raw
from pto.isa.meaning.tile.merge import RECORD, WAYS, sort_key
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element
from pto.isa.rules.rule import Case

BLOCK = 32  # number of records that tsort32 sorts together
RUN_STEP = 64  # elements: the length of a run is a multiple of this
_BINS = 256

# ---- tsort32


def _sort_blocks(x: Mover, src: Tile, idx: Tile, tmp: Tile | None, dst: Tile) -> None:
    """Sort blocks over dst's valid rows and src's valid columns.

    Only records of valid elements are written. A shorter last block is a block, and one row of
    indices may be used for all rows.
    """
    rows, cols = dst.get_valid()[0], src.get_valid()[1]
    height, width = idx.get_valid()
    capacity = dst.type.cols // (RECORD // src.type.itemsize)

    def run() -> None:
        x.require(
            cols <= capacity,
            lambda: fail(
                "PTO-S057", f"a row of {dst.type} holds {capacity} records, src has {cols}"
            ),
        )
        x.within(src, rows, cols)
        x.require(
            ((height == 1) | (height == rows)) & (width == cols),
            lambda: fail(
                "PTO-S058", f"idx is {height}x{width}, but {rows}x{cols} elements are sorted"
            ),
        )
        sort_records(x, rows, cols, src, idx, dst)

    x.when((rows > 0) & (cols > 0), run)


def sort_records(x: Mover, rows: int, cols: int, src: Tile, idx: Tile, dst: Tile) -> None:
    """Sort records of values and their indices, in blocks of columns."""
    height = idx.get_valid()[0]

    def key(i: Lanes, j: Lanes) -> Lanes:
        return sort_key(x.read(src, i, j))

    def record(i: Lanes, j: Lanes) -> Lanes:
        number = raw(x.read(idx, x.least(i, height - 1), j)).astype(np.uint64)
        return raw(x.read(src, i, j)).astype(np.uint64) | number << np.uint64(32)

    x.sort(rows, cols, BLOCK, key, record, dst)


SORT_BLOCKS = Move(lambda case: _sort_blocks)

# ---- tmrgsort


def _merge(case: Case) -> Callable[..., None]:
    kind, stop = element(case, "srcs"), case.word("exhausted") == "true"

    def merge(
        x: Mover, srcs: list[Tile], length: Any, dsts: list[Tile], tmp: Tile | None, counts: Any
    ) -> None:
        if length is None:
            x.merge_lists(srcs, dsts[0], counts, kind, stop)
        else:
            _merge_runs(x, srcs[0], dsts[0], x.number(length), kind)

    return merge


def _merge_runs(x: Mover, src: Tile, dst: Tile, length: int, kind: DType) -> None:
    """Merge each four runs into one; the part of src after whole groups is not merged."""
    x.require(
        (length > 0) & (length % RUN_STEP == 0),
        lambda: fail("PTO-S056", f"blockLen is {length}, not a positive multiple of {RUN_STEP}"),
    )
    rows, cols = src.get_valid()
    groups = x.least(rows, 1) * (cols // (length * WAYS))
    merged = groups * length * WAYS
    x.require(
        merged <= dst.type.cols,
        lambda: fail("PTO-S057", f"a row of {dst.type} is narrower than {merged} merged elements"),
    )
    x.merge_runs(src, dst, length * kind.itemsize // RECORD, groups, kind)


MERGE = Move(_merge)

# ---- thistogram


def counted_byte(case: Case) -> int | None:
    """The number of the counted byte, 0 the least significant.

    None if the source type is unknown.
    """
    src, word = case.elem("src"), case.word("byte")
    if word is not None:
        return int(word)
    if src is None or src.dtype is None:
        return None
    return src.dtype.itemsize - 1 if case.word("isMSB") == "true" else 0


def _histogram(case: Case) -> Callable[..., None]:
    """dst[i,b]: the number of src[i,j] with a byte <= b and the higher bytes given by idx."""
    kind = element(case, "src")
    byte, last = counted_byte(case) or 0, kind.itemsize - 1

    def histogram(x: Mover, src: Tile, idx: Tile, dst: Tile) -> None:
        rows, cols = src.get_valid()

        def wanted(i: Lanes) -> Lanes:
            """The required higher bytes: one for each row, or the same for all."""
            if last == 1:
                return x.read(idx, i, 0).astype(kind.storage)
            count = np.zeros((), kind.storage)
            for n in range(last - byte):  # highest byte first
                count = count << kind.storage.type(8) | x.read(idx, n, 0).astype(kind.storage)
            return count

        def cell(i: Lanes, k: Lanes) -> tuple[Lanes, Lanes | None]:
            value = raw(x.read(src, i, k))
            low = (value >> kind.storage.type(8 * byte)) & kind.storage.type(0xFF)
            if byte == last:
                return low, None
            return low, value >> kind.storage.type(8 * byte + 8) == wanted(i)

        x.when(rows > 0, lambda: x.at_most(rows, cols, _BINS, cell, dst))

    return histogram


HISTOGRAM = Move(_histogram)
