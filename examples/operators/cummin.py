"""The least element so far along an axis, and its index, the last of several. NaN is the least.

Bound by the vector pipe: element by element along the axis, a comparison and two selections of all
lines of a block. Along the last axis tiles are turned, so that lines are columns.
"""

import math
from typing import Any

import numpy as np

import pto
from examples.operators.tiles import around, fitted

LEVEL = 2
SIDE = 64  # of a tile that is turned
Array = pto.Global[Any]


def scan(t: pto.Tile, best: pto.Tile, where: pto.Tile, start: Any) -> tuple[pto.Tile, pto.Tile]:
    """The least of the rows of a tile so far, in place, and their indices in another tile."""
    places = pto.zeros_like(t, pto.f32)
    for r in pto.range(t.valid[0]):
        row = t[r : r + 1, :]
        isnew = (row <= best) | (row != row) if t.dtype.is_float else row <= best
        where[:] = pto.where(isnew, pto.full_like(where, (start + r).to(pto.f32)), where)
        best[:] = pto.where(isnew, row, best)
        t[r : r + 1, :] = best
        places[r : r + 1, :] = where
    return t, places


@pto.kernel
def along_columns(x: Array, values: Array, indices: Array, rows: int, cols: int) -> None:
    b, j = pto.block_idx(1), pto.block_idx(0) * cols
    kind: Any = pto.f32 if x.dtype.is_float else x.dtype
    first = pto.load(x[b, 0:, j:], 1, cols).to(kind)
    best = pto.full_like(first, math.inf if kind.is_float else kind.max)
    where = pto.zeros_like(first, pto.f32)
    for i in pto.range(0, x.shape[1], rows):
        t, places = scan(pto.load(x[b, i:, j:], rows, cols).to(kind), best, where, i)
        pto.store(values[b, i:, j:], t.to(values.dtype, saturate=False if kind.is_float else None))
        pto.store(indices[b, i:, j:], places.to(pto.i32).to(indices.dtype))


@pto.kernel
def along_rows(x: Array, values: Array, indices: Array) -> None:
    i = pto.block_idx() * SIDE
    kind: Any = pto.f32 if x.dtype.is_float else x.dtype
    first = pto.load(x[i:, 0:], SIDE, SIDE).to(kind).T[0:1, :]
    best = pto.full_like(first, math.inf if kind.is_float else kind.max)
    where = pto.zeros_like(first, pto.f32)
    for j in pto.range(0, x.shape[1], SIDE):
        t, places = scan(pto.load(x[i:, j:], SIDE, SIDE).to(kind).T, best, where, j)
        pto.store(values[i:, j:], t.T.to(values.dtype, saturate=False if kind.is_float else None))
        pto.store(indices[i:, j:], places.T.to(pto.i32).to(indices.dtype))


@pto.operator
def run(input: Any, dim: int) -> Any:
    values, indices = np.empty_like(input), np.empty(input.shape, np.int64)
    before, n, after = around(input.shape, dim)
    if after == 1:
        x, y, z = (each.reshape(before, n) for each in (input, values, indices))
        along_rows[pto.cdiv(before, SIDE)](x, y, z)
    else:
        rows, cols = fitted(n, min(after, 512), 4096)
        x, y, z = (each.reshape(before, n, after) for each in (input, values, indices))
        along_columns[pto.cdiv(after, cols), before](x, y, z, rows, cols)
    return values, indices


def reference(input: Any, dim: int) -> Any:
    lines = np.moveaxis(input, dim, 0)
    values, indices = np.empty_like(lines), np.empty(lines.shape, np.int64)
    best, where = lines[0], np.zeros(lines.shape[1:], np.int64)
    for n, line in enumerate(lines):
        isnew = (line <= best) | (line != line)
        best, where = np.where(isnew, line, best), np.where(isnew, n, where)
        values[n], indices[n] = best, where
    return np.moveaxis(values, 0, dim), np.moveaxis(indices, 0, dim)


CASES: list[dict[str, Any]] = [
    {"input": "f16[20, 70]", "dim": -1},
    {"input": "bf16[3, 47, 35] -50..100", "dim": 1},
    {"input": "i32[67, 130] -3..3", "dim": -1},
    {"input": "f32[70, 600] -3..6", "dim": 0},
    {"input": "bf16[301] -inf..inf", "dim": -1},
    {"input": "f16[3, 7, 33] nan..nan", "dim": 1},
]
