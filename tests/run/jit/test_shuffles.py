"""Lanes in another order: what compiled code makes of arrays."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from pto.run.jit.emit.unit import Unit
from pto.run.jit.llvm.shuffles import transposed
from pto.run.jit.llvm.text import Text, vector

BOXES = [(16, 32), (32, 16), (16, 16), (8, 16), (8, 8), (4, 16), (16, 2), (2, 16), (1, 8)]


@pytest.mark.parametrize(("high", "wide"), BOXES)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_columns_become_rows(size: int, high: int, wide: int) -> None:
    """The columns lie one behind the other, each in one piece."""
    unit, x, item = Unit(), Text(), f"i{8 * size}"
    name = unit.new_name()

    def load(column: int, first: int, count: int) -> str:
        return x.load(vector(count, item), x.at("%ctx", (column * high + first) * size))

    rows = transposed(x, item, size, high, wide, load)
    for n, row in enumerate(rows):
        x.store(vector(wide, item), row, x.at("%frame", n * wide * size))
    x.do("ret i32 0")
    unit.add(name, x.function(f"define i32 @{name}(ptr %ctx, ptr %frame)"))

    given = np.random.default_rng(0).integers(0, 256, (wide, high * size)).astype(np.uint8)
    columns = given.view(f"u{size}")
    found = np.zeros((high, wide), columns.dtype)
    unit.function(name)(*(ctypes.c_void_p(a.ctypes.data) for a in (columns, found)))
    np.testing.assert_array_equal(found, columns.T)
