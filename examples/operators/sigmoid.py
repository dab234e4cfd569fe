"""y = 1 / (1 + e ** -x).

Bound by memory: each element is read once and written once, and takes six vector instructions.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 1
WIDTH = 8192  # elements of a block


@pto.kernel
def kernel(x: pto.Global[Any], y: pto.Global[Any]) -> None:
    i = pto.block_idx() * WIDTH
    t = pto.sigmoid(pto.load(x[i:], WIDTH).to(pto.f32))
    pto.store(y[i:], t.to(y.dtype, saturate=False))


@pto.operator
def run(x: Any) -> Any:
    y = np.empty_like(x)
    kernel[pto.cdiv(x.size, WIDTH)](x.reshape(-1), y.reshape(-1))
    return y


def reference(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


CASES: list[dict[str, Any]] = [
    {"x": "f16[100, 100] -3..6"},
    {"x": "bf16[7, 33, 37] -50..100"},
    {"x": "f32[31, 331] -20..40"},
    {"x": "bf16[1031] -inf..inf"},
    {"x": "f32[1031] nan..nan"},
]
