"""The different elements of an array in ascending order, and where each element is among them.

Bound by memory: the array is sorted, in passes that each merge pairs of runs, then read twice, for
the number of different elements of each block and for their places. Each NaN is different.
"""

import math
from typing import Any

import numpy as np

import pto
from examples.operators.sorting import RUN, Array, Keys, Places, elements_of, ordered
from pto import isa

LEVEL = 3
ROWS, COLS = 32, 64  # of a tile


def lasts(keys: Keys, following: Keys, count: int) -> pto.Tile:
    """1 for the last of each series of equal keys."""
    i = pto.block_idx() * ROWS
    t, after = (pto.load(x[i:, :], ROWS, COLS) for x in (keys, following))
    number = (pto.arange(ROWS) + i).T * COLS + pto.arange(COLS)
    islast: Any = (t != after) | (t == -math.inf)
    return pto.where(islast & (number < count), pto.full_like(t, 1.0), 0.0)


@pto.kernel
def counted(keys: Keys, following: Keys, counts: Places, count: int) -> None:
    total = lasts(keys, following, count).sum(axis=1).sum(axis=0)
    pto.store(counts[0, pto.block_idx()], total.to(pto.i32))


@pto.kernel
def placed(keys: Keys, following: Keys, counts: Places, y: Keys, targets: Places) -> None:
    """The last of each series, one after the other, and for each key where its series stands."""
    block, count = pto.block_idx(), y.shape[0]
    total = 0
    for j in pto.range(block):
        total += isa.load_scalar(counts, 0, j)
    islast = lasts(keys, following, count)
    lines = islast.sum(axis=1)
    before = pto.cumsum(islast, axis=1) - islast + pto.cumsum(lines, axis=0) - lines
    pto.store(targets[block * ROWS :, :], before.to(pto.i32) + total)
    t = pto.load(keys[block * ROWS :, :], ROWS, COLS)
    kept = pto.topk(pto.where(islast > 0.0, t, math.nan).reshape(1, RUN), RUN)[0]
    pto.set_validshape(kept, 1, isa.load_scalar(counts, 0, block))
    pto.store(y[total:], kept)


@pto.kernel
def results(keys: Keys, inverse: Places, y: Array, places: Array, has_places: bool) -> None:
    i = pto.block_idx() * RUN
    if i < y.shape[0]:
        pto.store(y[i:], elements_of(pto.load(keys[i : y.shape[0]], RUN), -1, y.dtype))
    if has_places:
        pto.store(places[i:], pto.load(inverse[i : places.shape[0]], RUN).to(places.dtype))


@pto.operator
def run(x: Any, return_inverse: bool = False) -> Any:
    (keys, places), count = ordered(x, -1), x.size
    blocks = pto.cdiv(count, RUN)
    lines, following = (keys[0, n : n + blocks * RUN].reshape(-1, COLS) for n in (0, 1))
    counts, different = np.zeros((1, blocks), np.int32), np.empty(count, np.float32)
    targets = np.zeros(places.shape, np.int32)
    counted[blocks](lines, following, counts, count)
    placed[blocks](lines, following, counts, different, targets.reshape(-1, COLS))
    y, indices = np.empty(counts.sum(), x.dtype), np.empty(x.shape, np.int64)
    inverse = ordered(places, -1, targets)[1] if return_inverse else targets
    work = pto.cdiv(count, RUN)
    results[work](different, inverse[0], y, indices.reshape(-1), return_inverse)
    return (y, indices) if return_inverse else y


def reference(x: Any, return_inverse: bool = False) -> Any:
    y, indices = np.unique(x, return_inverse=True, equal_nan=False)
    return (y, indices.reshape(x.shape)) if return_inverse else y


CASES: list[dict[str, Any]] = [
    {"x": "i32[7, 300] -50..100", "return_inverse": True},
    {"x": "f16[5000] -3..6", "return_inverse": True},
    {"x": "f32[31, 37] -inf..inf", "return_inverse": True},
    {"x": "bf16[9000] -0.01..0.01"},
    {"x": "u8[3, 5, 11] 0..255"},
    {"x": "i64[100] 0..0", "return_inverse": True},
    {"x": "f32[130] nan..nan"},
]
