"""y = x mask scale, with a mask of integers or floats.

Bound by memory: an element of x and one of the mask are read, and one is written.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 1
WIDTH = 8192  # elements of a block


@pto.kernel
def kernel(
    x: pto.Global[Any], mask: pto.Global[Any], y: pto.Global[Any], scale: pto.Scalar[pto.f32]
) -> None:
    i = pto.block_idx() * WIDTH
    t = pto.load(x[i:], WIDTH).to(pto.f32) * pto.load(mask[i:], WIDTH).to(pto.f32)
    pto.store(y[i:], (t * scale).to(y.dtype, saturate=False))


@pto.operator
def run(x: Any, mask: Any, scale: float = 1.0) -> Any:
    y = np.empty_like(x)
    grid = pto.cdiv(x.size, WIDTH)
    kernel[grid](x.reshape(-1), mask.reshape(-1), y.reshape(-1), scale)
    return y


def reference(x: Any, mask: Any, scale: float = 1.0) -> Any:
    return x * mask * scale


CASES: list[dict[str, Any]] = [
    {"x": "f16[100, 100] -2..2", "mask": "i8[100, 100] -128..127", "scale": 0.5},
    {"x": "f32[7, 33, 37]", "mask": "u8[7, 33, 37] 0..255"},
    {"x": "bf16[1031] -inf..inf", "mask": "bf16[1031] 0..1", "scale": float("inf")},
    {"x": "bf16[1031]", "mask": "f32[1031] 0..1", "scale": 3.0},
    {"x": "f32[1031] nan..nan", "mask": "f16[1031] 0..1", "scale": -1.0},
    {"x": "f16[77, 5]", "mask": "u8[77, 5] 0..1"},
]
