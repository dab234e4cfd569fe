"""Sizes with names: one program and one compiled artefact for every shape. Grids with axes."""

# ruff: noqa: F821, UP037 (names of sizes stand in annotations)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa


def softmax(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i = pto.block_idx() * 16
    t = pto.load(x[i:, :], 16, 128)
    e = pto.exp(t - t.max(axis=1))
    pto.store(y[i:, :], e / e.sum(axis=1))


def gemm(
    a: pto.Global[pto.f16, "m", "k"],
    b: pto.Global[pto.f16, "k", "n"],
    c: pto.Global[pto.f32, "m", "n"],
) -> None:
    i, j = pto.block_idx(0) * 32, pto.block_idx(1) * 64
    acc = pto.zeros(32, 64, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], 32):
        acc = pto.dot(pto.load(a[i:, k:], 32, 32), pto.load(b[k:, j:], 32, 64), acc=acc)
    pto.store(c[i:, j:], acc)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_one_program_serves_all_shapes(profile: str, engine: str):
    kernel = pto.kernel(profile=profile)(softmax)
    programs: set[int] = set()
    for shape in ((101, 100), (16, 128), (5, 3), (1, 1), (200, 77)):
        x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        y = np.full_like(x, np.nan)
        kernel[pto.cdiv(shape[0], 16)](x, y, engine=engine)
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        assert np.allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-6)
        programs.add(id(kernel.module(x, y)))
    assert len(programs) == 1
    assert not kernel.check()
    text = kernel.ir
    assert "@softmax(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %m: index, %n: index)" in text
    assert not pto.check(pto.parse(text), profile), "what it prints is a program of its own"


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_product_of_any_sizes_on_a_grid(profile: str, engine: str):
    kernel = pto.kernel(profile=profile)(gemm)
    for m, k, n in ((45, 77, 53), (100, 33, 130), (1, 1, 1), (32, 32, 64)):
        rng = np.random.default_rng(m)
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((k, n)).astype(np.float16)
        c = np.full((m, n), np.nan, np.float32)
        kernel[pto.cdiv(m, 32), pto.cdiv(n, 64)](a, b, c, engine=engine)
        assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3)
    assert kernel[4, 3].sanitize(a, b, c).is_clean


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("grid", [(4, 3), (2, 3, 5), (7,), 6])
def test_blocks_know_their_place_in_the_grid(grid: Any, engine: str):
    @pto.kernel
    def where(y: pto.Global[pto.i32, "b", 8]) -> None:
        t = pto.full(1, 8, 0, pto.i32)
        for axis in range(3):
            isa.tsetval(t, axis, pto.block_idx(axis).to(pto.i32))
            isa.tsetval(t, axis + 4, pto.block_num(axis).to(pto.i32))
        pto.store(y[pto.block_idx(), :], t)

    extents = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    y = np.zeros((int(np.prod(extents)), 8), np.int32)
    where[grid](y, engine=engine)
    # axis 0 varies first
    wanted = [
        (a, b, c) for c in range(extents[2]) for b in range(extents[1]) for a in range(extents[0])
    ]
    assert [tuple(row) for row in y[:, 0:3]] == wanted
    assert (y[:, 4:7] == extents).all()


def test_a_size_is_a_number_of_the_kernel():
    @pto.kernel
    def row_means(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m"]) -> None:
        i = pto.block_idx() * 8
        total = pto.zeros(8, 64, pto.f32)
        for j in pto.range(0, x.shape[1], 64):
            total += pto.load(x[i:, j:], 8, 64)
        pto.store(y[i:], total.sum(axis=1) / x.shape[1].to(pto.f32))

    for shape in ((8, 64), (8, 200), (19, 63), (3, 1)):
        x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
        y = np.zeros(shape[0], np.float32)
        row_means[pto.cdiv(shape[0], 8)](x, y)
        assert np.allclose(y, x.astype(np.float64).mean(axis=1), atol=1e-6)


def test_a_size_that_a_tile_cannot_take_is_told_at_the_launch():
    kernel = pto.kernel(softmax)
    x = np.zeros((4, 200), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        kernel(x, x.copy())
    assert caught.value.code == "PTO-U080"
    assert "128 along n, which is 200" in str(caught.value)


@pytest.mark.parametrize("shapes", [((4, 100), (4, 90)), ((4, 100), (5, 100)), ((4,), (4,))])
def test_sizes_of_one_name_are_equal(shapes: Any):
    kernel = pto.kernel(softmax)
    with pytest.raises(pto.PtoError) as caught:
        kernel(*(np.zeros(shape, np.float32) for shape in shapes))
    assert caught.value.code == "PTO-U219"


shape = (1, 1)  # as an attribute that the kernel asks for


def test_a_global_of_the_name_of_an_attribute_is_no_part_of_the_program():
    global shape
    kernel = pto.kernel(gemm)  # asks for a.shape
    programs: set[int] = set()
    for shape in ((4, 4), (5, 5)):
        a = np.ones(shape, np.float16)
        programs.add(id(kernel.module(a, a, np.ones(shape, np.float32))))
    assert len(programs) == 1
