"""`pto.operator`: launches of one function as a unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa


@pto.kernel
def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 64
    pto.store(y[i:], pto.load(x[i:], 64) * 2.0)


@pto.kernel
def raced(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    pto.store(y, pto.load(x, 64) + pto.block_idx().to(pto.f32))


@pto.operator
def quadrupled(x: Any) -> Any:
    """Four times x."""
    middle, y = np.empty_like(x), np.empty_like(x)
    doubled[pto.cdiv(x.size, 64)](x, middle)
    doubled[pto.cdiv(x.size, 64)](middle, y)
    return y


X = np.arange(100, dtype=np.float32)


@pytest.mark.parametrize("profile", [None, "a2a3", "a5"])
@pytest.mark.parametrize("engine", [None, "jit", "reference"])
def test_it_runs_its_launches_and_returns_the_result(profile: str, engine: str) -> None:
    assert np.array_equal(quadrupled.on(profile, engine=engine)(X), 4 * X)


def test_the_profile_and_the_engine_reach_every_launch() -> None:
    found = quadrupled.on("a2a3", engine="reference").launches(X)
    assert [(each.kernel.profile, each.blocks) for each in found] == [("a2a3", 2)] * 2
    assert [each.named for each in found] == [{"engine": "reference"}] * 2
    assert found[1].args[0] is found[0].args[1]
    assert found[0].run().engine == "reference"
    assert np.array_equal(found[0].args[1], 2 * X)


def test_noting_launches_runs_nothing() -> None:
    x = X.copy()

    @pto.operator
    def in_place(x: Any) -> None:
        doubled[2](x, x)

    assert len(in_place.launches(x)) == 1
    assert np.array_equal(x, X)
    in_place(x)
    assert np.array_equal(x, 2 * X)


@pytest.mark.parametrize("device", ["910b2", "950pr"])
def test_its_time_is_the_sum_of_its_launches(device: str) -> None:
    took = quadrupled.time(X, device=device)
    (one, two) = took.launches
    alone = doubled[2].time(X, np.empty_like(X), device=device)
    assert one.us == two.us == alone.us
    assert took.us == 2 * alone.us
    assert took.core_us == 2 * alone.core_us
    assert took.band == (2 * alone.band[0], 2 * alone.band[1])
    assert str(alone).splitlines()[0] in str(took)


def test_the_time_of_launches_whose_control_flow_depends_on_data() -> None:
    @pto.kernel
    def repeated(
        x: pto.Global[pto.f32], counts: pto.Global[pto.i32], y: pto.Global[pto.f32]
    ) -> None:
        t = pto.load(x, 64)
        for _ in pto.range(isa.load_scalar(counts, 0)):
            t = t + 1.0
        pto.store(y, t)

    @pto.kernel
    def numbered(counts: pto.Global[pto.i32], n: pto.Scalar[pto.i32]) -> None:
        isa.store_scalar(counts, 0, n)

    @pto.operator
    def both(x: Any, n: int) -> Any:
        counts, y = np.zeros(8, np.int32), np.empty_like(x)
        numbered(counts, n)
        repeated(x, counts, y)
        return y

    few, many = (both.time(X[:64], n, device="950pr", with_values=True).us for n in (1, 200))
    assert many > few + 1
    assert np.array_equal(both(X[:64], 3), X[:64] + 3)


def test_an_operator_inside_an_operator_has_its_own_profile() -> None:
    @pto.operator
    def outer(x: Any) -> Any:
        return quadrupled(quadrupled(x))

    assert [each.kernel.profile for each in outer.on("a2a3").launches(X)] == ["a2a3"] * 4
    assert np.array_equal(outer.on("a2a3")(X), 16 * X)


def test_the_sanitizer_runs_every_launch() -> None:
    @pto.operator
    def one_of_two(x: Any) -> Any:
        y, z = np.empty_like(x), np.empty_like(x)
        doubled[2](x, y)
        raced[2](y[:64], z[:64])
        return z

    assert quadrupled.sanitize(X) == []
    (verdict,) = one_of_two.sanitize(X)
    assert "PTO-R" in str(verdict)


def test_launches_after_an_error_run_as_usual() -> None:
    @pto.operator
    def broken(x: Any) -> Any:
        doubled[2](x, x[:50])

    with pytest.raises(pto.PtoError):
        broken(X)
    y = np.zeros_like(X)
    doubled[2](X, y)
    assert np.array_equal(y, 2 * X)


def test_an_unknown_profile_and_an_object_that_is_no_function_are_findings() -> None:
    with pytest.raises(pto.PtoError, match="a9"):
        quadrupled.on("a9")
    with pytest.raises(pto.PtoError, match="takes a function"):
        pto.operator(3)  # pyright: ignore[reportArgumentType]


def test_a_kernel_for_another_profile_is_made_once() -> None:
    assert doubled.on("a2a3") is doubled.on("a2a3")
    assert doubled.on(doubled.profile) is doubled
