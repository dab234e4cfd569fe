"""Registers that count, mark and scale: known answers on both engines, nothing left to Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.run.jit.bench import BothEngines
from tests.vectors import reg

BYTES = np.random.default_rng(4).integers(0, 256, 256).astype(np.uint8)
SOME = list(range(0, 256, 3))


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("row", ["chistv2", "dhistv2"])
def test_histograms_of_half_the_values(row: str, half: int) -> None:
    bench = BothEngines()
    bench.vreg("a", "ui16", np.arange(128) + 65500)  # wraps
    bench.vreg("s", "ui8", BYTES)
    bench.mask("m", 8, SOME)
    bench.scalar("b", "i32", half)
    got = bench.one(
        f"%r = pto.{row} %a, %s, %m, %b : {{a}}, {{s}}, {{m}}, i32 -> {{a}}", reg("ui16")
    )
    for n in range(128):
        value = n + 128 * half
        seen = [int(BYTES[i]) for i in SOME]
        count = sum(x <= value if row == "chistv2" else x == value for x in seen)
        assert got[n] == (n + 65500 + count) % 65536


def test_another_bin_is_refused() -> None:
    bench = BothEngines()
    bench.vreg("a", "ui16", [0])
    bench.vreg("s", "ui8", BYTES)
    bench.mask("m", 8)
    bench.scalar("b", "i32", 2)
    body = "%r = pto.chistv2 %a, %s, %m, %b : {a}, {s}, {m}, i32 -> {a}"
    assert bench.fails(body, results=f"%r : {reg('ui16')}") == "PTO-S140"


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize(
    ("turn", "bound"), [(0, 0), (0, 5), (2, 192), (2, 300), (1, 9999), (3, -4)]
)
def test_the_tail_of_a_turn(width: int, turn: int, bound: int) -> None:
    bench, lanes = BothEngines(), 2048 // width
    bench.scalar("l", "i16", turn)
    bench.scalar("n", "i32", bound)
    mask = f"!pto.mask<b{width}>"
    got = bench.one(f"%r = pto.pltm_b{width} %l, %n : i16, i32 -> {mask}", mask)
    on = [i for i in range(lanes) if i + turn * lanes < bound]
    assert np.flatnonzero(got).tolist() == [i * width // 8 for i in on]


@pytest.mark.parametrize("elem", ["i8", "ui16", "i32", "f16", "f32"])
@pytest.mark.parametrize("row", ["vcbmax", "vcbmin"])
def test_an_extreme_and_where_it_stands(row: str, elem: str) -> None:
    bench, largest = BothEngines(), row == "vcbmax"
    signed = not elem.startswith("ui")
    values = bench.vreg("a", elem, np.arange(256) * 7 % 11 - 5 * signed)
    bits = 8 * values.itemsize
    active = list(range(1, values.size, 2))
    bench.mask("m", bits, active)
    mask = f"!pto.mask<b{bits}>"
    value, found = bench.two(
        f"%r, %s = pto.{row} %a, %m : {{a}}, {{m}} -> {{a}}, {{m}}", reg(elem), mask
    )
    extreme = (max if largest else min)(values[i] for i in active)
    assert value[0] == extreme and not value[1:].any()
    marked = [i * bits // 8 for i in active if values[i] == extreme]
    assert np.flatnonzero(found).tolist() == marked


def test_no_active_lane_marks_nothing() -> None:
    bench = BothEngines()
    bench.vreg("a", "f32", [np.inf, 1.0])
    bench.mask("m", 32, 0)
    value, found = bench.two(
        "%r, %s = pto.vcbmin %a, %m : {a}, {m} -> {a}, {m}", reg("f32"), "!pto.mask<b32>"
    )
    assert value[0] == np.inf and not found.any()


def test_zeros_of_both_signs_are_one_maximum() -> None:
    bench = BothEngines()
    bench.vreg("a", "f32", [0.0, -0.0, -1.0, -2.0])
    bench.mask("m", 32, 4)
    value, found = bench.two(
        "%r, %s = pto.vcbmax %a, %m : {a}, {m} -> {a}, {m}", reg("f32"), "!pto.mask<b32>"
    )
    assert value[0] == 0 and np.flatnonzero(found).tolist() == [0, 4]


@pytest.mark.parametrize(("part", "first"), [("EVEN", 0), ("ODD", 1)])
def test_scaled_and_narrowed(part: str, first: int) -> None:
    """Ties go away from zero: 2049 * 1 lies between 2048 and 2050 of f16."""
    bench = BothEngines()
    values = bench.vreg("a", "f32", [2049.0, -2049.0, 0.5, 70000.0, 3.0])
    bench.scalar("x", "f32", 1.0)
    bench.mask("m", 32, 4)
    got = bench.one(
        f'%r = pto.vmulscvt %a, %x, %m, "A", "{part}" : {{a}}, f32, {{m}} -> {reg("f16")}',
        reg("f16"),
    )
    assert got[first::2][:4].tolist() == [2050.0, -2050.0, 0.5, 65504.0]
    assert not got[first::2][4:].any() and not got[1 - first :: 2].any() and values.size == 64


def test_multiply_into_the_first_operand_is_rounded_once() -> None:
    bench = BothEngines()
    acc = np.float32(1 + 2**-23)
    bench.vreg("a", "f32", [acc, 3.0])
    bench.vreg("b", "f32", [acc, 5.0])
    bench.vreg("c", "f32", [-(1 + 2**-22), 7.0])
    bench.mask("m", 32)
    got = bench.one("%r = pto.vmadd %a, %b, %c, %m : {a}, {b}, {c}, {m} -> {a}", reg("f32"))
    assert got[:2].tolist() == [2.0**-46, 22.0]
