"""y = the greatest common divisor of x1 and x2, which are broadcast as in NumPy.

Bound by the vector pipe: Euclid's algorithm, on all elements of a tile until every remainder is 0.
The remainders are those of i32; wider elements are clamped to 32 bits.
"""

import math
from typing import Any

import numpy as np

import pto
from examples.operators.broadcast import canonical, part
from examples.operators.tiles import fitted

LEVEL = 2
MOST = 4096  # elements of a tile


@pto.kernel
def kernel(
    x1: pto.Global[Any], x2: pto.Global[Any], y: pto.Global[Any], rows: int, cols: int
) -> None:
    narrows = True if y.dtype is pto.i64 else None
    a, b = (part(x, rows, cols).to(pto.i32, saturate=narrows) for x in (x1, x2))
    a, b = abs(a), abs(b)
    a, b = a + (b - b), b + (a - a)  # tiles of the shape of the result
    while b.max(axis=1).max(axis=0)[0, 0] > 0:
        rest = a % pto.max(b, 1)
        a = pto.where(b == 0, a, b)
        b = rest
    o, i, j = pto.block_idx(2), pto.block_idx(1) * rows, pto.block_idx(0) * cols
    pto.store(y[o, i:, j:], a.to(y.dtype))


@pto.operator
def run(x1: Any, x2: Any) -> Any:
    y = np.empty(np.broadcast_shapes(x1.shape, x2.shape), x1.dtype)
    shapes = canonical(x1.shape, x2.shape)
    outer, m, n = shapes[2]
    rows, cols = fitted(m, n, MOST)
    a, b, c = (each.reshape(s) for each, s in zip((x1, x2, y), shapes, strict=True))
    kernel[pto.cdiv(n, cols), pto.cdiv(m, rows), outer](a, b, c, rows, cols)
    return y


def reference(x1: Any, x2: Any) -> Any:
    return np.vectorize(math.gcd, otypes=[np.int64])(x1, x2)


CASES: list[dict[str, Any]] = [
    {"x1": "i16[20, 77] -1000..1000", "x2": "i16[20, 77] -1000..1000"},
    {"x1": "i32[9, 127] -2147483647..2147483647", "x2": "i32[9, 127] -2147483647..2147483647"},
    {"x1": "i64[3, 5, 27, 37] -10000..10000", "x2": "i64[1, 1, 27, 1] -1000..1000"},
    {"x1": "i16[2, 3, 41, 16] 2..10000", "x2": "i16[1] 1..100"},
    {"x1": "i32[41, 51] 0..0", "x2": "i32[1, 51] 0..0"},
    {"x1": "i16[41, 51] -32767..32767", "x2": "i16[41, 1] -10..10"},
]
