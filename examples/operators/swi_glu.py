"""y = silu(a) b, where a and b are the halves of x along an axis.

Bound by memory: two elements are read and one is written for each result. Where fewer than eight
elements follow the axis the lines are short, and the DMA engine is the bound.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import around, fitted

LEVEL = 1
MOST = 6144  # elements of a tile


@pto.kernel
def kernel(x: pto.Global[Any], y: pto.Global[Any], rows: int, cols: int) -> None:
    i, j = pto.block_idx(0) * rows, pto.block_idx(1) * cols
    a, b = (pto.load(x[i:, n, j:], rows, cols).to(pto.f32) for n in (0, 1))
    pto.store(y[i:, j:], (pto.silu(a) * b).to(y.dtype, saturate=False))


@pto.operator
def run(input: Any, dim: int = -1) -> Any:
    before, size, after = around(input.shape, dim)
    shape = list(input.shape)
    shape[dim] //= 2
    y = np.empty(shape, input.dtype)
    m, n = before, size // 2 * after
    rows, cols = fitted(m, n, MOST)
    grid = pto.cdiv(m, rows), pto.cdiv(n, cols)
    kernel[grid](input.reshape(m, 2, n), y.reshape(m, n), rows, cols)
    return y


def reference(input: Any, dim: int = -1) -> Any:
    a, b = np.split(input, 2, axis=dim)
    return a / (1 + np.exp(-a)) * b


CASES: list[dict[str, Any]] = [
    {"input": "f16[100, 128] -3..6"},
    {"input": "bf16[7, 33, 14] -50..100"},
    {"input": "f32[31, 10, 331] -20..40", "dim": 1},
    {"input": "bf16[1031, 2] -inf..inf", "dim": 1},
    {"input": "f32[4, 5, 6, 7] nan..nan", "dim": 2},
    {"input": "f32[6, 9001] -20..40", "dim": 0},
]
