"""Distances between values, and what counts as equal: answers from NumPy and by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.dtypes import ALL, decode, dtype
from pto.core.errors import PtoError
from pto.lang.diff.compare import Tolerance, differs, distance, rank, values_of

F32, F16, BF16, I32 = (dtype(name) for name in ("f32", "f16", "bf16", "i32"))
EXACT = Tolerance()


def wrong(kind: Any, got: Any, wanted: Any, within: Tolerance = EXACT) -> list[bool]:
    return differs(kind, values_of(kind, got), values_of(kind, wanted), within).tolist()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_step_is_one_ulp_of_numpy(kind: Any):
    value = kind(1.5)
    for _ in range(3):
        value = np.nextafter(value, kind(-9))
    assert distance(dtype(np.dtype(kind)), float(value), 1.5) == 3


def test_steps_go_through_zero():
    tiny = np.nextafter(np.float32(0), np.float32(1))
    assert distance(F32, float(tiny), float(-tiny)) == 2
    assert distance(F32, 0.0, -0.0) == 0


@pytest.mark.parametrize("kind", [k for k in ALL if k.form and k.bits <= 8], ids=lambda k: k.name)
def test_ranks_of_small_formats_count_their_values(kind: Any):
    items = np.arange(256, dtype=np.uint8)
    values = np.unique(decode(kind, items))
    values = values[~np.isnan(values)]
    assert rank(kind, values).tolist() == list(range(values.size))


def test_neighbours_of_bf16():
    values = np.array([1.0, 1.0078125], ml_dtypes.bfloat16)  # the step of bf16 at 1 is 2^-7
    assert distance(BF16, *values_of(BF16, values)) == 1


def test_wanted_is_rounded_to_the_type_of_the_result():
    third = np.array([1 / 3])
    assert wrong(F16, third.astype(np.float16), third) == [False]
    assert wrong(F32, third.astype(np.float16).astype(np.float32), third) == [True]


def test_integers_are_wanted_exactly():
    got = np.array([2, 2, -1], np.int32)
    assert wrong(I32, got, np.array([2.0, 2.4, -1.0])) == [False, True, False]
    assert distance(I32, 5, -3) == 8


def test_nan_is_nan_and_infinity_is_itself():
    got = np.array([np.nan, np.nan, np.inf, np.inf, 0.0], np.float32)
    wanted = np.array([np.nan, 1.0, np.inf, -np.inf, -0.0], np.float32)
    assert wrong(F32, got, wanted) == [False, True, False, True, False]
    assert wrong(F32, got, wanted, Tolerance(atol=1.0)) == [False, True, False, True, False]
    assert wrong(F32, got, wanted, Tolerance(ulp=5)) == [False, True, False, True, False]


def test_tolerances_are_those_of_numpy():
    rng = np.random.default_rng(0)
    wanted = rng.standard_normal(1000)
    got = (wanted * (1 + 1e-3 * rng.standard_normal(1000))).astype(np.float32)
    within = Tolerance(rtol=1e-3, atol=1e-4)
    close = np.isclose(got.astype(np.float64), wanted, rtol=1e-3, atol=1e-4)
    assert 100 < close.sum() < 900
    assert wrong(F32, got, wanted, within) == (~close).tolist()


def test_ulp_counts_steps():
    one = np.float32(1)
    got = np.array([one, np.nextafter(one, np.float32(2)), np.float32(1.0000005)])
    assert wrong(F32, got, np.ones(3), Tolerance(ulp=1)) == [False, False, True]


def test_whole_range_of_64_bits():
    u64 = dtype("u64")
    got = np.array([0, 2**64 - 1], np.uint64)
    assert wrong(u64, got, np.array([2**64 - 1, 2**64 - 1], np.uint64)) == [True, False]
    assert distance(u64, got[0], got[1]) == 2**64 - 1
    f64 = dtype("f64")
    assert wrong(f64, np.array([1e300]), np.array([-1e300]), Tolerance(ulp=1000)) == [True]


@pytest.mark.parametrize("bad", [{"rtol": -1.0}, {"atol": float("nan")}, {"ulp": -1}])
def test_a_tolerance_is_not_negative(bad: dict[str, Any]):
    with pytest.raises(PtoError) as caught:
        Tolerance(**bad)
    assert caught.value.code == "PTO-U074"
