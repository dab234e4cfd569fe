"""The grid that follows from a kernel, worked out by hand."""

# ruff: noqa: F821, UP037 (names of sizes stand in annotations)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.graph import Module
from pto.lang.optimize import SizedKernel
from pto.optimize.grid import grid_of

CORES = 24


def two_axes(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    pto.store(y[i:, j:], pto.load(x[i:, j:], 16, 64))


def divided(x: pto.Global[pto.f32], y: pto.Global[pto.f32], cols: int = 64) -> None:
    columns = pto.cdiv(x.shape[1], cols)
    i, j = pto.block_idx() // columns * 16, pto.block_idx() % columns * cols
    pto.store(y[i:, j:], pto.load(x[i:, j:], 16, cols))


def heads(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    h, i = pto.block_idx(1), pto.block_idx(0) * 16
    pto.store(y[h, i:, :], pto.load(x[h, i:, :], 16, 64))


def batch(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i, j, b = pto.block_idx(0) * 16, pto.block_idx(1) * 64, pto.block_idx(2)
    pto.store(y[b, i:, j:], pto.load(x[b, i:, j:], 16, 64))


def row_by_row(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 16
    for r in pto.range(i, pto.min(i + 16, y.shape[0])):
        pto.store(y[r, :], pto.load(x[r, :], 1, 64))


def with_scratch(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """A part of the array for every block of the grid says nothing about one axis."""
    i = pto.block_idx(0) * 16 + pto.block_idx(1) * 64
    tile = pto.load(x[i:, :], 16, 64)
    pto.store(y[pto.block_idx() * 16 :, :], tile)
    pto.store(y[i:, :], tile)


def by_numbers(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    row = isa.load_scalar(x, pto.block_idx()).to(pto.i32)
    pto.store(y[row, :], pto.load(x[pto.block_idx(), :], 1, 64))


def shared(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    for i in pto.range(pto.block_idx() * 16, x.shape[0], pto.block_num() * 16):
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def single(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    for i in pto.range(0, x.shape[0], 16):
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def backwards(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    at = 64 - pto.block_idx() * 16
    pto.store(y[at:, :], pto.load(x[at:, :], 16, 64))


def scattered(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    at = pto.block_idx() % 3 * 16 + pto.block_idx() * 16
    pto.store(y[at:, :], pto.load(x[at:, :], 16, 64))


def program(function: Any, *shape: int) -> Module:
    kernel = SizedKernel(function, "a2a3")
    arrays = [np.zeros(shape, np.float32) for _ in range(2)]
    return kernel.specialise(kernel.values(arrays, {}))[0].module


@pytest.mark.parametrize(
    ("function", "shape", "grid"),
    [
        (two_axes, (100, 130), (7, 3)),
        (two_axes, (16, 64), (1, 1)),
        (divided, (100, 130), (21,)),
        (divided, (33, 64), (3,)),
        (heads, (5, 100, 64), (7, 5)),
        (batch, (3, 100, 130), (7, 3, 3)),
        (row_by_row, (100, 64), (7,)),
        (with_scratch, (128, 64), None),
        (by_numbers, (128, 64), None),
        (shared, (100, 64), (CORES,)),
        (single, (100, 64), (1,)),
        (backwards, (80, 64), None),
        (scattered, (80, 64), None),
    ],
)
def test_the_grid_that_follows(function: Any, shape: tuple[int, ...], grid: Any):
    assert grid_of(program(function, *shape), {}, CORES) == grid
