"""The mean of bilinear samples of x in each cell of a grid over each box.

Bound by memory: four lines of channels for each sample. x is written once with channels last, so
that the channels of a pixel are one line; a block makes one line of cells of one box.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import transpose

LEVEL = 3
CHANNELS = 256  # of a block


@pto.kernel
def align(
    x: pto.Global[Any],
    boxes: pto.Global[Any],
    y: pto.Global[Any],
    scale: float,
    ratio: int,
    offset: float,
) -> None:
    """x is (batch, h, w, c), y (boxes, c, rows, columns)."""
    (_, high, wide, _), (_, _, rows, columns) = x.shape, y.shape
    c, row, number = pto.block_idx(0) * CHANNELS, pto.block_idx(1), pto.block_idx(2)
    box = pto.load(boxes[number, :]).to(pto.f32)
    batch = box[0, 0].to(pto.i32)
    left, top = box[0, 1] * scale - offset, box[0, 2] * scale - offset
    width, height = (box[0, 3] * scale - offset) - left, (box[0, 4] * scale - offset) - top
    if not offset:
        width, height = pto.max(width, 1.0), pto.max(height, 1.0)
    cell_h, cell_w = height / float(rows), width / float(columns)
    count_h, count_w = (ratio, ratio) if ratio > 0 else (up(cell_h), up(cell_w))
    step_h, step_w = (
        cell / pto.scalar(count, pto.i32).to(pto.f32)
        for cell, count in ((cell_h, count_h), (cell_w, count_w))
    )
    samples = pto.max(pto.scalar(count_h * count_w, pto.i32), 1).to(pto.f32)
    cells = pto.zeros(columns, CHANNELS, pto.f32)
    for col in pto.range(columns):
        total = pto.zeros_like(pto.load(x[0, 0, 0, c:], 1, CHANNELS), pto.f32)
        for i in pto.range(count_h):
            y0, y1, v = corner(top + row.to(pto.f32) * cell_h, i, step_h, high)
            for j in pto.range(count_w):
                x0, x1, u = corner(left + col.to(pto.f32) * cell_w, j, step_w, wide)
                for at, factor in ((y0, 1.0 - v), (y1, v)):
                    for to, other in ((x0, 1.0 - u), (x1, u)):
                        t = pto.load(x[batch, at, to, c:], 1, CHANNELS).to(pto.f32)
                        total += t * (factor * other)
        cells[col : col + 1, :] = total / samples
    pto.store(y[number, c:, row, :], cells.T.to(y.dtype, saturate=False))


def up(number: Any) -> Any:
    """A positive number rounded up."""
    whole = number.to(pto.i32)
    return whole + (1 if whole.to(pto.f32) < number else 0)


def corner(start: Any, i: Any, step: Any, size: int) -> tuple[Any, Any, Any]:
    """The pixels around sample i of a cell, and its distance from the first one."""
    number = pto.scalar(i, pto.i32) if isinstance(i, int) else i.to(pto.i32)
    at = pto.max(start + (number.to(pto.f32) + 0.5) * step, 0.0)
    low = pto.min(at.to(pto.i32), size - 1)
    return low, pto.min(low + 1, size - 1), at - low.to(pto.f32)


@pto.operator
def run(
    x: Any,
    boxes: Any,
    outputHeight: int,
    outputWidth: int,
    spatial_scale: float,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:
    y = np.empty((len(boxes), x.shape[1], outputHeight, outputWidth), x.dtype)
    lines, offset = transpose.run.function(x, [0, 2, 3, 1]), 0.5 if aligned else 0.0
    grid = pto.cdiv(x.shape[1], CHANNELS), outputHeight, len(boxes)
    align[grid](lines, boxes, y, spatial_scale, sampling_ratio, offset)
    return y


def reference(
    x: Any,
    boxes: Any,
    outputHeight: int,
    outputWidth: int,
    spatial_scale: float,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Any:
    y = np.zeros((len(boxes), x.shape[1], outputHeight, outputWidth))
    for n, (batch, *sides) in enumerate(boxes):
        plane = x[int(batch)]
        x0, y0, x1, y1 = (side * spatial_scale - 0.5 * aligned for side in sides)
        sizes = [max(s, 1 - aligned) for s in (y1 - y0, x1 - x0)]
        cells = sizes[0] / outputHeight, sizes[1] / outputWidth
        counts = [sampling_ratio if sampling_ratio > 0 else int(np.ceil(c)) for c in cells]
        axes = []
        for start, cell, count, rows, size in zip(
            (y0, x0), cells, counts, (outputHeight, outputWidth), plane.shape[1:], strict=True
        ):
            at = start + cell * (np.arange(rows)[:, None] + (np.arange(count) + 0.5) / count)
            at = np.clip(at, 0, size - 1)
            low = np.minimum(at.astype(int), size - 1)
            weights = np.zeros((rows, size))
            for r in range(rows):
                np.add.at(weights[r], low[r], (1 - at[r] + low[r]) / count)
                np.add.at(weights[r], np.minimum(low[r] + 1, size - 1), (at[r] - low[r]) / count)
            axes.append(weights)
        y[n] = np.einsum("rh,chw,sw->crs", axes[0], plane, axes[1])
    return y


def inputs(arguments: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Boxes inside of x, which f16 holds exactly."""
    (batch, _, high, wide), count = arguments["x"].shape, len(arguments["boxes"])
    scale, boxes = arguments["spatial_scale"], np.zeros((count, 5))
    boxes[:, 0] = random.integers(0, batch, count)
    for n, size in ((1, wide), (2, high)):
        boxes[:, n] = random.integers(0, int((size - 1) / scale / 2), count)
        boxes[:, n + 2] = boxes[:, n] + random.integers(1, int((size - 1) / scale / 2), count)
    return {**arguments, "boxes": boxes.astype(arguments["boxes"].dtype)}


TOLERANCE = {"f16": 0.1, "f32": 0.01}  # positions are computed in f32
CASES = [
    {
        "x": "f16[2, 5, 9, 8] 0..1",
        "boxes": "f16[3, 5]",
        "outputHeight": 2,
        "outputWidth": 3,
        "spatial_scale": 0.25,
        "sampling_ratio": 2,
    },
    {
        "x": "f32[1, 3, 12, 12] 0..1",
        "boxes": "f32[2, 5]",
        "outputHeight": 3,
        "outputWidth": 2,
        "spatial_scale": 0.5,
        "sampling_ratio": 0,
        "aligned": True,
    },
]
