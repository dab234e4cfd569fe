"""Python's control flow in kernels against NumPy, on both engines and profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from tests.lang.python_kernels import NUMBERS, TILES

ENGINES = ("reference", "jit")
X = np.arange(80 * 64, dtype=np.float32).reshape(80, 64) % 37 - 11


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str, profile: str):
    function, expected = NUMBERS[name]
    kernel = pto.kernel(profile=profile)(function)
    for n in (0, 1, 3, 4, 9):
        wanted = expected(n)
        for engine in ENGINES:
            y = np.full(8, -99, np.int32)
            kernel.run(y, n, engine=engine)
            assert y[: len(wanted)].tolist() == wanted, (n, engine)
    assert kernel.sanitize(np.zeros(8, np.int32), 5) == []


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", TILES)
def test_tiles(name: str, profile: str):
    function, expected = TILES[name]
    kernel: Any = pto.kernel(profile=profile)(function)
    for n in (0, 1, 4):
        for engine in ENGINES:
            y = np.zeros((16, 64), np.float32)
            kernel.run(X, y, n, engine=engine)
            assert np.array_equal(y, expected(X, n)), (n, engine)
    assert kernel.sanitize(X, np.zeros((16, 64), np.float32), 4) == []


def test_there_are_forty():
    assert len(NUMBERS) + len(TILES) >= 40
