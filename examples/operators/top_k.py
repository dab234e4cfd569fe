"""The k greatest, or least, elements along an axis in order, and their indices. NaN is greatest.

Bound by the vector unit, which sorts line by line: 32 elements by one instruction, then four runs
by one. Long lines are cut into runs, of which only the first k remain, until one is left. Launches
before and after turn the arrays where the axis is not the last one.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.scatter import turn
from examples.operators.sorting import RUN, Array, Keys, Places, elements_of, ordered, runs
from examples.operators.tiles import around

LEVEL = 3
MOST = 4096  # elements of a tile


@pto.kernel
def results(keys: Keys, places: Places, y: Array, indices: Array, sign: int, turned: bool) -> None:
    b, i, j = pto.block_idx(2), pto.block_idx(1) * 64, pto.block_idx(0) * 64
    values, at = pto.load(keys[b, i:, j:], 64, 64), pto.load(places[b, i:, j:], 64, 64)
    if turned:
        i, j, values, at = j, i, values.T, at.T
    pto.store(y[b, i:, j:], elements_of(values, sign, y.dtype))
    pto.store(indices[b, i:, j:], at.to(indices.dtype))


def best(x: Any, k: int, sign: int) -> tuple[Any, Any]:
    """Keys and places of the first k elements of each line."""
    places = np.zeros((1, 1), np.int32)
    while True:
        lines, n = x.shape
        rows, parts = max(1, MOST // n) if sign else 1, -(-n // RUN)
        shape = lines, parts * k
        keys, at = np.empty(shape, np.float32), np.empty(shape, np.int32)
        runs[parts, pto.cdiv(lines, rows)](x, places, keys, at, sign, rows, k)
        if parts == 1:
            return keys, at
        x, places, sign = keys, at, 0


@pto.operator
def run(x: Any, k: int, dim: int = -1, largest: bool = True) -> tuple[Any, Any]:
    before, n, after = around(x.shape, dim)
    shape, sign = list(x.shape), 1 if largest else -1
    shape[dim] = k
    y, indices = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    lines = x.reshape(before, n, after)
    lines = (turn(lines, np.float32) if after > 1 else lines).reshape(-1, n)
    if k > RUN // 2 and n > RUN:
        every = [ordered(line, sign) for line in lines]
        keys, places = (
            np.concatenate([part[:, :k] for part in parts]) for parts in zip(*every, strict=True)
        )
    else:
        keys, places = best(lines, k, sign)
    keys, places = (each.reshape(before, after, k) for each in (keys, places))
    y3, indices3 = (each.reshape(before, k, after) for each in (y, indices))
    if after == 1:
        keys, places, y3, indices3 = (
            each.reshape(1, before, k) for each in (keys, places, y3, indices3)
        )
    b, i, j = keys.shape
    results[pto.cdiv(j, 64), pto.cdiv(i, 64), b](keys, places, y3, indices3, sign, after > 1)
    return y, indices


def reference(x: Any, k: int, dim: int = -1, largest: bool = True) -> tuple[Any, Any]:
    keys = np.where(np.isnan(x), np.inf, np.clip(x, -1e300, 1e300)) * (1 if largest else -1)
    order = np.take(np.argsort(-keys, axis=dim, kind="stable"), np.arange(k), axis=dim)
    return np.take_along_axis(x, order, axis=dim), order


CASES: list[dict[str, Any]] = [
    {"x": "f16[5, 300] -100..100", "k": 7},
    {"x": "f32[3, 9, 17] -5..5", "k": 4, "dim": 1, "largest": False},
    {"x": "i8[40, 33] -128..127", "k": 33},
    {"x": "i64[2, 2500] -10000..10000", "k": 40, "largest": False},
    {"x": "f32[4200] -inf..inf", "k": 100},
    {"x": "bf16[11, 13, 7] nan..nan", "k": 5, "dim": 0},
    {"x": "f32[5000] -1..1", "k": 1500},
    {"x": "u8[30, 20] 0..255", "k": 10, "dim": 0},
]
