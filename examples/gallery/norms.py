"""RMS norm and layer norm of rows of up to 512: `rmsnorm[cdiv(m, 16)](x, weight, y)`."""

import pto


@pto.kernel
def rmsnorm(
    x: pto.Global[pto.f32, "m", "n"],
    weight: pto.Global[pto.f32, "n"],
    y: pto.Global[pto.f32, "m", "n"],
) -> None:
    i = pto.block_idx() * 16
    t = pto.load(x[i:, :], 16, 512)
    root = pto.sqrt((t * t).mean(axis=1) + 1e-5)
    pto.store(y[i:, :], t / root * pto.load(weight, 512))


@pto.kernel
def layernorm(
    x: pto.Global[pto.f32, "m", "n"],
    weight: pto.Global[pto.f32, "n"],
    bias: pto.Global[pto.f32, "n"],
    y: pto.Global[pto.f32, "m", "n"],
) -> None:
    i = pto.block_idx() * 16
    t = pto.load(x[i:, :], 16, 512)
    t -= t.mean(axis=1)
    deviation = pto.sqrt((t * t).mean(axis=1) + 1e-5)
    pto.store(y[i:, :], t / deviation * pto.load(weight, 512) + pto.load(bias, 512))
