"""y[i0, i1, ...] = x[i_perm[0], i_perm[1], ...]: the axes in another order.

Bound by memory: each element is read once and written once. A tile has the last axis of `x` and
the last axis of `y`, so that both transfers move whole lines, and is transposed by the vector
unit. Elements of 8 bytes are transposed as two halves of 4.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 3
SIDE = 64  # rows and columns of a tile


@pto.kernel
def permute(x: pto.Global[Any], y: pto.Global[Any], perm: tuple[int, ...]) -> None:
    """A tile has the last axis of y, and the last of x or the one before; others count blocks."""
    last, is_wide = len(perm) - 1, x.dtype.itemsize == 8 and perm[-1] != len(perm) - 1
    row = last - 1 if perm[-1] == last else perm.index(last)
    i, j, rest = pto.block_idx(1) * SIDE, pto.block_idx(0) * SIDE, pto.block_idx(2)
    key: list[Any] = [slice(i, None) if n == row else slice(j, None) for n in range(len(perm))]
    for n in range(last):
        if n != row:
            key[n], rest = rest % y.shape[n], rest // y.shape[n]
    if is_wide:
        halves = x.view(pto.i32).transpose(*perm), y.view(pto.i32)
        near, far = list(key), list(key)
        near[row], far[last] = slice(2 * i, None), slice(2 * j, None)
        t = pto.load(halves[0][*near].T, SIDE, 2 * SIDE)
        low = pto.take(t, pto.arange(SIDE) * 2).T  # the low halves of the elements, transposed
        high = pto.take(t, pto.arange(SIDE) * 2 + 1).T
        k = pto.arange(2 * SIDE)
        both = pto.concatenate([low, high], axis=1)
        pto.store(halves[1][*far], pto.take(both, (k & 1) * t.valid[0] + (k >> 1)))
    elif perm[-1] == last:
        pto.store(y[*key], pto.load(x.transpose(*perm)[*key], SIDE, SIDE))
    else:
        pto.store(y[*key], pto.load(x.transpose(*perm)[*key].T, SIDE, SIDE).T)


@pto.operator
def run(x: Any, perm: list[int]) -> Any:
    y: Any = np.empty([x.shape[n] for n in perm], x.dtype)
    if y.size:
        source, order = _merged(x, [n % x.ndim for n in perm])
        target = y.reshape([source.shape[n] for n in order])
        last = len(order) - 1
        row = order.index(last) if order[-1] != last else last - 1
        rows, cols = target.shape[row], target.shape[-1]
        blocks = y.size // rows // cols
        permute[pto.cdiv(cols, SIDE), pto.cdiv(rows, SIDE), blocks](source, target, tuple(order))
    return y


def _merged(x: Any, perm: list[int]) -> tuple[Any, list[int]]:
    """Axes that stay side by side as one, and the order of what is left."""
    groups: list[list[int]] = []
    for n in perm:
        if groups and groups[-1][-1] + 1 == n:
            groups[-1].append(n)
        else:
            groups.append([n])
    sizes = {each[0]: int(np.prod([x.shape[n] for n in each])) for each in groups}
    firsts = sorted(sizes)
    order = [firsts.index(each[0]) for each in groups]
    if len(order) == 1:  # nothing moves
        return x.reshape(1, -1), [0, 1]
    return x.reshape([sizes[n] for n in firsts]), order


def reference(x: Any, perm: list[int]) -> Any:
    return np.transpose(x, perm)


CASES = [
    {"x": "f32[70, 90]", "perm": [1, 0]},
    {"x": "f16[3, 5, 33, 17]", "perm": [0, 2, 1, 3]},
    {"x": "bf16[3, 7, 4, 13, 9]", "perm": [4, 3, 2, 1, 0]},
    {"x": "i16[2, 5, 6, 70]", "perm": [0, 2, 3, 1]},
    {"x": "i64[21, 37]", "perm": [1, 0]},
    {"x": "i8[40, 66]", "perm": [0, 1]},
]
