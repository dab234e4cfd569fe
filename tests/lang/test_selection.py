"""Choosing by comparisons of tiles, and tiles like others: right on every profile and engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

SHAPES = [(16, 64), (16, 128), (9, 50), (37, 64), (1, 64), (40, 512)]


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_where_is_that_of_numpy(profile: str, engine: str, kind: Any):
    @pto.kernel(profile=profile)
    def choose(x: pto.Global[Any], y: pto.Global[Any]) -> None:
        i = pto.block_idx() * 16
        t = pto.tile(16, 512, x.dtype)
        isa.tload(t, x[i:, :])
        isa.tstore(y[i:, :], pto.where(t < 0.0, -1.5, t))

    for shape in SHAPES:
        x = np.random.default_rng(0).standard_normal(shape).astype(kind)
        y = np.zeros_like(x)
        choose[pto.cdiv(shape[0], 16)](x, y, engine=engine)
        assert np.array_equal(y, np.where(x < 0, kind(-1.5), x))


@pytest.mark.parametrize("mode", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_of_tiles(mode: str):
    sign = {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}.get(mode, mode)
    with pto.eager("a5"):
        a, b, out = np.arange(8.0), np.full(8, 4.0), np.zeros(8)
        arrays = [each.astype(np.float32).reshape(1, 8) for each in (a, b, out)]
        tiles = [pto.tile(1, 8, pto.f32) for _ in range(2)]
        for tile, array in zip(tiles, arrays, strict=False):
            isa.tload(tile, array)
        isa.tstore(arrays[2], pto.where(getattr(tiles[0], sign)(tiles[1]), 1.0, 0.0))
    wanted = getattr(a, f"__{mode}__")(b)
    assert np.array_equal(arrays[2][0], wanted)


@pytest.mark.parametrize("width", [64, 128])
def test_a_mask_that_is_read_other_than_it_was_packed_is_found(width: int):
    @pto.kernel
    def mixed(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t, mask = pto.tile(16, width, pto.f32), pto.tile(16, 32, pto.u8)
        isa.tload(t, x)
        isa.tcmps(mask, t, 0.0, cmpMode="lt")
        isa.tsel(t, mask, t, t)
        isa.tstore(y, t)

    x = np.zeros((16, width), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        mixed(x, x.copy())
    assert caught.value.code == "PTO-L025"
    assert "PTO-L025" not in {d.code for d in mixed.check("a2a3")}


def test_a_tile_like_another_follows_its_region():
    @pto.kernel
    def sums(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.tile(16, 64, pto.f32)
        i = pto.block_idx() * 16
        isa.tload(t, x[i:, :])
        total = pto.zeros_like(t)
        for _ in pto.range(3):
            isa.tadd(total, total, t)
        isa.tadd(total, total, pto.full_like(t, 0.5))
        isa.tstore(y[i:, :], total)

    x = np.ones((37, 64), np.float32)
    y = np.zeros_like(x)
    sums[3](x, y)
    assert (y == 3.5).all()


def test_what_is_no_comparison_is_refused():
    with pto.eager("a5"):
        t = pto.tile(4, 8, pto.f32)
        for act in (lambda: pto.where(True, t, t), lambda: pto.where(t < 0, t, "0")):
            with pytest.raises(pto.PtoError) as caught:
                act()
            assert caught.value.code == "PTO-T209"
        with pytest.raises(pto.PtoError) as caught:
            bool(t < 0)
        assert caught.value.code == "PTO-U202"
        with pytest.raises(pto.PtoError) as caught:
            np.exp(t)
        assert "pto.exp(t)" in str(caught.value)
