"""y = x / sqrt(mean(x ** 2) + epsilon) gamma, along the last axis.

Bound by memory: each element is read once and written once. Rows of up to 8192 elements lie in the
vector buffer as a whole.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import fitted

LEVEL = 2
MOST = 8192  # elements of a tile


@pto.kernel
def kernel(
    x: pto.Global[Any],
    gamma: pto.Global[Any],
    y: pto.Global[Any],
    epsilon: pto.Scalar[pto.f32],
    rows: int,
) -> None:
    i, n = pto.block_idx() * rows, x.shape[1]
    t = pto.load(x[i:, :], rows, n).to(pto.f32)
    root = pto.sqrt((t * t).mean(axis=1) + epsilon)
    t = t / root * pto.load(gamma, n).to(pto.f32)
    pto.store(y[i:, :], t.to(y.dtype, saturate=False))


@pto.operator
def run(x: Any, gamma: Any, epsilon: float = 1e-6) -> Any:
    y, n = np.empty_like(x), gamma.size
    m = x.size // n
    rows, _ = fitted(m, n, MOST)
    kernel[pto.cdiv(m, rows)](x.reshape(m, n), gamma, y.reshape(m, n), epsilon, rows)
    return y


def reference(x: Any, gamma: Any, epsilon: float = 1e-6) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * gamma


CASES: list[dict[str, Any]] = [
    {"x": "f16[20, 7, 128]", "gamma": "f16[128]"},
    {"x": "bf16[9, 1027] -3..6", "gamma": "bf16[1027]", "epsilon": 1e-5},
    {"x": "f32[3, 8192] -50..100", "gamma": "f32[8192] -2..2"},
    {"x": "bf16[701, 2] -inf..inf", "gamma": "bf16[2]"},
    {"x": "f16[11, 13, 67] nan..nan", "gamma": "f16[67]"},
    {"x": "f32[3, 7, 100] 0..0", "gamma": "f32[100] 0..0"},
]
