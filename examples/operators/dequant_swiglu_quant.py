"""SwiGLU of rows (a, b): silu(b) a, or silu(a) b, times quant_scale, as int8 with one scale for
each row: greatest absolute value / 127. Integers are first multiplied by weight_scale and
activation_scale.

Bound by memory: x is read once, an eighth to a quarter as many bytes are written. The activated
rows of a block stay in the vector buffer until their greatest value is known.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
ROOM = 8192  # elements of a block, as f32


@pto.kernel
def swiglu(
    x: pto.Global[Any],
    weight: pto.Global[pto.f32],
    activation: pto.Global[pto.f32],
    quant: pto.Global[pto.f32],
    y: pto.Global[pto.i8],
    scale: pto.Global[pto.f32],
    left: bool,
    scaled: bool,
) -> None:
    n = y.shape[1]
    rows = rows_of(n)
    i, cols = pto.block_idx() * rows, min(n, max(1024, 4096 // rows))
    top, parts = pto.zeros(rows, 1, pto.f32), list[Any]()

    def half(j: int) -> Any:
        """Columns from j on, in f32, with their scales."""
        t = pto.load(x[i:, j : min(j + cols, j // n * n + n)], rows).to(pto.f32)
        if not x.dtype.is_float:
            t *= pto.load(weight[:, j : min(j + cols, j // n * n + n)])
            t *= pto.load(activation[i:, None], rows)
        return t

    for j in range(0, n, cols):
        a, b = half(j), half(n + j)
        t = pto.silu(a) * b if left else pto.silu(b) * a
        if scaled:
            t *= pto.load(quant[:, j : min(j + cols, n)])
        top = pto.max(top, abs(t).max(axis=1))
        parts.append(t)
    step = pto.max(top / 127.0, 1e-12)
    pto.store(scale[i:], step)
    for t, j in zip(parts, range(0, n, cols), strict=True):
        whole = pto.clamp(pto.round(t / step), -128.0, 127.0)
        pto.store(y[i:, j : min(j + cols, n)], whole.to(pto.f16).to(pto.i8))


def rows_of(n: int) -> int:
    """Rows of a block: up to 32, whose elements fit into the vector buffer."""
    return max(1, min(32, ROOM // n))


@pto.operator
def run(
    x: Any,
    weight_scale: Any = None,
    activation_scale: Any = None,
    quant_scale: Any = None,
    activate_left: bool = False,
) -> Any:
    rows, n = len(x), x.shape[1] // 2
    y, scale, none = (
        np.empty((rows, n), np.int8),
        np.empty(rows, np.float32),
        np.zeros((1, 1), np.float32),
    )
    weight, activation = (
        (none, none[0]) if weight_scale is None else (weight_scale, activation_scale)
    )
    quant = none if quant_scale is None else quant_scale
    grid = pto.cdiv(rows, rows_of(n))
    swiglu[grid](x, weight, activation, quant, y, scale, activate_left, quant_scale is not None)
    return y, scale


def reference(
    x: Any,
    weight_scale: Any = None,
    activation_scale: Any = None,
    quant_scale: Any = None,
    activate_left: bool = False,
) -> Any:
    if weight_scale is not None:
        x = x * weight_scale * activation_scale[:, None]
    a, b = np.split(x, 2, axis=1)
    a, b = (a, b) if activate_left else (b, a)
    t = a / (1 + np.exp(-a)) * b * (1 if quant_scale is None else quant_scale)
    scale = np.maximum(abs(t).max(axis=1) / 127, 1e-12)
    return np.clip(np.rint(t / scale[:, None]), -128, 127), scale


TOLERANCE = {"i8": 1}  # where rounding decides
CASES = [
    {"x": "f16[9, 128]", "activate_left": True},
    {"x": "bf16[5, 1026]", "quant_scale": "f32[1, 513]"},
    {
        "x": "i32[3, 5002] -128..127",
        "weight_scale": "f32[1, 5002] -0.1..0.1",
        "activation_scale": "f32[3] -0.5..0.5",
        "quant_scale": "f32[1, 2501]",
    },
]
