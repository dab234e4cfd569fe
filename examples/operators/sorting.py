"""Lines of any length in order, for operators that sort: keys in f32, and their numbers.

The sorting instructions order f32 and place NaN last. A *key* is an element, or minus the element,
where infinity is the greatest finite number and NaN is infinity; so integers are exact to 2 ** 24.
"""

import math
from typing import Any

import numpy as np

import pto
from pto import isa

RUN = 2048  # elements that one block puts in order
GREATEST = float(np.finfo(np.float32).max)
Array = pto.Global[Any]
Keys = pto.Global[pto.f32]
Places = pto.Global[pto.i32]


def keys_of(t: pto.Tile, sign: int) -> pto.Tile:
    """Keys whose descending order is that of the elements (sign 1), or the ascending one (-1)."""
    is_float, t = t.dtype.is_float, t.to(pto.f32)
    keys = t if sign == 1 else -t
    if not is_float:
        return keys
    return pto.where(t == t, pto.clamp(keys, -GREATEST, GREATEST), sign * math.inf)


def elements_of(keys: pto.Tile, sign: int, kind: Any) -> pto.Tile:
    """The elements that have these keys."""
    t = keys if sign == 1 else -keys
    if not kind.is_float:
        return (t.to(pto.f16) if kind.itemsize == 1 else t).to(kind)
    t = pto.where(pto.abs(t) >= GREATEST, t * 2.0, t)
    return pto.where(keys == sign * math.inf, math.nan, t).to(kind, saturate=False)


@pto.kernel
def runs(
    x: Array, numbers: Places, keys: Keys, places: Places, sign: int, rows: int, k: int
) -> None:
    """The first k of each run of each line in order, and their numbers, by default the columns.
    `sign` 0: x holds keys. The results of a short last run are filled up with the least key."""
    part, i, count = pto.block_idx(0), pto.block_idx(1) * rows, x.shape[1]
    width, target = min(RUN, max(k, count)), slice(part * k, (part + 1) * k)
    if count % width or keys.shape[1] > count:
        pto.store(keys[i:, target], pto.full(rows, k, -math.inf, pto.f32))
        pto.store(places[i:, target], pto.arange(k) + part * k)
    if part * width < count:
        t = pto.load(x[i:, part * width :], rows, width)
        best, at = pto.topk(keys_of(t, sign) if sign else t, k)
        if numbers.shape[1] > 1:
            at = pto.take(pto.load(numbers[i:, part * width :], rows, width), at)
        elif count > width:
            at = at + part * width
        pto.store(keys[i:, target], best)
        pto.store(places[i:, target], at)


@pto.kernel
def merged(
    keys: Keys, places: Places, new_keys: Keys, new_places: Places, run: pto.Scalar[pto.i32]
) -> None:
    """Pairs of runs of a line as one run: each block finds by bisection which elements of both are
    its part of the result, and puts them in order."""
    start = pto.block_idx() * RUN
    low = start // (2 * run) * (2 * run)
    middle = pto.min(low + run, keys.shape[1])
    high = pto.min(low + 2 * run, keys.shape[1])
    first = split(keys, low, middle, high, start - low)
    last = split(keys, low, middle, high, start - low + RUN)
    second = middle + start - low - last  # so that the parts lie side by side
    is_first = pto.arange(RUN) < last - first
    a, b = (pto.load(keys[0, o:], 1, RUN) for o in (low + first, second))
    best, at = pto.topk(pto.where(is_first, a, b), RUN)
    a, b = (pto.load(places[0, o:], 1, RUN) for o in (low + first, second))
    pto.store(new_keys[0, start:], best)
    pto.store(new_places[0, start:], pto.take(pto.where(is_first, a, b), at))


def split(keys: Keys, low: Any, middle: Any, high: Any, count: Any) -> Any:
    """How many of the first `count` elements of two merged runs are from the first one."""
    least, most = pto.max(0, count - (high - middle)), pto.min(count, middle - low)
    while least < most:
        half = (least + most) // 2
        other = middle + count - 1 - half
        if isa.load_scalar(keys, low + half) >= isa.load_scalar(keys, other):
            least = half + 1
        else:
            most = half
    return least


def ordered(x: Any, sign: int, numbers: Any = None) -> tuple[Any, Any]:
    """All elements of an array in order: their keys, in whole runs and one more that is filled up
    with the least key, and their numbers, by default their places."""
    size = (pto.cdiv(x.size, RUN) + 1) * RUN
    keys, places = np.empty((1, size), np.float32), np.empty((1, size), np.int32)
    numbers = np.zeros((1, 1), np.int32) if numbers is None else numbers
    runs[size // RUN](x.reshape(1, -1), numbers, keys, places, sign, 1, RUN)
    run = RUN
    while run < size:
        source, keys, places = (keys, places), np.empty_like(keys), np.empty_like(places)
        merged[size // RUN](*source, keys, places, run)
        run *= 2
    return keys, places
