"""The boxes that remain when each, from the highest score down, removes those that overlap it more
than a threshold (intersection over union); their numbers in that order.

Bound by latency: whether a box remains depends on all boxes before it. The overlaps of all pairs
are computed before, in parallel; then one block goes through the boxes and removes a line of pairs.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.sorting import Places, ordered
from pto import isa

LEVEL = 3
ROWS, COLS = 32, 128  # of a tile
Floats = pto.Global[pto.f32]


@pto.kernel
def corners(boxes: Floats, order: Places, sorted_boxes: Floats) -> None:
    """The corners of the boxes in order, as four lines."""
    i = pto.block_idx() * COLS
    at = pto.load(order[0, i:], 1, COLS) * 4
    for c in range(4):
        pto.store(sorted_boxes[c, i:], pto.take(boxes, at + c))


@pto.kernel
def overlaps(boxes: Floats, remains: pto.Global[pto.f16], threshold: float) -> None:
    """remains (i, j) is 1 where box i lets the later box j remain."""
    i, j = pto.block_idx(1) * ROWS, pto.block_idx(0) * COLS
    x0, y0, x1, y1 = (pto.load(boxes[c, i:], 1, ROWS).T for c in range(4))
    u0, v0, u1, v1 = (pto.load(boxes[c, j:], 1, COLS) for c in range(4))
    width = pto.max(pto.min(x1, u1) - pto.max(x0, u0), 0.0)
    inner = width * pto.max(pto.min(y1, v1) - pto.max(y0, v0), 0.0)
    union = (x1 - x0) * (y1 - y0) + (u1 - u0) * (v1 - v0) - inner + 1e-6
    isless = inner / union <= threshold
    isbefore = pto.arange(COLS) + j <= (pto.arange(ROWS) + i).T
    t = pto.where(isless | isbefore, pto.full_like(inner, 1.0), 0.0)
    pto.store(remains[i:, j:], t.to(pto.f16))


@pto.kernel
def chosen(
    remains: pto.Global[pto.f16], order: Places, numbers: pto.Global[pto.i64], count: Places
) -> None:
    n, total = remains.shape[0], 0
    left = pto.full(1, n, 1.0, pto.f16)
    for i in pto.range(n):
        if left[0, i] > 0.0:
            isa.store_scalar(numbers, total, isa.load_scalar(order, 0, i).to(pto.i64))
            total += 1
            left *= pto.load(remains[i, :], 1, n)
    isa.store_scalar(count, 0, total)


@pto.operator
def run(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    n = len(boxes)
    order = ordered(scores, 1)[1]
    lines, remains = np.empty((4, n), np.float32), np.empty((n, n), np.float16)
    corners[pto.cdiv(n, COLS)](boxes, order[:, :n], lines)
    overlaps[pto.cdiv(n, COLS), pto.cdiv(n, ROWS)](lines, remains, iou_threshold)
    numbers, count = np.empty(n, np.int64), np.zeros(1, np.int32)
    chosen[1](remains, order, numbers, count)
    return numbers[: count[0]]


def reference(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    x0, y0, x1, y1 = boxes.T
    remaining, numbers = np.argsort(-scores, kind="stable"), []
    while remaining.size:
        i, remaining = remaining[0], remaining[1:]
        numbers.append(i)
        width = np.minimum(x1[i], x1[remaining]) - np.maximum(x0[i], x0[remaining])
        height = np.minimum(y1[i], y1[remaining]) - np.maximum(y0[i], y0[remaining])
        inner = np.maximum(width, 0) * np.maximum(height, 0)
        area = (x1 - x0) * (y1 - y0)
        overlap = inner / (area[i] + area[remaining] - inner + 1e-6)
        remaining = remaining[overlap <= iou_threshold]
    return np.array(numbers)


def inputs(arguments: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Corners in order, and scores that are all different."""
    boxes, scores = arguments["boxes"].reshape(-1, 2, 2), arguments["scores"]
    scores = random.permutation(scores.size).astype(np.float32) / scores.size
    return {**arguments, "boxes": np.sort(boxes, axis=1).reshape(-1, 4), "scores": scores}


CASES: list[dict[str, Any]] = [
    {"boxes": "f32[70, 4] -10..10", "scores": "f32[70] 0..1", "iou_threshold": 0.1},
    {"boxes": "f32[200, 4] -1..1", "scores": "f32[200] 0..1", "iou_threshold": 0.3},
    {"boxes": "f32[33, 4] 0..0", "scores": "f32[33] 0..1", "iou_threshold": 0.5},
    {"boxes": "f32[50, 4] nan..nan", "scores": "f32[50] 0..1", "iou_threshold": 0.5},
    {"boxes": "f32[50, 4] -inf..inf", "scores": "f32[50] 0..1", "iou_threshold": 0.05},
]
