"""Products of activations and weights: bf16 with sums in f32, or int8 with sums in i32.

With int8 weights the activations are rounded to int8 too, each row by its own scale; the sums are
exact, and both scales are applied to them afterwards.
"""

import pto
from examples.decoder.vector import T, rows_of

M, K, COLUMNS = 128, 64, 256  # the largest tiles of a step
K_INT8 = 2 * K  # as many bytes
DEQUANTIZED = (32, 256)  # rows and columns of a tile


@pto.kernel(profile="a5")
def project(
    x: pto.Global[pto.bf16, T, None],
    weight: pto.Global[pto.bf16, None, None],
    y: pto.Global[pto.bf16, T, None],
) -> None:
    """y = x weight. A block is a tile of y."""
    i, j = pto.block_idx(0) * M, pto.block_idx(1) * COLUMNS
    acc = pto.zeros(M, COLUMNS, pto.f32, role="acc")
    for k in pto.range(0, x.shape[1], K):
        acc = pto.dot(pto.load(x[i:, k:], M, K), pto.load(weight[k:, j:], K, COLUMNS), acc=acc)
    pto.store(y[i:, j:], acc)


@pto.kernel(profile="a5")
def project_int8(
    x: pto.Global[pto.i8, T, None],
    weight: pto.Global[pto.i8, None, None],
    sums: pto.Global[pto.i32, T, None],
) -> None:
    """The same in int8, to the sums themselves."""
    i, j = pto.block_idx(0) * M, pto.block_idx(1) * COLUMNS
    acc = pto.zeros(M, COLUMNS, pto.i32, role="acc")
    for k in pto.range(0, x.shape[1], K_INT8):
        left, right = pto.load(x[i:, k:], M, K_INT8), pto.load(weight[k:, j:], K_INT8, COLUMNS)
        acc = pto.dot(left, right, acc=acc)
    pto.store(sums[i:, j:], acc)


@pto.kernel(profile="a5")
def quantize(
    x: pto.Global[pto.bf16, T, None],
    q: pto.Global[pto.i8, T, None],
    scale: pto.Global[pto.f32, T],
) -> None:
    """Rows as int8, the largest element of each as 127; scale gives them back."""
    rows = rows_of(x.shape[1])
    i = pto.block_idx() * rows
    v = pto.load(x[i:, :], rows, x.shape[1]).to(pto.f32)
    largest = pto.max(v.max(axis=1), (-v).max(axis=1)) * (1 / 127) + 1e-20
    pto.store(scale[i:], largest)
    whole = (v / largest).to(pto.i32, rounding="even")  # and by types that hold it, to the smallest
    pto.store(q[i:, :], whole.to(pto.f32).to(pto.f16).to(pto.i8, saturate=True))


@pto.kernel(profile="a5")
def dequantize(
    sums: pto.Global[pto.i32, T, None],
    scale: pto.Global[pto.f32, T],
    columns: pto.Global[pto.f32, None, None],
    y: pto.Global[pto.bf16, T, None],
) -> None:
    """y = sums * the scale of the row * that of the column."""
    width = min(DEQUANTIZED[1], sums.shape[1])
    i, j = pto.block_idx(0) * DEQUANTIZED[0], pto.block_idx(1) * width
    v = pto.load(sums[i:, j:], DEQUANTIZED[0], width).to(pto.f32)
    v = v * pto.load(scale[i:], DEQUANTIZED[0]).T * pto.load(columns[:, j:], 1, width)
    pto.store(y[i:, j:], v.to(pto.bf16))
