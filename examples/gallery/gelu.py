"""GELU by tanh and by erf, of any matrix: `gelu_tanh[cdiv(m, 16), cdiv(n, 256)](x, y)`."""

import pto


@pto.kernel
def gelu_tanh(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 256
    t = pto.load(x[i:, j:], 16, 256)
    e = pto.exp(-1.5957691216057308 * (t + 0.044715 * t * t * t))  # e ** -2z, 2 sqrt(2 / pi)
    pto.store(y[i:, j:], t / (1.0 + e))  # t (1 + tanh(z)) / 2 = t / (1 + e ** -2z)


@pto.kernel
def gelu_erf(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 256
    t = pto.load(x[i:, j:], 16, 256)
    size = abs(t)
    z = size * 0.7071067811865476
    k = 1.0 / (1.0 + 0.3275911 * z)  # Abramowitz and Stegun 7.1.26: erf within 1.5e-7
    a = k * (-0.284496736 + k * (1.421413741 + k * (-1.453152027 + k * 1.061405429)))
    erfc = k * (0.254829592 + a) * pto.exp(-(z * z))
    pto.store(y[i:, j:], pto.relu(t) - 0.5 * size * erfc)
