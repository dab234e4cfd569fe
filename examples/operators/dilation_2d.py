"""y[b, i, j, c] = the maximum over taps of x[b, i s + dy r, j s + dx r, c] + filter[dy, dx, c].

Bound by the vector unit: an addition and a maximum for each tap and element, in f16. Channels are
the columns of a tile, so a shift along the line is another row; outside of x a first launch
writes -inf.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import transpose

LEVEL = 3
PIXELS, CHANNELS = 128, 64  # of a block


@pto.kernel
def pad(x: pto.Global[Any], y: pto.Global[Any], top: int, left: int) -> None:
    """x (b, h, w, c) with -inf around it."""
    (_, height, width, _), (_, _, wide, _) = x.shape, y.shape
    c, row, b = pto.block_idx(0) * CHANNELS, pto.block_idx(1), pto.block_idx(2)
    for w in range(0, wide, PIXELS):
        stop = min(w + PIXELS, wide)
        pto.store(y[b, row, w:stop, c:], pto.full(stop - w, CHANNELS, float("-inf"), y.dtype))
    if (row >= top) and (row < top + height):
        for w in range(0, width, PIXELS):
            stop = min(w + PIXELS, width)
            t = pto.load(x[b, row - top, w:stop, c:], stop - w, CHANNELS)
            pto.store(y[b, row, left + w : left + stop, c:], t)


@pto.kernel
def dilate(
    x: pto.Global[Any], filter: pto.Global[Any], y: pto.Global[Any], step: Any, rate: Any
) -> None:
    """x is (b, h', w', c), filter (taps_h, taps_w, c), y (b, h, w, c)."""
    c, height, b = pto.block_idx(0) * CHANNELS, y.shape[1], pto.block_idx(2)
    h, w = pto.block_idx(1) % height, pto.block_idx(1) // height * PIXELS
    end = (pto.min(w + PIXELS, y.shape[2]) - 1) * step[1] + 1
    parts = list[Any]()
    for i in range(filter.shape[0]):
        for j in range(filter.shape[1]):
            row, col = h * step[0] + i * rate[0], j * rate[1]
            t = pto.load(x[b, row, w * step[1] + col : end + col : step[1], c:], PIXELS, CHANNELS)
            t = t + pto.load(filter[i, j, c:], 1, CHANNELS)
            parts = [pto.max(parts[0], t)] if parts else [t]
    pto.store(y[b, h, w:, c:], parts[0])


@pto.operator
def run(
    x: Any,
    filter: Any,
    strides: list[int],
    rates: list[int],
    padding_mode: str = "SAME",
    pads: Any = (0, 0, 0, 0),
    ceil_mode: bool = False,
    data_format: str = "NHWC",
) -> Any:
    is_last = data_format == "NHWC"
    if not is_last:
        x = transpose.run.function(x, [0, 2, 3, 1])
        filter = transpose.run.function(filter, [1, 2, 0])
    (b, h, w, c), step, rate = x.shape, tuple(strides[1:3]), tuple(rates[1:3])
    reach = [(k - 1) * r + 1 for k, r in zip(filter.shape[:2], rate, strict=True)]
    if padding_mode == "SAME":
        sizes = [-(-n // s) for n, s in zip((h, w), step, strict=True)]
        more = [
            max((o - 1) * s + k - n, 0)
            for o, s, k, n in zip(sizes, step, reach, (h, w), strict=True)
        ]
        top, left, ends = more[0] // 2, more[1] // 2, (h + more[0], w + more[1])
    else:
        (top, left), ends = (pads[0], pads[2]), (h + pads[0] + pads[1], w + pads[2] + pads[3])
        inner = (h, w) if padding_mode == "VALID" else ends
        up = ceil_mode and padding_mode != "VALID"
        sizes = [
            (n - k + (s - 1) * up) // s + 1 for n, k, s in zip(inner, reach, step, strict=True)
        ]
    source = np.empty((b, *ends, c), x.dtype) if ends != (h, w) else x
    channels = pto.cdiv(c, CHANNELS)
    if source is not x:
        pad[channels, ends[0], b](x, source, top, left)
    y = np.empty((b, *sizes, c), x.dtype)
    dilate[channels, sizes[0] * pto.cdiv(sizes[1], PIXELS), b](source, filter, y, step, rate)
    return y if is_last else transpose.run.function(y, [0, 3, 1, 2])


def reference(
    x: Any,
    filter: Any,
    strides: list[int],
    rates: list[int],
    padding_mode: str = "SAME",
    pads: Any = (0, 0, 0, 0),
    ceil_mode: bool = False,
    data_format: str = "NHWC",
) -> Any:
    if data_format == "NCHW":
        x, filter = np.moveaxis(x, 1, 3), np.moveaxis(filter, 0, 2)
    around = [pads[:2], pads[2:]]
    if padding_mode == "SAME":
        around = []
        for n, k, s, r in zip(x.shape[1:3], filter.shape, strides[1:3], rates[1:3], strict=False):
            more = max((-(-n // s) - 1) * s + (k - 1) * r + 1 - n, 0)
            around.append((more // 2, more - more // 2))
    wide = np.pad(x, ((0, 0), *around, (0, 0)), constant_values=-np.inf)
    reach = [(k - 1) * r + 1 for k, r in zip(filter.shape, rates[1:3], strict=False)]
    windows = np.lib.stride_tricks.sliding_window_view(wide, reach, axis=(1, 2))
    taken = windows[:, :: strides[1], :: strides[2], :, :: rates[1], :: rates[2]]
    y = (taken + np.moveaxis(filter, 2, 0)).max(axis=(4, 5))
    return np.moveaxis(y, 3, 1) if data_format == "NCHW" else y


CASES = [
    {
        "x": "f16[2, 6, 7, 5]",
        "filter": "f16[3, 3, 5]",
        "strides": [1, 1, 1, 1],
        "rates": [1, 1, 1, 1],
    },
    {
        "x": "f16[1, 9, 8, 70]",
        "filter": "f16[3, 3, 70]",
        "strides": [1, 2, 2, 1],
        "rates": [1, 2, 2, 1],
    },
    {
        "x": "f16[1, 3, 9, 11]",
        "filter": "f16[3, 2, 3]",
        "strides": [1, 1, 1, 1],
        "rates": [1, 3, 2, 1],
        "padding_mode": "VALID",
        "data_format": "NCHW",
    },
]
