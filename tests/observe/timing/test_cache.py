"""What the L2 cache keeps from launch to launch, and what passes by it."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from examples.timing.vector_add import vector_add
from pto.isa.cost.work import GlobalRegion
from pto.observe.timing.cache import LINE, Cache, Traffic

LINES = 100  # the cache holds
Vector = pto.Global[pto.f32, "n"]


def stretch(
    first: int, count: int, *, writes: bool = False, passes_by: bool = False
) -> GlobalRegion:
    return GlobalRegion(first * LINE, 1, count * LINE, count * LINE, writes, passes_by)


def cache() -> Cache:
    return Cache(LINES * LINE, [(0, 400 * LINE)])


def moved(traffic: Traffic) -> float:
    """Bytes that memory reads or writes."""
    return traffic.read + traffic.written


def test_results_that_fit_stay_and_are_never_written_back() -> None:
    found, sums = cache(), stretch(0, 40, writes=True)
    found.transfer(sums, [0])
    found.begin_again("cold")
    assert moved(found.transfer(sums, [0])) == pytest.approx(0, abs=2 * LINE)
    assert found.dirty == pytest.approx(40, abs=2)


def test_inputs_that_are_kept_drive_results_out() -> None:
    found, sums = cache(), stretch(0, 40, writes=True)
    for _ in range(2):
        back = [moved(found.transfer(stretch(40 + n, 1), [(40 + n) * LINE])) for n in range(300)]
        back.append(moved(found.transfer(sums, [0])))
        found.begin_again("cold")
    assert sum(back) == pytest.approx((300 + 40) * LINE, rel=0.1)


def test_inputs_that_pass_by_leave_them_in_peace() -> None:
    found, sums = cache(), stretch(0, 40, writes=True)
    for _ in range(2):
        past = [
            found.transfer(stretch(40 + n, 1, passes_by=True), [(40 + n) * LINE])
            for n in range(300)
        ]
        last = found.transfer(sums, [0])
        found.begin_again("cold")
    assert {each.missed for each in past} == {1.0}
    assert sum(map(moved, past)) == 300 * LINE
    assert moved(last) == pytest.approx(0, abs=2 * LINE)


def test_cores_that_want_the_same_past_the_cache_are_counted() -> None:
    region = stretch(0, 4, passes_by=True)
    assert cache().transfer(region, [0] * 8).alike == 8
    assert cache().transfer(region, [n * 4 * LINE for n in range(8)]).alike == 1


@pytest.mark.parametrize("hint", [0, 4])
def test_bursts_are_told_from_their_numbers_as_a_run_tells_them(hint: int) -> None:
    x, y, z = np.zeros((3, 64, 1024), np.float16)
    kernel = vector_add.on("a5")
    told, ran = (kernel.time(x, y, z, 1024, 2, hint, blocks=4, data=data) for data in (False, True))
    assert (told.us, told.busy) == (ran.us, ran.busy)


@pytest.mark.parametrize(("rows", "row_bytes"), [(0, 64), (4, 0), (0, 0)])
@pytest.mark.parametrize("writes", [False, True])
def test_a_transfer_of_nothing_moves_nothing(rows: int, row_bytes: int, writes: bool) -> None:
    cache = Cache(1 << 20, [(0, 1 << 16)])
    region = GlobalRegion(0, rows, row_bytes, 256, writes)
    found = cache.transfer(region, [0, 512])
    assert (found.read, found.written, cache.dirty) == (0.0, 0.0, 0.0)


def test_vector_add_adds_however_it_loads() -> None:
    x = np.random.default_rng(1).integers(0, 99, (8, 1024)).astype(np.float16)
    for hint in (0, 4):
        z = np.zeros_like(x)
        vector_add.on("a5")[2](x, x, z, 1024, 2, hint)
        assert np.array_equal(z, x + x)


@pto.kernel(profile="a2a3")
def copies(x: Vector, y: Vector) -> None:
    i = pto.block_idx() * 8192
    pto.store(y[i:], pto.load(x[i:], 8192))


@pytest.mark.parametrize(
    ("blocks", "line"),
    [
        (96, "L2 keeps 3.1 MB of 3.1 MB of results from launch to launch (it holds 201.3 MB)"),
        (16384, None),
    ],
    ids=["results that fit", "results that drive each other out"],
)
def test_a_report_says_when_results_stay_from_launch_to_launch(
    blocks: int, line: str | None
) -> None:
    """Inputs are new: every byte of them is read from memory."""
    found = copies[blocks].time((1 << 27,), (1 << 27,), device="910b1")
    moved = blocks * 32768
    assert found.stored_bytes == moved
    if line is None:
        assert "L2 keeps" not in str(found)
        assert found.hbm_bytes == pytest.approx(2 * moved, rel=0.02)
    else:
        assert f"  {line}; inputs are new to it" in str(found).splitlines()
        assert found.hbm_bytes == pytest.approx(moved, rel=0.02)
