"""y = e ** x / sum(e ** x) along an axis.

Bound by memory: along the last axis each element is read and written once. Along another axis a
block has some of the columns that follow it and reads them twice: first for the maxima and sums,
which are kept from chunk to chunk, then for the quotients.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import around, fitted

LEVEL = 2
MOST = 8192  # elements of a tile
LEAST = -3.0e38


@pto.kernel
def along_rows(x: pto.Global[Any], y: pto.Global[Any], rows: int) -> None:
    i = pto.block_idx() * rows
    t = pto.softmax(pto.load(x[i:, :], rows, x.shape[1]).to(pto.f32))
    pto.store(y[i:, :], t.to(y.dtype, saturate=False))


@pto.kernel
def along_columns(x: pto.Global[Any], y: pto.Global[Any], rows: int, cols: int) -> None:
    b, j = pto.block_idx(1), pto.block_idx(0) * cols
    greatest, total = pto.full(1, cols, LEAST, pto.f32), pto.zeros(1, cols, pto.f32)
    for i in pto.range(0, x.shape[1], rows):
        t = pto.load(x[b, i:, j:], rows, cols).to(pto.f32)
        higher = pto.max(greatest, t.max(axis=0))
        total = total * pto.exp(greatest - higher) + pto.exp(t - higher).sum(axis=0)
        greatest = higher
    for i in pto.range(0, x.shape[1], rows):
        t = pto.load(x[b, i:, j:], rows, cols).to(pto.f32)
        pto.store(y[b, i:, j:], (pto.exp(t - greatest) / total).to(y.dtype, saturate=False))


@pto.operator
def run(x: Any, dim: int = -1) -> Any:
    y = np.empty_like(x)
    before, n, after = around(x.shape, dim)
    if after == 1:
        rows, _ = fitted(before, n, MOST)
        along_rows[pto.cdiv(before, rows)](x.reshape(before, n), y.reshape(before, n), rows)
    else:
        rows, cols = fitted(n, min(after, 512), MOST)
        shape = before, n, after
        along_columns[pto.cdiv(after, cols), before](x.reshape(shape), y.reshape(shape), rows, cols)
    return y


def reference(x: Any, dim: int = -1) -> Any:
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


CASES: list[dict[str, Any]] = [
    {"x": "f16[20, 7, 128]"},
    {"x": "bf16[5, 67, 31] -5..5", "dim": 1},
    {"x": "f32[5, 8193] -1000..1000", "dim": 1},
    {"x": "f16[517, 2] -inf..inf"},
    {"x": "f32[11, 13, 67] nan..nan"},
    {"x": "f32[300, 100] -20..40", "dim": 0},
    {"x": "f16[4, 25, 49] -65504..65504", "dim": -2},
]
