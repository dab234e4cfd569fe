"""Tile arithmetic with a scalar, and several operations in one: answers by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.known.rows import INF, apply, operands, same, untouched
from tests.machine import Bench

# ---- with a scalar


def test_scalar_arithmetic():
    a = [1.5, -2.0, 8.0]
    for op, want in (
        ("tadds", [4.5, 1, 11]),
        ("tsubs", [-1.5, -5, 5]),
        ("tmuls", [4.5, -6, 24]),
        ("tdivs", [0.5, np.float32(-2) / np.float32(3), np.float32(8) / np.float32(3)]),
        ("tmaxs", [3, 3, 8]),
        ("tmins", [1.5, -2, 3]),
        ("tfmods", [1.5, -2, 2]),
    ):
        assert same(apply(op, "f32", a, scalar=("f32", 3.0)), want), op


def test_a_signless_scalar_takes_the_sign_of_the_tile():
    assert apply("tadds", "ui8", [1, 255], scalar=("i8", -1)).tolist() == [0, 254]
    assert apply("tands", "ui8", [0xF3, 4], scalar=("i8", -2)).tolist() == [0xF2, 4]
    assert apply("tors", "i16", [1, 8], scalar=("i16", 6)).tolist() == [7, 14]
    assert apply("tmaxs", "i32", [-3, 3], scalar=("i32", -1)).tolist() == [-1, 3]


def test_txors_and_trems_with_working_space():
    bench = Bench("a5")
    bench.tile("a", "vec, 1x8xi32", [[7, -7, 12, 0, 1, 2, 3, 4]])
    bench.tile("d", "vec, 1x8xi32")
    bench.scalar("s", "i32", 5)
    bench.run("pto.txors ins(%a, %s, %d : {a}, i32, {d}) outs(%d : {d})")
    assert bench["d"][0].tolist() == [2, -7 ^ 5, 9, 5, 4, 7, 6, 1]
    bench.run("pto.trems ins(%a, %s, %d : {a}, i32, {d}) outs(%d : {d})")
    assert bench["d"][0].tolist() == [2, 3, 2, 0, 1, 2, 3, 4]


def test_division_in_either_order():
    bench = Bench("a5")
    bench.tile("a", "vec, 1x8xf32", [[1, 2, 4, 8, -1, 0.5, 3, 6]])
    bench.tile("d", "vec, 1x8xf32")
    bench.scalar("s", "f32", 6.0)
    bench.run("pto.tdivs ins(%s, %a : f32, {a}) outs(%d : {d})")
    assert bench["d"][0].tolist() == [6, 3, 1.5, 0.75, -6, 12, 2, 1]
    bench.run("pto.tdivs ins(%a, %s : {a}, f32) outs(%d : {d})")
    assert (
        bench["d"][0].tolist() == (np.float32([1, 2, 4, 8, -1, 0.5, 3, 6]) / np.float32(6)).tolist()
    )


def test_fill_covers_the_valid_region_of_a_vec_tile_and_all_of_a_mat_tile():
    bench = Bench("a5")
    bench.scalar("s", "f16", 1.5)
    bench.tile("v", "vec, 8x32xf16", valid=(3, 5))
    bench.tile("m", "mat, 32x32xf16, blayout=col_major, slayout=row_major", valid=(3, 5))
    bench.run("pto.texpands ins(%s : f16) outs(%v : {v})")
    bench.run("pto.texpands ins(%s : f16) outs(%m : {m})")
    assert (bench["v"][:3, :5] == 1.5).all()
    assert untouched(bench["v"], 3, 5)
    assert (bench["m"] == 1.5).all()


# ---- several operations in one: each rounds


def test_three_terms_from_left_to_right():
    big, one = [65504.0], [1.0]
    assert apply("taddc", "f16", big, big, [-65504.0]).tolist() == [INF]
    assert apply("tsubc", "f16", big, big, one).tolist() == [1]
    assert apply("taddc", "i16", [32767], [1], [1]).tolist() == [-32767]
    assert apply("taddsc", "i32", [10], [4], scalar=("i32", 5)).tolist() == [19]
    assert apply("tsubsc", "f32", [10], [4], scalar=("f32", 5)).tolist() == [9]


def test_products_round_before_they_are_added():
    a = np.float16(1 + 2**-10)  # a * a = 1 + 2**-9 + 2**-20: the last term is lost
    square = np.float16(1 + 2**-9)
    assert apply("tmuladddst", "f16", [a], [a], into=[-square]).tolist() == [0]
    assert apply("tfusedmuladd", "f16", [a], [-square], into=[a]).tolist() == [0]
    assert apply("taxpy", "f16", [a], scalar=("f16", a), into=[-square]).tolist() == [0]


def test_f16_times_f16_into_f32_is_exact():
    a = np.float16(1 + 2**-10)
    found = apply("taxpy", "f16", [a], scalar=("f16", a), into=[-1.0], to="f32")
    assert found.tolist() == [2**-9 + 2**-20]


def test_relu_after_the_sum():
    assert apply("tfusedmuladdrelu", "f32", [2, 2], [1, 1], into=[3, -3]).tolist() == [7, 0]
    assert apply("tsubrelu", "f32", [3, 1], [1, 3]).tolist() == [2, 0]


def test_taddrelu_rounds_the_sum_and_takes_what_is_positive():
    add = partial(apply, "taddrelu", profile="a2a3")
    assert add("f32", [1.5, -4, 2**24], [2, 1, 1]).tolist() == [3.5, 0, 2**24]
    assert add("f16", [2048, 65504, -1, 0.5], [1, 65504, 0.5, -1]).tolist() == [2048, INF, 0, 0]
    assert add("i16", [300, -300, 7], [45, 299, -7]).tolist() == [345, 0, 0]


def test_narrowing_after_relu_rounds_to_even_and_saturates():
    found = apply("taddreluconv", "f32", [1e6, -5, 1, 2049], [1, 1, 2**-11, 0], to="f16")
    assert found.tolist() == [65504, 0, 1, 2048]
    assert apply("taddreluconv", "f16", [200, 1.5, -3, 2.5], [100, 1, 1, 0], to="i8").tolist() == [
        127,
        2,
        0,
        2,
    ]
    assert apply("tsubreluconv", "i16", [300, 5, -7], [0, 9, -8], to="i8").tolist() == [127, 0, 1]


def test_dequantised_sum():
    bench = Bench("a5")
    bench.tile("a", "vec, 1x4xi32", [[100, -100, 3, 2**30]])
    bench.tile("b", "vec, 1x4xi32", [[28, 0, -1, 0]])
    bench.tile("t", "vec, 1x4xi32")
    bench.tile("d", "vec, 1x4xf16")
    bench.scalar("s", "f32", 0.5)
    bench.run("pto.tadddeqrelu ins(%a, %b, %s, %t : {a}, {b}, f32, {t}) outs(%d : {d})")
    assert bench["d"][0].tolist() == [64, 0, 1, INF]


# ---- regions

SCALARS = "tadds tsubs tmuls tdivs tmaxs tmins tfmods tlrelu taxpy tands tors tshls tshrs"


@pytest.mark.parametrize("op", SCALARS.split())
def test_bytes_outside_the_valid_region_stay(op: str):
    dtype = "i32" if op in ("tands", "tors", "tshls", "tshrs") else "f32"
    bench = Bench("a5")
    bench.tile("a", f"vec, 8x16x{dtype}", np.full((8, 16), 6))
    bench.scalar("c", dtype, 2)
    bench.tile("d", f"vec, 8x16x{dtype}", np.full((5, 7), 3), valid=(5, 7))
    bench.run(f"pto.{op} {operands(['a', 'c'])} outs(%d : {{d}})")
    assert len(set(bench["d"][:5, :7].reshape(-1).tolist())) == 1
    assert untouched(bench["d"], 5, 7)


def test_narrowing_stays_in_the_valid_region():
    bench = Bench("a5")
    bench.tile("a", "vec, 8x32xf16", np.full((8, 32), 6))
    bench.tile("d", "vec, 8x32xi8", valid=(5, 7))
    bench.run("pto.taddreluconv ins(%a, %a : {a}, {a}) outs(%d : {d})")
    assert (bench["d"][:5, :7] == 12).all() and untouched(bench["d"], 5, 7)


# ---- numbers of another type, and tiles that are no rows


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_float_scalar_is_rounded_to_the_element_type_first(profile: str):
    a = np.asarray([1, -2, 1000, 0.5], np.float16)
    x = np.float32(0.1)  # 0.0999755859375 in f16
    half = np.float16(0.0999755859375)
    for op, want in (
        ("tadds", a + half),
        ("tsubs", a - half),
        ("tmuls", a * half),
        ("tmaxs", np.maximum(a, half)),
        ("tdivs", a / half),
    ):
        found = apply(op, "f16", a, scalar=("f32", x), profile=profile)
        assert same(found, want), op
    divided = apply("tdivs", "f16", a, scalar=("f32", x), at=0, profile=profile)
    assert same(divided, half / a)


def test_scalars_of_other_widths_and_kinds():
    assert apply("tadds", "i16", [1, -1], scalar=("i32", 70000)).tolist() == [4465, 4463]
    assert apply("tmaxs", "i32", [-3, 3], scalar=("i8", -1)).tolist() == [-1, 3]
    assert apply("tands", "i16", [0x7FFF, 6], scalar=("i32", 0x10004)).tolist() == [4, 4]
    assert same(apply("tmuls", "f32", [1.5, -2], scalar=("i32", 3)), [4.5, -6])
    assert same(apply("tsubs", "bf16", [2, 1], scalar=("f32", 0.33203125)), [1.671875, 0.66796875])
    assert same(apply("tadds", "f16", [1, 2], scalar=("f32", 1e6)), [INF, INF])
    assert apply("tsubs", "i16", [7, -7], scalar=("f32", 2.75)).tolist() == [5, -9]
    assert apply("tsubs", "i16", [7, -7], scalar=("f32", -2.75)).tolist() == [9, -5]


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("layout", ["blayout=col_major", "blayout=col_major, slayout=row_major"])
def test_tiles_without_gaps_in_any_order(profile: str, layout: str):
    values = np.arange(256, dtype=np.float32).reshape(16, 16) - 100
    for op, ins, want in (
        ("tadds", "%a, %c : {a}, {c}", values + 3),
        ("tmuls", "%a, %c : {a}, {c}", values * 3),
        ("tlrelu", "%a, %c : {a}, {c}", np.where(values > 0, values, values * 3)),
        ("tneg", "%a : {a}", -values),
    ):
        bench = Bench(profile)
        bench.tile("a", f"vec, 16x16xf32, {layout}", values)
        bench.tile("d", f"vec, 16x16xf32, {layout}")
        bench.scalar("c", "f32", 3.0)
        bench.run(f"pto.{op} ins({ins}) outs(%d : {{d}})")
        assert np.array_equal(bench["d"], want), op
