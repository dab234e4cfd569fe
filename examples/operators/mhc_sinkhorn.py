"""Matrices of n x n that become doubly stochastic: softmax of the rows, then rows and columns are
divided by their sums in turn (Sinkhorn and Knopp).

Bound by the vector unit: 2 divisions of each element in every step, with little to load. A tile
has one line for each element of a matrix and one column for each matrix, so that sums of rows and
of columns are sums of lines, whole vectors at a time.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3


@pto.kernel
def sinkhorn(
    x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: int, steps: int, eps: float
) -> None:
    """x is (matrices, n * n)."""
    lanes = lanes_of(n)
    b = pto.block_idx() * lanes
    t = pto.load(x[b:, :], lanes, n * n).T
    for r in range(0, n * n, n):
        row = t[r : r + n, :]
        e = pto.exp(row - row.max(axis=0))
        t[r : r + n, :] = e / e.sum(axis=0) + eps
    by_columns(t, n, eps)
    for _ in pto.range(steps - 1):
        for r in range(0, n * n, n):
            row = t[r : r + n, :]
            t[r : r + n, :] = row / (row.sum(axis=0) + eps)
        by_columns(t, n, eps)
    pto.store(y[b:, :], t.T)


def by_columns(t: Any, n: int, eps: float) -> None:
    """Divide each column of the matrices by its sum."""
    rows = [t[r : r + n, :] for r in range(0, n * n, n)]
    total = rows[0] + eps
    for row in rows[1:]:
        total += row
    for r, row in zip(range(0, n * n, n), rows, strict=True):
        t[r : r + n, :] = row / total


def lanes_of(n: int) -> int:
    """Matrices of a block: such that a tile takes 32 KiB."""
    return max(32, min(512, 8192 // (n * n) // 32 * 32))


@pto.operator
def run(comb: Any, iter_step: int = 20, eps: float = 1e-6) -> Any:
    y, (count, n, _) = np.empty_like(comb), comb.shape
    grid = pto.cdiv(count, lanes_of(n))
    sinkhorn[grid](comb.reshape(count, -1), y.reshape(count, -1), n, iter_step, eps)
    return y


def reference(comb: Any, iter_step: int = 20, eps: float = 1e-6) -> Any:
    t = np.exp(comb - comb.max(axis=2, keepdims=True))
    t = t / t.sum(axis=2, keepdims=True) + eps
    t = t / (t.sum(axis=1, keepdims=True) + eps)
    for _ in range(iter_step - 1):
        t = t / (t.sum(axis=2, keepdims=True) + eps)
        t = t / (t.sum(axis=1, keepdims=True) + eps)
    return t


CASES = [
    {"comb": "f32[40, 4, 4]"},
    {"comb": "f32[3, 3, 3]", "iter_step": 1, "eps": 1e-8},
    {"comb": "f32[33, 6, 6]", "iter_step": 3},
]
