"""y = (x - mean) / sqrt(variance + epsilon) gamma + beta, by the moments of groups of channels.

Bound by memory: each element is read twice, for the moments and for the result, and written once. A
group is split between blocks: each folds a part to sums, the second launch folds the sums.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import fitted

LEVEL = 2
MOST = 6144  # elements of a tile
BLOCKS = 48


@pto.kernel
def moments(x: pto.Global[Any], sums: pto.Global[pto.f32], squares: pto.Global[pto.f32]) -> None:
    part, group, step = pto.block_idx(0), pto.block_idx(1), sums.shape[1] * MOST
    total, square = pto.zeros(1, 1, pto.f32), pto.zeros(1, 1, pto.f32)
    for j in pto.range(part * MOST, x.shape[1], step):
        t = pto.load(x[group, j:], 1, MOST).to(pto.f32)
        total, square = total + t.sum(axis=1), square + (t * t).sum(axis=1)
    pto.store(sums[group, part], total)
    pto.store(squares[group, part], square)


@pto.kernel
def normalised(
    x: pto.Global[Any],
    gamma: pto.Global[Any],
    beta: pto.Global[Any],
    sums: pto.Global[pto.f32],
    squares: pto.Global[pto.f32],
    y: pto.Global[Any],
    epsilon: pto.Scalar[pto.f32],
    rows: int,
    cols: int,
) -> None:
    j, i, group = pto.block_idx(0) * cols, pto.block_idx(1) * rows, pto.block_idx(2)
    size, parts, channels = x.shape[1] * x.shape[2], sums.shape[1], group % gamma.shape[0]
    mean = pto.load(sums[group, :], 1, parts).sum(axis=1) / size
    square = pto.load(squares[group, :], 1, parts).sum(axis=1) / size
    root = pto.sqrt(pto.max(square - mean * mean, 0.0) + epsilon)
    width, k = (cols, j) if gamma.shape[2] > 1 else (1, 0)
    height = min(rows, gamma.shape[1])
    scale = pto.load(gamma[channels, i:, k:], height, width).to(pto.f32) / root
    shift = pto.load(beta[channels, i:, k:], height, width).to(pto.f32) - scale * mean
    t = pto.load(x[group, i:, j:], rows, cols).to(pto.f32) * scale + shift
    pto.store(y[group, i:, j:], t.to(y.dtype, saturate=False))


@pto.operator
def run(x: Any, gamma: Any, beta: Any, num_groups: int, epsilon: float = 1e-5) -> Any:
    y, groups, each = np.empty_like(x), x.shape[0] * num_groups, gamma.size // num_groups
    after = x.size // (groups * each)
    shape = (groups, each, after) if after > 1 else (groups, 1, each)
    pair = (num_groups, each, 1) if after > 1 else (num_groups, 1, each)
    parts = min(pto.cdiv(each * after, MOST), pto.cdiv(BLOCKS, groups))
    sums, squares = (np.empty((groups, parts), np.float32) for _ in range(2))
    moments[parts, groups](x.reshape(groups, each * after), sums, squares)
    rows, cols = fitted(shape[1], shape[2], MOST)
    grid = pto.cdiv(shape[2], cols), pto.cdiv(shape[1], rows), groups
    a, b, c = x.reshape(shape), gamma.reshape(pair), beta.reshape(pair)
    normalised[grid](a, b, c, sums, squares, y.reshape(shape), epsilon, rows, cols)
    return y


def reference(x: Any, gamma: Any, beta: Any, num_groups: int, epsilon: float = 1e-5) -> Any:
    groups = x.reshape(x.shape[0], num_groups, -1)
    mean, variance = groups.mean(-1, keepdims=True), groups.var(-1, keepdims=True)
    y = ((groups - mean) / np.sqrt(variance + epsilon)).reshape(x.shape)
    own = (-1,) + (1,) * (x.ndim - 2)
    return y * gamma.reshape(own) + beta.reshape(own)


def _case(shape: str, channels: int, groups: int, **more: Any) -> dict[str, Any]:
    kind, span = more.pop("kind", "f16"), more.pop("span", "-1..1")
    weights = f"{kind}[{channels}] {span}"
    x = f"{kind}[{shape}] {span}"
    return {"x": x, "gamma": weights, "beta": weights, "num_groups": groups, **more}


CASES: list[dict[str, Any]] = [
    _case("2, 32, 12, 16", 32, 8),
    _case("2, 57, 15, 17", 57, 1, kind="f32", span="-50..100"),
    _case("7, 48, 33", 48, 6, kind="bf16", span="-3..6", epsilon=1e-4),
    _case("53, 257", 257, 1, epsilon=1e-6),
    _case("1, 4, 83, 81", 4, 2, kind="f32"),
    _case("2, 6, 41, 41", 6, 3, kind="bf16", span="-inf..inf"),
    _case("2, 64, 7, 11", 64, 8, span="nan..nan"),
    _case("2, 8, 3, 5", 8, 1, kind="f32", span="0..0"),
]
