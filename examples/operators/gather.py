"""y[.., i, ..] = x[.., index[.., i, ..], ..], as torch.gather: an index for each element.

Bound by the gathers: on a5 the vector unit reads elements of global memory, on a2a3 the scalar
unit. Elements of 64 bits are pairs of 32 bits.
"""

from math import prod
from typing import Any

import numpy as np

import pto
from examples.operators.tiles import fitted
from pto import isa

LEVEL = 2
STRIPE = 131072  # bytes of the columns that a block holds
MOST = 4096  # elements of a tile
Array = pto.Global[Any]


@pto.kernel
def kernel(x: Array, index: Array, y: Array, inner: int, rows: int, cols: int, words: int) -> None:
    j, i = pto.block_idx(0) * cols, pto.block_idx(1) * rows
    p, q = pto.block_idx(2) // index.shape[1], pto.block_idx(2) % index.shape[1]
    at = pto.load(index[p, q, i:, j:], rows, cols).to(pto.i32)
    column = pto.arange(cols * words)
    if words == 2:
        at = pto.take(at, column >> 1)
    if inner > 1:
        at = at * (inner * words) + (column + (j * words).to(pto.i32))
    elif words == 2:
        at = at * 2 + (column & 1)
    pto.store(y[p, q, i:, j * words :], pto.take(x[p, q, :, :], at))


@pto.kernel
def stripes(x: Array, index: Array, y: Array, rows: int, cols: int, words: int) -> None:
    """A block holds some columns of x in the vector buffer, all along the axis."""
    j, p, q = pto.block_idx(0) * cols, pto.block_idx(1), pto.block_idx(2)
    t = pto.tile(x.shape[2], cols * words, x.dtype)
    isa.tload(t, x[p, q, :, j * words :])
    column = pto.arange(cols * words)
    for i in pto.range(0, index.shape[2], rows):
        at = pto.load(index[p, q, i:, j:], rows, cols).to(pto.i32)
        if words == 2:
            at = pto.take(at, column >> 1)
        at = at * (cols * words) + column
        pto.store(y[p, q, i:, j * words :], pto.take(t, at, axis=None))


@pto.operator
def run(x: Any, index: Any, dim: int = 0) -> Any:
    y, d = np.empty(index.shape, x.dtype), dim % x.ndim
    words = 2 if x.itemsize == 8 else 1
    data, out = (each.view(np.int32) if words == 2 else each for each in (x, y))
    outer, middle = (prod(x.shape[: d - 1]), x.shape[d - 1]) if d else (1, 1)
    ours = (prod(index.shape[: d - 1]), index.shape[d - 1]) if d else (1, 1)
    k, after, inner = index.shape[d], prod(index.shape[d + 1 :]), prod(x.shape[d + 1 :])
    k, after = (1, k) if inner == 1 else (k, after)
    rows, cols = fitted(k, after, MOST // words)
    source = data.reshape(outer, middle, x.shape[d], inner * words)
    places, result = index.reshape(*ours, k, after), out.reshape(*ours, k, after * words)
    if inner > 1 and source.shape[2] * max(32, words * source.itemsize) <= STRIPE:
        cols = 32 // (words * source.itemsize)
        while 2 * cols <= after and source.shape[2] * 2 * cols * words * source.itemsize <= STRIPE:
            cols *= 2
        rows = max(1, min(k, 2048 // (cols * words)))
        stripes[pto.cdiv(after, cols), *ours](source, places, result, rows, cols, words)
        return y
    grid = pto.cdiv(after, cols), pto.cdiv(k, rows), ours[0] * ours[1]
    kernel[grid](source, places, result, inner, rows, cols, words)
    return y


def reference(x: Any, index: Any, dim: int = 0) -> Any:
    crop = [slice(n) for n in index.shape]
    crop[dim] = slice(None)
    return np.take_along_axis(x[tuple(crop)], index, axis=dim)


CASES: list[dict[str, Any]] = [
    {"x": "f16[40, 64]", "index": "i32[23, 64] 0..39"},
    {"x": "bf16[7, 9, 35] -3..6", "index": "i64[4, 20, 35] 0..8", "dim": 1},
    {"x": "f32[2, 25, 81] -3..6", "index": "i32[2, 12, 50] 0..80", "dim": 2},
    {"x": "i64[61, 51] -10000000000..10000000000", "index": "i64[41, 51] 0..60"},
    {"x": "i64[61] -10000000000..10000000000", "index": "i32[41] 0..60", "dim": -1},
    {"x": "i8[61, 51] -128..127", "index": "i32[100, 51] 0..60"},
    {"x": "f32[1031] -inf..inf", "index": "i64[100] 0..1030"},
    {"x": "f16[3, 5, 4, 17] nan..nan", "index": "i32[2, 6, 4, 17] 0..4", "dim": 1},
]
