"""y = (sum |x| ** p) ** (1 / p), the greatest |x| for p = inf, for each tensor of a list.

Bound by memory: each element is read once. For p other than 1 and 2 the vector pipe computes a
logarithm and an exponential of each element. One launch folds a tensor to a number a block, another
folds those.
"""

import math
from typing import Any

import numpy as np

import pto

LEVEL = 1
WIDTH = 8192  # elements of a tile
BLOCKS = 48


def powers(t: pto.Tile, p: float) -> pto.Tile:
    """|t| ** p; for p = inf |t|."""
    if p == 2:
        return t * t
    return abs(t) if p in (1, math.inf) else pto.exp(p * pto.log(abs(t)))


def folded(t: pto.Tile, p: float) -> pto.Tile:
    return t.max(axis=1) if p == math.inf else t.sum(axis=1)


@pto.kernel
def partial(x: pto.Global[Any], parts: pto.Global[pto.f32], p: float) -> None:
    b, step = pto.block_idx(), parts.shape[0] * WIDTH
    total = pto.zeros(1, 1, pto.f32)
    for i in pto.range(b * WIDTH, x.shape[0], step):
        each = folded(powers(pto.load(x[i:], WIDTH).to(pto.f32), p), p)
        total = pto.max(total, each) if p == math.inf else total + each
    pto.store(parts[b], total)


@pto.kernel
def final(parts: pto.Global[pto.f32], y: pto.Global[Any], p: float) -> None:
    total = folded(pto.load(parts, BLOCKS), p)
    if p == 2:
        total = pto.sqrt(total)
    elif p not in (1, math.inf):
        total = pto.exp(pto.log(total) / p)
    pto.store(y, total.to(y.dtype, saturate=False))


@pto.operator
def run(x: list[Any], scalar: float) -> Any:
    results = [np.empty((), each.dtype) for each in x]
    for each, y in zip(x, results, strict=True):
        parts = np.empty(min(BLOCKS, pto.cdiv(each.size, WIDTH)), np.float32)
        partial[parts.size](each.reshape(-1), parts, scalar)
        final(parts, y.reshape(1), scalar)
    return results


def reference(x: list[Any], scalar: float) -> Any:
    if scalar == math.inf:
        return [np.abs(each).max() for each in x]
    return [np.power((np.abs(each) ** scalar).sum(), 1 / scalar) for each in x]


CASES: list[dict[str, Any]] = [
    {"x": ["f16[100, 200]", "f16[100, 200]"], "scalar": 1.0},
    {"x": ["bf16[7, 33, 37] -3..6"], "scalar": 3.0},
    {"x": ["f32[31, 1031] -20..40", "f32[5]"], "scalar": 2.0},
    {"x": ["f32[31, 31]"], "scalar": 2.5},
    {"x": ["f16[33, 31] -1000..1000"], "scalar": -1.0},
    {"x": ["bf16[1031] -inf..inf"], "scalar": math.inf},
]
