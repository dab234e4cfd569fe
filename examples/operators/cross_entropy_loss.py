"""loss = log(sum(e ** x)) - x[target] over the classes, and its mean or sum over the positions.

Bound by memory: each logit is read once. Where positions follow the classes, a block has some of
the positions and keeps the greatest logit, the sum and the target's logit from chunk to chunk.
Targets of `ignore_index` count nothing. A second launch folds the sums of the blocks.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import fitted

LEVEL = 2
MOST = 8192  # elements of a tile
LEAST = -3.0e38


Array = pto.Global[Any]


def settle(loss: pto.Tile, chosen: pto.Tile, ignored: int, axis: int) -> tuple[pto.Tile, pto.Tile]:
    """The sum of the losses of a tile, and how many they are."""
    ones = pto.where(chosen == float(ignored), 0.0, pto.full_like(chosen, 1.0))
    return loss.sum(axis=axis), ones.sum(axis=axis)


@pto.kernel
def along_rows(
    x: Array, target: Array, losses: Array, counts: Array, ignored: int, rows: int
) -> None:
    i, n = pto.block_idx() * rows, x.shape[1]
    t = pto.load(x[i:, :], rows, n).to(pto.f32)
    chosen = pto.load(target[i:, :], rows, 1).to(pto.i32).to(pto.f32)
    picked = pto.where(pto.arange(n, dtype=pto.f32) == chosen, t, 0.0).sum(axis=1)
    top = t.max(axis=1)
    loss = pto.log(pto.exp(t - top).sum(axis=1)) + top - picked
    loss = pto.where(chosen == float(ignored), 0.0, loss)
    if losses.ndim == 2:
        pto.store(losses[i:, :], loss.to(losses.dtype, saturate=False))
    else:
        total, count = settle(loss, chosen, ignored, 0)
        pto.store(losses[pto.block_idx()], total)
        pto.store(counts[pto.block_idx()], count)


@pto.kernel
def along_columns(
    x: Array, target: Array, losses: Array, counts: Array, ignored: int, rows: int, cols: int
) -> None:
    b, j = pto.block_idx(1), pto.block_idx(0) * cols
    chosen = pto.load(target[b, j:], 1, cols).to(pto.i32).to(pto.f32)
    top, total, picked = (pto.full_like(chosen, n) for n in (LEAST, 0.0, 0.0))
    for i in pto.range(0, x.shape[1], rows):
        t = pto.load(x[b, i:, j:], rows, cols).to(pto.f32)
        at = (pto.arange(rows, dtype=pto.f32) + i.to(pto.f32)).T
        picked = picked + pto.where(at == chosen, t, 0.0).sum(axis=0)
        higher = pto.max(top, t.max(axis=0))
        total = total * pto.exp(top - higher) + pto.exp(t - higher).sum(axis=0)
        top = higher
    loss = pto.where(chosen == float(ignored), 0.0, pto.log(total) + top - picked)
    if losses.ndim == 2:
        pto.store(losses[b, j:], loss.to(losses.dtype, saturate=False))
    else:
        block = b * pto.block_num(0) + pto.block_idx(0)
        total, count = settle(loss, chosen, ignored, 1)
        pto.store(losses[block], total)
        pto.store(counts[block], count)


@pto.kernel
def final(losses: Array, counts: Array, y: Array, ismean: bool) -> None:
    total, count = pto.zeros(1, 1, pto.f32), pto.zeros(1, 1, pto.f32)
    for i in pto.range(0, losses.shape[0], MOST):
        total = total + pto.load(losses[i:], MOST).sum(axis=1)
        count = count + pto.load(counts[i:], MOST).sum(axis=1)
    pto.store(y, (total / count if ismean else total).to(y.dtype, saturate=False))


@pto.operator
def run(input: Any, target: Any, reduction: str = "mean", ignore_index: int = -100) -> Any:
    before, n, after = input.shape[0], input.shape[1], target.size // input.shape[0]
    rows, cols = fitted(before, n, MOST) if after == 1 else fitted(n, min(after, 512), MOST)
    grid = (pto.cdiv(before, rows), 1) if after == 1 else (pto.cdiv(after, cols), before)
    isfolded = reduction != "none"
    losses: Any = np.empty(grid[0] * grid[1], np.float32)
    counts: Any = np.empty_like(losses)
    y: Any = np.empty((), input.dtype)
    if not isfolded:
        y = np.empty(target.shape, input.dtype)
        losses = counts = y.reshape(before, after)
    if after == 1:
        x, t = input.reshape(before, n), target.reshape(before, 1)
        along_rows[grid[0]](x, t, losses, counts, ignore_index, rows)
    else:
        x, t = input.reshape(before, n, after), target.reshape(before, after)
        along_columns[grid](x, t, losses, counts, ignore_index, rows, cols)
    if isfolded:
        final(losses, counts, y.reshape(1), reduction == "mean")
    return y


def reference(input: Any, target: Any, reduction: str = "mean", ignore_index: int = -100) -> Any:
    x = input - input.max(axis=1, keepdims=True)
    logs = np.log(np.exp(x).sum(axis=1)) - np.take_along_axis(x, target[:, None], axis=1)[:, 0]
    kept = target != ignore_index
    losses = np.where(kept, logs, 0)
    if reduction == "none":
        return losses
    return losses.sum() / kept.sum() if reduction == "mean" else losses.sum()


CASES: list[dict[str, Any]] = [
    {"input": "f16[50, 128] -5..5", "target": "i64[50] 0..127"},
    {"input": "bf16[7, 37, 35] -50..100", "target": "i64[7, 35] 0..36", "ignore_index": 3},
    {"input": "f32[5, 8193] -100..100", "target": "i64[5] 0..8192", "reduction": "none"},
    {"input": "f32[3, 45, 5, 7]", "target": "i64[3, 5, 7] 0..44", "reduction": "none"},
    {
        "input": "f16[55, 77] -1..3",
        "target": "i64[55] 0..76",
        "reduction": "sum",
        "ignore_index": 5,
    },
    {"input": "bf16[1031, 2] -1000..1000", "target": "i64[1031] 0..1"},
]
