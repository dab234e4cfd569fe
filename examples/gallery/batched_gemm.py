"""Products of a batch of matrices: `batched_gemm[cdiv(m, 64), cdiv(n, 128), b](x, y, z)`."""

import pto


@pto.kernel
def batched_gemm(
    x: pto.Global[pto.f16, "b", "m", "k"],
    y: pto.Global[pto.f16, "b", "k", "n"],
    z: pto.Global[pto.f32, "b", "m", "n"],
) -> None:
    i, j, b = pto.block_idx(0) * 64, pto.block_idx(1) * 128, pto.block_idx(2)
    acc = pto.zeros(64, 128, pto.f32, role="acc")
    for k in pto.range(0, x.shape[2], 64):
        acc = pto.dot(pto.load(x[b, i:, k:], 64, 64), pto.load(y[b, k:, j:], 64, 128), acc=acc)
    pto.store(z[b, i:, j:], acc)
