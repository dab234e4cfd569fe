"""silu(a) b of rows (a, b) = x[rows of group g] @ weight[g], int8 products times both scales, as
int8 with one scale for each row: greatest absolute value / 127.

Bound by reading the weights where groups are small, else by the matrix unit. The dequantised
products of a group go through global memory as f32; a second launch folds whole rows of them.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.dequant_swiglu_quant import rows_of, swiglu

LEVEL = 4
M, K, N = 128, 256, 128  # the tiles of a block


@pto.kernel
def gemm(
    x: pto.Global[pto.i8],
    w: pto.Global[pto.i8],
    row_scale: pto.Global[pto.f32],
    column_scale: pto.Global[pto.f32],
    y: pto.Global[pto.f32],
) -> None:
    """x is (m, k), w (k, n), scales a column of m and a row of n."""
    i, j = pto.block_idx(1) * M, pto.block_idx(0) * N
    acc = pto.zeros(M, N, pto.i32, role="acc")
    for k in pto.range(0, x.shape[1], K):
        acc = pto.dot(pto.load(x[i:, k:], M, K), pto.load(w[k:, j:], K, N), acc=acc)
    total = (acc + 0).to(pto.f32) * pto.load(row_scale[i:, :], M, 1)
    pto.store(y[i:, j:], total * pto.load(column_scale[:, j:], 1, N))


@pto.operator
def run(x: Any, weight: Any, weight_scale: Any, x_scale: Any, group_list: Any) -> Any:
    (m, _), n, start = x.shape, weight.shape[2], 0
    products, scales = np.empty((m, n), np.float32), x_scale.reshape(-1, 1)
    for g, end in enumerate(int(each) for each in group_list):
        if start < end:
            rows = slice(start, end)
            arrays = x[rows], weight[g], scales[rows], weight_scale[g : g + 1], products[rows]
            gemm[pto.cdiv(n, N), pto.cdiv(end - start, M)](*arrays)
        start = end
    y, y_scale, none = (
        np.empty((m, n // 2), np.int8),
        np.empty(m, np.float32),
        np.zeros((1, 1), np.float32),
    )
    grid = pto.cdiv(m, rows_of(n // 2))
    swiglu[grid](products, none, none[0], none, y, y_scale, True, False)
    return y, y_scale


def reference(x: Any, weight: Any, weight_scale: Any, x_scale: Any, group_list: Any) -> Any:
    parts = np.split(x, group_list[:-1])
    products = [p @ weight[g] * weight_scale[g] for g, p in enumerate(parts)]
    a, b = np.split(np.concatenate(products) * x_scale[:, None], 2, axis=1)
    t = a / (1 + np.exp(-a)) * b
    scale = abs(t).max(axis=1) / 127
    return np.clip(np.rint(t / scale[:, None]), -128, 127), scale


TOLERANCE = {"i8": 1, "f32": 0.001}  # where rounding decides
CASES = [
    {
        "x": "i8[20, 70] -128..127",
        "weight": "i8[3, 70, 64] -128..127",
        "weight_scale": "f32[3, 64] 0.001..0.01",
        "x_scale": "f32[20] 0.001..0.01",
        "group_list": [7, 7, 20],
    },
    {
        "x": "i8[5, 300] -128..127",
        "weight": "i8[1, 300, 290] -128..127",
        "weight_scale": "f32[1, 290] 0.001..0.01",
        "x_scale": "f32[5] 0.001..0.01",
        "group_list": [5],
    },
]
