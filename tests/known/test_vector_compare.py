"""Comparisons into masks and selections out of registers."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.vectors import Registers, mask_image, reg

INF, NAN = np.inf, np.nan
MODES = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
BITS = {
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "i16": 16,
    "ui16": 16,
    "i8": 8,
    "ui8": 8,
    "i32": 32,
    "i64": 32,
}


def compared(elem, mode, a, b, lanes=None):
    bench = Registers()
    bench.vreg("a", elem, a)
    bench.vreg("b", elem, b)
    bench.mask("m", BITS[elem], lanes)
    return bench.one(
        f'%r = pto.vcmp %a, %b, %m, "{mode}" : {{a}}, {{b}}, {{m}} -> {{m}}',
        f"!pto.mask<b{BITS[elem]}>",
    )


def to_scalar(elem, mode, a, scalar, constant, lanes=None):
    bench = Registers()
    bench.vreg("a", elem, a)
    bench.scalar("k", constant, scalar)
    bench.mask("m", BITS[elem], lanes)
    return bench.one(
        f'%r = pto.vcmps %a, %k, %m, "{mode}" : {{a}}, {{k}}, {{m}} -> {{m}}',
        f"!pto.mask<b{BITS[elem]}>",
    )


def outcome(mode, a, b):
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[mode]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("elem", ["f32", "f16", "bf16"])
def test_float_comparisons_with_nan_zeros_and_infinities(elem, mode):
    values = [0.0, -0.0, 1.5, -1.5, INF, -INF, NAN]
    pairs = [(a, b) for a in values for b in values]
    got = compared(elem, mode, [a for a, _ in pairs], [b for _, b in pairs])
    want = [outcome(mode, a, b) for a, b in pairs]
    step = BITS[elem] // 8
    assert got[::step][: len(want)].tolist() == want
    assert not got[np.arange(256) % step != 0].any()


@pytest.mark.parametrize(
    "elem, low", [("i16", -3), ("ui16", 65533), ("i8", -3), ("ui8", 253), ("i32", -3)]
)
def test_integers_compare_by_their_sign(elem, low):
    got = compared(elem, "lt", [low, 5, 5], [5, low, 5])
    first = low < 5
    assert got[:: BITS[elem] // 8][:3].tolist() == [first, not first, False]


def test_64_bit_lanes_answer_at_every_eighth_bit():
    got = compared("i64", "gt", [2**40, 0, 1], [0, 2**40, 0])
    assert got[:24:8].tolist() == [True, False, True]
    assert not got[np.arange(256) % 8 != 0].any()


def test_lanes_outside_the_mask_compare_false():
    got = compared("f32", "eq", [1.0], [1.0], lanes=[0, 9])
    assert np.flatnonzero(got).tolist() == [0, 36]


@pytest.mark.parametrize("mode", MODES)
def test_compare_with_a_scalar(mode):
    values = [1.0, 2.0, 3.0, NAN, -INF]
    got = to_scalar("f32", mode, values, 2.0, "f32", lanes=5)
    assert got[:20:4].tolist() == [outcome(mode, v, 2.0) for v in values]


def test_the_register_decides_the_sign_of_the_scalar():
    assert to_scalar("ui8", "ge", [128, 129, 130], -127, "i8")[:3].tolist() == [False, True, True]
    assert to_scalar("i8", "ge", [-128, -127, 0], -127, "i8")[:3].tolist() == [False, True, True]


def test_comparing_elements_without_an_order_is_refused():
    bench = Registers()
    bench.vreg("a", "!pto.hif8", [1])
    bench.mask("m", 8)
    with pytest.raises(PtoError, match="PTO-T140"):
        bench.one('%r = pto.vcmp %a, %a, %m, "lt" : {a}, {a}, {m} -> {m}', "!pto.mask<b8>")


@pytest.mark.parametrize("elem, lanes", [("f32", 64), ("i16", 128), ("ui8", 256)])
def test_vsel_takes_the_first_where_the_mask_is_on(elem, lanes):
    bench = Registers()
    bench.vreg("a", elem, np.arange(lanes) % 100)
    bench.vreg("b", elem, 100 + np.arange(lanes) % 100)
    chosen = [0, 5, lanes - 1]
    bench.mask("m", 2048 // lanes, chosen)
    got = bench.one("%r = pto.vsel %a, %b, %m : {a}, {b}, {m} -> {a}", reg(elem))
    assert got.tolist() == [i % 100 + (0 if i in chosen else 100) for i in range(lanes)]


def test_vsel_looks_at_the_lowest_bit_of_each_slot_only():
    bench = Registers()
    bench.vreg("a", "f32", [1.0])
    bench.vreg("b", "f32", [2.0])
    bench.mask("m", 32, 0)
    bench.values["m"] = ~mask_image(32, None)  # every bit but 4i
    assert (
        bench.one("%r = pto.vsel %a, %b, %m : {a}, {b}, {m} -> {a}", reg("f32")).tolist()
        == [2.0] * 64
    )


@pytest.mark.parametrize("row", ["vselr", "vselrv2", "vperm"])
@pytest.mark.parametrize(
    "elem, index, lanes", [("f32", "i32", 64), ("f16", "ui16", 128), ("ui8", "ui8", 256)]
)
def test_lanes_are_chosen_by_index_modulo_their_number(row, elem, index, lanes):
    bench = Registers()
    bench.vreg("a", elem, np.arange(lanes))
    order = (np.arange(lanes) * 5 + 3) % lanes
    order[0] += 0 if lanes == 256 else lanes
    bench.vreg("i", index, order)
    got = bench.one(f"%r = pto.{row} %a, %i : {{a}}, {{i}} -> {{a}}", reg(elem))
    assert got.tolist() == (order % lanes).tolist()


def test_vselrv2_without_an_index_is_not_defined():
    bench = Registers()
    bench.vreg("a", "f32", [1.0])
    with pytest.raises(PtoError, match=r"PTO-X140.*not defined by the ISA"):
        bench.one("%r = pto.vselrv2 %a, %a : {a}, {a} -> {a}", reg("f32"))
