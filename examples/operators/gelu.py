"""y = x (1 + erf(x / sqrt 2)) / 2, or with `approximate="tanh"` the form by tanh.

Bound by the vector pipe: the form by erf takes 30 instructions an element, the one by tanh nine.
"""

import math
from typing import Any

import numpy as np

import pto

LEVEL = 1
WIDTH = 4096  # elements of a block


@pto.kernel
def kernel(x: pto.Global[Any], y: pto.Global[Any], approximate: str) -> None:
    i = pto.block_idx() * WIDTH
    t = pto.gelu(pto.load(x[i:], WIDTH).to(pto.f32), approximate)
    pto.store(y[i:], t.to(y.dtype, saturate=False))


@pto.operator
def run(x: Any, approximate: str = "none") -> Any:
    y = np.empty_like(x)
    kernel[pto.cdiv(x.size, WIDTH)](x.reshape(-1), y.reshape(-1), approximate)
    return y


def reference(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        z = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return x * np.where(z < 0, np.exp(2 * z) / (1 + np.exp(2 * z)), 1 / (1 + np.exp(-2 * z)))
    return x * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2)) / 2


CASES: list[dict[str, Any]] = [
    {"x": "f16[50, 100] -3..3"},
    {"x": "bf16[7, 33, 37] -50..100", "approximate": "tanh"},
    {"x": "f32[31, 331] -10..10"},
    {"x": "f32[31, 331] -88..88"},
    {"x": "f32[31, 331] -10..10", "approximate": "tanh"},
    {"x": "bf16[1031] -inf..inf", "approximate": "tanh"},
    {"x": "f32[1031] nan..nan"},
]
