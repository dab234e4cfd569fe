"""y[n, o] = bias[o] + the sum over c, kh, kw of x[n, c, h s + kh d - p, w s + kw d - p] times
filter[o, c, kh, kw].

Bound by the matrix unit. A first launch writes x with channels last and zeros around it, a second
one turns the filter; then each tap of the filter is a product of pixels by channels with channels
by outputs, added in the accumulator. Steps of one make the pixels of several lines one range.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import transpose

LEVEL = 3
PIXELS, OUTPUTS, BYTES = 128, 128, 256  # of a product; bytes of its channels
WIDTH = 128  # pixels of a tile that is turned


@pto.kernel
def pad(x: pto.Global[Any], y: pto.Global[Any], before: tuple[int, ...]) -> None:
    """x (n, c, d, h, w) with channels last, and zeros around it: y is (n, d', h', w', c)."""
    (_, _, depth, height, width), c = x.shape, pto.block_idx(0) * 64
    (_, _, high, wide, _), line = y.shape, pto.block_idx(1)
    n, d, h = pto.block_idx(2), line // high - before[0], line % high - before[1]
    target = y[n, line // high, line % high, :, c:]
    if (d >= 0) and (d < depth) and (h >= 0) and (h < height):
        for w in range(0, width, WIDTH):
            t = pto.load(x[n, c:, d, h, w : min(w + WIDTH, width)], 64).T
            pto.store(y[n, line // high, line % high, w + before[2] :, c:], t)
        zero(target, 0, before[2], y.dtype)
        zero(target, before[2] + width, wide, y.dtype)
    else:
        zero(target, 0, wide, y.dtype)


def zero(target: Any, start: int, end: int, kind: Any) -> None:
    for w in range(start, end, WIDTH):
        stop = min(w + WIDTH, end)
        pto.store(target[w:stop, :], pto.full(stop - w, 64, 0, kind))


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
    """x is (n, h', w', c), weight (c, taps, outputs), y (n, outputs, h, w)."""
    (_, high, wide, channels), (_, _, height, width) = x.shape, y.shape
    depth, lines = BYTES // x.dtype.itemsize, lines_of(wide, step)
    chunks, o, n = pto.cdiv(width, PIXELS), pto.block_idx(0) * OUTPUTS, pto.block_idx(2)
    h, w = pto.block_idx(1) // chunks * lines, pto.block_idx(1) % chunks * PIXELS
    flat = x.reshape(-1, high * wide, channels)
    acc = pto.zeros(PIXELS, OUTPUTS, pto.f32, role="acc")
    for c in pto.range(0, channels, depth):
        for tap in pto.range(taps[0] * taps[1]):
            row, col = h * step[0] + tap // taps[1] * rate[0], tap % taps[1] * rate[1]
            if step[1] == 1:
                pixels = flat[n, row * wide + w + col :, c:]
            else:
                pixels = x[n, row, w * step[1] + col :: step[1], c:]
            right = pto.load(weight[c:, tap, o:], depth, OUTPUTS)
            acc = pto.dot(pto.load(pixels, PIXELS, depth), right, acc=acc)
    turned, added = (acc * 1.0).T, pto.load(bias[o:, None], OUTPUTS, 1).to(pto.f32)
    for line in range(lines):
        if h + line < height:
            part = turned[:, line * wide : line * wide + min(wide, PIXELS)]
            t = (part + added).to(y.dtype, saturate=False)
            pto.set_validshape(t, t.valid[0], pto.min(width - w, PIXELS))
            pto.store(y[n, o:, h + line, w:], t)


def lines_of(wide: int, step: tuple[int, ...]) -> int:
    """Lines of pixels in one product."""
    return max(1, PIXELS // wide) if step[-1] == 1 and step[-2] == 1 else 1


def channels_last(x: Any, before: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """x (n, c, d, h, w) as (n, *shape, c), with zeros around it."""
    y = np.empty((len(x), *shape, x.shape[1]), x.dtype)
    pad[pto.cdiv(x.shape[1], 64), shape[0] * shape[1], len(x)](x, y, before)
    return y


@pto.operator
def run(
    x: Any, filter: Any, bias: Any, strides: list[int], pads: list[int], dilations: Any = (1, 1)
) -> Any:
    (n, c, h, w), (outputs, _, *taps) = x.shape, filter.shape
    before, step, rate = (0, pads[0], pads[2]), tuple(strides), tuple(dilations)
    ends = h + pads[0] + pads[1], w + pads[2] + pads[3]
    height, width = (
        (e - r * (t - 1) - 1) // s + 1 for e, t, s, r in zip(ends, taps, step, rate, strict=True)
    )
    wide = -(-ends[1] // 16) * 16
    lines = lines_of(wide, step)
    high = ends[0] + lines + pto.cdiv(PIXELS * step[1], wide)  # so that no product ends outside
    source = channels_last(x.reshape(n, c, 1, h, w), before, (1, high, wide))
    weight = transpose.run.function(filter.reshape(outputs, -1), [1, 0])
    y = np.empty((n, outputs, height, width), x.dtype)
    grid = pto.cdiv(outputs, OUTPUTS), pto.cdiv(height, lines) * pto.cdiv(width, PIXELS), n
    shape = c, taps[0] * taps[1], outputs
    convolve[grid](source[:, 0], weight.reshape(shape), bias, y, tuple(taps), step, rate)
    return y


def reference(
    x: Any, filter: Any, bias: Any, strides: list[int], pads: list[int], dilations: Any = (1, 1)
) -> Any:
    wide = np.pad(x, ((0, 0), (0, 0), pads[:2], pads[2:]))
    taps, (s, t), (d, e) = filter.shape[2:], strides, dilations
    windows = np.lib.stride_tricks.sliding_window_view(
        wide, (d * (taps[0] - 1) + 1, e * (taps[1] - 1) + 1), axis=(2, 3)
    )[:, :, ::s, ::t, ::d, ::e]
    return np.einsum("nchwij,ocij->nohw", windows, filter) + bias[:, None, None]


CASES = [
    {
        "x": "f16[2, 5, 7, 6] 0..1",
        "filter": "f16[9, 5, 3, 3] 0..1",
        "bias": "f16[9]",
        "strides": [1, 1],
        "pads": [1, 1, 1, 1],
    },
    {
        "x": "f32[1, 70, 9, 11]",
        "filter": "f32[3, 70, 3, 3]",
        "bias": "f32[3]",
        "strides": [1, 1],
        "pads": [2, 2, 2, 2],
        "dilations": [2, 2],
    },
    {
        "x": "bf16[1, 4, 9, 12] 0..1",
        "filter": "bf16[5, 4, 5, 5] 0..1",
        "bias": "bf16[5]",
        "strides": [2, 2],
        "pads": [2, 2, 2, 2],
    },
]
