"""Running sums down the columns (axis 0) and along the rows (axis 1) of matrices of any size."""

import pto


@pto.kernel
def cumsum_axis0(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    """`cumsum_axis0[cdiv(n, 256)](x, y)`: one row after the other, 256 columns a block."""
    j = pto.block_idx() * 256
    total = pto.zeros(1, 256, pto.f32)
    for i in pto.range(x.shape[0]):
        total += pto.load(x[i, j:], 1, 256)
        pto.store(y[i, j:], total)


@pto.kernel
def cumsum_axis1(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    """`cumsum_axis1[cdiv(m, 64)](x, y)`: 64 rows a block, turned, so that columns come in rows."""
    i = pto.block_idx() * 64
    total = pto.zeros(1, 64, pto.f32)
    for j in pto.range(0, x.shape[1], 64):
        turned = pto.load(x[i:, j:], 64, 64).T
        for r in pto.range(turned.valid[0]):
            total += turned[r : r + 1, :]
            turned[r : r + 1, :] = total
        pto.store(y[i:, j:], turned.T)
