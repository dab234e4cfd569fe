"""y = round(x / scale) in int8, with scale = max |x| / 127 of each row of the last axis.

Bound by memory: each element is read once and a byte is written.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import fitted

LEVEL = 2
MOST = 8192  # elements of a tile


@pto.kernel
def kernel(
    x: pto.Global[Any], y: pto.Global[pto.i8], scales: pto.Global[pto.f32], rows: int
) -> None:
    i, n = pto.block_idx() * rows, x.shape[1]
    t = pto.load(x[i:, :], rows, n).to(pto.f32)
    scale = pto.max(abs(t).max(axis=1), 1e-12) / 127.0
    pto.store(scales[i:, :], scale)
    pto.store(y[i:, :], pto.round(t / scale).to(pto.f16).to(pto.i8))


@pto.operator
def run(x: Any) -> Any:
    n = x.shape[-1]
    m = x.size // n
    y, scale = np.empty(x.shape, np.int8), np.empty(x.shape[:-1], np.float32)
    rows, _ = fitted(m, n, MOST)
    kernel[pto.cdiv(m, rows)](x.reshape(m, n), y.reshape(m, n), scale.reshape(m, 1), rows)
    return y, scale


def reference(x: Any) -> Any:
    scale = np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-12).astype(
        np.float32
    ) / np.float32(127)
    q = np.rint(x.astype(np.float32) / scale)
    return np.where(np.isnan(q), 0, np.clip(q, -128, 127)).astype(np.int64), scale[..., 0]


CASES: list[dict[str, Any]] = [
    {"x": "f16[20, 7, 128]"},
    {"x": "bf16[9, 1027] -3..6"},
    {"x": "bf16[3, 8193] -65504..65504"},
    {"x": "bf16[51, 27] -inf..inf"},
    {"x": "f16[11, 13, 67] nan..nan"},
    {"x": "bf16[51, 27] 0..0"},
]
