"""Products of tiles: by hand, by loops in f32 one element at a time, by exact integers."""

from typing import Any

import en_dtypes
import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from tests.known.places import TILES, inside, numbered, untouched
from tests.machine import Bench

KINDS: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """s = s + a*b over k: products exact (48 bits), each sum in 64 bits rounded to f32."""
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = np.float32(0)
            for k in range(a.shape[1]):
                s = np.float32(s + np.longdouble(np.float64(a[i, k]) * np.float64(b[k, j])))
            out[i, j] = s
    return out


def place(
    bench: Bench,
    elem: str,
    a: np.ndarray,
    b: np.ndarray,
    acc: str = "f32",
    left: str = "NZ",
    valid: tuple[int, int, int] | None = None,
) -> None:
    """a, b and c as tiles of the shapes of a and b, of which m, k, n are valid."""
    (rows, inner), cols = a.shape, b.shape[1]
    m, k, n = valid or (rows, inner, cols)
    bench.tile("a", f"left, {rows}x{inner}x{elem}{TILES[left]}", a, valid=(m, k))
    bench.tile("b", f"right, {inner}x{cols}x{elem}{TILES['ZN']}", b, valid=(k, n))
    bench.tile("c", f"acc, {rows}x{cols}x{acc}{TILES['ACC']}", valid=(m, n))


PLAIN = "pto.tmatmul ins(%a, %b : {a}, {b}) outs(%c : {c})"


def test_a_product_by_hand():
    """[[1 2] [3 4]] x [[5 6] [7 8]] = [[19 22] [43 50]], in the corner of 16 x 16 tiles."""
    bench = Bench("a5")
    a, b = np.zeros((16, 16)), np.zeros((16, 16))
    a[:2, :2], b[:2, :2] = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
    place(bench, "f16", a, b, valid=(2, 2, 2))
    bench.run(PLAIN)
    assert bench["c"][:2, :2].tolist() == [[19, 22], [43, 50]]
    assert untouched(bench.values["c"])[~inside((16, 16), 2, 2)].all()


