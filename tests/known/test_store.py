"""TSTORE and TSTORE_FP: what reaches global memory, and what stays there."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.places import TILES, numbered, view, word
from tests.machine import Bench

STORE = "pto.tstore ins(%t : {t}) outs(%v : {v})"
INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("layout", ["ND", "DN", "NZ"])
@pytest.mark.parametrize("valid", [(16, 16), (5, 9), (1, 16), (16, 1)])
def test_exactly_the_valid_region_leaves(layout: str, valid: tuple[int, int]):
    bench = Bench("a5")
    data = numbered(16, 16)
    bench.tile("t", f"vec, 16x16xf32{TILES[layout]}", data, valid=valid)
    memory = np.full((20, 24), -1.0, np.float32)
    view(bench, "v", memory, "f32", (16, 16), (24, 1))
    bench.run(STORE)
    rows, cols = valid
    expected = np.full((20, 24), -1.0, np.float32)
    expected[:rows, :cols] = data[:rows, :cols]
    assert np.array_equal(memory, expected)


def test_columns_far_apart():
    bench = Bench("a5")
    data = numbered(8, 8)
    bench.tile("t", f"vec, 8x8xf32{TILES['DN']}", data)
    memory = np.zeros((8, 10), np.float32)
    view(bench, "v", memory, "f32", (8, 8), (1, 10), "DN")
    bench.run(STORE)
    assert np.array_equal(memory[:, :8], data.T)
    assert not memory[:, 8:].any()


@pytest.mark.parametrize("valid", [(32, 16), (19, 11)])
def test_a_fractal_view_is_written_box_by_box(valid: tuple[int, int]):
    bench = Bench("a5")
    data = numbered(32, 16) + 1
    bench.tile("t", f"vec, 32x16xf32{TILES['NZ']}", data, valid=valid)
    memory = np.zeros((2, 2, 16, 8), np.float32)
    view(bench, "v", memory, "f32", (1, 2, 2, 16, 8), None, "NZ")
    bench.run(STORE)
    expected = np.zeros((32, 16), np.float32)
    rows, cols = valid
    expected[:rows, :cols] = data[:rows, :cols]
    assert np.array_equal(memory, expected.reshape(2, 16, 2, 8).transpose(2, 0, 1, 3))


def test_an_accumulator_fills_plain_and_fractal_views():
    data = numbered(32, 32)
    for shape in ((32, 32), (1, 2, 2, 16, 16)):
        bench = Bench("a5")
        bench.tile("t", f"acc, 32x32xf32{TILES['ACC']}", data)
        memory = np.zeros((32, 32), np.float32)
        view(bench, "v", memory, "f32", shape)
        bench.run(STORE)
        boxes = data.reshape(2, 16, 2, 16).transpose(2, 0, 1, 3)
        assert np.array_equal(memory, data if len(shape) == 2 else boxes.reshape(32, 32))


def test_an_empty_region_stores_nothing():
    bench = Bench("a5")
    bench.tile("t", "vec, 8x8xf32", numbered(8, 8), valid=(0, 8))
    memory = np.full((8, 8), -1.0, np.float32)
    view(bench, "v", memory, "f32")
    bench.run(STORE)
    assert (memory == -1.0).all()


def test_a_view_too_small_is_refused_and_memory_stays():
    bench = Bench("a5")
    bench.tile("t", "vec, 8x8xf32", numbered(8, 8))
    memory = np.full((8, 8), -1.0, np.float32)
    view(bench, "v", memory, "f32", (8, 7), (8, 1))
    with pytest.raises(PtoError) as error:
        bench.run(STORE)
    assert error.value.diagnostics[0].code == "PTO-S170"
    assert (memory == -1.0).all()


# ---- atomics (Data Movement, Atomic Store Variants)


def atomic(op: str, elem: str, kind: Any, old: list[Any], new: list[Any]) -> np.ndarray:
    bench = Bench("a5")
    lanes = 32 // np.dtype(kind).itemsize
    bench.tile("t", f"vec, 1x{lanes}x{elem}", np.array([new], kind), valid=(1, len(new)))
    memory = np.array([old], kind)
    view(bench, "v", memory, elem)
    bench.run(STORE + f" {{atomicType = #pto<atomic_type {op}>}}")
    return memory[0]


@pytest.mark.parametrize(
    ("op", "elem", "kind", "old", "new", "expected"),
    [
        ("atomic_none", "f32", np.float32, [1, 2], [5, NAN], [5, NAN]),
        ("atomic_add", "f32", np.float32, [1, 2**24, -0.0], [0.5, 1, -0.0], [1.5, 2**24, -0.0]),
        ("atomic_add", "f16", np.float16, [2048, 60000], [1, 60000], [2048, INF]),
        ("atomic_add", "bf16", ml_dtypes.bfloat16, [256, 1], [1, 1], [256, 2]),
        ("atomic_add", "i32", np.int32, [2**31 - 1, 4], [1, -5], [-(2**31), -1]),
        ("atomic_add", "i8", np.int8, [127, -128], [1, -1], [-128, 127]),
        ("atomic_max", "f32", np.float32, [1, -3, NAN], [2, -4, 1], [2, -3, NAN]),
        ("atomic_max", "i16", np.int16, [-5, 7], [-6, 9], [-5, 9]),
        ("atomic_min", "f16", np.float16, [1, -3, 0], [2, -4, -INF], [1, -4, -INF]),
        ("atomic_min", "ui8", np.uint8, [200, 3], [100, 4], [100, 3]),
    ],
)
def test_atomics_combine_in_the_element_type(
    op: str, elem: str, kind: Any, old: list[Any], new: list[Any], expected: list[Any]
):
    found = atomic(op, elem, kind, old, new)
    assert np.array_equal(found.astype(np.float64), np.array(expected, np.float64), equal_nan=True)


def test_atomics_of_types_without_arithmetic_are_refused():
    bench = Bench("a5")
    bench.tile("t", "vec, 1x32x!pto.hif8")
    view(bench, "v", np.zeros((1, 32), np.uint8), "!pto.hif8")
    with pytest.raises(PtoError) as error:
        bench.run(STORE + " {atomicType = #pto<atomic_type atomic_add>}")
    assert error.value.diagnostics[0].code == "PTO-T170"


# ---- out of the accumulator


def from_acc(
    src: str,
    elem: str,
    kind: Any,
    values: list[Any],
    *,
    scale: int | None = None,
    words: list[int] | None = None,
    relu: bool = False,
    saturate: bool = False,
) -> list[Any]:
    """A row of an accumulator stored as `elem`, with a scalar scale, one a column, or none."""
    bench = Bench("a5")
    if saturate:
        bench.core.registers["ctrl"] = 0  # CTRL[48] = 0: inf and NaN are limited too
    source = np.array([values], np.float32 if src == "f32" else np.int32)
    bench.tile("t", f"acc, 16x16x{src}{TILES['ACC']}", source, valid=(1, len(values)))
    memory = np.zeros((1, len(values)), kind)
    view(bench, "v", memory, elem)
    attrs = " {reluPreMode = #pto<relu_pre_mode normal_relu>}" if relu else ""
    if words is not None:
        bench.tile("f", "scaling, 1x16xui64", np.array([words], np.uint64))
        bench.run("pto.tstore_fp ins(%t, %f : {t}, {f}) outs(%v : {v})" + attrs)
    elif scale is not None:
        bench.scalar("q", "i64", scale)
        bench.run("pto.tstore ins(%t : {t}, %q : i64) outs(%v : {v})" + attrs)
    else:
        bench.run(STORE + attrs)
    return memory[0].astype(np.float64).tolist()


def test_casts_round_once_to_nearest_even():
    ties = [1 + 2**-11, 1 + 3 * 2**-11, 65519.0, 65520.0, -1e6]
    assert from_acc("f32", "f16", np.float16, ties) == [1, 1 + 2**-9, 65504, INF, -INF]
    assert from_acc("f32", "f16", np.float16, ties, saturate=True)[3:] == [65504, -65504]
    halves = [1 + 2**-8, 1 + 3 * 2**-8]
    assert from_acc("f32", "bf16", ml_dtypes.bfloat16, halves) == [1, 1 + 2**-6]


def test_special_values_stay_unless_the_control_register_saturates():
    found = from_acc("f32", "f16", np.float16, [INF, -INF, NAN])
    assert found[:2] == [INF, -INF] and np.isnan(found[2])
    assert from_acc("f32", "f16", np.float16, [INF, -INF, NAN], saturate=True) == [65504, -65504, 0]


def test_integers_and_floats_without_a_scale():
    assert from_acc("i32", "i32", np.int32, [-5, 7]) == [-5, 7]
    assert from_acc("i32", "f32", np.float32, [2**24 + 1, -3]) == [2**24, -3]
    assert from_acc("i32", "f16", np.float16, [2049, 2051]) == [2048, 2052]
    assert from_acc("f32", "i32", np.int32, [2.5, 3.5, -2.5, 3e9]) == [2, 4, -2, 2**31 - 1]


def test_relu_clips_at_zero():
    assert from_acc("f32", "f32", np.float32, [-1.5, -0.0, 2.5], relu=True) == [0, 0, 2.5]
    assert from_acc("i32", "i32", np.int32, [-4, 4], relu=True) == [0, 4]
    assert from_acc("f32", "f16", np.float16, [-1.5, 2.5], relu=True) == [0, 2.5]


def test_a_scalar_scale_to_signed_and_unsigned_bytes():
    values = [2.5, 3.5, -2.5, 1000.0, -1000.0, NAN]
    signed = word(1.0, signed=True)
    assert from_acc("f32", "i8", np.int8, values, scale=signed) == [2, 4, -2, 127, -128, 0]
    assert from_acc("f32", "ui8", np.uint8, values, scale=word(1.0)) == [2, 4, 0, 255, 0, 0]
    assert from_acc("f32", "i8", np.int8, values, scale=signed, relu=True)[2:5] == [0, 127, 0]


def test_the_scale_multiplies_and_the_offset_is_added_after_rounding():
    scale = word(0.5, offset=10, signed=True)
    # 5 * 0.5 = 2.5 -> 2 (even), + 10; 300 * 0.5 = 150 is within nine bits, + 10 is limited
    assert from_acc("i32", "i8", np.int8, [5, 7, 300, -1000], scale=scale) == [12, 14, 127, -128]
    down = word(1.0, offset=-3, signed=True)
    assert from_acc("f32", "i8", np.int8, [1.0, 2.0], scale=down) == [-2, -1]


def test_a_scalar_scale_to_floats():
    half = word(0.5)
    assert from_acc("f32", "f16", np.float16, [3.0, 1e6, -1e6], scale=half) == [1.5, 65504, -65504]
    assert from_acc("i32", "f16", np.float16, [2047, 2**30], scale=half) == [1023.5, 65504]
    assert from_acc("f32", "f32", np.float32, [3.0], scale=half) == [1.5]
    assert from_acc("i32", "bf16", ml_dtypes.bfloat16, [257], scale=word(1.0)) == [256]
    e4m3 = from_acc("f32", "f8E4M3FN", ml_dtypes.float8_e4m3fn, [17.0, 1e4], scale=word(1.0))
    assert e4m3 == [16, 448]


def test_a_scale_a_column_has_ten_bits_of_mantissa():
    # 1 + 2^-11 has a bit below the ten: column words drop it, a scalar keeps it
    fine = 1 + 2.0**-11
    assert from_acc("f32", "f32", np.float32, [2048.0], scale=word(fine)) == [2049]
    assert from_acc("f32", "f32", np.float32, [2048.0], words=[word(fine)]) == [2048]


def test_every_column_has_its_own_scale():
    words = [word(1.0, signed=True), word(2.0, signed=True), word(-1.0), word(1.0, offset=5)]
    assert from_acc("f32", "ui8", np.uint8, [3, 3, -3, 3], words=words) == [3, 6, 3, 8]


def test_slopes_that_nothing_gives_are_refused():
    bench = Bench("a5")
    bench.tile("t", f"acc, 16x16xf32{TILES['ACC']}")
    view(bench, "v", np.zeros((16, 16), np.float32), "f32")
    with pytest.raises(PtoError) as error:
        bench.run(STORE + " {reluPreMode = #pto<relu_pre_mode scalar_relu>}")
    assert error.value.diagnostics[0].code == "PTO-T172"


def test_a_scaled_store_combines_with_memory():
    bench = Bench("a5")
    bench.tile("t", f"acc, 16x16xf32{TILES['ACC']}", np.full((1, 16), 3.0), valid=(1, 16))
    bench.scalar("q", "i64", word(0.5))
    memory = np.full((1, 16), 1.0, np.float16)
    view(bench, "v", memory, "f16")
    bench.run(
        "pto.tstore ins(%t : {t}, %q : i64) outs(%v : {v})"
        " {atomicType = #pto<atomic_type atomic_add>}"
    )
    assert (memory == 2.5).all()


def test_the_region_of_an_accumulator_alone_is_stored():
    bench = Bench("a5")
    data = numbered(16, 16)
    bench.tile("t", f"acc, 16x16xf32{TILES['ACC']}", data, valid=(3, 5))
    memory = np.full((16, 16), -1.0, np.float16)
    view(bench, "v", memory, "f16")
    bench.run(STORE)
    expected = np.full((16, 16), -1.0, np.float16)
    expected[:3, :5] = data[:3, :5]
    assert np.array_equal(memory, expected)
