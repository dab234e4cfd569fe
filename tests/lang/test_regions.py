"""Valid regions follow the data: static where they are known, computed by the program elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

F32 = pto.Global[pto.f32]
Named = pto.Global[pto.f32, "m", "n"]


@pto.kernel
def copy_rows(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    t = pto.tile(16, 64, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tstore(y[i:, :], t)


@pytest.mark.parametrize("rows", [16, 48, 1, 17, 31, 63])
@pytest.mark.parametrize("cols", [64, 1, 9, 63])
def test_any_shape_is_copied_whole(rows: int, cols: int):
    x = np.random.default_rng(0).standard_normal((rows, cols), dtype=np.float32)
    y = np.full_like(x, np.nan)
    copy_rows[pto.cdiv(rows, 16)](x, y)
    assert np.array_equal(x, y)


def test_whole_tiles_are_static():
    x = np.zeros((48, 64), np.float32)
    copy_rows.module(x, x)
    assert "?" not in copy_rows.ir
    assert "set_validshape" not in copy_rows.ir


def test_counters_that_step_by_whole_tiles_are_static():
    @pto.kernel
    def blocks(x: F32, y: F32) -> None:
        for i in pto.range(0, x.shape[0], 16):
            t = pto.tile(16, 64, pto.f32)
            isa.tload(t, x[i:, :])
            isa.tstore(y[i:, :], t)

    x = np.random.default_rng(1).standard_normal((48, 64), dtype=np.float32)
    y = np.zeros_like(x)
    blocks(x, y)
    assert np.array_equal(x, y)
    assert "?" not in blocks.ir
    longer = np.random.default_rng(2).standard_normal((50, 64), dtype=np.float32)
    y = np.zeros_like(longer)
    blocks(longer, y)
    assert np.array_equal(longer, y)
    assert "?" in blocks.ir


def test_an_edge_that_only_the_program_knows_is_dynamic():
    x = np.zeros((50, 64), np.float32)
    copy_rows.module(x, x)
    assert "valid=?x64" in copy_rows.ir


def test_an_edge_that_is_known_is_in_the_type():
    x = np.zeros((48, 9), np.float32)
    copy_rows.module(x, x)
    assert "valid=16x9" in copy_rows.ir
    assert "set_validshape" not in copy_rows.ir


def test_more_blocks_than_rows_do_nothing_at_an_edge():
    x = np.ones((20, 64), np.float32)
    y = np.zeros_like(x)
    with pytest.warns(pto.PtoWarning, match="PTO-U311"):
        copy_rows[5](x, y)
    assert np.array_equal(x, y)


def test_more_blocks_than_whole_tiles_are_an_error():
    x = np.ones((32, 64), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        copy_rows[3](x, x.copy())
    assert caught.value.code == "PTO-M006"
    assert "in dimension 0 does not fit its size 32" in str(caught.value)
    assert "behind the last element, 31: launch fewer blocks" in str(caught.value)


def test_slices_end_where_the_array_ends():
    @pto.kernel
    def pieces(x: F32, y: F32) -> None:
        i = pto.block_idx() * 24
        t = pto.tile(1, 24, pto.f32)
        isa.tload(t, x[i : i + 24])
        isa.tadds(t, t, 1.0)
        isa.tstore(y[i : i + 24], t)

    x = np.arange(100, dtype=np.float32)
    y = np.zeros_like(x)
    pieces[5](x, y)
    assert np.array_equal(y, x + 1)


def test_region_after_a_branch_is_asked_of_the_tile():
    @pto.kernel
    def branch(x: F32, y: F32, few: pto.Scalar[pto.i32]) -> None:
        t = pto.tile(16, 64, pto.f32)
        if few > 0:
            isa.tload(t, x[0:4, :])
        else:
            isa.tload(t, x[0:16, :])
        isa.tadds(t, t, 1.0)
        isa.tstore(y, t)

    x = np.zeros((16, 64), np.float32)
    for few, rows in ((1, 4), (0, 16)):
        y = np.zeros_like(x)
        branch(x, y, few)
        assert y.sum() == rows * 64
    assert "get_validshape" in branch.ir


def test_reductions_give_columns_and_rows():
    @pto.kernel
    def sums(x: F32, rows: F32, cols: F32) -> None:
        t = pto.tile(16, 64, pto.f32)
        r = pto.tile(16, 1, pto.f32, layout="DN")
        c = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        isa.trowsum(r, t)
        isa.tcolsum(c, t)
        assert r.valid == (5, 1)
        assert c.valid == (1, 9)
        isa.tstore(rows, r)
        isa.tstore(cols, c)

    x = np.arange(45, dtype=np.float32).reshape(5, 9)
    rows, cols = np.zeros((5, 1), np.float32), np.zeros((1, 9), np.float32)
    sums(x, rows, cols)
    assert np.array_equal(rows[:, 0], x.sum(axis=1))
    assert np.array_equal(cols[0], x.sum(axis=0))


def test_more_dimensions_are_indexed():
    @pto.kernel
    def transpose_heads(x: F32, y: F32) -> None:
        b, h = pto.block_idx() // x.shape[1], pto.block_idx() % x.shape[1]
        t = pto.tile(8, 16, pto.f32)
        isa.tload(t, x[b, h, :, :])
        isa.tstore(y[b, :, h, :], t)

    x = np.arange(2 * 3 * 8 * 16, dtype=np.float32).reshape(2, 3, 8, 16)
    y = np.zeros((2, 8, 3, 16), np.float32)
    transpose_heads[6](x, y)
    assert np.array_equal(y, x.transpose(0, 2, 1, 3))


def test_products_of_edges_have_the_edges():
    @pto.kernel
    def product(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: F32) -> None:
        tiles: list[Any] = []
        for array, role, shape in ((a, "left", (32, 64)), (b, "right", (64, 32))):
            mat = pto.tile(*shape, pto.f16, role="mat")
            isa.tload(mat, array)
            tiles.append(pto.tile(*shape, pto.f16, role=role))
            isa.tmov(tiles[-1], mat)
        acc = pto.tile(32, 32, pto.f32, role="acc")
        isa.tmatmul(acc, *tiles)
        assert acc.valid == (20, 25)
        isa.tstore(c, acc)

    rng = np.random.default_rng(3)
    a = rng.integers(-8, 8, (20, 50)).astype(np.float16)
    b = rng.integers(-8, 8, (50, 25)).astype(np.float16)
    c = np.zeros((20, 25), np.float32)
    product(a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_regions_that_only_the_run_knows_are_held_to_the_rules(engine: str):
    @pto.kernel
    def add(x: F32, y: F32, z: F32, rows: pto.Scalar[pto.i32]) -> None:
        a, b = pto.tile(64, 64, pto.f32), pto.tile(64, 64, pto.f32)
        isa.tload(a, x[0:rows, :])
        isa.tload(b, y)
        isa.tadd(a, a, b)
        isa.tstore(z[0:rows, :], a)

    x, y, z = np.ones((40, 50), np.float32), np.ones((33, 50), np.float32), np.zeros((40, 50))
    z = z.astype(np.float32)
    add(x, y, z, 33, engine=engine)
    assert z.sum() == 2 * 33 * 50
    with pytest.raises(pto.PtoError) as caught:
        add(x, y, z, 40, engine=engine)
    assert caught.value.code == "PTO-S021"
    assert "src1 is 33x50, dst is 40x50" in str(caught.value)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_window_of_several_row_dimensions_fills_a_tile(profile: str):
    """Rows of a tile are the elements of all but the last: two tokens of three heads."""

    @pto.kernel(profile=profile)
    def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        i = pto.block_idx() * 2
        t = pto.tile(6, 8, pto.f32)
        isa.tload(t, x[i : i + 2, 1, :, :])
        isa.tstore(y[i : i + 2, 0, :, :], t)

    x = np.arange(4 * 2 * 3 * 8, dtype=np.float32).reshape(4, 2, 3, 8)
    y = np.zeros((4, 1, 3, 8), np.float32)
    copy[2](x, y)
    assert np.array_equal(y[:, 0], x[:, 1])


# ---- what is said of a region is said once


def looped(text: str) -> str:
    """The body of the first loop of a program."""
    return text.partition("scf.for")[2].partition("\n    }")[0]


def test_a_region_that_every_turn_wants_is_set_before_the_loop():
    @pto.kernel
    def sums(x: Named, y: Named) -> None:
        total = pto.zeros(1, 64, pto.f32)
        for i in pto.range(x.shape[0]):
            total += pto.load(x[i, :], 1, 64)
            pto.store(y[i, :], total)

    x = np.random.default_rng(3).standard_normal((7, 37), dtype=np.float32)
    y = np.zeros_like(x)
    sums(x, y)
    assert np.allclose(y, x.cumsum(0), atol=1e-5)
    assert "set_validshape" not in looped(sums.ir)
    assert sums.ir.count("set_validshape") == 1


@pto.kernel
def narrowed(x: F32, y: F32, z: F32, turns: pto.Scalar[pto.i32]) -> None:
    """Where the loop has no turn, all rows of x go to z; else those of its last."""
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x[0:8, :])
    for _ in pto.range(turns):
        isa.tload(t, y[0:3, :])
        isa.tadds(t, t, 1.0)
    isa.tstore(z[0 : t.valid[0], :], t)


@pytest.mark.parametrize("engine", ["jit", "reference"])
@pytest.mark.parametrize(("turns", "rows"), [(0, 8), (1, 3), (2, 3)])
def test_a_loop_without_a_turn_leaves_a_region_as_it_is(turns: int, rows: int, engine: str):
    x, y, z = np.full((8, 64), 5, "f4"), np.full((8, 64), 7, "f4"), np.zeros((8, 64), "f4")
    narrowed(x, y, z, turns, engine=engine)
    assert (z[:rows] == (8 if turns else 5)).all()
    assert (z[rows:] == 0).all()


@pto.kernel
def alternating(x: Named, y: Named) -> None:
    """Two regions of one tile in each turn, in a loop in a loop; a branch narrows it too."""
    total = pto.zeros(1, 64, pto.f32)
    for i in pto.range(x.shape[0]):
        for _ in pto.range(2):
            total += pto.load(x[i, :], 1, 64)
        if i > 1:
            total += pto.load(x[i, 0:3], 1, 64)
        total += pto.load(x[i, 0:5], 1, 64)
        pto.store(y[i, :], total)


@pytest.mark.parametrize("engine", ["jit", "reference"])
def test_regions_that_take_turns(engine: str):
    x = np.random.default_rng(4).integers(-9, 9, (5, 37)).astype(np.float32)
    y, wanted, total = np.zeros_like(x), np.zeros_like(x), np.zeros(37, np.float32)
    for i, row in enumerate(x):
        total += 2 * row
        if i > 1:
            total[:3] += row[:3]
        total[:5] += row[:5]
        wanted[i] = total
    alternating(x, y, engine=engine)
    assert np.array_equal(y, wanted)


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_variable_keeps_its_region_until_a_loop_binds_it(engine: str):
    @pto.kernel(profile="a2a3")
    def k(x: F32, w: F32, y: F32) -> None:
        i = pto.block_idx() * 32
        a, b = pto.load(x[i:, :], 32, 8), pto.load(w[i:, :], 32, 8)
        for _ in pto.range(2):
            b = pto.where(b <= 0.0, a, -2.0)  # compares what the result replaces
        pto.store(y[i:, :], b)

    x, w = np.random.default_rng(1).integers(-3, 4, (2, 70, 5)).astype(np.float32)
    y = np.zeros_like(x)
    k[3](x, w, y, engine=engine)
    once = np.where(w <= 0, x, -2)
    assert np.array_equal(y, np.where(once <= 0, x, -2))
