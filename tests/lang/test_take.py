"""`pto.take`, `Global.transpose` and stores of filled tiles, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError

KINDS = [
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    np.int32,
    np.int16,
    np.int8,
    np.uint8,
    np.int64,
]


@pto.kernel
def columns(x: pto.Global, places: pto.Global[pto.i32], y: pto.Global) -> None:
    t = pto.load(x[0:, :], 8, 70)
    pto.store(y, pto.take(t, pto.load(places, places.shape[0])))


@pto.kernel
def rows(x: pto.Global, y: pto.Global) -> None:
    t = pto.load(x[0:, :], 8, 70)
    pto.store(y, pto.take(t, 2 - pto.arange(3), axis=0))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_columns_are_picked_in_any_order(kind: Any, profile: str) -> None:
    random = np.random.default_rng(5)
    x = random.integers(0, 120, (5, 70)).astype(kind)
    places = random.integers(0, 70, 37).astype(np.int32)
    for engine in ("reference", "jit"):
        y = np.zeros((5, 37), kind)
        columns.on(profile).run(x, places, y, engine=engine)
        assert np.array_equal(y, x[:, places])
    assert columns.on(profile).sanitize(x, places, y).is_clean


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("count", [1, 5])
def test_indices_beyond_the_tile_are_clipped(count: int, profile: str) -> None:
    x = np.arange(count * 70, dtype=np.float32).reshape(count, 70)
    places, y = np.array([-3, 69, 70, 1000], np.int32), np.zeros((count, 4), np.float32)
    columns.on(profile)(x, places, y)
    assert np.array_equal(y, np.take(x, places, axis=1, mode="clip"))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_rows_are_picked_in_reverse(profile: str) -> None:
    x = np.random.default_rng(6).standard_normal((5, 70)).astype(np.float16)
    y = np.zeros((3, 70), np.float16)
    rows.on(profile)(x, y)
    assert np.array_equal(y, x[[2, 1, 0]])


def test_indices_of_another_type_are_a_finding() -> None:
    @pto.kernel
    def wrong(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x, 8, 64)
        pto.store(y, pto.take(t, pto.arange(64, dtype=pto.f32)))

    with pytest.raises(PtoError, match="one row of i32"):
        wrong(np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32))


@pytest.mark.parametrize("axis", [2, -3, "rows"])
def test_an_axis_that_a_tile_lacks_is_a_finding(axis: Any) -> None:
    @pto.kernel
    def wrong(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.take(pto.load(x, 8, 64), pto.arange(64), axis=axis))

    with pytest.raises(PtoError, match="rows, axis 0, and columns, axis 1"):
        wrong(np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_an_array_with_its_axes_in_another_order(profile: str) -> None:
    @pto.kernel(profile=profile)
    def permuted(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        view = x.transpose(2, 0, 1)
        for i in range(view.shape[0]):
            pto.store(y[i, :, :], pto.load(view[i, :, :].T, 5, 3).T)

    x = np.arange(3 * 5 * 4, dtype=np.float32).reshape(5, 4, 3).transpose(2, 0, 1).copy()
    y = np.zeros((4, 3, 5), np.float32)
    permuted(x, y)
    assert np.array_equal(y, x.transpose(2, 0, 1))


def test_axes_that_are_no_permutation_are_a_finding() -> None:
    @pto.kernel
    def wrong(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.load(x.transpose(0, 0), 8, 8))

    with pytest.raises(PtoError, match="name each axis once"):
        wrong(np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_filled_tile_is_cut_at_the_end_of_a_window_that_the_run_knows(profile: str) -> None:
    @pto.kernel(profile=profile)
    def numbered(y: pto.Global[pto.i32], start: pto.i32, end: pto.i32) -> None:
        pto.store(y[start:end], pto.arange(32) + start)

    y = np.full(100, -1, np.int32)
    numbered(y, 40, 53)
    assert np.array_equal(
        y, np.where((np.arange(100) >= 40) & (np.arange(100) < 53), np.arange(100), -1)
    )


@pto.kernel
def elements(x: pto.Global, places: pto.Global[pto.i32], y: pto.Global) -> None:
    t = pto.tile(24, 32, x.dtype)
    isa.tload(t, x[:, :])
    pto.store(y[:, :], pto.take(t, pto.load(places[:, :], 5, 40), axis=None))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("kind", [k for k in KINDS if k is not np.int64], ids=lambda k: k.__name__)
def test_elements_are_counted_row_by_row(kind: Any, profile: str) -> None:
    random = np.random.default_rng(6)
    x = random.integers(0, 120, (24, 32)).astype(kind)
    places = random.integers(0, x.size, (5, 40)).astype(np.int32)
    for engine in ("reference", "jit"):
        y = np.zeros((5, 40), kind)
        elements.on(profile).run(x, places, y, engine=engine)
        assert np.array_equal(y, np.take(x, places))
    assert elements.on(profile).sanitize(x, places, y).is_clean


def test_elements_of_a_tile_with_gaps_between_its_lines() -> None:
    @pto.kernel(profile="a5")
    def gaps(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.take(pto.load(x, 4, 40), pto.arange(32), axis=None))

    with pytest.raises(PtoError, match=r"PTO-T209.*lines of 64, of which 40"):
        gaps(np.zeros((4, 40), np.float32), np.zeros(32, np.float32))
