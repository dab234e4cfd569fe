"""y[..., i, j, k] = the mean of a window of x with the sides floor(i D / OD) : ceil((i + 1) D /
OD) and so on.

Bound by memory where outputs are smaller than inputs: each element is read once, or twice where
windows overlap. A block sums lines of W over depth and height for many planes at a time, then
transposes, so that windows along W are windows of rows.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
MOST = 8192  # elements of a tile
CORES = 48


@pto.kernel
def pool(x: pto.Global[Any], y: pto.Global[Any]) -> None:
    """x is (planes, d, h, w); one line of y for as many planes as fit."""
    (_, depth, height, width), (_, *counts) = x.shape, y.shape
    planes = planes_of(width)
    p, line = pto.block_idx(0) * planes, pto.block_idx(1)
    i, j = line // counts[1], line % counts[1]
    (d0, d1), (h0, h1) = window(i, depth, counts[0]), window(j, height, counts[1])
    total = pto.zeros(planes, width, pto.f32)
    for d in pto.range(d0, d1):
        for h in pto.range(h0, h1):
            total += pto.load(x[p:, d, h, :], planes, width).to(pto.f32)
    pto.store(
        y[p:, i, j, :], means(total, counts[2], (d1 - d0) * (h1 - h0)).to(y.dtype, saturate=False)
    )


@pto.kernel
def pool_lines(x: pto.Global[Any], y: pto.Global[Any], height: int, planes: int) -> None:
    """x is (planes, d, h w): the lines of a window follow each other and are loaded as one."""
    (_, depth, size), (_, *counts) = x.shape, y.shape
    span, width = size // counts[1], size // height
    p, line = pto.block_idx(0) * planes, pto.block_idx(1)
    i, j = line // counts[1], line % counts[1]
    d0, d1 = window(i, depth, counts[0])
    total, lines = pto.zeros(planes, span, pto.f32), pto.zeros(planes, width, pto.f32)
    for d in pto.range(d0, d1):
        total += pto.load(x[p:, d, j * span : (j + 1) * span], planes, span).to(pto.f32)
    for h in range(span // width):
        lines += total[:, h * width : (h + 1) * width]
    pto.store(
        y[p:, i, j, :],
        means(lines, counts[2], (d1 - d0) * (span // width)).to(y.dtype, saturate=False),
    )


def means(total: pto.Tile, count: int, lines: Any) -> pto.Tile:
    """Sums of lines, folded to windows of each line and divided by the number of elements."""
    turned, width = total.T, total.asked[1]
    sums = pto.zeros(count, total.asked[0], pto.f32)
    for k in range(count):
        w0, w1 = window(k, width, count)
        sums[k : k + 1, :] = turned[w0:w1, :].sum(axis=0) / float(w1 - w0)
    return sums.T / pto.scalar(lines, pto.i32).to(pto.f32)


def window(i: Any, size: int, count: int) -> tuple[Any, Any]:
    return i * size // count, ((i + 1) * size + count - 1) // count


def planes_of(width: int) -> int:
    """Planes of a block: up to 64, such that their lines take 32 KiB."""
    return max(1, min(64, 8192 // width // 8 * 8))


@pto.operator
def run(x: Any, output_size: list[int]) -> Any:
    y = np.empty((*x.shape[:2], *output_size), x.dtype)
    planes, (depth, height, width) = x.shape[0] * x.shape[1], x.shape[2:]
    span = height // output_size[1] * width
    if height % output_size[1] == 0 and width % 8 == 0 and width < span <= MOST:
        fit = min(MOST // span, pto.cdiv(planes * output_size[0] * output_size[1], CORES))
        grid = pto.cdiv(planes, fit), output_size[0] * output_size[1]
        lines = x.reshape(planes, depth, height * width)
        pool_lines[grid](lines, y.reshape(planes, *output_size), height, fit)
        return y
    grid = pto.cdiv(planes, planes_of(x.shape[-1])), output_size[0] * output_size[1]
    pool[grid](x.reshape(planes, *x.shape[2:]), y.reshape(planes, *output_size))
    return y


def reference(x: Any, output_size: list[int]) -> Any:
    """One axis after the other."""
    for axis, count in zip((2, 3, 4), output_size, strict=True):
        size = x.shape[axis]
        parts = [
            np.take(x, range(k * size // count, -(-(k + 1) * size // count)), axis).mean(axis)
            for k in range(count)
        ]
        x = np.stack(parts, axis)
    return x


CASES = [
    {"x": "f16[1, 5, 7, 6, 9]", "output_size": [3, 2, 4]},
    {"x": "f32[2, 67, 4, 5, 6] -88..88", "output_size": [1, 1, 1]},
    {"x": "bf16[1, 3, 3, 4, 5]", "output_size": [6, 4, 7]},
    {"x": "f32[2, 67, 4, 6, 16] -1..3", "output_size": [2, 2, 5]},
    {"x": "f16[1, 70, 3, 8, 32]", "output_size": [1, 1, 1]},
]
