"""y = x1 + x2 / x3 * scalar, for each tensor of three lists; one launch a tensor.

Bound by memory: three elements are read and one is written for each result.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 1
WIDTH = 4096  # elements of a block


@pto.kernel
def kernel(
    x1: pto.Global[Any],
    x2: pto.Global[Any],
    x3: pto.Global[Any],
    y: pto.Global[Any],
    scalar: pto.Scalar[pto.f32],
) -> None:
    i = pto.block_idx() * WIDTH
    a, b, c = (pto.load(x[i:], WIDTH).to(pto.f32) for x in (x1, x2, x3))
    pto.store(y[i:], (a + b / c * scalar).to(y.dtype, saturate=False))


@pto.operator
def run(x1: list[Any], x2: list[Any], x3: list[Any], scalar: float) -> Any:
    results = [np.empty_like(x) for x in x1]
    for arrays in zip(x1, x2, x3, results, strict=True):
        a, b, c, y = (each.reshape(-1) for each in arrays)
        kernel[pto.cdiv(y.size, WIDTH)](a, b, c, y, scalar)
    return results


def reference(x1: list[Any], x2: list[Any], x3: list[Any], scalar: float) -> Any:
    return [a + b / c * scalar for a, b, c in zip(x1, x2, x3, strict=True)]


CASES: list[dict[str, Any]] = [
    {
        "x1": ["f16[20, 64] -5..10", "f16[20, 64] -5..10"],
        "x2": ["f16[20, 64] -5..10", "f16[20, 64] -5..10"],
        "x3": ["f16[20, 64] 0.1..10", "f16[20, 64] 0.1..10"],
        "scalar": 1.0,
    },
    {
        "x1": ["bf16[7, 33, 37] -3..3"],
        "x2": ["bf16[7, 33, 37] -3..3"],
        "x3": ["bf16[7, 33, 37] 0.3..3"],
        "scalar": -1.5,
    },
    {
        "x1": ["f32[1031] -inf..inf"],
        "x2": ["f32[1031] -inf..inf"],
        "x3": ["f32[1031] 0.1..inf"],
        "scalar": float("inf"),
    },
    {"x1": ["f32[5, 7]"], "x2": ["f32[5, 7]"], "x3": ["f32[5, 7]"], "scalar": float("nan")},
]
