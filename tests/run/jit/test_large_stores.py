"""Stores to large arrays bypass the cache only if every one of them is whole lines of the cache.

One that is not would stop the processor."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import pto
from pto.run.jit.ir import nest

F = pto.Global[pto.f32]
COLS = 64
ROWS = nest.FAR // (4 * COLS)


@pto.kernel(profile="a5")
def sums_and_products(x: F, y: F, z: F) -> None:
    t = pto.load(x, 4, COLS)
    pto.store(y[0:4, :], t + 1.0)
    pto.store(z[0:4, :], t * 2.0)


def large(offset: int) -> Any:
    """A large array that begins `offset` elements after a line of the cache."""
    room = np.empty(ROWS * COLS + 64, np.float32)
    start = -(room.ctypes.data // 4) % 16 + offset
    return room[start : start + ROWS * COLS].reshape(ROWS, COLS)


@pytest.mark.parametrize("offsets", [*product((0, 1, 15), repeat=2)])
def test_outputs_beside_lines_of_the_cache(offsets: tuple[int, int]):
    x = np.arange(4 * COLS, dtype=np.float32).reshape(4, COLS)
    y, z = map(large, offsets)
    assert [a.ctypes.data % 64 for a in (y, z)] == [4 * n for n in offsets]
    sums_and_products(x, y, z, engine="jit", coverage=False)
    assert np.array_equal(y[:4], x + 1)
    assert np.array_equal(z[:4], x * 2)
