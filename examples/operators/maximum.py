"""y = max(x1, x2), with shapes that are broadcast as in NumPy. NaN is greater than every number.

Bound by memory. Neighbouring axes that are broadcast alike become one, so an operand is a matrix, a
row, a column or a number beside the result, for each of the outer axes. Elements of i64 are
clamped to 32 bits, since the vector unit of a2a3 has no wider integers.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.broadcast import canonical, part
from examples.operators.tiles import fitted

LEVEL = 2
MOST = 6144  # elements of a tile
WIDER = {"bf16": pto.f32, "i8": pto.f16, "u8": pto.f16, "i64": pto.i32}


@pto.kernel
def kernel(
    x1: pto.Global[Any], x2: pto.Global[Any], y: pto.Global[Any], rows: int, cols: int
) -> None:
    kind, narrows = WIDER.get(y.dtype.name, y.dtype), True if y.dtype is pto.i64 else None
    a, b = (part(x, rows, cols).to(kind, saturate=narrows) for x in (x1, x2))
    o, i, j = pto.block_idx(2), pto.block_idx(1) * rows, pto.block_idx(0) * cols
    pto.store(y[o, i:, j:], pto.max(a, b).to(y.dtype))


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
    return np.maximum(x1, x2)


CASES: list[dict[str, Any]] = [
    {"x1": "f16[100, 77]", "x2": "f16[100, 77]"},
    {"x1": "bf16[9, 1027] -3..6", "x2": "bf16[1027] -3..6"},
    {"x1": "f32[3, 5, 67, 37] -10..10", "x2": "f32[1, 1, 67, 1] -10..10"},
    {"x1": "i32[2, 3, 41, 16] -10000..10000", "x2": "i32[1, 1, 41, 1] -1000..1000"},
    {"x1": "i64[41, 51] -100000..100000", "x2": "i64[1, 51] -100000..100000"},
    {"x1": "i8[41, 510] -128..127", "x2": "i8[41, 510] -128..127"},
    {"x1": "f32[1031] -inf..inf", "x2": "f32[1031] -inf..inf"},
    {"x1": "f16[5, 103] nan..nan", "x2": "f16[5, 103]"},
    {"x1": "f32[31, 33]", "x2": "f32[1]"},
]
