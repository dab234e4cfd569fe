"""Each channel with a filter of its own: y[c, i] = sum over k of w[k, c] x[c, i + k]."""

import pto


@pto.kernel
def depthwise_convolution(
    x: pto.Global[pto.f32, "c", "n"],
    w: pto.Global[pto.f32, "taps", "c"],
    y: pto.Global[pto.f32, "c", "width"],
) -> None:
    """`depthwise_convolution[cdiv(c, 16), cdiv(width, 128)](x, w, y)`; width = n - taps + 1."""
    c, i = pto.block_idx(0) * 16, pto.block_idx(1) * 128
    total = pto.zeros(16, 128, pto.f32)
    for k in pto.range(w.shape[0]):
        total += pto.load(x[c:, i + k :], 16, 128) * pto.load(w.T[c:, k : k + 1], 16, 1)
    pto.store(y[c:, i:], total)
