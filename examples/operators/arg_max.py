"""y = the index of the greatest element along an axis, the first of several. NaN is the greatest.

Bound by memory: each element is read once. Few long rows are split between blocks, and a second
launch takes the best of the parts. The indices of a tile are compared as f32, which holds them.
"""

import math
from typing import Any

import numpy as np

import pto
from examples.operators.tiles import around, fitted

LEVEL = 2
MOST = 8192  # elements of a tile
BLOCKS = 48
FAR = 2.0**24
WIDER: dict[str, Any] = {
    "f16": pto.f32,
    "bf16": pto.f32,
    "i64": pto.i32,
    "i8": pto.i32,
    "u8": pto.i32,
}


def better(best: pto.Tile, where: pto.Tile, t: pto.Tile, at: pto.Tile, axis: int) -> Any:
    """The greater of the best so far and that of a tile, with its index; `at` holds indices."""
    top = t.max(axis=axis)
    isbest = t == top
    if t.dtype.is_float:
        isbest = isbest | (t != t)
    first = pto.where(isbest, at, FAR).min(axis=axis)
    isnew = top > best
    if t.dtype.is_float:
        isnew = isnew | ((top != top) & (best == best))
    return pto.where(isnew, top, best), pto.where(isnew, first, where)


@pto.kernel
def along_rows(
    x: pto.Global[Any], values: pto.Global[Any], indices: pto.Global[Any], rows: int, cols: int
) -> None:
    part, i = pto.block_idx(0), pto.block_idx(1) * rows
    span = pto.cdiv(pto.cdiv(x.shape[1], cols), values.shape[0]) * cols
    kind = WIDER.get(x.dtype.name, x.dtype)
    least = -math.inf if kind.is_float else kind.min
    best, where = (
        pto.full(rows, 1, least, kind),
        pto.full(rows, 1, (part * span).to(pto.f32), pto.f32),
    )
    for j in pto.range(part * span, pto.min((part + 1) * span, x.shape[1]), cols):
        t = pto.load(x[i:, j:], rows, cols).to(kind, saturate=True if x.dtype is pto.i64 else None)
        best, where = better(best, where, t, pto.arange(cols, dtype=pto.f32) + j.to(pto.f32), 1)
    pto.store(values[part, i:], best.T)
    pto.store(indices[part, i:], where.T.to(indices.dtype))


@pto.kernel
def along_columns(x: pto.Global[Any], indices: pto.Global[Any], rows: int, cols: int) -> None:
    b, j = pto.block_idx(1), pto.block_idx(0) * cols
    kind = WIDER.get(x.dtype.name, x.dtype)
    least = -math.inf if kind.is_float else kind.min
    best, where = pto.full(1, cols, least, kind), pto.zeros(1, cols, pto.f32)
    for i in pto.range(0, x.shape[1], rows):
        t = pto.load(x[b, i:, j:], rows, cols).to(
            kind, saturate=True if x.dtype is pto.i64 else None
        )
        at = (pto.arange(rows, dtype=pto.f32) + i.to(pto.f32)).T
        best, where = better(best, where, t, at, 0)
    pto.store(indices[b, j:], where.to(indices.dtype))


@pto.kernel
def final(
    values: pto.Global[Any], places: pto.Global[pto.f32], indices: pto.Global[Any], rows: int
) -> None:
    i, parts = pto.block_idx() * rows, values.shape[0]
    t, at = (pto.load(x[:, i:], parts, rows) for x in (values, places))
    least = -math.inf if t.dtype.is_float else t.dtype.min
    best, where = pto.full_like(t[0:1, :], least), pto.zeros_like(t[0:1, :], pto.f32)
    where = better(best, where, t, at, 0)[1]
    pto.store(indices[0, i:], where.to(indices.dtype))


@pto.operator
def run(input: Any, dim: int, keepdim: bool = False) -> Any:
    before, n, after = around(input.shape, dim)
    shape = list(input.shape)
    shape[dim : dim + 1 or None] = [1] if keepdim else []
    y = np.empty(shape, np.int64)
    if after > 1:
        rows, cols = fitted(n, min(after, 512), MOST)
        grid = pto.cdiv(after, cols), before
        along_columns[grid](input.reshape(before, n, after), y.reshape(before, after), rows, cols)
        return y
    rows, cols = fitted(before, n, MOST)
    blocks = pto.cdiv(before, rows)
    parts = min(pto.cdiv(n, cols), pto.cdiv(BLOCKS, blocks))
    kind = np.int32 if np.issubdtype(input.dtype, np.integer) else np.float32
    values, places = np.empty((parts, before), kind), y.reshape(1, before)
    if parts > 1:
        places = np.empty((parts, before), np.float32)
    along_rows[parts, blocks](input.reshape(before, n), values, places, rows, cols)
    if parts > 1:
        final[pto.cdiv(before, 256)](values, places, y.reshape(1, before), 256)
    return y


def reference(input: Any, dim: int, keepdim: bool = False) -> Any:
    return np.argmax(input, axis=dim, keepdims=keepdim)


CASES: list[dict[str, Any]] = [
    {"input": "f16[20, 7, 128]", "dim": -1},
    {"input": "bf16[9, 27, 35] -3..6", "dim": 1},
    {"input": "f32[20011] -50..100", "dim": 0},
    {"input": "f32[3, 20011] -50..100", "dim": 1},
    {"input": "i32[300, 100] -10000..10000", "dim": 0, "keepdim": True},
    {"input": "i64[61, 51] -10..10", "dim": -1, "keepdim": True},
    {"input": "f32[30011] -inf..inf", "dim": -1},
    {"input": "f16[5, 7, 103] nan..nan", "dim": 1},
    {"input": "i64[3, 5, 103] 0..0", "dim": -1},
    {"input": "f32[5, 103] nan..nan", "dim": -1},
]
