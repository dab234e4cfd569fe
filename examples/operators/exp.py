"""y = base ** (scale x + shift), with base e where `base` is not positive.

Bound by memory: each element is read once and written once. The vector pipe converts, multiplies,
adds and takes one exponential, which is less.
"""

import math
from typing import Any

import numpy as np

import pto

LEVEL = 1
WIDTH = 8192  # elements of a block


@pto.kernel
def kernel(
    x: pto.Global[Any], y: pto.Global[Any], scale: pto.Scalar[pto.f32], shift: pto.Scalar[pto.f32]
) -> None:
    i = pto.block_idx() * WIDTH
    t = pto.load(x[i:], WIDTH).to(pto.f32)
    pto.store(y[i:], pto.exp(t * scale + shift).to(y.dtype, saturate=False))


@pto.operator
def run(x: Any, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> Any:
    y, factor = np.empty_like(x), math.log(base) if base > 0 else 1.0
    grid = pto.cdiv(x.size, WIDTH)
    kernel[grid](x.reshape(-1), y.reshape(-1), scale * factor, shift * factor)
    return y


def reference(x: Any, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> Any:
    t = scale * x + shift
    return np.power(base, t) if base > 0 else np.exp(t)


CASES = [
    {"x": "f16[64, 128]", "base": -1.0},
    {"x": "bf16[17, 19, 31] -3..6", "base": 2.0, "scale": 0.5, "shift": 0.5},
    {"x": "f32[3, 7, 13, 41] -88..88", "base": 1.0, "scale": 2.0},
    {"x": "f32[1031] -inf..inf", "base": 10.0, "shift": 1.0},
    {"x": "f16[5, 77] nan..nan", "scale": 1.5},
]
