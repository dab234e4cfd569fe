"""y = x @ ((weight + offset) * scale) + bias: int8 weights become f16 or bf16 on the vector
cores.

Bound by reading the weights where x has few rows, else by the vector cores, which convert the
weights once for each tile of rows; the matrix unit multiplies meanwhile.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
M, K, N = 128, 128, 64  # the tiles of a block


@pto.kernel
def gemm(
    x: pto.Global[Any],
    weight: pto.Global[pto.i8],
    scale: pto.Global[Any],
    offset: pto.Global[Any],
    bias: pto.Global[Any],
    y: pto.Global[Any],
    has_offset: bool,
    has_bias: bool,
) -> None:
    """scale, offset and bias are rows of n; each step of the weights is rounded as x is."""
    i, j, kind = pto.block_idx(1) * M, pto.block_idx(0) * N, x.dtype

    def rounded(t: Any) -> Any:
        return t.to(kind, saturate=False).to(pto.f32)

    acc = pto.zeros(M, N, pto.f32, role="acc")
    factor = rounded(pto.load(scale[:, j:], 1, N).to(pto.f32))
    for k in pto.range(0, x.shape[1], K):
        w = pto.load(weight[k:, j:], K, N).to(pto.f16).to(pto.f32)
        if has_offset:
            w = rounded(w + rounded(pto.load(offset[:, j:], 1, N).to(pto.f32)))
        w = (w * factor).to(kind, saturate=False)
        acc = pto.dot(pto.load(x[i:, k:], M, K), w, acc=acc)
    total = acc * 1.0
    if has_bias:
        total += pto.load(bias[:, j:], 1, N).to(pto.f32)
    pto.store(y[i:, j:], total.to(kind, saturate=False))


@pto.operator
def run(
    x: Any, weight: Any, antiquantScale: Any, antiquantOffset: Any = None, bias: Any = None
) -> Any:
    (m, _), (_, n) = x.shape, weight.shape
    y, none = np.empty((m, n), x.dtype), np.zeros((1, 1), np.float32)
    rows = antiquantScale, antiquantOffset, bias
    scale, offset, shift = (none if r is None else r.reshape(1, -1) for r in rows)
    has = antiquantOffset is not None, bias is not None
    gemm[pto.cdiv(n, N), pto.cdiv(m, M)](x, weight, scale, offset, shift, y, *has)
    return y


def reference(
    x: Any, weight: Any, antiquantScale: Any, antiquantOffset: Any = None, bias: Any = None
) -> Any:
    offset, shift = (0 if r is None else r.reshape(-1) for r in (antiquantOffset, bias))
    return x @ ((weight + offset) * antiquantScale.reshape(-1)) + shift


_FACTORS = {"x": "f16[30, 150] 0..1", "weight": "i8[150, 100] 0..127"}
CASES = [
    {**_FACTORS, "antiquantScale": "f16[100] 0.01..0.02"},
    {**_FACTORS, "antiquantScale": "f16[1, 100] 0.01..0.02", "bias": "f16[100]"},
    {
        "x": "bf16[9, 70] 0..1",
        "weight": "i8[70, 33] 0..127",
        "antiquantScale": "bf16[33] 0.01..0.02",
        "antiquantOffset": "bf16[33] -10..10",
        "bias": "f32[33]",
    },
]