@pytest.mark.parametrize("elem", ["f16", "bf16", "f32", "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("left", ["NZ", "ZZ", "ND"])
def test_products_are_summed_in_order_with_one_rounding_each(elem: str, left: str):
    rng = np.random.default_rng(3)
    a = (rng.standard_normal((32, 32)) * 4).astype(KINDS[elem])
    b = (rng.standard_normal((32, 16)) * 4).astype(KINDS[elem])
    bench = Bench("a5")
    place(bench, elem, a, b, left=left)
    bench.run(PLAIN)
    assert np.array_equal(bench["c"], in_order(a, b))


def test_the_order_shows():
    """1e8 + 1 - 1e8 is 0 in f32 when the 1 comes between, 1 when it comes last."""
    for row, expected in (([1e8, 1, -1e8], 0.0), ([1e8, -1e8, 1], 1.0)):
        bench = Bench("a5")
        a, b = np.zeros((16, 8)), np.zeros((8, 16))
        a[0, :3], b[:3, 0] = row, 1
        place(bench, "f32", a, b)
        bench.run(PLAIN)
        assert bench["c"][0, 0] == expected


def test_products_are_exact_before_they_are_added():
    """(1 + 2^-12)^2 is 1 + 2^-11 + 2^-24; rounded before 1 is taken away it would lose 2^-24."""
    bench = Bench("a5")
    a, b = np.zeros((16, 8), np.float32), np.zeros((8, 16), np.float32)
    a[0, :2], b[:2, 0] = [-1, 1 + 2**-12], [1, 1 + 2**-12]
    place(bench, "f32", a, b)
    bench.run(PLAIN)
    assert bench["c"][0, 0] == np.float32(2**-11 + 2**-24)


def test_infinities_and_nan_come_through():
    bench = Bench("a5")
    a, b = np.zeros((16, 16)), np.ones((16, 16))
    a[0, 0], a[1, 0], a[2, :2] = np.inf, np.nan, [np.inf, -np.inf]
    place(bench, "f16", a, b)
    bench.run(PLAIN)
    column = bench["c"][:4, 0]
    assert column[0] == np.inf and np.isnan(column[1:3]).all() and column[3] == 0


def test_bytes_are_summed_exactly():
    rng = np.random.default_rng(5)
    a, b = rng.integers(-128, 128, (32, 64)), rng.integers(-128, 128, (64, 32))
    bench = Bench("a2a3")
    place(bench, "i8", a, b, "i32", "ZZ")
    bench.run(PLAIN)
    assert np.array_equal(bench["c"], a @ b)


def test_hifloat8():
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((16, 32)), rng.standard_normal((32, 16)))
    a8, b8 = a.astype(en_dtypes.hifloat8), b.astype(en_dtypes.hifloat8)
    bench = Bench("a5")
    place(bench, "!pto.hif8", a8.view(np.uint8), b8.view(np.uint8))
    bench.run(PLAIN)
    assert np.array_equal(bench["c"], in_order(a8.astype(np.float32), b8.astype(np.float32)))


@pytest.mark.parametrize("valid", [(16, 32, 16), (3, 7, 5)])
@pytest.mark.parametrize(("elem", "acc"), [("f16", "f32"), ("i8", "i32")])
def test_an_accumulator_is_added_to_the_finished_sum(
    elem: str, acc: str, valid: tuple[int, int, int]
):
    a, b = numbered(16, 32) % 11 - 5, numbered(32, 16) % 7 - 3
    old = numbered(16, 16) * 3
    bench = Bench("a5")
    place(bench, elem, a, b, acc, valid=valid)
    m, k, n = valid
    bench.tile("o", f"acc, 16x16x{acc}{TILES['ACC']}", old, valid=(m, n))
    bench.run("pto.tmatmul.acc ins(%o, %a, %b : {o}, {a}, {b}) outs(%c : {c})")
    assert np.array_equal(bench["c"][:m, :n], old[:m, :n] + a[:m, :k] @ b[:k, :n])
    assert untouched(bench.values["c"])[~inside((16, 16), m, n)].all()


def test_the_sum_is_rounded_before_the_accumulator_is_added():
    """2^24 + (1 + 1) is 2^24 + 2; adding 1 twice to 2^24 would stay at 2^24."""
    bench = Bench("a5")
    a, b = np.zeros((16, 16)), np.zeros((16, 16))
    a[0, :2], b[:2, 0] = 1, 1
    place(bench, "f16", a, b)
    bench.tile("o", f"acc, 16x16xf32{TILES['ACC']}", np.full((16, 16), 2.0**24))
    bench.run("pto.tmatmul.acc ins(%o, %a, %b : {o}, {a}, {b}) outs(%c : {c})")
    assert bench["c"][0, 0] == 2.0**24 + 2


def test_an_accumulator_in_place():
    bench = Bench("a5")
    a, b = numbered(16, 16) % 5, numbered(16, 16) % 3
    place(bench, "f16", a, b)
    step = "pto.tmatmul.acc ins(%c, %a, %b : {c}, {a}, {b}) outs(%c : {c})"
    bench.run(f"{PLAIN}\n{step}\n{step}")
    assert np.array_equal(bench["c"], 3 * (a @ b))


@pytest.mark.parametrize("valid", [(16, 32, 16), (3, 7, 5)])
def test_one_row_of_bias_for_all_rows(valid: tuple[int, int, int]):
    a, b = numbered(16, 32) % 11 - 5, numbered(32, 16) % 7 - 3
    bias = numbered(1, 16) * 100
    bench = Bench("a5")
    place(bench, "bf16", a, b, valid=valid)
    bench.tile("h", "bias, 1x16xf32", bias)
    bench.run("pto.tmatmul.bias ins(%a, %b, %h : {a}, {b}, {h}) outs(%c : {c})")
    m, k, n = valid
    assert np.array_equal(bench["c"][:m, :n], bias[:, :n] + a[:m, :k] @ b[:k, :n])


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_bias_may_be_wider_than_the_product(profile: str):
    a, b = numbered(16, 32) % 11 - 5, numbered(32, 16) % 7 - 3
    bias = numbered(1, 32) * 100
    bench = Bench(profile)
    place(bench, "f16", a, b)
    bench.tile("h", "bias, 1x32xf32", bias)
    bench.run("pto.tmatmul.bias ins(%a, %b, %h : {a}, {b}, {h}) outs(%c : {c})")
    assert np.array_equal(bench["c"], bias[:, :16] + a @ b)


def test_a_bias_needs_only_the_valid_columns_of_the_product():
    a, b = numbered(16, 32) % 11 - 5, numbered(32, 32) % 7 - 3
    bias = numbered(1, 16) * 100
    bench = Bench("a5")
    place(bench, "f16", a, b, valid=(16, 32, 16))
    bench.tile("h", "bias, 1x16xf32", bias)
    bench.run("pto.tmatmul.bias ins(%a, %b, %h : {a}, {b}, {h}) outs(%c : {c})")
    assert np.array_equal(bench["c"][:, :16], bias + (a @ b)[:, :16])


@pytest.mark.parametrize("form", ["tgemv", "tgemv.acc", "tgemv.bias"])
def test_one_row_times_a_matrix(form: str):
    a, b = numbered(1, 32) % 9 - 4, numbered(32, 16) % 5
    more = numbered(1, 16) * 10
    bench = Bench("a5")
    bench.tile("a", f"left, 1x32xf16{TILES['NZ']}", a)
    bench.tile("b", f"right, 32x16xf16{TILES['ZN']}", b, valid=(32, 13))
    bench.tile("c", f"acc, 16x16xf32{TILES['ACC']}", valid=(1, 13))
    bench.tile("o", f"acc, 16x16xf32{TILES['ACC']}", more, valid=(1, 13))
    bench.tile("h", "bias, 1x16xf32", more)
    ins = {
        "tgemv": "%a, %b : {a}, {b}",
        "tgemv.acc": "%o, %a, %b : {o}, {a}, {b}",
        "tgemv.bias": "%a, %b, %h : {a}, {b}, {h}",
    }[form]
    bench.run(f"pto.{form} ins({ins}) outs(%c : {{c}})")
    expected = a @ b + (0 if form == "tgemv" else more)
    assert np.array_equal(bench["c"][:1, :13], expected[:, :13])
    assert untouched(bench.values["c"])[~inside((16, 16), 1, 13)].all()


def test_sizes_come_from_the_valid_regions_of_the_factors():
    """m x k is the region of the left tile, n the columns of the right; dst may say more."""
    bench = Bench("a5")
    a, b = numbered(16, 16) % 9 - 4, numbered(16, 16) % 5
    place(bench, "f16", a, b)
    bench.values["a"].set_valid(9, 11)
    bench.values["b"].set_valid(16, 13)
    bench.run(PLAIN)
    assert np.array_equal(bench["c"][:9, :13], a[:9, :11] @ b[:11, :13])
    assert untouched(bench.values["c"])[~inside((16, 16), 9, 13)].all()


def test_regions_that_do_not_fit_are_refused():
    bench = Bench("a5")
    bench.tile("a", f"left, 16x32xf16{TILES['NZ']}", numbered(16, 32))
    bench.tile("b", f"right, 16x16xf16{TILES['ZN']}", numbered(16, 16))
    bench.tile("c", f"acc, 16x16xf32{TILES['ACC']}")
    with pytest.raises(PtoError, match="16x32 and a tile of 16 rows") as error:
        bench.run(PLAIN)
    assert error.value.diagnostics[0].code == "PTO-S063"
    assert untouched(bench.values["c"]).all()


# ---- block scales


def mx(
    elem: str,
    a: np.ndarray,
    b: np.ndarray,
    sa: np.ndarray,
    sb: np.ndarray,
    *,
    form: str = "tmatmul.mx",
    acc: str = "f32",
    old: np.ndarray | None = None,
) -> np.ndarray:
    bench = Bench("a5")
    (m, k), n = a.shape, b.shape[1]
    bench.tile("a", f"left, {m}x{k}x{elem}{TILES['NZ']}", a)
    bench.tile("b", f"right, {k}x{n}x{elem}{TILES['ZN']}", b)
    left = f"scale_left, {m}x{sa.shape[1]}xf8E8M0FNU, slayout=row_major, fractal=32"
    columns = "blayout=col_major, slayout=col_major, fractal=32"
    right = f"scale_right, {sb.shape[0]}x{n}xf8E8M0FNU, {columns}"
    bench.tile("x", left, sa.view(ml_dtypes.float8_e8m0fnu))
    bench.tile("y", right, sb.view(ml_dtypes.float8_e8m0fnu))
    bench.tile("c", f"acc, {m}x{n}x{acc}{TILES['ACC']}")
    ins, types = "%a, %x, %b, %y", "{a}, {x}, {b}, {y}"
    if form.endswith("acc"):
        bench.tile("o", f"acc, {m}x{n}x{acc}{TILES['ACC']}", old)
        ins, types = "%o, " + ins, "{o}, " + types
    elif form.endswith("bias"):
        bench.tile("o", f"bias, 1x{n}x{acc}", old)
        ins, types = ins + ", %o", types + ", {o}"
    bench.run(f"pto.{form} ins({ins} : {types}) outs(%c : {{c}})")
    return bench["c"]


def scaled(a: np.ndarray, b: np.ndarray, sa: np.ndarray, sb: np.ndarray) -> np.ndarray:
    """One element at a time; every term exact, then rounded to f32."""
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = np.float32(0)
            for k in range(a.shape[1]):
                power = float(sa[i, k // 32]) + float(sb[k // 32, j]) - 254
                term = float(a[i, k]) * float(b[k, j]) * 2.0**power
                s = np.float32(s + np.float32(term))
            out[i, j] = s
    return out


@pytest.mark.parametrize("elem", ["f8E4M3FN", "f8E5M2"])
def test_mx_scales_groups_of_thirty_two(elem: str):
    rng = np.random.default_rng(8)
    a = rng.standard_normal((16, 128)).astype(KINDS[elem])
    b = rng.standard_normal((128, 16)).astype(KINDS[elem])
    sa = rng.integers(120, 135, (16, 4)).astype(np.uint8)
    sb = rng.integers(120, 135, (4, 16)).astype(np.uint8)
    assert np.array_equal(mx(elem, a, b, sa, sb), scaled(a, b, sa, sb))


@pytest.mark.parametrize("form", ["tmatmul.mx.acc", "tmatmul.mx.bias"])
def test_mx_adds_to_the_finished_sum(form: str):
    a = np.ones((16, 64), KINDS["f8E4M3FN"])
    b = np.ones((64, 16), KINDS["f8E4M3FN"])
    ones = np.full((16, 2), 127, np.uint8)
    twos = np.full((2, 16), 128, np.uint8)
    old = numbered(16 if form.endswith("acc") else 1, 16)
    found = mx("f8E4M3FN", a, b, ones, twos, form=form, old=old)
    assert np.array_equal(found, np.broadcast_to(128 + old, (16, 16)))


@pytest.mark.parametrize("form", ["tgemv.mx", "tgemv.mx.acc", "tgemv.mx.bias"])
def test_one_row_with_scales(form: str):
    rng = np.random.default_rng(9)
    a = rng.standard_normal((1, 64)).astype(KINDS["f8E5M2"])
    b = rng.standard_normal((64, 16)).astype(KINDS["f8E5M2"])
    sa, sb = np.array([[126, 129]], np.uint8), rng.integers(125, 130, (2, 16)).astype(np.uint8)
    bench = Bench("a5")
    bench.tile("a", f"left, 1x64xf8E5M2{TILES['NZ']}", a)
    bench.tile("b", f"right, 64x16xf8E5M2{TILES['ZN']}", b)
    e8 = ml_dtypes.float8_e8m0fnu
    bench.tile("x", "scale_left, 1x2xf8E8M0FNU, slayout=row_major, fractal=32", sa.view(e8))
    right = "scale_right, 2x16xf8E8M0FNU, blayout=col_major, slayout=col_major, fractal=32"
    bench.tile("y", right, sb.view(e8))
    bench.tile("c", f"acc, 16x16xf32{TILES['ACC']}", valid=(1, 16))
    bench.tile("o", f"acc, 16x16xf32{TILES['ACC']}", numbered(1, 16), valid=(1, 16))
    bench.tile("h", "bias, 1x16xf32", numbered(1, 16))
    factors = "%a, %x, %b, %y", "{a}, {x}, {b}, {y}"
    before, after = ("%o, ", "{o}, ") if form.endswith("acc") else ("", "")
    if form.endswith("bias"):
        factors = factors[0] + ", %h", factors[1] + ", {h}"
    text = f"pto.{form} ins({before}{factors[0]} : {after}{factors[1]}) outs(%c : {{c}})"
    bench.run(text)
    more = 0 if form == "tgemv.mx" else numbered(1, 16)
    assert np.array_equal(bench["c"][:1], scaled(a, b, sa, sb) + np.float32(more))


@pytest.mark.parametrize(
    ("elem", "kind"),
    [("!pto.f4E2M1x2", ml_dtypes.float4_e2m1fn), ("!pto.f4E1M2x2", en_dtypes.float4_e1m2)],
)
def test_mx_of_packed_pairs_along_k(elem: str, kind: Any):
    rng = np.random.default_rng(10)
    codes_a = rng.integers(0, 16, (16, 128)).astype(np.uint8)
    codes_b = rng.integers(0, 16, (128, 16)).astype(np.uint8)
    a, b = codes_a.view(kind).astype(np.float32), codes_b.view(kind).astype(np.float32)
    sa = rng.integers(124, 131, (16, 4)).astype(np.uint8)
    sb = rng.integers(124, 131, (4, 16)).astype(np.uint8)
    packed_a = codes_a[:, 0::2] | codes_a[:, 1::2] << 4
    packed_b = codes_b[0::2] | codes_b[1::2] << 4
    assert np.array_equal(mx(elem, packed_a, packed_b, sa, sb), scaled(a, b, sa, sb))


def test_mx_of_packed_pairs_whose_tiles_count_values():
    """64 values of k in tiles of 64: half of the bytes hold them, with two scales."""
    rng = np.random.default_rng(11)
    codes_a = rng.integers(0, 16, (16, 64)).astype(np.uint8)
    codes_b = rng.integers(0, 16, (64, 16)).astype(np.uint8)
    kind = ml_dtypes.float4_e2m1fn
    a, b = codes_a.view(kind).astype(np.float32), codes_b.view(kind).astype(np.float32)
    sa = rng.integers(124, 131, (16, 2)).astype(np.uint8)
    sb = rng.integers(124, 131, (2, 16)).astype(np.uint8)
    wide, high = np.full((16, 64), 0x77, np.uint8), np.full((64, 16), 0x77, np.uint8)
    wide[:, :32] = codes_a[:, 0::2] | codes_a[:, 1::2] << 4
    high[:32] = codes_b[0::2] | codes_b[1::2] << 4
    assert np.array_equal(mx("!pto.f4E2M1x2", wide, high, sa, sb), scaled(a, b, sa, sb))


def test_a_scale_of_255_is_nan():
    a, b = np.ones((16, 64), KINDS["f8E4M3FN"]), np.ones((64, 16), KINDS["f8E4M3FN"])
    sa, sb = np.full((16, 2), 127, np.uint8), np.full((2, 16), 127, np.uint8)
    sa[3, 1] = 255
    found = mx("f8E4M3FN", a, b, sa, sb)
    assert np.isnan(found[3]).all() and (found[:3] == 64).all()


def test_terms_beyond_f32_become_infinite_or_vanish():
    a, b = np.ones((16, 64), KINDS["f8E4M3FN"]), np.ones((64, 16), KINDS["f8E4M3FN"])
    high, low = np.full((16, 2), 254, np.uint8), np.full((2, 16), 254, np.uint8)
    assert np.isinf(mx("f8E4M3FN", a, b, high, low)).all()
    assert not mx("f8E4M3FN", a, b, high * 0, low * 0).any()


def test_mx_of_bytes():
    """Manual: int8 in, int32 out. Scales of 1 change nothing; a half rounds once at the end."""
    a, b = numbered(16, 64) % 21 - 10, numbered(64, 16) % 17 - 8
    sa, sb = np.full((16, 2), 127, np.uint8), np.full((2, 16), 127, np.uint8)
    assert np.array_equal(mx("i8", a, b, sa, sb, acc="i32"), (a @ b).astype(np.int32))
    halves = mx("i8", a, b, sa - 1, sb, acc="i32")
    assert np.array_equal(halves, np.rint((a @ b) / 2).astype(np.int32))


def test_scales_in_a_tile_of_another_type_are_read_as_bytes():
    """PTOAS writes f16 tiles of the operand's shape; the bytes are those of 16 x 2 boxes."""
    bench = Bench("a5")
    a, b = np.ones((16, 64), KINDS["f8E4M3FN"]), np.ones((64, 16), KINDS["f8E4M3FN"])
    bench.tile("a", f"left, 16x64xf8E4M3FN{TILES['NZ']}", a)
    bench.tile("b", f"right, 64x16xf8E4M3FN{TILES['ZN']}", b)
    x = bench.tile("x", "scaling, 16x64xf16")
    y = bench.tile("y", "scaling, 64x16xf16")
    for tile in (x, y):
        tile.memory.view(tile.address, 32)[:] = 127
    x.memory.view(x.address, 32)[2:4] = 128  # box of 16 rows x 2 groups: row 1, both groups
    bench.tile("c", f"acc, 16x16xf32{TILES['ACC']}")
    bench.run("pto.tmatmul.mx ins(%a, %x, %b, %y : {a}, {x}, {b}, {y}) outs(%c : {c})")
    assert bench["c"][:3, 0].tolist() == [64, 128, 64]


def test_scaling_tiles_in_boxes_of_scales_lie_beside_l0a_and_l0b():
    """MX loads by pointer put the scales of L0A[0x400..] at SCALE_A[0x40..]: so do these tiles."""
    bench = Bench("a5")
    x = bench.tile("x", "scaling, 16x2xf16, slayout=row_major, fractal=32")
    y = bench.tile("y", "scaling, 2x16xf16, blayout=col_major, slayout=col_major, fractal=32")
    spaces = [tile.memory.space for tile in (x, y, bench.tile("z", "scaling, 1x32xui64"))]
    assert spaces == [Space.SCALE_A, Space.SCALE_B, Space.FIXPIPE]


# ---- where accumulators lie


@pytest.mark.parametrize("fractal", ["", ", fractal=512", ", fractal=1024"])
def test_l0c_has_boxes_of_sixteen_by_sixteen_whatever_a_program_calls_them(fractal: str):
    rng = np.random.default_rng(8)
    a, b = rng.integers(-9, 9, (16, 32)), rng.integers(-9, 9, (32, 32))
    bench = Bench("a5")
    place(bench, "i8", a, b, acc="i32")
    c = bench.tile("c", f"acc, 16x32xi32{TILES['NZ']}{fractal}")
    bench.run(PLAIN)
    strips = c.memory.view(c.address, c.nbytes).view(np.int32).reshape(2, 16, 16)
    assert np.array_equal(np.hstack(list(strips)), a @ b)


def test_a_row_of_an_accumulator_is_the_first_of_whole_boxes():
    rng = np.random.default_rng(9)
    a, b = rng.integers(-9, 9, (1, 32)), rng.integers(-9, 9, (32, 48))
    bench = Bench("a5")
    bench.tile("a", f"left, 1x32xf16{TILES['NZ']}", a)
    bench.tile("b", f"right, 32x48xf16{TILES['ZN']}", b)
    c = bench.tile("c", f"acc, 1x48xf32{TILES['ACC']}")
    bench.run("pto.tgemv ins(%a, %b : {a}, {b}) outs(%c : {c})")
    strips = c.memory.view(c.address, 3 * 1024).view(np.float32).reshape(3, 16, 16)
    assert np.array_equal(strips[:, 0].reshape(1, 48), a @ b)


# ---- precision of f32 factors


def test_tf32_rounds_factors_to_ten_bits_of_mantissa():
    """Micro-instruction manual, mad, tf32_mode: 1 + 2^-11 is a tie and goes to even, 1."""
    fine = np.float32(1 + 2**-11)
    for profile, factor in (("a5", 1.0), ("a2a3", fine)):
        bench = Bench(profile)
        a, b = np.zeros((16, 8), np.float32), np.zeros((8, 16), np.float32)
        a[0, 0], b[0, 0] = fine, 1
        place(bench, "f32", a, b)
        bench.run("pto.settf32mode {enable = true}\n" + PLAIN)
        assert bench["c"][0, 0] == factor
        bench.run("pto.settf32mode {enable = false}\n" + PLAIN)
        assert bench["c"][0, 0] == fine


def test_reserved_rounding_of_tf32_is_refused():
    with pytest.raises(PtoError) as error:
        Bench("a5").run("pto.settf32mode {enable = true, mode = #pto<round_mode FLOOR>}")
    assert error.value.diagnostics[0].code == "PTO-T174"


def test_hf32_is_not_defined():
    bench = Bench("a5")
    place(bench, "f32", numbered(16, 8), numbered(8, 16))
    with pytest.raises(PtoError) as error:
        bench.run("pto.sethf32mode {enable = true}\n" + PLAIN)
    assert error.value.diagnostics[0].code == "PTO-X170"
    bench.run("pto.sethf32mode {enable = false}\n" + PLAIN)
    assert np.array_equal(bench["c"], numbered(16, 8) @ numbered(8, 16))
