"""y[s] = the sum of the rows of data whose segment is s.

Bound by memory where rows are long: a block has some of the columns, and adds every row to its
segment in global memory, in the order of the rows. Single numbers are added by the scalar unit,
which is the bound then: a block adds a part of them in the vector buffer, a second launch adds the
parts. Sums are f32 or i32; elements of i64 have to fit into 32 bits.
"""

from typing import Any

import numpy as np

import pto
from pto import isa

LEVEL = 2
BLOCKS = 48
MOST = 4096  # elements of a tile
Array = pto.Global[Any]


@pto.kernel
def of_rows(data: Array, ids: Array, sums: Array, rows: int, cols: int) -> None:
    j = pto.block_idx() * cols
    for s in pto.range(0, sums.shape[0], rows):
        pto.store(sums[s:, j:], pto.zeros(rows, cols, sums.dtype))
    for i in pto.range(0, data.shape[0], rows):
        t = pto.load(data[i:, j:], rows, cols).to(sums.dtype)
        for r in pto.range(t.valid[0]):
            segment = isa.load_scalar(ids, i + r)
            pto.store(sums[segment, j:], t[r : r + 1, :], atomic="add")


@pto.kernel
def converted(sums: Array, y: Array) -> None:
    i = pto.block_idx() * MOST
    pto.store(
        y[i:], pto.load(sums[i:], MOST).to(y.dtype, saturate=None if y.dtype is pto.i64 else False)
    )


@pto.kernel
def of_numbers(data: Array, ids: Array, parts: Array) -> None:
    total = pto.zeros(1, parts.shape[1], parts.dtype)
    for i in pto.range(pto.block_idx() * MOST, data.shape[0], pto.block_num() * MOST):
        t, at = pto.load(data[i:], MOST).to(parts.dtype), pto.load(ids[i:], MOST).to(pto.i32)
        for e in pto.range(t.valid[1]):
            segment = at[0, e]
            total[0, segment] = total[0, segment] + t[0, e]
    pto.store(parts[pto.block_idx(), :], total)


@pto.kernel
def folded(parts: Array, y: Array) -> None:
    j = pto.block_idx() * 64
    total = pto.load(parts[:, j:], parts.shape[0], 64).sum(axis=0)
    pto.store(y[j:], total.to(y.dtype, saturate=None if y.dtype is pto.i64 else False))


@pto.operator
def run(data: Any, segment_ids: Any, num_segments: int) -> Any:
    y = np.empty((num_segments, *data.shape[1:]), data.dtype)
    kind = np.int32 if np.issubdtype(data.dtype, np.integer) else np.float32
    n, width = len(data), y.size // num_segments
    if width == 1:
        parts = np.empty((min(BLOCKS, pto.cdiv(n, MOST)), num_segments), kind)
        of_numbers[len(parts)](data.reshape(-1), segment_ids, parts)
        folded[pto.cdiv(num_segments, 64)](parts, y.reshape(-1))
        return y
    cols = min(MOST, -(-pto.cdiv(width, BLOCKS) // 32) * 32)
    sums = y if y.dtype == kind else np.empty(y.shape, kind)
    a, b = data.reshape(n, width), sums.reshape(num_segments, width)
    of_rows[pto.cdiv(width, cols)](a, segment_ids, b, max(1, MOST // cols), cols)
    if sums is not y:
        converted[pto.cdiv(y.size, MOST)](sums.reshape(-1), y.reshape(-1))
    return y


def reference(data: Any, segment_ids: Any, num_segments: int) -> Any:
    y = np.zeros((num_segments, *data.shape[1:]), data.dtype)
    np.add.at(y, segment_ids, data)
    return y


CASES: list[dict[str, Any]] = [
    {"data": "f16[40, 64]", "segment_ids": "i32[40] 0..22", "num_segments": 23},
    {"data": "bf16[19, 7, 35] -3..6", "segment_ids": "i64[19] 0..4", "num_segments": 9},
    {"data": "i32[61, 81] -1000..1000", "segment_ids": "i32[61] 0..30", "num_segments": 31},
    {"data": "i64[21, 131] -100000..100000", "segment_ids": "i64[21] 0..60", "num_segments": 61},
    {"data": "f32[331]", "segment_ids": "i32[331] 0..0", "num_segments": 1},
    {"data": "f16[1031] -inf..inf", "segment_ids": "i32[1031] 0..70", "num_segments": 71},
    {"data": "f32[5, 3, 17] nan..nan", "segment_ids": "i32[5] 0..4", "num_segments": 5},
]
