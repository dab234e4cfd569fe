"""Comparison into packed bits and selection by them: bits by hand and by plain loops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.rows import FILL, KINDS, NAN, untouched
from tests.machine import Bench

MODES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
RNG = np.random.default_rng(5)


def unpacked(mask: Any, cols: int) -> list[list[bool]]:
    """Bit j of row i, lowest bit first, from the bytes of each row."""
    raw = np.ascontiguousarray(mask).view(np.uint8)
    return [[bool(row[j // 8] >> (j % 8) & 1) for j in range(cols)] for row in raw.tolist()]


def compare(
    mode: str, dtype: str, a: Any, b: Any, mask: str, valid: Any = None, profile: str = "a5"
) -> Any:
    bench = Bench(profile)
    shape = f"vec, {len(a)}x{len(a[0])}x{dtype}"
    bench.tile("a", shape, np.asarray(a, KINDS[dtype]), valid=valid)
    bench.tile("b", shape, np.asarray(b, KINDS[dtype]), valid=valid)
    bench.tile("m", f"vec, {mask}")
    bench.run(
        f"pto.tcmp ins(%a, %b {{cmpMode = #pto<cmp {mode}>}} : {{a}}, {{b}}) outs(%m : {{m}})"
    )
    return bench["m"]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32", "ui8", "i64"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_every_width(mode: str, dtype: str):
    a, b = RNG.integers(1, 4, (2, 4, 64))
    found = compare(mode, dtype, a, b, "4x32xui8")
    assert unpacked(found, 64) == MODES[mode](a, b).tolist()


def test_bits_by_hand():
    found = compare("lt", "f32", [[1, 2, 3, 4, 5, 6, 7, 8]], [[2, 2, 4, 4, 6, 6, 8, 8]], "1x32xui8")
    assert found[0, 0] == 0b01010101 and (found[0, 1:] == FILL).all()


def test_nan_is_unequal_to_everything_and_zeros_are_equal():
    a, b = [[NAN, NAN, 0.0, 1, 1, 1, 1, 1]], [[NAN, 1, -0.0, NAN, 1, 1, 1, 1]]
    want = {"eq": 0xF4, "ne": 0x0B, "lt": 0x00, "le": 0xF4, "gt": 0x00, "ge": 0xF4}
    for mode, byte in want.items():
        assert compare(mode, "f32", a, b, "1x32xui8")[0, 0] == byte, mode


def test_unsigned_elements_compare_unsigned():
    assert compare("gt", "ui8", [[255] * 8], [[1] * 8], "1x32xui8")[0, 0] == 0xFF
    assert compare("gt", "i8", [[-1] * 8], [[1] * 8], "1x32xui8")[0, 0] == 0x00


def test_bits_past_the_columns_are_zero_to_the_end_of_the_element_and_the_rest_stays():
    ones = np.ones((4, 64))
    found = compare("eq", "f32", ones, ones, "4x32xui8", valid=(3, 11))
    assert found[:3, :2].tolist() == [[0xFF, 0x07]] * 3 and untouched(found, 3, 2)
    found = compare("eq", "f32", ones, ones, "4x8xui32", valid=(3, 35))
    assert found[:3, :2].tolist() == [[0xFFFFFFFF, 0x7]] * 3 and untouched(found, 3, 2)


def test_a_mask_row_that_is_too_short_is_refused():
    bench = Bench("cpu")
    bench.tile("a", "vec, 2x300xf32", np.ones((2, 300)))
    bench.tile("m", "vec, 2x32xui8")
    with pytest.raises(PtoError, match="2 rows of 256 bits, not 2x300"):
        bench.run("pto.tcmp ins(%a, %a {cmpMode = #pto<cmp eq>} : {a}, {a}) outs(%m : {m})")
    assert untouched(bench["m"], 0, 0)


# ---- with a scalar


def compare_scalar(dtype: str, a: Any, scalar: Any, mask: str, profile: str, valid: Any) -> Any:
    bench = Bench(profile)
    bench.tile("a", f"vec, {a.shape[0]}x{a.shape[1]}x{dtype}", a, valid=valid)
    bench.tile("m", f"vec, {mask}")
    bench.scalar("s", dtype, scalar)
    bench.run("pto.tcmps ins(%a, %s {cmpMode = #pto<cmp lt>} : {a}, {s}) outs(%m : {m})")
    return bench["m"]


@pytest.mark.parametrize("profile", ["cpu", "a2a3"])
def test_scalar_comparison_keeps_the_rows_of_the_mask(profile: str):
    a = RNG.integers(0, 9, (5, 64))
    found = compare_scalar("f32", a, 4, "5x32xui8", profile, (5, 40))
    assert unpacked(found[:, :5], 40) == (a[:, :40] < 4).tolist() and untouched(found, 5, 5)


def test_on_a5_32_bit_rows_follow_each_other_bit_by_bit():
    a = RNG.integers(0, 9, (5, 64))
    found = compare_scalar("i32", a, 4, "5x32xui8", "a5", (5, 40))
    stream = found.reshape(-1)
    want = [bool(x) for x in (a[:, :40] < 4).reshape(-1)]
    assert unpacked(stream[None, :25], 200)[0] == want
    # 200 bits fill 25 bytes; pieces of 16 bytes are written whole
    assert (stream[25:32] == 0).all() and (stream[32:] == FILL).all()


@pytest.mark.parametrize(("dtype", "piece"), [("f16", 16), ("i8", 32)])
def test_on_a5_narrower_rows_start_a_piece_each(dtype: str, piece: int):
    a = RNG.integers(0, 9, (3, 64)).astype(KINDS[dtype])
    found = compare_scalar(dtype, a, 4, "3x64xui8", "a5", (3, 40)).reshape(-1)
    for i in range(3):
        row = found[i * piece : (i + 1) * piece]
        assert unpacked(row[None, :5], 40)[0] == (a[i, :40] < 4).tolist()
        assert (row[5:] == 0).all()
    assert (found[3 * piece :] == FILL).all()


def test_a_tile_for_the_scalar_stands_for_its_first_element():
    bench = Bench("cpu")
    bench.tile("a", "vec, 1x8xf32", [[1, 2, 3, 4, 5, 6, 7, 8]])
    bench.tile("b", "vec, 1x8xf32", [[4, 0, 0, 0, 9, 9, 9, 9]])
    bench.tile("m", "vec, 1x32xui8")
    bench.run("pto.tcmps ins(%a, %b {cmpMode = #pto<cmp le>} : {a}, {b}) outs(%m : {m})")
    assert bench["m"][0, 0] == 0x0F


def test_a_stream_of_bits_does_not_go_into_a_window():
    bench = Bench("a5")
    parent = bench.tile("p", "vec, 4x64xui8")
    bench.tile("a", "vec, 4x32xf32", np.ones((4, 32)))
    bench.tile("m", "vec, 4x32xui8")
    bench.values["m"] = parent.window(0, 0, bench.values["m"].type)
    bench.scalar("s", "f32", 1)
    with pytest.raises(PtoError, match="a window with gaps") as caught:
        bench.run("pto.tcmps ins(%a, %s {cmpMode = #pto<cmp eq>} : {a}, f32) outs(%m : {m})")
    assert caught.value.diagnostics[0].code == "PTO-L150" and untouched(parent.read(), 0, 0)
    bench.run("pto.tcmp ins(%a, %a {cmpMode = #pto<cmp eq>} : {a}, {a}) outs(%m : {m})")
    assert (parent.read()[:, :4] == 0xFF).all() and untouched(parent.read(), 4, 4)


# ---- selection


@pytest.mark.parametrize("mask_type", ["i8", "ui8", "ui16", "ui32"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "bf16"])
def test_select_by_the_bits_of_any_mask_type(dtype: str, mask_type: str):
    chosen = RNG.integers(0, 2, (4, 64)).astype(bool)
    a, b = RNG.integers(0, 99, (2, 4, 64))
    raw = np.zeros((4, 32), np.uint8)
    raw[:, :8] = np.packbits(chosen, axis=1, bitorder="little")
    mask = raw.view(KINDS[mask_type])
    bench = Bench("a5")
    bench.tile("m", f"vec, 4x{mask.shape[1]}x{mask_type}", mask)
    bench.tile("a", f"vec, 4x64x{dtype}", a)
    bench.tile("b", f"vec, 4x64x{dtype}", b)
    bench.tile("d", f"vec, 4x64x{dtype}", valid=(3, 41))
    bench.run("pto.tsel ins(%m, %a, %b, %d : {m}, {a}, {b}, {d}) outs(%d : {d})")
    assert (bench["d"][:3, :41] == np.where(chosen, a, b)[:3, :41]).all()
    assert untouched(bench["d"], 3, 41)


def test_select_moves_nan_bit_by_bit():
    payload = np.array([[0x7FC01234, 0xFFC00001]], np.uint32).view(np.float32)
    bench = Bench("a5")
    bench.tile("m", "vec, 1x32xui8", np.full((1, 32), 1))
    bench.tile("a", "vec, 1x2xf32", payload)
    bench.tile("b", "vec, 1x2xf32", payload[:, ::-1])
    bench.tile("d", "vec, 1x2xf32")
    bench.run("pto.tsel ins(%m, %a, %b, %d : {m}, {a}, {b}, {d}) outs(%d : {d})")
    assert bench["d"].view(np.uint32).tolist() == [[0x7FC01234, 0x7FC01234]]


def test_select_with_a_scalar():
    bench = Bench("a5")
    bench.tile("m", "vec, 2x32xui8", np.full((2, 32), 0b0110))
    bench.tile("a", "vec, 2x8xi32", np.arange(16).reshape(2, 8))
    bench.tile("d", "vec, 2x8xi32", valid=(2, 6))
    bench.scalar("s", "i32", -7)
    bench.run("pto.tsels ins(%m, %a, %d, %s : {m}, {a}, {d}, i32) outs(%d : {d})")
    assert bench["d"][:, :6].tolist() == [[-7, 1, 2, -7, -7, -7], [-7, 9, 10, -7, -7, -7]]
    assert untouched(bench["d"], 2, 6)


def test_what_tcmp_writes_tsel_reads():
    a, b = RNG.standard_normal((2, 7, 96)).astype(np.float32)
    bench = Bench("a5")
    bench.tile("a", "vec, 7x96xf32", a)
    bench.tile("b", "vec, 7x96xf32", b)
    bench.tile("m", "vec, 7x32xui8")
    bench.tile("d", "vec, 7x96xf32")
    bench.run(
        "pto.tcmp ins(%a, %b {cmpMode = #pto<cmp gt>} : {a}, {b}) outs(%m : {m})\n"
        "pto.tsel ins(%m, %a, %b, %d : {m}, {a}, {b}, {d}) outs(%d : {d})"
    )
    assert (bench["d"] == np.maximum(a, b)).all()


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_scalars_of_another_type_are_converted_first(profile: str):
    """0.1 of f32 is 0.0999755859375 in f16; 70000 of i32 has the low bits of 4464."""
    for dtype, row, scalar, want in (
        ("f16", [0.0999755859375, 0.1001, 0.0, 1.0] * 16, ("f32", 0.1), [True, False] * 2),
        ("i16", [4464, 0, 4464, 1] * 16, ("i32", 70000), [True, False] * 2),
    ):
        bench = Bench(profile)
        values = np.asarray([row], KINDS[dtype])
        bench.tile("a", f"vec, 1x64x{dtype}", values)
        bench.tile("m", "vec, 1x32xui8")
        bench.scalar("c", *scalar)
        bench.run("pto.tcmps ins(%a, %c : {a}, {c}) outs(%m : {m})")
        equal = (values == np.float16(0.1)) if dtype == "f16" else (values == 4464)
        assert unpacked(bench["m"], 64) == equal.tolist()
        assert equal[0, :2].tolist() == want[:2]


def test_the_number_of_a_selection_is_converted_too():
    bench = Bench("a5")
    bench.tile("m", "vec, 1x32xui8", np.full((1, 32), 0b10, np.uint8))
    bench.tile("a", "vec, 1x16xf16", np.arange(16, dtype=np.float16)[None, :])
    bench.tile("d", "vec, 1x16xf16")
    bench.scalar("c", "f32", 0.1)
    bench.run("pto.tsels ins(%m, %a, %a, %c : {m}, {a}, {a}, {c}) outs(%d : {d})")
    want = [1.0 if j == 1 else 9.0 if j == 9 else 0.0999755859375 for j in range(16)]
    assert bench["d"][0].tolist() == want


@pytest.mark.parametrize("mask", ["i16", "ui64", "f16", "f32"])
def test_a5_compares_with_a_number_into_a_tile_of_any_type(mask: str):
    """The bits of 64 comparisons are 16 bytes of one stream: 8 of them count."""
    values = np.arange(64, dtype=np.float32)[None, :]
    bench = Bench("a5")
    bench.tile("a", "vec, 1x64xf32", values)
    bench.tile("m", f"vec, 1x32x{mask}")
    bench.scalar("c", "f32", 40.0)
    bench.run("pto.tcmps ins(%a, %c {cmpMode = #pto<cmp lt>} : {a}, {c}) outs(%m : {m})")
    stream = np.packbits(values[0] < 40, bitorder="little")
    assert np.ascontiguousarray(bench["m"]).view(np.uint8)[0, :8].tolist() == stream.tolist()
