"""y = x', of matrices of any size: `transpose[cdiv(m, 64), cdiv(n, 64)](x, y)`."""

import pto


@pto.kernel
def transpose(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "n", "m"]) -> None:
    i, j = pto.block_idx(0) * 64, pto.block_idx(1) * 64
    pto.store(y[j:, i:], pto.load(x[i:, j:], 64, 64).T)
