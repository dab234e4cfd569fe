"""y = (x1 @ x2 + bias) * scale + offset, times pertoken_scale: int8 factors, exact sums in int32,
and a scale for each column. A bias of floats is added last.

Bound by the matrix unit from some hundred rows on, else by reading x2. The accumulator becomes
floats on the vector cores of the block while the cube multiplies for the next one.
"""

from typing import Any

import numpy as np

import pto
from pto.core.dtypes import dtype

LEVEL = 3
M, K, N = 128, 256, 128  # the tiles of a block


@pto.kernel
def gemm(
    x1: pto.Global[pto.i8],
    x2: pto.Global[pto.i8],
    scale: pto.Global[Any],
    offset: pto.Global[pto.f32],
    pertoken: pto.Global[pto.f32],
    bias: pto.Global[Any],
    y: pto.Global[Any],
    has: tuple[bool, ...],
) -> None:
    """x1 is (batch, m, k), x2 (batch, k, n), y (batch, m, n); scales are rows of n or one."""
    i, j, b = pto.block_idx(1) * M, pto.block_idx(0) * N, pto.block_idx(2)
    has_offset, has_pertoken, has_bias = has
    acc = pto.zeros(M, N, pto.i32, role="acc")
    for k in pto.range(0, x1.shape[2], K):
        acc = pto.dot(pto.load(x1[b, i:, k:], M, K), pto.load(x2[b, k:, j:], K, N), acc=acc)

    def columns(row: Any) -> Any:
        return pto.load(row, 1, 1) if row.shape[1] == 1 else pto.load(row[:, j:], 1, N)

    added: Any = columns(bias) if has_bias else None
    is_first = has_bias and not bias.dtype.is_float
    total = (acc + added if is_first else acc + 0).to(pto.f32) * columns(scale).to(pto.f32)
    if has_offset:
        total += columns(offset)
    if has_pertoken:
        total *= pto.load(pertoken[i:, :], M, 1)
    if has_bias and not is_first:
        total += added.to(pto.f32)
    pto.store(y[b, i:, j:], total.to(y.dtype, saturate=False))


@pto.operator
def run(
    x1: Any,
    x2: Any,
    scale: Any,
    offset: Any = None,
    pertoken_scale: Any = None,
    bias: Any = None,
    output_dtype: str | None = None,
) -> Any:
    *outer, m, k = x1.shape
    n, batch = x2.shape[-1], int(np.prod(outer))
    kind = dtype("bf16" if output_dtype == "bfloat16" else "f16").numpy
    y, none = np.empty((*outer, m, n), kind), np.zeros((1, 1), np.float32)
    rows = [none if each is None else each.reshape(1, -1) for each in (scale, offset, bias)]
    pertoken = none if pertoken_scale is None else pertoken_scale.reshape(-1, 1)
    has = tuple(each is not None for each in (offset, pertoken_scale, bias))
    arrays = x1.reshape(batch, m, k), x2.reshape(batch, k, n), rows[0], rows[1], pertoken, rows[2]
    gemm[pto.cdiv(n, N), pto.cdiv(m, M), batch](*arrays, y.reshape(batch, m, n), has)
    return y


def reference(
    x1: Any,
    x2: Any,
    scale: Any,
    offset: Any = None,
    pertoken_scale: Any = None,
    bias: Any = None,
    output_dtype: str | None = None,
) -> Any:
    y, is_first = x1 @ x2, bias is not None and bias.dtype.kind == "i"
    y = (y + bias if is_first else y) * scale + (0 if offset is None else offset)
    y = y if pertoken_scale is None else y * pertoken_scale[:, None]
    return y if bias is None or is_first else y + bias


_INT8 = {"x1": "i8[40, 300] -128..127", "x2": "i8[300, 150] -128..127"}
CASES = [
    {**_INT8, "scale": "f32[150] 0.001..0.01", "bias": "i32[150] -100..100"},
    {**_INT8, "scale": "bf16[150] 0.001..0.01", "output_dtype": "bfloat16"},
    {
        **_INT8,
        "scale": "f32[1] 0.001..0.01",
        "pertoken_scale": "f32[40] 0.01..0.1",
        "offset": "f32[1]",
        "bias": "bf16[150]",
    },
    {"x1": "i8[2, 3, 70] -9..9", "x2": "i8[2, 70, 33] -9..9", "scale": "f32[33]"},
]
