"""y = x[begin[0] : end[0] : strides[0], ...], with the masks of TensorFlow's strided slice.

Bound by memory: each element is read once and written once. With a step along the last axis whole
lines are read, of which a gather takes elements.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
ROWS, COLS = 8, 1024  # of a tile


@pto.kernel
def copy(x: pto.Global[Any], y: pto.Global[Any], index: Any) -> None:
    """`index` has a key for every axis of x; a tuple (start, stop, step) is a slice."""
    *front, last = index
    step = last[2] if isinstance(last, tuple) else 1
    lines = last if step == 1 else (*last[:2], 1)  # whole lines, of which a gather takes elements
    window = x[*(slice(*each) if isinstance(each, tuple) else each for each in (*front, lines))]
    cols = COLS // step
    i, j, rest = pto.block_idx(1) * ROWS, pto.block_idx(0) * cols, pto.block_idx(2)
    outer: list[Any] = []
    for size in y.shape[-3::-1]:
        outer.insert(0, rest % size)
        rest = rest // size
    if y.ndim == 1 and not isinstance(last, tuple):  # one column
        pto.store(y[None, j:], pto.load(window[j:], cols, 1).T)
    else:
        rows, place = (1, []) if y.ndim == 1 else (ROWS, [*outer, slice(i, None)])
        t = pto.load(window[*place, j * step :], rows, cols * step)
        pto.store(y[*place, j:], t if step == 1 else pto.take(t, pto.arange(cols) * step))


@pto.operator
def run(
    x: Any,
    begin: list[int],
    end: list[int],
    strides: list[int],
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    shrink_axis_mask: int = 0,
    new_axis_mask: int = 0,
) -> Any:
    index: list[Any] = []
    for n, (low, high, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << n
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(low)
        else:
            index.append(
                (None if begin_mask & bit else low, None if end_mask & bit else high, step)
            )
    if Ellipsis not in index:
        index += [(None, None, 1)] * (x.ndim - sum(each is not None for each in index))
    places = tuple(slice(*each) if isinstance(each, tuple) else each for each in index)
    y = np.empty(x[places].shape, x.dtype)
    *outer, rows, cols = (1, 1, *y.shape)
    step = index[-1][2] if isinstance(index[-1], tuple) else 1
    if y.size:
        grid = pto.cdiv(cols, COLS // step), pto.cdiv(rows, ROWS), int(np.prod(outer))
        copy[grid](x, y if y.ndim else y.reshape(1), tuple(index))
    return y


def reference(x: Any, begin: Any, end: Any, strides: Any, **masks: int) -> Any:
    """One axis after the other, by the numbers of the elements that it keeps."""

    def has(name: str, n: int) -> bool:
        return bool(masks.get(f"{name}_mask", 0) >> n & 1)

    y, axis, left = x, 0, len(begin)
    for n in range(len(begin)):
        left -= 1
        if has("ellipsis", n):
            after = sum(not has("new_axis", m) for m in range(n + 1, len(begin)))
            axis = y.ndim - after
        elif has("new_axis", n):
            y, axis = np.expand_dims(y, axis), axis + 1
        elif has("shrink_axis", n):
            y = np.take(y, begin[n], axis)
        else:
            size = y.shape[axis]
            low = 0 if has("begin", n) else begin[n] + size * (begin[n] < 0)
            high = size if has("end", n) else end[n] + size * (end[n] < 0)
            y = np.take(y, np.arange(low, min(high, size), strides[n]), axis)
            axis += 1
    return y


CASES = [
    {"x": "f16[1024]", "begin": [0], "end": [513], "strides": [2]},
    {"x": "i64[40, 70]", "begin": [1, 3], "end": [40, -1], "strides": [2, 3], "begin_mask": 2},
    {
        "x": "bf16[3, 5, 18, 21]",
        "begin": [0, 1],
        "end": [2, -1],
        "strides": [1, 2],
        "ellipsis_mask": 1,
    },
    {"x": "f32[30, 40]", "begin": [7, 0], "end": [8, 33], "strides": [1, 1], "shrink_axis_mask": 1},
    {"x": "i32[30, 40]", "begin": [2, 0], "end": [9, 33], "strides": [1, 1], "new_axis_mask": 2},
]
