"""int8 in, int32 sums, then bias, ReLU and a scale for each column: f16 out."""

import pto


@pto.kernel
def gemm_int8(
    x: pto.Global[pto.i8, "m", "k"],
    w: pto.Global[pto.i8, "k", "n"],
    bias: pto.Global[pto.i32, "n"],
    scale: pto.Global[pto.f32, "n"],
    y: pto.Global[pto.f16, "m", "n"],
) -> None:
    i, j = pto.block_idx(0) * 32, pto.block_idx(1) * 64
    acc = pto.zeros(32, 64, pto.i32, role="acc")
    for k in pto.range(0, x.shape[1], 64):
        acc = pto.dot(pto.load(x[i:, k:], 32, 64), pto.load(w[k:, j:], 64, 64), acc=acc)
    total = pto.relu(acc + pto.load(bias[j:], 64)).to(pto.f32)
    pto.store(y[i:, j:], (total * pto.load(scale[j:], 64)).to(pto.f16))
