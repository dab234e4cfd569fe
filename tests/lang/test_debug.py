"""Assertions and prints inside kernels, and how much of its outputs a launch has written."""

# ruff: noqa: F821, UP037 (names of sizes stand in annotations)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

ENGINES = ("reference", "jit")


def doubled(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i = pto.block_idx() * 4
    t = pto.load(x[i:, :], 4, 8)
    pto.print("row", i, t, blocks=(0, 2))
    for j in pto.range(3):
        pto.assert_(i + j < 9, "too far", "i =", i)
    pto.assert_(t < 100.0, "too large", t)
    pto.store(y[i:, :], t * 2.0)


def arrays(rows: int = 10) -> tuple[Any, Any]:
    x = np.arange(8 * rows, dtype=np.float32).reshape(rows, 8)
    return x, np.zeros_like(x)


@pytest.mark.parametrize("engine", ENGINES)
def test_prints_come_as_they_happen_in_the_order_of_blocks(engine: str, capsys: Any):
    x, y = arrays(7)
    report = pto.kernel(doubled)[2](x, y, engine=engine)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"block 0: {line}" for line in report.printed]
    assert report.printed[0] == "row 0"
    assert [float(word) for word in report.printed[2].split()] == list(range(8))
    assert len(report.printed) == 1 + 1 + 4, "block 1 was not chosen"
    assert np.array_equal(y, 2 * x)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_assertion_tells_the_block_the_counters_and_the_values(engine: str):
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(doubled)[3](*arrays(), engine=engine)
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-S135"
    assert found.message == "block 2: assertion failed: too far"
    assert [note.message for note in found.notes] == ["j = 1", "i = 8"]
    assert "pto.assert_(i + j < 9" in str(caught.value), "the line"


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_assertion_on_a_tile_holds_for_every_element(engine: str, profile: str):
    x, y = arrays(7)
    kernel = pto.kernel(profile=profile)(doubled)
    kernel[2](x, y, engine=engine)
    x[6, 7] = 100.0
    with pytest.raises(pto.PtoError) as caught:
        kernel[2](x, y, engine=engine)
    assert "block 1: assertion failed: too large" in str(caught.value)


def test_a_flag_leaves_them_out(monkeypatch: pytest.MonkeyPatch):
    x, y = arrays()
    kernel = pto.kernel(debug=False)(doubled)
    kernel[3](x, y)
    assert "pto.print" not in kernel.ir and "pto.trap" not in kernel.ir
    assert np.array_equal(y, 2 * x)
    monkeypatch.setenv("PTO_DEBUG", "0")
    assert not pto.kernel(doubled)[3](x, y).printed


def test_what_python_knows_is_asserted_while_tracing():
    @pto.kernel
    def small(x: pto.Global[pto.f32]) -> None:
        pto.assert_(x.shape[0] <= 4, "rows", x.shape[0])

    small(np.zeros(4, np.float32), coverage=False)
    with pytest.raises(pto.PtoError) as caught:
        small(np.zeros(5, np.float32))
    assert "assertion failed: rows" in str(caught.value)


def test_what_is_no_condition_is_refused():
    @pto.kernel
    def wrong(x: pto.Global[pto.f32]) -> None:
        pto.assert_(pto.block_idx(), "x")

    with pytest.raises(pto.PtoError) as caught:
        wrong(np.zeros(4, np.float32))
    assert caught.value.code == "PTO-T206"


def copied(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, 0:96], pto.load(x[i:, 0:96], 16, 96))


def test_coverage_tells_what_was_never_written():
    x = np.ones((100, 100), np.float32)
    kernel = pto.kernel(copied)
    report = kernel[4](x, np.zeros_like(x), coverage=True)
    # 36 rows of 100, and 4 columns of the 64 rows before
    (found,) = report.coverage
    assert (found.name, found.never, found.hole) == ("y", 36 * 100 + 64 * 4, (0, 96))
    assert str(report.coverage).startswith("39 % of y never written")
    x = np.ones((100, 96), np.float32)
    whole = kernel[7](x, np.zeros_like(x), coverage=True).coverage
    assert whole.is_complete and str(whole) == "all of y written"
    assert kernel[7](x, np.zeros_like(x)).coverage is None, "only on request"


def test_an_output_that_nothing_reaches_is_a_hole_from_its_first_element():
    @pto.kernel
    def rarely(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        if pto.block_idx() == 5:
            pto.store(y, pto.load(x))

    x = np.ones((4, 8), np.float32)
    (found,) = rarely(x, x.copy(), coverage=True).coverage
    assert (found.never, found.hole) == (32, (0, 0))


def test_str_and_format_of_a_number_are_texts_of_the_program():
    def told(y: pto.Global[pto.i32], n: pto.Scalar[pto.i32]) -> None:
        print("n is " + str(n) + " now")
        print(format(n, "4d"), str(3))
        isa.store_scalar(y, 0, n)

    report = pto.kernel(told)(np.zeros(8, np.int32), 7)
    assert report.printed == ("n is 7 now", "   7", "3")
