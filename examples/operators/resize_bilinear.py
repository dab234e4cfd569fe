"""y = images of another size, each pixel by the four nearest: first between two rows, then columns.

Bound by the gathers of columns in the vector buffer. Rows and weights depend on sizes alone and
come as tables, which the host makes.
"""

from typing import Any

import numpy as np

import pto
from pto import isa

LEVEL = 2
MOST = 4096  # elements of a tile
Array = pto.Global[Any]


@pto.kernel
def kernel(
    x: Array, rows: Array, parts: Array, columns: Array, shares: Array, y: Array, height: int
) -> None:
    o, m, width, into = pto.block_idx(0), pto.block_idx(1) * height, x.shape[2], y.shape[2]
    above, below = isa.load_scalar(rows, 0, o), isa.load_scalar(rows, 1, o)
    part = isa.load_scalar(parts, o)
    a, b = (pto.load(x[m:, r, :], height, width).to(pto.f32) for r in (above, below))
    t = a * (1.0 - part) + b * part
    left, right = (pto.take(t, pto.load(columns[n, :], 1, into)) for n in (0, 1))
    share = pto.load(shares, into)
    t = left * (1.0 - share) + right * share
    pto.store(y[m:, o, :], t.to(y.dtype, saturate=False))


def table(size: int, wanted: int, aligned: bool, scale: float | None) -> tuple[Any, Any]:
    """Of each pixel along an axis the two nearest ones, and the share of the second."""
    at = np.arange(wanted, dtype=np.float64)
    if aligned:
        at = at * ((size - 1) / (wanted - 1) if wanted > 1 else 0.0)
    else:
        at = np.maximum((at + 0.5) * (1 / scale if scale else size / wanted) - 0.5, 0)
    first = np.minimum(at.astype(np.int32), size - 1)
    return np.stack([first, np.minimum(first + 1, size - 1)]), (at - first).astype(np.float32)


@pto.operator
def run(
    x: Any,
    output_size: list[int] | None = None,
    align_corners: bool = False,
    scale_factor: list[float] | None = None,
) -> Any:
    scales = scale_factor or [None, None]
    sizes = output_size or [
        int(n * s) for n, s in zip(x.shape[2:], scale_factor or [], strict=True)
    ]
    y = np.empty((*x.shape[:2], *sizes), x.dtype)
    images, own = x.shape[0] * x.shape[1], x.shape[2:]
    rows, parts = table(own[0], sizes[0], align_corners, scales[0])
    columns, shares = table(own[1], sizes[1], align_corners, scales[1])
    height = max(1, min(images, MOST // (-(-max(own[1], sizes[1]) // 32) * 32)))
    a, out = x.reshape(images, *own), y.reshape(images, *sizes)
    grid = sizes[0], pto.cdiv(images, height)
    kernel[grid](a, rows, parts, columns, shares, out, height)
    return y


def reference(
    x: Any,
    output_size: list[int] | None = None,
    align_corners: bool = False,
    scale_factor: list[float] | None = None,
) -> Any:
    scales = scale_factor or [None, None]
    for axis in (2, 3):
        size, scale = x.shape[axis], scales[axis - 2]
        wanted = int(size * scale) if scale else (output_size or [])[axis - 2]
        at = (np.arange(wanted) + 0.5) / (scale or wanted / size) - 0.5
        if align_corners:
            at = np.linspace(0, size - 1, wanted)
        first = np.floor(np.maximum(at, 0)).astype(int)
        part = np.maximum(at, 0) - first
        part = part.reshape([-1 if n == axis else 1 for n in range(4)])
        second = np.minimum(first + 1, size - 1)
        x = np.take(x, first, axis) * (1 - part) + np.take(x, second, axis) * part
    return x


CASES: list[dict[str, Any]] = [
    {"x": "f16[2, 3, 16, 24]", "output_size": [8, 12]},
    {"x": "f32[1, 5, 9, 17] -5..10", "output_size": [23, 31], "align_corners": True},
    {"x": "bf16[2, 4, 13, 40] -50..100", "output_size": [7, 65]},
    {"x": "f32[2, 2, 12, 12] -20..40", "scale_factor": [0.5, 2.0]},
    {"x": "f32[1, 2, 7, 9] nan..nan", "output_size": [5, 5]},
]
