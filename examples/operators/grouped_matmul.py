"""y[rows of group g] = x[rows of group g] @ weight[g] + bias[g]; groups are ranges of rows.

Bound by the matrix unit where groups have a hundred rows and more, else by reading the weights.
Each group is a launch, with a grid of its own size.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
M, K, N = 128, 128, 128  # the tiles of a block


@pto.kernel
def gemm(
    x: pto.Global[Any],
    w: pto.Global[Any],
    bias: pto.Global[Any],
    y: pto.Global[Any],
    turned: bool,
    has_bias: bool,
) -> None:
    """x is (m, k), w (k, n), or (n, k) if turned, bias (1, n)."""
    i, j, weight = pto.block_idx(1) * M, pto.block_idx(0) * N, w.T if turned else w
    depth = K * 2 // x.dtype.itemsize
    acc = pto.zeros(M, N, pto.f32, role="acc")
    for k in pto.range(0, x.shape[1], depth):
        left, right = pto.load(x[i:, k:], M, depth), pto.load(weight[k:, j:], depth, N)
        acc = pto.dot(left, right, acc=acc)
    total = acc * 1.0
    if has_bias:
        total += pto.load(bias[:, j:], 1, N).to(pto.f32)
    pto.store(y[i:, j:], total.to(y.dtype, saturate=False))


@pto.operator
def run(
    x: Any,
    weight: Any,
    bias: Any = None,
    group_list: Any = None,
    split_item: int = 0,
    transpose_weight: bool = False,
) -> Any:
    n = weight.shape[1 if transpose_weight else 2]
    ends = [int(end) for end in group_list]
    y, starts = np.empty((len(x), n), x.dtype), [0, *ends[:-1]]
    for g, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start < end:
            row = np.zeros((1, 1), x.dtype) if bias is None else bias[g : g + 1]
            grid = pto.cdiv(n, N), pto.cdiv(end - start, M)
            arrays = x[start:end], weight[g], row, y[start:end]
            gemm[grid](*arrays, transpose_weight, bias is not None)
    return [y] if split_item > 1 else [y[s:e] for s, e in zip(starts, ends, strict=True)]


def reference(
    x: Any,
    weight: Any,
    bias: Any = None,
    group_list: Any = None,
    split_item: int = 0,
    transpose_weight: bool = False,
) -> Any:
    factors = np.swapaxes(weight, 1, 2) if transpose_weight else weight
    found = [
        rows @ factors[g] + (0 if bias is None else bias[g])
        for g, rows in enumerate(np.split(x, group_list[:-1]))
    ]
    return [np.concatenate(found)] if split_item > 1 else found


CASES = [
    {
        "x": "f16[40, 70]",
        "weight": "f16[3, 70, 150]",
        "bias": "f16[3, 150]",
        "group_list": [9, 9, 40],
    },
    {
        "x": "bf16[33, 127]",
        "weight": "bf16[2, 45, 127]",
        "bias": "f32[2, 45]",
        "group_list": [20, 33],
        "split_item": 2,
        "transpose_weight": True,
    },
    {"x": "f32[20, 50]", "weight": "f32[1, 50, 20]", "group_list": [20]},
]
