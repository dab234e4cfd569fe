"""dw[o, c, taps] = the sum over n and pixels of grad[n, o, pixel] x[n, c, pixel s + tap d - p].

Bound by the matrix unit: for each tap a product of outputs by pixels with pixels by channels. x
is written once with channels last and zeros around it; the zeros between the lines of a wider
copy of grad make all pixels of a plane one range.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import transpose
from examples.operators.conv_2d import channels_last

LEVEL = 3
OUTPUTS, CHANNELS, PIXELS = 128, 64, 128  # of a product
WIDTH = 256  # elements of a tile that is copied


@pto.kernel
def widen(x: pto.Global[Any], y: pto.Global[Any]) -> None:
    """Lines of x, (lines, w), with zeros after them: y is (lines, w')."""
    i, (_, width), wide = pto.block_idx() * 32, x.shape, y.shape[1]
    for w in range(0, width, WIDTH):
        part = slice(w, min(w + WIDTH, width))
        pto.store(y[i:, part], pto.load(x[i:, part], 32))
    if width < wide:
        pto.store(y[i:, width:wide], pto.full(32, wide - width, 0, y.dtype))


@pto.kernel
def backward(
    x: pto.Global[Any],
    grad: pto.Global[Any],
    y: pto.Global[Any],
    taps: tuple[int, ...],
    step: tuple[int, ...],
    rate: tuple[int, ...],
) -> None:
    """x is (n, d', h', w', c), grad (n, outputs, planes, h, w''), y (taps, groups, outputs, c)."""
    (batch, _, high, wide, channels), (_, _, planes, height, width) = x.shape, grad.shape
    all_taps, _, count, each = y.shape
    is_flat = step[1] == 1 and step[2] == 1
    lines, size = (1, height * wide) if is_flat else (height, width)
    tap, group = pto.block_idx(2) % all_taps, pto.block_idx(2) // all_taps
    o, c = pto.block_idx(1) * OUTPUTS, pto.block_idx(0) * CHANNELS
    shift = tap // (taps[1] * taps[2]) * rate[0], tap // taps[2] % taps[1] * rate[1]
    col, flat = tap % taps[2] * rate[2], x.reshape(batch, -1, high * wide, channels)
    outputs, inputs = (
        slice(g + at, g + end)
        for g, at, end in (
            (group * count, o, pto.min(o + OUTPUTS, count)),
            (group * each, c, pto.min(c + CHANNELS, each)),
        )
    )
    acc = pto.zeros(OUTPUTS, CHANNELS, pto.f32, role="acc")
    left = grad.reshape(batch, -1, planes, lines, size) if is_flat else grad
    for n in pto.range(batch):
        for plane in pto.range(planes):
            for line in pto.range(lines):
                for p in pto.range(0, size, PIXELS):
                    end = pto.min(p + PIXELS, size)
                    deep, row = plane * step[0] + shift[0], line * step[1] + shift[1]
                    if is_flat:
                        at = row * wide + col
                        right = flat[n, deep, at + p : at + end, inputs]
                    else:
                        at, last = p * step[2] + col, (end - 1) * step[2] + col + 1
                        right = x[n, deep, row, at : last : step[2], inputs]
                    a = pto.load(left[n, outputs, plane, line, p:end], OUTPUTS, PIXELS)
                    acc = pto.dot(a, pto.load(right, PIXELS, CHANNELS), acc=acc)
    t = (acc * 1.0).to(y.dtype, saturate=False)
    pto.store(y[tap, group, o:, c:], t)


@pto.operator
def run(
    x: Any,
    grad: Any,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int = 1,
    filter_size: Any = None,
) -> Any:
    (n, _, *sizes), (_, outputs, *counts) = x.shape, grad.shape
    _, each, *taps = filter_size
    before, step, rate = tuple(pads[::2]), tuple(strides), tuple(dilations)
    ends = [
        max(size + 2 * p, (o - 1) * s + (k - 1) * r + 1)
        for size, p, o, s, k, r in zip(sizes, before, counts, step, taps, rate, strict=True)
    ]
    ends[1] += 1  # a line more, for what a range of pixels reads after the last one
    source, wide = channels_last(x, before, tuple(ends)), grad
    if step[1] == 1 and step[2] == 1:
        lines = n * outputs * counts[0] * counts[1]
        wide = np.empty((*grad.shape[:4], ends[2]), grad.dtype)
        widen[pto.cdiv(lines, 32)](grad.reshape(lines, -1), wide.reshape(lines, -1))
    y = np.empty((int(np.prod(taps)), groups, outputs // groups, each), x.dtype)
    grid = pto.cdiv(each, CHANNELS), pto.cdiv(outputs // groups, OUTPUTS), groups * len(y)
    backward[grid](source, wide, y, tuple(taps), step, rate)
    turned = transpose.run.function(y.reshape(len(y), outputs, each), [1, 2, 0])
    return turned.reshape(filter_size)


def reference(
    x: Any,
    grad: Any,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    groups: int = 1,
    filter_size: Any = None,
) -> Any:
    outputs, each, *taps = filter_size
    after = [p + k * r + s for p, k, r, s in zip(pads[::2], taps, dilations, strides, strict=True)]
    wide = np.pad(x, ((0, 0), (0, 0), *zip(pads[::2], after, strict=True)))
    y = np.zeros(filter_size)
    for tap in np.ndindex(*taps):
        at = [t * r for t, r in zip(tap, dilations, strict=True)]
        ends = [a + (m - 1) * s + 1 for a, m, s in zip(at, grad.shape[2:], strides, strict=True)]
        places = tuple(slice(a, e, s) for a, e, s in zip(at, ends, strides, strict=True))
        taken = wide[(slice(None), slice(None), *places)]
        for o in range(outputs):
            g = o // (outputs // groups) * each
            y[(o, slice(None), *tap)] = np.einsum(
                "ncdhw,ndhw->c", taken[:, g : g + each], grad[:, o]
            )
    return y


CASES = [
    {
        "x": "f16[2, 3, 4, 5, 6] 0..1",
        "grad": "f16[2, 5, 4, 5, 6] 0..1",
        "strides": [1, 1, 1],
        "pads": [1, 1, 1, 1, 1, 1],
        "dilations": [1, 1, 1],
        "filter_size": [5, 3, 3, 3, 3],
    },
    {
        "x": "bf16[1, 4, 5, 7, 6] 0..1",
        "grad": "bf16[1, 6, 3, 4, 3] 0..1",
        "strides": [2, 2, 2],
        "pads": [1, 1, 1, 1, 1, 1],
        "dilations": [1, 1, 1],
        "groups": 2,
        "filter_size": [6, 2, 3, 3, 3],
    },
]
