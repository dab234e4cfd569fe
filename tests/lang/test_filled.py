"""Tiles that one number, a ramp or a triangle fills, and what is computed of them: used as far as
what they meet is valid, stored as far as was asked for."""

# ruff: noqa: F821, UP037 (names of sizes stand in annotations)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto

Matrix = pto.Global[pto.f32, "m", "n"]
Row = pto.Global[pto.f32, "n"]
RNG = np.random.default_rng
M, N = 37, 301  # of blocks of 16 rows and of 64 columns the last ones are smaller


def row_deviation(x: Matrix, y: pto.Global[pto.f32, "m"]) -> None:
    i = pto.block_idx() * 16
    total, squares = pto.zeros(16, 1, pto.f32), pto.zeros(16, 1, pto.f32)
    for j in pto.range(0, x.shape[1], 64):
        t = pto.load(x[i:, j:], 16, 64)
        total += t.sum(axis=1)
        squares += (t * t).sum(axis=1)
    count = x.shape[1].to(pto.f32)
    mean = total / count
    pto.store(y[i:], pto.sqrt(squares / count - mean * mean))


def softmax_in_two_passes(x: Matrix, y: Matrix) -> None:
    i = pto.block_idx() * 16
    high, total = pto.full(16, 1, -1e30, pto.f32), pto.zeros(16, 1, pto.f32)
    for j in pto.range(0, x.shape[1], 64):
        t = pto.load(x[i:, j:], 16, 64)
        now = pto.max(high, t.max(axis=1))
        total *= pto.exp(high - now)
        total += pto.exp(t - now).sum(axis=1)
        high[:] = now
    inverse = 1.0 / total  # of all sixteen rows, whatever the last block has
    for j in pto.range(0, x.shape[1], 64):
        pto.store(y[i:, j:], pto.exp(pto.load(x[i:, j:], 16, 64) - high) * inverse)


def narrower_than_what_it_meets(x: Matrix, y: Matrix) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 320) + pto.full(16, 300, 2.0, pto.f32) * 3.0)


def position_bias(x: Matrix, y: Matrix) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    rows = pto.arange(i, i + 16, dtype=pto.f32).T
    cols = pto.arange(j, j + 64, dtype=pto.f32)
    pto.store(y[i:, j:], pto.load(x[i:, j:], 16, 64) + (cols - rows) * 0.5)


def histogram(x: pto.Global[pto.i32, "m"], y: Row) -> None:
    count, bins = pto.zeros(1, 64, pto.f32), pto.zeros(8, 64, pto.i32) + pto.arange(64)
    for i in pto.range(0, x.shape[0], 8):
        same = bins == pto.load(x[i:], 8).T  # integers of a tile and of a column
        count += pto.where(same, 1.0, 0.0).sum(axis=0)
    pto.store(y, count)


def rebound_in_loops(x: Matrix, y: Matrix) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    acc = pto.zeros(16, 64, pto.f32)
    for _ in pto.range(2):
        for _ in pto.range(3):
            acc = acc + pto.load(x[i:, j:], 16, 64)
    pto.store(y[i:, j:], acc / pto.full(16, 64, 2.0, pto.f32))


def rebound_in_branches(x: Matrix, y: Matrix) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    best = pto.full(16, 64, 0.5, pto.f32)
    for k in pto.range(5):
        t = pto.load(x[i:, j:], 16, 64)
        best = pto.max(best, t) if k % 2 == 0 else best + t
        if k == 3:
            break
    pto.store(y[i:, j:], best)


def branches(x: Any) -> Any:
    once = np.maximum(0.5, x) + x
    return np.maximum(once, x) + x


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def bias(x: Any) -> Any:
    return x + (np.arange(N) - np.arange(M)[:, None]) * 0.5


X = RNG(0).standard_normal((M, N)).astype(np.float32)
NUMBERS = RNG(1).integers(0, 50, 101).astype(np.int32)
CASES: list[tuple[Any, tuple[int, ...], Any, tuple[int, ...], Any]] = [
    (row_deviation, (3,), X, (M,), X.astype(float).std(1)),
    (softmax_in_two_passes, (3,), X, (M, N), softmax(X.astype(float))),
    (narrower_than_what_it_meets, (3,), X, (M, N), X + 6.0),
    (position_bias, (3, 5), X, (M, N), bias(X)),
    (rebound_in_loops, (3, 5), X, (M, N), X * 3.0),
    (rebound_in_branches, (3, 5), X, (M, N), branches(X)),
    (histogram, (1,), NUMBERS, (50,), np.bincount(NUMBERS, minlength=50)),
]


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_what_is_filled_fits_what_it_meets(case: tuple[Any, ...], profile: str):
    function, grid, x, shape, wanted = case
    kernel = pto.kernel(function, profile=profile)
    for engine in ("jit", "reference"):
        y = np.full(shape, np.nan, np.float32)
        kernel[grid](x, y, engine=engine)
        assert np.allclose(y, wanted, atol=1e-4), engine
    assert kernel.sanitize(x, np.zeros(shape, np.float32), blocks=grid).is_clean


def test_a_block_stores_no_more_than_was_asked_for():
    y = np.full(M, np.nan, np.float32)
    pto.kernel(row_deviation)[1](X, y, coverage=False)
    assert np.isnan(y[16:]).all() and not np.isnan(y[:16]).any()


def test_a_count_becomes_a_float_once():
    y = np.zeros(M, np.float32)
    kernel = pto.kernel(row_deviation)
    kernel[3](X, y)
    assert kernel.ir.count("arith.sitofp") == 1
