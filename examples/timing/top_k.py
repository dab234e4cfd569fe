"""The greatest values of each row with their columns, two rows at a time in two sets of buffers:
blocks of 32 are sorted, then merged by four."""

from typing import Any

import pto
from pto import isa

WIDTH, ROWS = 1024, 2
ROW = WIDTH * 8  # bytes of a row as (value, column) records


@pto.kernel(profile="a2a3")
def top_k(
    x: pto.Global[Any],
    places: pto.Global[pto.u32],
    values: pto.Global[Any],
    columns: pto.Global[pto.u32],
    blocks: int,
) -> None:
    """Rows of `x`, of which 1024 elements count, shared among the blocks; `places` counts up."""
    dtype, best, rows = x.dtype, values.shape[1], x.shape[0] // blocks
    place: Any = pto.u32
    source = WIDTH * dtype.itemsize
    index = pto.tile(1, WIDTH, pto.u32, address=4 * ROWS * ROW)
    scratch = 4 * ROWS * ROW + 4 * WIDTH
    taken = scratch + 2 * ROW
    sources = taken + 2 * ROWS * best * (dtype.itemsize + 4)
    isa.tload(index, places)
    for turn in (0, 1):
        isa.set_flag("V", "MTE2", turn)
        isa.set_flag("MTE3", "V", turn)
    for i in pto.range(0, rows, 2 * ROWS):
        for turn in (0, 1):
            first = pto.block_idx() * rows + i + turn * ROWS
            mine = sources + turn * ROWS * source
            isa.wait_flag("V", "MTE2", turn)
            isa.tload(pto.tile(ROWS, WIDTH, dtype, address=mine), x[first : first + ROWS, 0:WIDTH])
            isa.set_flag("MTE2", "V", turn)
            isa.wait_flag("MTE2", "V", turn)
            runs, merged = turn * ROWS * ROW, (2 + turn) * ROWS * ROW
            for n in range(ROWS):
                row = pto.tile(1, WIDTH, dtype, address=mine + n * source)
                isa.tsort32(records(runs + n * ROW, WIDTH, dtype), row, index)
                isa.barrier("V")
            isa.set_flag("V", "MTE2", turn)
            for n in range(ROWS):
                merge(runs + n * ROW, scratch + turn * ROW, dtype)
                kept = records(runs + n * ROW, best, dtype)
                isa.tmov(records(merged + n * ROW, best, dtype), kept)
            isa.barrier("V")
            isa.wait_flag("MTE3", "V", turn)
            into = taken + turn * ROWS * best * (dtype.itemsize + 4)
            halves = (
                (values, dtype, into),
                (columns, place, into + ROWS * best * dtype.itemsize),
            )
            for which, (_, kind, at) in enumerate(halves):
                for n in range(ROWS):
                    pick(at + n * best * kind.itemsize, merged + n * ROW, best, kind, which)
                isa.set_flag("V", "MTE3", 2 * which + turn)
            for which, (array, kind, at) in enumerate(halves):
                isa.wait_flag("V", "MTE3", 2 * which + turn)
                out = pto.tile(ROWS, best, kind, address=at)
                isa.tstore(array[first : first + ROWS, :], out)
            isa.set_flag("MTE3", "V", turn)
    for turn in (0, 1):
        isa.wait_flag("V", "MTE2", turn)
        isa.wait_flag("MTE3", "V", turn)


def records(at: int, count: int, dtype: Any) -> pto.Tile:
    """A row of (value, column) records of eight bytes."""
    return pto.tile(1, count * 8 // dtype.itemsize, dtype, address=at)


def merge(at: int, scratch: int, dtype: Any) -> None:
    """Sorted runs of 32 records to one, by four; of the last two, the halves are four."""
    whole, other = records(at, WIDTH, dtype), records(scratch, WIDTH, dtype)
    run = 32
    while run < WIDTH:
        run = min(run, WIDTH // 4)
        isa.tmrgsort(other, whole, blockLen=run * 8 // dtype.itemsize)
        isa.barrier("V")
        isa.tmov(whole, other)
        isa.barrier("V")
        run *= 4


def pick(at: int, merged: int, best: int, kind: Any, which: int) -> None:
    """The values (0) or the columns (1) of a row of records."""
    width = 8 // kind.itemsize
    pattern = ("P0101" if width == 2 else "P0001") if which == 0 else "P1010"
    source = pto.tile(1, best * width, kind, address=merged)
    isa.tgather(pto.tile(1, best, kind, address=at), source, maskPattern=pattern)
