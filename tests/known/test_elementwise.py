"""Tile arithmetic element by element: answers by hand, in f64 rounded once, and in decimals."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.isa.cost.vectors import refined
from pto.isa.table import rows
from tests.known.rows import (
    FLOATS,
    INF,
    INTS,
    KINDS,
    NAN,
    apply,
    bits,
    operands,
    same,
    untouched,
    wrapped,
)
from tests.machine import Bench

# ---- integers: modulo 2**n, computed with Python's integers


def extremes(dtype: str) -> list[int]:
    info = np.iinfo(KINDS[dtype])
    rng = np.random.default_rng(3)
    some = [int(x) for x in rng.integers(info.min, info.max, 20, dtype=KINDS[dtype])]
    return [info.min, info.max, 0, 1, info.max - 1, 7, 3, 100, *some]


def truncated(a: int, b: int) -> int:
    if b == 0:
        return 0
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


INTEGER: dict[str, Callable[[int, int], int]] = {
    "tadd": lambda a, b: a + b,
    "tsub": lambda a, b: a - b,
    "tmul": lambda a, b: a * b,
    "tdiv": truncated,
    "tmax": max,
    "tmin": min,
    "tfmod": lambda a, b: a - truncated(a, b) * b if b else 0,
    "tand": lambda a, b: a & b,
    "tor": lambda a, b: a | b,
}


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", INTEGER)
def test_integers_wrap(op: str, dtype: str):
    a = extremes(dtype)
    b = a[3:] + a[:3]
    want = wrapped([INTEGER[op](x, y) for x, y in zip(a, b, strict=True)], dtype)
    assert apply(op, dtype, a, b).tolist() == want


def test_remainders_of_integers_take_the_sign_of_the_divisor_or_of_the_dividend():
    a, b = [7, -7, 7, -7, 5, 0], [3, 3, -3, -3, 0, 4]
    assert apply("trem", "i32", a, b, a).tolist() == [1, 2, -2, -1, 0, 0]
    assert apply("tfmod", "i32", a, b).tolist() == [1, -1, 1, -1, 0, 0]


def test_lowest_integer_wraps_in_magnitude_and_sign():
    low = -(2**31)
    assert apply("tabs", "i32", [low, -5, 5]).tolist() == [low, 5, 5]
    assert apply("tneg", "i32", [low, -5, 5]).tolist() == [low, 5, -5]
    assert apply("tneg", "ui16", [1, 0, 65535]).tolist() == [65535, 0, 1]
    assert apply("tdiv", "i32", [low, 9], [-1, -2]).tolist() == [low, -4]


def test_integer_powers_wrap_and_have_inverses_only_of_one():
    base = [2, 3, -2, -1, -1, 1, 0, 2, 7, -3]
    power = [10, 4, 3, -3, -4, -9, 0, -1, 0, 21]
    want = [1024, 81, -8, -1, 1, 1, 1, 0, 1, wrapped([(-3) ** 21], "i32")[0]]
    assert apply("tpow", "i32", base, power, base).tolist() == want


def test_shifts_beyond_the_width_leave_nothing_but_the_sign():
    value, count = [5, -5, 5, -5, -5, 1], [1, 1, 8, 8, 7, -1]
    assert apply("tshl", "i8", value, count).tolist() == [10, -10, 0, 0, -128, 0]
    assert apply("tshr", "i8", value, count).tolist() == [2, -3, 0, -1, -1, 0]
    assert apply("tshr", "ui8", [251, 251, 251], [1, 8, 0]).tolist() == [125, 0, 251]


def test_shift_by_a_scalar_of_another_width():
    assert apply("tshls", "i32", [3, -3], scalar=("i16", 4)).tolist() == [48, -48]
    assert apply("tshrs", "i32", [48, -3], scalar=("i16", 300)).tolist() == [0, -1]
    assert apply("tshrs", "ui8", [251, 4], scalar=("i16", 256)).tolist() == [0, 0]


def test_64_bit_elements_are_shifted_by_the_count_modulo_64():
    value, count = [5, 5, 5, -8], [63, 64, 65, 66]
    assert apply("tshl", "i64", value, count).tolist() == [-(2**63), 5, 10, -32]
    assert apply("tshr", "i64", value, count).tolist() == [0, 5, 2, -2]
    assert apply("tshls", "i64", [3, -3], scalar=("i16", 65)).tolist() == [6, -6]


def test_bits():
    a, b = [0b1100, -1, 0x5A], [0b1010, 0x0F, -1]
    assert apply("txor", "i16", a, b, a).tolist() == [0b0110, ~0x0F, ~0x5A]
    assert apply("tnot", "i16", a).tolist() == [~0b1100, 0, ~0x5A]
    assert apply("tnot", "ui8", [0, 0xF0]).tolist() == [0xFF, 0x0F]


# ---- floats: one rounding; f64 holds sums, products and quotients closely enough to round once


def samples(dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    spread = rng.standard_normal(96) * 10.0 ** rng.integers(-4, 4, 96)
    return spread.astype(KINDS[dtype])


FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "tadd": np.add,
    "tsub": np.subtract,
    "tmul": np.multiply,
    "tdiv": np.divide,
    "tmax": np.maximum,
    "tmin": np.minimum,
    "tfmod": np.fmod,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FLOAT)
def test_floats_round_once(op: str, dtype: str):
    a, b = samples(dtype, 1), samples(dtype, 2)
    exact = FLOAT[op](a.astype(np.float64), b.astype(np.float64))
    with np.errstate(over="ignore"):
        want = exact.astype(KINDS[dtype])
    assert same(apply(op, dtype, a, b), want)


def test_overflow_and_specials_follow_ieee():
    a, b = [65504, INF, INF, 0, 1, NAN], [65504, -INF, 2, 0, 0, 1]
    assert same(apply("tadd", "f16", a, b), [INF, NAN, INF, 0, 1, NAN])
    assert same(apply("tdiv", "f16", a, b), [1, NAN, INF, NAN, INF, NAN])


def test_maximum_and_minimum_let_nan_win_and_know_the_sign_of_zero():
    a = [NAN, 1, NAN, 0.0, -0.0, -0.0, 0.0, -INF]
    b = [1, NAN, NAN, -0.0, 0.0, -0.0, 0.0, -1]
    for dtype in FLOATS:
        assert same(apply("tmax", dtype, a, b), [NAN, NAN, NAN, 0.0, 0.0, -0.0, 0.0, -1])
        assert same(apply("tmin", dtype, a, b), [NAN, NAN, NAN, -0.0, -0.0, -0.0, 0.0, -INF])


def test_float_remainders():
    a, b = [7.5, -7.5, 7.5, -0.5, 6, 5, 1e30], [2, 2, -2, 3, 3, 0, 3]
    rest = float(np.float32(1e30).astype(object) % 3)
    assert same(apply("trem", "f32", a, b, a), [1.5, 0.5, -0.5, 2.5, 0, NAN, rest])
    assert same(apply("tfmod", "f32", a, b), [1.5, -1.5, 1.5, -0.5, 0, NAN, rest])


def test_signs_and_relu():
    a = [-1.5, 0.0, -0.0, NAN, INF, -INF]
    assert same(apply("tabs", "f32", a), [1.5, 0.0, 0.0, NAN, INF, INF])
    assert bits(apply("tneg", "f32", [1.5, 0.0, -0.0])) == bits(np.float32([-1.5, -0.0, 0.0]))
    for dtype in FLOATS:
        assert same(apply("trelu", dtype, a), [0.0, 0.0, 0.0, NAN, INF, 0.0])
    assert apply("trelu", "i32", [-5, 0, 5]).tolist() == [0, 0, 5]


def test_slopes():
    a = [2.0, -2.0, 0.0, NAN]
    assert same(apply("tprelu", "f32", a, [3, 3, 3, 3], a), [2, -6, 0.0, NAN])
    assert same(apply("tlrelu", "f32", a, scalar=("f32", 0.5)), [2, -1, 0.0, NAN])


def test_slope_of_f32_multiplies_f16_in_f32():
    slope, x = np.float32(1 + 0.99 * 2**-11), np.float16(-2 + 2**-10)  # in f16 the slope is 1
    assert apply("tlrelu", "f16", [x], scalar=("f32", slope)).tolist() == [-2.0]


# ---- functions: correctly rounded, judged by 60-digit decimals


def rounded(value: decimal.Decimal, dtype: str) -> Any:
    """Decimal to f64 and on to a type of at most half its digits: a tie between is too unlikely."""
    return np.float64(float(value)).astype(np.float32).astype(KINDS[dtype])


DECIMAL: dict[str, Callable[[decimal.Decimal], decimal.Decimal]] = {
    "texp": lambda x: x.exp(),
    "tlog": lambda x: x.ln(),
    "tsqrt": lambda x: x.sqrt(),
    "trsqrt": lambda x: 1 / x.sqrt(),
    "trecip": lambda x: 1 / x,
}


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("op", DECIMAL)
def test_functions_are_correctly_rounded(op: str, dtype: str):
    rng = np.random.default_rng(7)
    low, high = (-9, 9) if op == "texp" else (0.01, 900)
    x = rng.uniform(low, high, 400).astype(KINDS[dtype])
    with decimal.localcontext(prec=60):
        want = [rounded(DECIMAL[op](decimal.Decimal(float(v))), dtype) for v in x]
    assert bits(apply(op, dtype, x)) == bits(np.asarray(want, KINDS[dtype]))


def test_functions_at_their_edges():
    assert same(
        apply("texp", "f32", [0, -0.0, INF, -INF, NAN, 89, -104]), [1, 1, INF, 0, NAN, INF, 0]
    )
    assert same(apply("tlog", "f32", [1, 0, -0.0, -1, INF, NAN]), [0, -INF, -INF, NAN, INF, NAN])
    assert same(apply("tsqrt", "f32", [4, 0, -0.0, -1, INF]), [2, 0, -0.0, NAN, INF])
    assert same(apply("trsqrt", "f32", [4, 0, INF, -1]), [0.5, INF, 0, NAN])
    assert same(apply("trecip", "f32", [4, 0, -0.0, INF]), [0.25, INF, -INF, 0])


def test_exp_of_a_subnormal_result_is_rounded_once():
    assert bits(apply("texp", "f32", [-103.0]))[0] == 1  # e**-103 = 1.85e-45, 1.3 steps of 2**-149
    assert bits(apply("texp", "f32", [-90.0]))[0] == bits(np.float32(8.194012623990515e-40))


def test_float_powers():
    base = [2, 2, -2, 9, 0, 5, -8, NAN, 1]
    power = [10, -1, 3, 0.5, 2, 0, 0.5, 1, NAN]
    want = [1024, 0.5, -8, 3, 0, 1, NAN, NAN, 1]
    assert same(apply("tpow", "f32", base, power, base), want)
    assert same(apply("tpows", "f32", [3, 4], [0, 0], scalar=("f32", 2.0)), [9, 16])


def test_float_powers_at_the_edges_of_c_pow():
    base = [-0.0, -0.0, -0.0, -1, -1, -INF, -INF, -INF, 2, 0.5, 0, INF]
    power = [-3, -2, 3, INF, -INF, 3, 0.5, -3, -INF, -INF, -1, 0]
    want = [-INF, INF, -0.0, 1, 1, -INF, INF, -0.0, 0, INF, INF, 1]
    for dtype in FLOATS:
        assert same(apply("tpow", dtype, base, power, base), want)


# ---- regions, aliases, layouts, refusals

_SOURCES = {
    1: "tabs tneg trelu texp tlog tsqrt trecip trsqrt tnot",
    2: "tadd tsub tmul tdiv tmax tmin tfmod tand tor tshl tshr tsubrelu tfusedmuladd"
    " tfusedmuladdrelu tmuladddst",
    3: "trem tpow tprelu txor taddc tsubc",  # the third is working space, or a term
}
SOURCES = {name: count for count, names in _SOURCES.items() for name in names.split()}
BITWISE = ("tnot", "tand", "tor", "txor", "tshl", "tshr")


@pytest.mark.parametrize("op", SOURCES)
def test_bytes_outside_the_valid_region_stay(op: str):
    dtype = "i32" if op in BITWISE else "f32"
    names = [f"s{i}" for i in range(SOURCES[op])]
    bench = Bench("a5")
    for i, name in enumerate(names):
        bench.tile(name, f"vec, 8x16x{dtype}", np.full((8, 16), 2 + i))
    bench.tile("d", f"vec, 8x16x{dtype}", np.full((5, 7), 3), valid=(5, 7))
    bench.run(f"pto.{op} {operands(names)} outs(%d : {{d}})")
    assert len(set(bench["d"][:5, :7].reshape(-1).tolist())) == 1
    assert untouched(bench["d"], 5, 7)


def test_an_empty_region_changes_nothing():
    bench = Bench("a5")
    bench.tile("a", "vec, 8x16xf32", np.ones((8, 16)))
    bench.tile("d", "vec, 8x16xf32", valid=(0, 7))
    bench.run("pto.tadd ins(%a, %a : {a}, {a}) outs(%d : {d})")
    assert untouched(bench["d"], 0, 0)


def test_the_destination_may_be_a_source():
    bench = Bench("a5")
    bench.tile("a", "vec, 2x8xf32", np.arange(16).reshape(2, 8))
    bench.run("pto.tmul ins(%a, %a : {a}, {a}) outs(%a : {a})")
    assert bench["a"].reshape(-1).tolist() == [i * i for i in range(16)]


@pytest.mark.parametrize(
    "layout", ["blayout=col_major", "slayout=row_major", "blayout=col_major, slayout=row_major"]
)
def test_any_layout_on_cpu(layout: str):
    a, b = np.arange(512).reshape(16, 32), np.arange(512)[::-1].reshape(16, 32)
    bench = Bench("cpu")
    bench.tile("a", f"vec, 16x32xf16, {layout}", a)
    bench.tile("b", "vec, 16x32xf16", b)
    bench.tile("d", f"vec, 16x32xf16, {layout}", valid=(9, 21))
    bench.run("pto.tsub ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert (bench["d"][:9, :21] == (a - b)[:9, :21]).all()
    assert untouched(bench["d"], 9, 21)


def test_a_source_smaller_than_the_domain_is_refused_before_anything_is_written():
    bench = Bench("cpu")
    bench.tile("a", "vec, 4x8xf32", np.ones((4, 8)))
    bench.tile("d", "vec, 8x8xf32")
    with pytest.raises(PtoError, match="4x8xf32 ND is read over 8x8"):
        bench.run("pto.tabs ins(%a : {a}) outs(%d : {d})")
    assert untouched(bench["d"], 0, 0)


def test_types_without_arithmetic_are_refused():
    bench = Bench("cpu")
    bench.tile("a", "vec, 2x32x!pto.hif8", np.zeros((2, 32), np.uint8))
    with pytest.raises(PtoError, match="hifloat8, which has no arithmetic"):
        bench.run("pto.tadd ins(%a, %a : {a}, {a}) outs(%a : {a})")


def test_integers_of_cpu_are_cut():
    """ln and 1/x of integers, which the simulator has; no logarithm is 0."""
    bench = Bench("cpu")
    for name in "abcd":
        bench.tile(name, "vec, 1x8xi32")
    bench.values["a"].write(np.array([[1, 2, 3, 8, 21, 0, -3, 100]], np.int32))
    bench.values["b"].write(np.array([[1, -1, 2, -2, 7, 1, 100, 3]], np.int32))
    bench.run("pto.tlog ins(%a : {a}) outs(%c : {c})\npto.trecip ins(%b : {b}) outs(%d : {d})")
    assert bench["c"].tolist() == [[0, 0, 1, 2, 3, 0, 0, 4]]
    assert bench["d"].tolist() == [[1, -1, 0, 0, 0, 1, 0, 0]]


def test_rows_that_choose_their_function_keep_its_cost():
    wanted = {"tlog": "exp", "texp": "exp", "trecip": "div"}
    found = {r.mnemonic: refined(r.cost, r.body) for r in rows() if r.mnemonic in wanted}
    assert found == wanted


@pytest.mark.parametrize(("profile", "expected"), [("cpu", 1 + 3 * 2**-10), ("a2a3", 1 + 2**-9)])
def test_f16_is_rounded_once_on_cpu(profile: str, expected: float):
    """(1 + 2^-10)^2 + 2^-11 lies above the middle of two numbers; the product alone rounds to
    1 + 2^-9, and the sum is then in the middle."""
    bench = Bench(profile)
    for name in "abd":
        bench.tile(name, "vec, 1x16xf16")
    for name, value in (("a", 1 + 2**-10), ("b", 2**-11), ("d", 1 + 2**-10)):
        bench.values[name].write(np.full((1, 16), value, np.float16))
    bench.run("pto.tfusedmuladd ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert (bench["d"] == expected).all()
    bench.values["d"].write(np.full((1, 16), 1 + 2**-10, np.float16))
    bench.run("pto.tfusedmuladdrelu ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert (bench["d"] == 1 + 2**-9).all()  # rounded twice everywhere
