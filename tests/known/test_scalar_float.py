"""Floats of the scalar unit: answers from `struct`, `decimal`, `ml_dtypes` and by hand."""

from __future__ import annotations

import decimal
import math
import operator
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.scalars import binary, cast, compute

# ---- comparisons

ORDERED = {
    "oeq": operator.eq,
    "one": operator.ne,
    "olt": operator.lt,
    "ole": operator.le,
    "ogt": operator.gt,
    "oge": operator.ge,
}


@pytest.mark.parametrize("type", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("predicate", ORDERED)
def test_floats_compare_and_nan_decides_by_the_first_letter(predicate: str, type: str) -> None:
    def holds(word: str, a: float, b: float) -> int:
        line = f"%r = arith.cmpf {word}, %a, %b : {type}"
        return compute(line, "i1", a=(type, a), b=(type, b))

    unordered = f"u{predicate[1:]}"
    for a, b in [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (0.0, -0.0), (math.inf, -math.inf)]:
        assert holds(predicate, a, b) == int(ORDERED[predicate](a, b))
        assert holds(unordered, a, b) == int(ORDERED[predicate](a, b))
    for a, b in [(math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)]:
        assert holds(predicate, a, b) == 0
        assert holds(unordered, a, b) == 1


def test_ord_uno_true_and_false() -> None:
    def holds(word: str, a: float, b: float) -> int:
        return compute(f"%r = arith.cmpf {word}, %a, %b : f32", "i1", a=("f32", a), b=("f32", b))

    assert [holds("ord", 1, 2), holds("ord", 1, math.nan)] == [1, 0]
    assert [holds("uno", 1, 2), holds("uno", math.nan, 2)] == [0, 1]
    assert [holds("true", 1, math.nan), holds("false", 1, 1)] == [1, 0]


# ---- between numbers and bits


def half(value: float) -> int:
    return int(struct.unpack("<H", struct.pack("<e", value))[0])


def single(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@pytest.mark.parametrize(
    ("source", "target", "a", "wanted"),
    [
        ("f32", "i32", 1.0, 0x3F800000),
        ("f32", "i32", -0.0, -0x80000000),
        ("f16", "i16", 65504.0, 0x7BFF),
        ("i32", "f32", 0x7F800000, math.inf),
        ("i16", "f16", half(0.1), float(np.float16(0.1))),
        ("i32", "f32", single(-2.5), -2.5),
        ("i16", "bf16", 0x3FC0, 1.5),  # the upper half of 1.5 in f32
        ("i8", "ui8", -1, 255),
        ("ui16", "i16", 0x8000, -0x8000),
    ],
)
def test_bitcast_keeps_the_bits(source: str, target: str, a: Any, wanted: Any) -> None:
    got = cast("bitcast", source, target, a)
    assert got == wanted
    assert math.copysign(1, got) == math.copysign(1, wanted)


def test_an_unrealized_cast_keeps_the_bits_of_a_scalar() -> None:
    line = "%r = builtin.unrealized_conversion_cast %a : {} to {}"
    assert compute(line.format("i8", "ui8"), "ui8", a=("i8", -1)) == 255
    assert compute(line.format("ui32", "i32"), "i32", a=("ui32", 1 << 31)) == -(1 << 31)


@pytest.mark.parametrize(
    ("target", "a", "wanted"),
    [
        ("f32", 16777217, 16777216.0),  # 2^24 + 1: a tie, to even
        ("f32", 16777219, 16777220.0),
        ("f32", (1 << 53) + (1 << 29) + 1, float((1 << 53) + (1 << 30))),  # not through f64
        ("f32", -(1 << 63), -(2.0**63)),
        ("f16", 2049, 2048.0),
        ("f16", 70000, math.inf),
        ("bf16", 257, 256.0),
        ("bf16", 259, 260.0),
    ],
)
def test_integers_become_floats_rounded_once(target: str, a: int, wanted: float) -> None:
    assert float(cast("sitofp", "i64", target, a)) == wanted


def test_unsigned_integers_become_floats_by_their_bits() -> None:
    assert float(cast("uitofp", "i8", "f32", -1)) == 255.0
    assert float(cast("uitofp", "i64", "f32", -1)) == 2.0**64
    assert float(cast("uitofp", "i1", "f32", 1)) == 1.0
    assert float(cast("sitofp", "i1", "f32", 1)) == -1.0


@pytest.mark.parametrize(
    ("name", "target", "a", "wanted"),
    [
        ("fptosi", "i32", 2.9, 2),
        ("fptosi", "i32", -2.9, -2),
        ("fptosi", "i8", -128.5, -128),
        ("fptosi", "i64", 2.0**62, 1 << 62),
        ("fptoui", "i8", 200.5, -56),  # 200, whose bits are those of -56
        ("fptoui", "ui8", 255.0, 255),
        ("fptosi", "i32", math.nan, 0),  # MLIR gives no value; some number, and no failure
        ("fptosi", "i32", math.inf, 0),
    ],
)
def test_floats_become_integers_toward_zero(name: str, target: str, a: float, wanted: int) -> None:
    assert cast(name, "f32", target, a) == wanted


@pytest.mark.parametrize(
    ("source", "target", "a", "wanted"),
    [
        ("f32", "f16", 1 + 2.0**-11, 1.0),  # ties go to even
        ("f32", "f16", 1 + 3 * 2.0**-11, 1 + 2.0**-9),
        ("f32", "f16", 65520.0, math.inf),
        ("f32", "f16", 2.0**-24, 2.0**-24),  # the least f16
        ("f32", "f16", 2.0**-25, 0.0),
        ("f32", "bf16", 1 + 2.0**-8, 1.0),
        ("f16", "f32", 0.5, 0.5),
        ("bf16", "f32", -3.0, -3.0),
        ("f32", "f16", -math.inf, -math.inf),
    ],
)
def test_floats_change_their_width(source: str, target: str, a: float, wanted: float) -> None:
    name = "extf" if target == "f32" else "truncf"
    assert float(cast(name, source, target, a)) == wanted


def test_nan_stays_nan() -> None:
    assert math.isnan(cast("truncf", "f32", "f16", math.nan))
    assert math.isnan(cast("extf", "bf16", "f32", math.nan))


# ---- constants


@pytest.mark.parametrize(
    ("text", "type", "wanted"),
    [
        ("42", "index", 42),
        ("-42", "i32", -42),
        ("0xFF", "i8", -1),
        ("255", "ui8", 255),
        ("true", "i1", 1),
        ("false", "i1", 0),
        ("-1", "i1", 1),
        ("0x7FFFFFFFFFFFFFFF", "i64", (1 << 63) - 1),
        ("18446744073709551615", "ui64", (1 << 64) - 1),
        ("1.5", "f32", 1.5),
        ("-1.0e+03", "f16", -1000.0),
        ("0xFF800000", "f32", -math.inf),
        ("0x3C00", "f16", 1.0),
        ("0x3F80", "bf16", 1.0),
        ("1.000000e-01", "f32", struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("65520.0", "f16", math.inf),
    ],
)
def test_constants(text: str, type: str, wanted: Any) -> None:
    got = compute(f"%r = arith.constant {text} : {type}", type)
    assert got == wanted


# ---- floats


@pytest.mark.parametrize(
    ("name", "a", "b", "wanted"),
    [
        ("addf", 2048.0, 1.0, 2048.0),  # a tie, to even
        ("addf", 2050.0, 1.0, 2052.0),
        ("subf", 1.0, 1.0, 0.0),
        ("mulf", 256.0, 256.0, math.inf),
        ("divf", 1.0, 3.0, float(np.float16(1 / 3))),
        ("divf", 1.0, 0.0, math.inf),
        ("divf", -1.0, 0.0, -math.inf),
        ("remf", 7.5, 2.0, 1.5),
        ("remf", -7.5, 2.0, -1.5),
        ("maximumf", 1.0, 2.0, 2.0),
        ("minimumf", 1.0, 2.0, 1.0),
        ("maxnumf", 3.0, -3.0, 3.0),
        ("minnumf", 3.0, -3.0, -3.0),
    ],
)
def test_f16_arithmetic_rounds_to_f16(name: str, a: float, b: float, wanted: float) -> None:
    got = binary(name, "f16", a, b)
    assert got.dtype == np.float16
    assert float(got) == wanted


@pytest.mark.parametrize("name", ["addf", "subf", "mulf", "divf", "remf"])
def test_bf16_arithmetic_is_that_of_ml_dtypes(name: str) -> None:
    of = {
        "addf": operator.add,
        "subf": operator.sub,
        "mulf": operator.mul,
        "divf": operator.truediv,
        "remf": math.fmod,
    }[name]
    for a, b in [(1.0, 0.0078125), (3.0, 7.0), (-5.5, 3.0), (1e30, 1e20)]:
        x, y = (float(ml_dtypes.bfloat16(v)) for v in (a, b))
        assert float(binary(name, "bf16", a, b)) == float(ml_dtypes.bfloat16(of(x, y))), (a, b)


@pytest.mark.parametrize("type", ["f16", "bf16", "f32"])
def test_nan_wins_or_loses_as_named(type: str) -> None:
    for a, b in [(math.nan, 1.0), (1.0, math.nan)]:
        assert math.isnan(binary("maximumf", type, a, b))
        assert math.isnan(binary("minimumf", type, a, b))
        assert float(binary("maxnumf", type, a, b)) == 1.0
        assert float(binary("minnumf", type, a, b)) == 1.0


@pytest.mark.parametrize("type", ["f16", "bf16", "f32"])
def test_zeros_have_an_order(type: str) -> None:
    for a, b in [(0.0, -0.0), (-0.0, 0.0)]:
        assert math.copysign(1, binary("maximumf", type, a, b)) == 1
        assert math.copysign(1, binary("minimumf", type, a, b)) == -1


def test_negf_flips_the_sign_of_zero_and_infinity() -> None:
    for value in (0.0, -0.0, 1.5, -math.inf):
        got = compute("%r = arith.negf %a : f32", "f32", a=("f32", value))
        assert (got, math.copysign(1, got)) == (-value, math.copysign(1, -value))


# ---- math


def exact(name: str, x: float) -> decimal.Decimal:
    with decimal.localcontext() as context:
        context.prec = 60
        d = decimal.Decimal(x)
        if name == "tanh":
            return 1 - 2 / ((2 * d).exp() + 1)
        of = {"exp": d.exp, "log": d.ln, "sqrt": d.sqrt, "rsqrt": lambda: 1 / d.sqrt()}
        return of[name]()


@pytest.mark.parametrize("type", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "rsqrt", "tanh"])
def test_elementary_functions_are_correctly_rounded(name: str, type: str) -> None:
    """Through f64 and rounded once: no other number of the type lies nearer to the exact value."""
    kind: Any = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}[type]
    for x in (0.0078125, 0.3, 0.5, 0.9375, 1.1, 2.0, 3.7, 7.25):
        given = float(kind(x))
        got = compute(f"%r = math.{name} %a : {type}", type, a=(type, given))
        wanted = exact(name, given)
        away = [abs(decimal.Decimal(float(n)) - wanted) for n in neighbours(got, kind)]
        assert away[1] <= min(away[0], away[2]), (x, got)


def neighbours(value: Any, kind: Any) -> list[Any]:
    """The number below, itself, the number above; of one sign."""
    raw = np.asarray([value], kind)
    bits = raw.view(np.dtype(f"i{raw.itemsize}"))
    return [(bits + n).view(kind)[0] for n in (-1, 0, 1)]


def test_tanh_at_its_edges() -> None:
    def tanh(x: float) -> float:
        return float(compute("%r = math.tanh %a : f32", "f32", a=("f32", x)))

    assert [tanh(math.inf), tanh(-math.inf), tanh(20.0), tanh(-0.5)] == [
        1.0,
        -1.0,
        1.0,
        -float(np.float32(0.46211715726000975)),
    ]
    assert math.isnan(tanh(math.nan))
    assert math.copysign(1, tanh(-0.0)) == -1
    assert tanh(1e-30) == float(np.float32(1e-30))  # x - x^3 / 3


@pytest.mark.parametrize(
    ("name", "a", "wanted"),
    [("floor", -1.5, -2.0), ("ceil", -1.5, -1.0), ("floor", 2.0, 2.0), ("absf", -0.0, 0.0)],
)
def test_rounding_and_magnitude(name: str, a: float, wanted: float) -> None:
    got = compute(f"%r = math.{name} %a : f32", "f32", a=("f32", a))
    assert (got, math.copysign(1, got)) == (wanted, math.copysign(1, wanted))
