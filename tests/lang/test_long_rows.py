"""Folds of one long row, which a2a3 does in lines: sums, maxima and minima, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto


@pto.kernel
def folds(x: pto.Global[Any], y: pto.Global[Any], cols: int) -> None:
    t = pto.load(x[0:1, :], 1, cols)
    pto.store(y[0, 0], t.sum(axis=1))
    pto.store(y[0, 1], t.max(axis=1))
    pto.store(y[0, 2], t.min(axis=1))


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize(("count", "cols"), [(2048, 2048), (2050, 4096), (3, 2048), (4099, 4099)])
def test_folds_of_a_long_row(kind: Any, count: int, cols: int) -> None:
    x = np.random.default_rng(count).integers(-9, 9, (1, count)).astype(kind)
    for engine in ("jit", "reference"):
        y = np.zeros((1, 3), kind)
        folds.on("a2a3").run(x, y, cols, engine=engine)
        assert y.tolist() == [[x.sum(), x.max(), x.min()]]


@pytest.mark.parametrize("sign", [1, -1])
def test_extrema_of_a_row_of_infinities(sign: int) -> None:
    x, y = np.full((1, 2050), sign * np.inf, np.float32), np.zeros((1, 3), np.float32)
    folds.on("a2a3").run(x, y, 4096)
    assert y.tolist() == [[sign * np.inf] * 3]


def test_a_long_row_takes_few_instructions() -> None:
    """The header folds 8,192 elements by 127 instructions; lines by one, and 128 sums by two."""
    arrays = np.zeros((1, 8192), np.float32), np.zeros((1, 3), np.float32)
    timed = folds.on("a2a3").time(*arrays, 8192, device="910b1")
    assert folds.on("a2a3").ir.count("pto.trowsum") == 2
    assert timed.busy["vector"]["V"] * timed.core_us < 3.0
