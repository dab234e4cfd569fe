"""x where positive, a tenth of it elsewhere: `leaky_relu[cdiv(m, 16), cdiv(n, 256)](x, y)`."""

import pto


@pto.kernel
def leaky_relu(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 256
    t = pto.load(x[i:, j:], 16, 256)
    pto.store(y[i:, j:], pto.where(t > 0.0, t, 0.1 * t))
