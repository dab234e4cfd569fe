"""y[n, c] = bias[c] + the sum over kh, kw of x[n, c, h s + kh d - p, w s + kw d - p] weight[c, kh,
kw].

Bound by the vector unit: a multiplication and an addition for each tap and element. x is written
once with channels last and zeros around it, so that a shift along w is another row, also with
steps.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import transpose
from examples.operators.conv_2d import channels_last

LEVEL = 3
PIXELS, CHANNELS = 64, 64  # of a block


@pto.kernel
def convolve(
    x: pto.Global[Any],
    weight: pto.Global[Any],
    bias: pto.Global[Any],
    y: pto.Global[Any],
    taps: tuple[int, ...],
    step: tuple[int, ...],
    rate: tuple[int, ...],
) -> None:
    """x is (n, h', w', c), weight (taps, c), y (n, c, h, w)."""
    height, c, n = y.shape[2], pto.block_idx(0) * CHANNELS, pto.block_idx(2)
    h, w = pto.block_idx(1) % height, pto.block_idx(1) // height * PIXELS
    total = pto.zeros(PIXELS, CHANNELS, pto.f32)
    for i in range(taps[0]):
        for j in range(taps[1]):
            row, col = h * step[0] + i * rate[0], w * step[1] + j * rate[1]
            pixels = pto.load(x[n, row, col :: step[1], c:], PIXELS, CHANNELS).to(pto.f32)
            total += pixels * pto.load(weight[i * taps[1] + j, c:], 1, CHANNELS).to(pto.f32)
    total += pto.load(bias[None, c:], 1, CHANNELS).to(pto.f32)
    pto.store(y[n, c:, h, w:], total.to(y.dtype, saturate=False).T)


@pto.operator
def run(
    x: Any,
    weight: Any,
    bias: Any,
    kernelSize: list[int],
    stride: list[int],
    padding: list[int],
    dilation: Any = (1, 1),
    groups: int = 1,
) -> Any:
    (n, c, h, w), taps, step, rate = x.shape, tuple(kernelSize), tuple(stride), tuple(dilation)
    ends = h + 2 * padding[0], w + 2 * padding[1]
    sizes = zip(ends, taps, step, rate, strict=True)
    height, width = ((e - (k - 1) * r - 1) // s + 1 for e, k, s, r in sizes)
    source = channels_last(x.reshape(n, c, 1, h, w), (0, *padding), (1, *ends))
    turned = transpose.run.function(weight.reshape(c, -1), [1, 0])
    y = np.empty((n, c, height, width), x.dtype)
    grid = pto.cdiv(c, CHANNELS), height * pto.cdiv(width, PIXELS), n
    convolve[grid](source[:, 0], turned, bias, y, taps, step, rate)
    return y


def reference(
    x: Any,
    weight: Any,
    bias: Any,
    kernelSize: list[int],
    stride: list[int],
    padding: list[int],
    dilation: Any = (1, 1),
    groups: int = 1,
) -> Any:
    wide = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    reach = [(k - 1) * r + 1 for k, r in zip(kernelSize, dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(wide, reach, axis=(2, 3))
    (s, t), (d, e) = stride, dilation
    taken = windows[:, :, ::s, ::t, ::d, ::e]
    return np.einsum("nchwij,cij->nchw", taken, weight) + bias[:, None, None]


CASES = [
    {
        "x": "f16[2, 5, 7, 6] 0..1",
        "weight": "f16[5, 3, 3] 0..1",
        "bias": "f16[5]",
        "kernelSize": [3, 3],
        "stride": [1, 1],
        "padding": [1, 1],
        "groups": 5,
    },
    {
        "x": "f32[1, 70, 5, 70]",
        "weight": "f32[70, 5, 5]",
        "bias": "f32[70]",
        "kernelSize": [5, 5],
        "stride": [2, 2],
        "padding": [2, 2],
        "dilation": [1, 2],
        "groups": 70,
    },
    {
        "x": "bf16[1, 3, 4, 9] 0..1",
        "weight": "bf16[3, 1, 1] 0..1",
        "bias": "bf16[3]",
        "kernelSize": [1, 1],
        "stride": [1, 1],
        "padding": [0, 0],
        "groups": 3,
    },
]
