"""The mean of each column, 128 columns a block: `column_mean[cdiv(n, 128)](x, y)`."""

import pto


@pto.kernel
def column_mean(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "n"]) -> None:
    j = pto.block_idx() * 128
    total = pto.zeros(1, 128, pto.f32)
    for i in pto.range(0, x.shape[0], 64):
        total += pto.load(x[i:, j:], 64, 128).sum(axis=0)
    pto.store(y[j:], total / x.shape[0].to(pto.f32))
