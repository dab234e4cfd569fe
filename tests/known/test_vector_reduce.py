"""Reductions: the value, where it stands, what masked lanes do, and both editions of the groups."""

import math

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.target.profile import profile as find_profile
from tests.vectors import Registers, reg

INF, NAN = np.inf, np.nan


def reduced(row, elem, values, lanes=None, result=None, edition="current"):
    bench = Registers()
    bench.core.profile = find_profile("a5", edition=edition)
    bench.vreg("a", elem, values)
    bench.mask("m", 8 * dtype(elem).itemsize, lanes)
    kind = reg(result or elem)
    return bench.one(f"%r = pto.{row} %a, %m : {{a}}, {{m}} -> {kind}", kind)


def only(got, *lanes):
    return not np.delete(got, lanes).view(f"u{got.itemsize}").any()


@pytest.mark.parametrize("elem", ["i32", "ui32", "f32", "f16"])
def test_vcadd_sums_active_lanes_into_lane_0(elem):
    n = dtype(elem).lanes
    got = reduced("vcadd", elem, np.arange(n) % 10)
    assert got[0] == sum(i % 10 for i in range(n)) and only(got, 0)
    assert reduced("vcadd", elem, np.arange(n), [1, 5, 60])[0] == 66
    assert not reduced("vcadd", elem, [7], 0).any()


@pytest.mark.parametrize(
    "elem, result, low, high",
    [
        ("i8", "i16", -128, 127),
        ("ui8", "ui16", 0, 255),
        ("i16", "i32", -32768, 32767),
        ("ui16", "ui32", 0, 65535),
    ],
)
def test_vcadd_of_small_integers_widens(elem, result, low, high):
    n = dtype(elem).lanes
    assert reduced("vcadd", elem, [high], result=result)[0] == high * n
    assert reduced("vcadd", elem, [low], result=result)[0] == low * n


def test_vcadd_of_words_wraps():
    assert reduced("vcadd", "i32", [2**30])[0] == 0


def test_vcadd_is_close_to_the_exact_sum_and_always_the_same():
    x = np.random.default_rng(3).uniform(-1, 1, 64).astype(np.float32)
    got = reduced("vcadd", "f32", x)[0]
    assert abs(float(got) - math.fsum(float(v) for v in x)) < 2e-6
    tree = x
    while tree.size > 1:
        tree = np.array([tree[i] + tree[i + 1] for i in range(0, tree.size, 2)], np.float32)
    assert got == tree[0]


def test_vcadd_of_halves_is_formed_in_f32():
    assert (
        reduced("vcadd", "f16", [2048.0] + [1.0] * 127)[0] == 2048 + 127 + 1
    )  # 2175 rounds to even
    assert reduced("vcadd", "f16", [60000.0, 60000.0, -60000.0, -60000.0])[0] == 0


def test_vcadd_with_infinities():
    assert reduced("vcadd", "f32", [INF, 1.0])[0] == INF
    assert np.isnan(reduced("vcadd", "f32", [INF, -INF])[0])
    assert reduced("vcadd", "f32", [1.0, NAN], [0, 2])[0] == 2.0


@pytest.mark.parametrize("elem", ["i8", "ui8", "i16", "ui16", "i32", "f16", "f32"])
def test_extremes_have_the_first_index_as_integer_bits(elem):
    n = dtype(elem).lanes
    values = np.arange(n) % 50
    top = reduced("vcmax", elem, values)
    assert top[0] == 49 and top.view(f"u{top.itemsize}")[1] == 49 and only(top, 0, 1)
    low = reduced("vcmin", elem, values + 3, [7, 60, 4])
    assert low[0] == 7 and low.view(f"u{low.itemsize}")[1] == 4 and only(low, 0, 1)


def test_extremes_of_masked_lanes_only_count_active_ones():
    x = [-INF] * 64
    got = reduced("vcmax", "f32", x, [5, 9])
    assert got[0] == -INF and got.view(np.uint32)[1] == 5


def test_extremes_of_no_lane_are_the_neutral_values():
    assert reduced("vcmax", "f32", [1.0], 0)[:2].tolist() == [-INF, 0]
    assert reduced("vcmin", "f16", [1.0], 0)[:2].tolist() == [INF, 0]
    assert reduced("vcmax", "i16", [1], 0)[:2].tolist() == [-32768, 0]
    assert reduced("vcmin", "ui32", [1], 0)[:2].tolist() == [2**32 - 1, 0]


def test_nan_wins_an_extreme():
    got = reduced("vcmax", "f32", [1.0, NAN, 3.0])
    assert np.isnan(got[0]) and got.view(np.uint32)[1] == 1


@pytest.mark.parametrize("elem, per", [("f32", 8), ("i32", 8), ("f16", 16), ("i16", 16)])
def test_groups_are_vlanes_and_stand_in_lanes_0_to_7(elem, per):
    x = (np.arange(8 * per) * 7) % 31
    rows = x.reshape(8, per)
    for row, fold in {"vcgadd": np.sum, "vcgmax": np.max, "vcgmin": np.min}.items():
        got = reduced(row, elem, x)
        assert got[:8].tolist() == fold(rows, axis=1).tolist()
        assert only(got, *range(8))


@pytest.mark.parametrize("elem, kind", [("i8", np.int8), ("ui8", np.uint8)])
def test_groups_of_bytes_have_32_lanes_and_sums_wrap(elem, kind):
    x = ((np.arange(256) * 7) % 251).astype(kind)
    rows = x.reshape(8, 32)
    wrapped = (rows.astype(np.int64).sum(axis=1) % 256).astype(np.uint8).view(kind)
    assert reduced("vcgadd", elem, x)[:8].tolist() == wrapped.tolist()
    assert reduced("vcgmax", elem, x)[:8].tolist() == rows.max(axis=1).tolist()
    assert reduced("vcgmin", elem, x)[:8].tolist() == rows.min(axis=1).tolist()
    high = np.where(np.arange(256) == 200, 100, 3)
    assert reduced("vcmax", elem, high).view(np.uint8)[:2].tolist() == [100, 200]


def test_groups_of_the_manual_stand_at_the_first_lane_of_each_vlane():
    x = np.arange(64.0)
    got = reduced("vcgadd", "f32", x, edition="manual")
    assert got[::8].tolist() == x.reshape(8, 8).sum(axis=1).tolist()
    assert only(got, *range(0, 64, 8))
    assert reduced("vcgmax", "f16", np.arange(128), edition="manual")[::16].tolist() == [
        15 + 16 * g for g in range(8)
    ]


def test_masked_lanes_take_no_part_in_groups():
    got = reduced("vcgadd", "f32", [1.0], [0, 1, 9, 63])
    assert got[:8].tolist() == [2, 1, 0, 0, 0, 0, 0, 1]
    top = reduced("vcgmax", "f32", np.arange(64) - 100.0, [0, 1, 9])
    assert top[:3].tolist() == [-99.0, -91.0, -INF]
    low = reduced("vcgmin", "i32", np.arange(64), [3, 17])
    assert low[:3].tolist() == [3, 2**31 - 1, 17]


@pytest.mark.parametrize("elem", ["f32", "f16"])
def test_vcpadd_adds_pairs(elem):
    n = dtype(elem).lanes
    got = reduced("vcpadd", elem, np.arange(n))
    assert got[: n // 2].tolist() == [4 * i + 1 for i in range(n // 2)]
    assert not got[n // 2 :].any()


def test_vcpadd_counts_masked_lanes_as_zero():
    got = reduced("vcpadd", "f32", [1.0, 10.0], [0, 3])
    assert got[:3].tolist() == [1.0, 10.0, 0.0]
