"""Integers of the scalar unit: answers by hand and from Python's big integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from pto.core.errors import PtoError
from tests.machine import Bench
from tests.scalars import binary, cast, compute

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
UNSIGNED = {"ui8": 8, "ui16": 16, "ui32": 32, "ui64": 64}


def signed(value: int, bits: int) -> int:
    """Two's complement, by Python's own conversion of bytes."""
    size = -(-bits // 8)
    kept = value % (1 << bits)
    if bits % 8:
        return kept
    return int.from_bytes(kept.to_bytes(size, "little"), "little", signed=True)


def edges(bits: int) -> list[int]:
    top = (1 << (bits - 1)) - 1
    return [0, 1, 2, 3, 7, top, top - 1, -1, -2, -3, -7, -top, -top - 1]


# ---- integers wrap at their width


@pytest.mark.parametrize(("type", "bits"), [(t, n) for t, n in WIDTHS.items() if n > 1])
@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("addi", operator.add),
        ("subi", operator.sub),
        ("muli", operator.mul),
        ("andi", operator.and_),
        ("ori", operator.or_),
        ("xori", operator.xor),
        ("maxsi", max),
        ("minsi", min),
    ],
)
def test_signed_integers_wrap_at_their_width(
    type: str, bits: int, name: str, of: Callable[[int, int], int]
) -> None:
    for a in edges(bits):
        for b in edges(bits)[::3]:
            assert binary(name, type, a, b) == signed(of(a, b), bits), (a, b)


@pytest.mark.parametrize(("type", "bits"), UNSIGNED.items())
def test_unsigned_types_stay_at_or_above_zero(type: str, bits: int) -> None:
    top = (1 << bits) - 1
    assert binary("addi", type, top, 1) == 0
    assert binary("subi", type, 0, 1) == top
    assert binary("muli", type, top, top) == 1  # (-1) * (-1)
    assert binary("maxui", type, top, 1) == top
    assert binary("minui", type, top, 1) == 1


def test_one_bit_integers_are_zero_or_one() -> None:
    assert binary("addi", "i1", 1, 1) == 0
    assert binary("xori", "i1", 1, 1) == 0
    assert binary("andi", "i1", 1, 1) == 1
    assert binary("ori", "i1", 0, 1) == 1
    assert binary("maxui", "i1", 0, 1) == 1
    assert binary("maxsi", "i1", 0, 1) == 0  # as a signed bit, 1 is -1


# ---- division


@pytest.mark.parametrize(
    ("a", "b", "toward_zero", "up", "down", "rest"),
    [
        (7, 2, 3, 4, 3, 1),
        (-7, 2, -3, -3, -4, -1),
        (7, -2, -3, -3, -4, 1),
        (-7, -2, 3, 4, 3, -1),
        (6, 3, 2, 2, 2, 0),
        (-6, 3, -2, -2, -2, 0),
        (0, -5, 0, 0, 0, 0),
    ],
)
def test_signed_division_rounds_as_named(
    a: int, b: int, toward_zero: int, up: int, down: int, rest: int
) -> None:
    assert binary("divsi", "i32", a, b) == toward_zero
    assert binary("ceildivsi", "i32", a, b) == up
    assert binary("floordivsi", "i32", a, b) == down
    assert binary("remsi", "i32", a, b) == rest


def test_unsigned_division_reads_negative_numbers_as_large_ones() -> None:
    assert binary("divui", "i8", -1, 2) == 127  # 255 / 2
    assert binary("ceildivui", "i8", -1, 2) == -128  # 128, whose bits are those of -128
    assert binary("remui", "i8", -1, 16) == 15
    assert binary("divui", "i64", -1, 10) == ((1 << 64) - 1) // 10
    assert binary("divui", "ui32", 0xFFFFFFFF, 2) == 0x7FFFFFFF


def test_large_quotients_are_exact() -> None:
    """f64 would round 2^63 - 1; Python's integers do not."""
    top = (1 << 63) - 1
    assert binary("divsi", "i64", top, 3) == top // 3
    assert binary("remsi", "i64", top, 10) == top % 10
    assert binary("divsi", "i64", -top, 3) == -(top // 3)


def test_the_lowest_number_divided_by_minus_one_wraps() -> None:
    assert binary("divsi", "i8", -128, -1) == -128
    assert binary("remsi", "i8", -128, -1) == 0


@pytest.mark.parametrize(
    "name", ["divsi", "divui", "ceildivsi", "ceildivui", "floordivsi", "remsi", "remui"]
)
def test_division_by_zero_is_a_finding(name: str) -> None:
    with pytest.raises(PtoError, match="division of 5 by zero") as caught:
        binary(name, "i32", 5, 0)
    assert caught.value.diagnostics[0].code == "PTO-S132"
    assert caught.value.diagnostics[0].loc is not None


# ---- shifts


@pytest.mark.parametrize(
    ("type", "a", "n", "left", "arithmetic", "logical"),
    [
        ("i8", -128, 0, -128, -128, -128),
        ("i8", -128, 1, 0, -64, 64),
        ("i8", 65, 1, -126, 32, 32),
        ("i8", -1, 7, -128, -1, 1),
        ("i16", -2, 15, 0, -1, 1),
        ("i64", 1, 63, -(1 << 63), 0, 0),
        ("ui8", 200, 1, 144, 228, 100),  # as a signed byte 200 is -56, and -28 is 228
    ],
)
def test_shifts_below_the_width(
    type: str, a: int, n: int, left: int, arithmetic: int, logical: int
) -> None:
    assert binary("shli", type, a, n) == left
    assert binary("shrsi", type, a, n) == arithmetic
    assert binary("shrui", type, a, n) == logical


@pytest.mark.parametrize("n", [8, 9, 100, -1])
def test_shifts_by_the_width_or_more_leave_nothing_but_the_sign(n: int) -> None:
    """MLIR gives them no value; a negative count is a large one."""
    assert binary("shli", "i8", -1, n) == 0
    assert binary("shrui", "i8", -1, n) == 0
    assert binary("shrsi", "i8", -2, n) == -1
    assert binary("shrsi", "i8", 2, n) == 0


# ---- two results


def two(name: str, type: str, second: str, a: int, b: int) -> list[int]:
    bench = Bench("a5")
    bench.scalar("a", type, a)
    bench.scalar("b", type, b)
    types = type if second == type else f"{type}, {second}"
    line = f"%r, %s = arith.{name} %a, %b : {types}"
    return bench.run(line, results=f"%r : {type}; %s : {second}")


def test_addui_extended_tells_the_carry() -> None:
    assert two("addui_extended", "i8", "i1", -1, 1) == [0, 1]  # 255 + 1
    assert two("addui_extended", "i8", "i1", 127, 1) == [-128, 0]
    assert two("addui_extended", "i32", "i1", -1, -1) == [-2, 1]
    assert two("addui_extended", "ui64", "i1", (1 << 64) - 1, 5) == [4, 1]


@pytest.mark.parametrize(("type", "bits"), [("i8", 8), ("i32", 32), ("i64", 64)])
def test_extended_products_hold_every_bit(type: str, bits: int) -> None:
    mask = (1 << bits) - 1
    for a in edges(bits):
        for b in edges(bits)[::2]:
            low, high = two("mulsi_extended", type, type, a, b)
            assert (high << bits) | (low & mask) == a * b, (a, b)
            low, high = two("mului_extended", type, type, a, b)
            whole = ((high & mask) << bits) | (low & mask)
            assert whole == (a & mask) * (b & mask), (a, b)


# ---- comparisons


@pytest.mark.parametrize(
    ("predicate", "of", "is_signed"),
    [
        ("eq", operator.eq, True),
        ("ne", operator.ne, True),
        ("slt", operator.lt, True),
        ("sle", operator.le, True),
        ("sgt", operator.gt, True),
        ("sge", operator.ge, True),
        ("ult", operator.lt, False),
        ("ule", operator.le, False),
        ("ugt", operator.gt, False),
        ("uge", operator.ge, False),
    ],
)
def test_integers_compare_signed_or_unsigned(
    predicate: str, of: Callable[[int, int], bool], is_signed: bool
) -> None:
    for a, b in [(-1, 1), (1, -1), (5, 5), (-128, 127), (0, -1), (-2, -1)]:
        line = f"%r = arith.cmpi {predicate}, %a, %b : i8"
        wanted = of(a, b) if is_signed else of(a % 256, b % 256)
        assert compute(line, "i1", a=("i8", a), b=("i8", b)) == int(wanted), (a, b)


def test_select_takes_one_of_two_values() -> None:
    line = "%r = arith.select %c, %a, %b : i16"
    given: dict[str, Any] = {"a": ("i16", 7), "b": ("i16", -7)}
    assert compute(line, "i16", c=("i1", 1), **given) == 7
    assert compute(line, "i16", c=("i1", 0), **given) == -7


# ---- width changes


@pytest.mark.parametrize(
    ("name", "source", "target", "a", "wanted"),
    [
        ("extsi", "i1", "i32", 1, -1),
        ("extui", "i1", "i32", 1, 1),
        ("extsi", "i8", "i64", -128, -128),
        ("extui", "i8", "i64", -128, 128),
        ("extui", "i32", "i64", -1, 0xFFFFFFFF),
        ("extsi", "ui8", "i16", 200, -56),  # its bits, read as signed
        ("trunci", "i32", "i8", 0x1FF, -1),
        ("trunci", "i64", "i32", 1 << 31, -(1 << 31)),
        ("trunci", "i32", "i1", 6, 0),
        ("trunci", "i32", "i1", 7, 1),
        ("index_cast", "i32", "index", -5, -5),
        ("index_castui", "i32", "index", -5, 0xFFFFFFFB),
        ("index_cast", "index", "i8", 300, 44),
        ("index_cast", "index", "i64", -1, -1),
        ("index_cast", "i1", "index", 1, -1),
        ("index_castui", "i1", "index", 1, 1),
    ],
)
def test_integers_change_their_width(
    name: str, source: str, target: str, a: int, wanted: int
) -> None:
    assert cast(name, source, target, a) == wanted


def test_absi_of_the_lowest_number_wraps() -> None:
    def magnitude(x: int) -> int:
        return int(compute("%r = math.absi %a : i8", "i8", a=("i8", x)))

    assert [magnitude(-5), magnitude(5), magnitude(-128)] == [5, 5, -128]
