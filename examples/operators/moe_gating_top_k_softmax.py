"""The k greatest of each row's softmax, in order, with their experts; a finished row gets the
number of experts instead. row_idx counts the choices column by column.

Bound by the vector unit, which sorts row by row: the k greatest scores are found first, so that
only k exponentials are divided.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
ROWS = 16  # of a block


@pto.kernel
def gate(
    x: pto.Global[Any],
    finished: pto.Global[pto.u8],
    y: pto.Global[Any],
    experts: pto.Global[pto.i32],
    numbers: pto.Global[pto.i32],
    has_finished: bool,
) -> None:
    (count, width), k, i = x.shape, y.shape[1], pto.block_idx() * ROWS
    t = pto.load(x[i:, :], ROWS, width).to(pto.f32)
    best, places = pto.topk(t, k)
    highest = t.max(axis=1)
    total = pto.exp(t - highest).sum(axis=1)
    pto.store(y[i:, :], (pto.exp(best - highest) / total).to(y.dtype, saturate=False))
    if has_finished:
        is_done = pto.load(finished[i:, :], ROWS, 1).to(pto.f16).to(pto.f32)
        chosen = pto.where(is_done > 0.0, float(width), places.to(pto.f32))
        places = chosen.to(pto.i32)
    pto.store(experts[i:, :], places)
    pto.store(numbers[i:, :], (pto.arange(ROWS) + i).T + pto.arange(k) * count)


@pto.operator
def run(x: Any, finished: Any = None, k: int = 1) -> Any:
    shape, width = (*x.shape[:-1], k), x.shape[-1]
    y, experts, numbers = (np.empty(shape, kind) for kind in (x.dtype, np.int32, np.int32))
    count = x.size // width
    done = np.zeros((1, 1), np.uint8) if finished is None else finished.view(np.uint8)
    values, chosen, places = (each.reshape(count, k) for each in (y, experts, numbers))
    rows, done = x.reshape(count, width), done.reshape(-1, 1)
    gate[pto.cdiv(count, ROWS)](rows, done, values, chosen, places, finished is not None)
    return y, experts, numbers


def reference(x: Any, finished: Any = None, k: int = 1) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    order = np.argsort(-x, axis=-1, kind="stable")[..., :k]
    y = np.take_along_axis(e, order, axis=-1) / e.sum(axis=-1, keepdims=True)
    if finished is not None:
        order = np.where(finished[..., None] != 0, x.shape[-1], order)
    numbers = np.arange(y.size).reshape(k, -1).T.reshape(y.shape)
    return y, order, numbers


CASES = [
    {"x": "f16[19, 16]", "finished": "bool[19]", "k": 2},
    {"x": "f32[2, 9, 40] -10..10", "k": 4},
    {"x": "bf16[5, 130] -3..3", "k": 128},
    {"x": "f32[3, 7]", "finished": "bool[3]", "k": 1},
]
