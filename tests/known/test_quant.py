"""Quantisation: per row by hand, and groups of 32 by a plain loop over the published formulas."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.rows import INF, KINDS, NAN, untouched
from tests.machine import Bench

RNG = np.random.default_rng(31)
COLUMN = ", blayout=col_major"


def quantise(values: Any, scale: Any, offset: Any = None, to: str = "", valid: Any = None) -> Any:
    values = np.asarray(values, np.float32)
    rows, cols = values.shape
    to = to or ("i8" if offset is None else "ui8")
    kind = "INT8_SYM" if offset is None else "INT8_ASYM"
    bench = Bench("a5")
    bench.tile("a", f"vec, {rows}x{cols}xf32", values)
    bench.tile("s", f"vec, {len(scale)}x1xf32{COLUMN}", np.float32(scale)[:, None])
    bench.tile("d", f"vec, {rows}x{cols}x{to}", valid=valid)
    names, types = "%a, %s", "{a}, {s}"
    if offset is not None:
        bench.tile("o", f"vec, {len(offset)}x1xf32{COLUMN}", np.float32(offset)[:, None])
        names, types = names + ", %o", types + ", {o}"
    attrs = f"{{quant_type = #pto<quant_type {kind}>}}"
    bench.run(f"pto.tquant ins({names} : {types}) outs(%d : {{d}}) {attrs}")
    return bench["d"]


def test_symmetric_multiplies_rounds_to_even_and_saturates():
    x = [[1, 3, 5, -1, -3, 1000, -1000, 0.9], [1, 2, 3, 4, 5, 6, 7, 8]]
    assert quantise(x, [0.5, 10]).tolist() == [
        [0, 2, 2, 0, -2, 127, -128, 0],
        [10, 20, 30, 40, 50, 60, 70, 80],
    ]


def test_asymmetric_adds_the_offset_before_rounding():
    x = [[1, 3, 5, -1, -300, 1000, 0.25, 7]]
    assert quantise(x, [0.5], [0.5]).tolist() == [[1, 2, 3, 0, 0, 255, 1, 4]]


def test_specials():
    assert quantise([[INF, -INF, NAN, -0.0]], [1]).tolist() == [[127, -128, 0, 0]]
    assert quantise([[INF, -INF, NAN, -0.0]], [1], [0]).tolist() == [[255, 0, 0, 0]]


def test_signed_bytes_hold_the_unsigned_result_bit_by_bit():
    assert quantise([[200.0, 300.0]], [1], [0], to="i8").tolist() == [[-56, -1]]


def by_scale_tile(profile: str, scales: str, values: Any, valid: Any = None) -> Any:
    """Ones of 16x32 (on other profiles the region `valid`), scaled by this tile of scales."""
    bench = Bench(profile)
    bench.tile("a", "vec, 16x32xf32", np.ones((16, 32)))
    bench.tile("s", f"vec, {scales}", np.float32(values), valid=valid)
    bench.tile("d", "vec, 16x32xi8", valid=(16, 5))
    bench.run(
        "pto.tquant ins(%a, %s : {a}, {s}) outs(%d : {d}) {quant_type = #pto<quant_type INT8_SYM>}"
    )
    assert untouched(bench["d"], 16, 5)
    return bench["d"][:, :5]


@pytest.mark.parametrize("scales", ["16x8xf32", "1x16xf32", "8x8xf32", f"16x1xf32{COLUMN}"])
def test_a5_reads_word_i_of_the_scales_for_row_i(scales: str):
    """npu/a5/TQuant.hpp: vlds(v_scale, scalePtr, row, BRC_B32), whatever the layout is."""
    rows, cols = (int(n) for n in scales.split("xf32")[0].split("x"))
    words = np.arange(rows * cols).reshape(rows, cols) % 100
    want = np.repeat(np.arange(16)[:, None], 5, axis=1)
    assert by_scale_tile("a5", scales, words).tolist() == want.tolist()


def test_cpu_reads_the_first_column_and_repeats_its_last_row():
    """cpu/TQuant.hpp."""
    words = np.arange(64).reshape(8, 8)
    want = np.repeat([[8 * min(i, 7)] for i in range(16)], 5, axis=1)
    assert by_scale_tile("cpu", "8x8xf32", words).tolist() == want.tolist()
    want = np.repeat([[8 * min(i, 2)] for i in range(16)], 5, axis=1)
    assert by_scale_tile("cpu", "8x8xf32", words, (3, 8)).tolist() == want.tolist()


def test_a5_refuses_fewer_words_than_rows():
    with pytest.raises(PtoError) as caught:
        by_scale_tile("a5", "1x8xf32", np.ones((1, 8)))
    assert caught.value.code == "PTO-S041"


def test_cpu_refuses_a_scale_without_rows():
    with pytest.raises(PtoError, match="has no valid rows"):
        by_scale_tile("cpu", f"8x1xf32{COLUMN}", np.ones((8, 1)), (0, 1))


@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_dequantisation_centres_and_scales(dtype: str):
    bench = Bench("a5")
    bench.tile("a", f"vec, 2x32x{dtype}", np.tile([-128, 127, 0, 5], (2, 8)))
    bench.tile("s", f"vec, 2x1xf32{COLUMN}", [[0.5], [0.25]])
    bench.tile("o", f"vec, 2x1xf32{COLUMN}", [[-1], [3]])
    bench.tile("d", "vec, 2x32xf32", valid=(2, 4))
    bench.run("pto.tdequant ins(%a, %s, %o : {a}, {s}, {o}) outs(%d : {d})")
    assert bench["d"][:, :4].tolist() == [[-63.5, 64, 0.5, 3], [-32.75, 31, -0.75, 0.5]]
    assert untouched(bench["d"], 2, 4)


# ---- groups of 32


def exponent(greatest: float, kind: str, alg: str) -> int:
    """TQUANT.md and tquant/gen_data.py of pto-isa, in plain arithmetic for normal numbers."""
    if math.isnan(greatest):
        return 0xFF
    if alg == "OCP":
        field = 255 if math.isinf(greatest) else math.frexp(greatest)[1] - 1 + 127
        return max(field - (8 if kind == "MXFP8" else 2), 0) if greatest else 0
    if greatest == 0:
        return 0
    descale = float(np.float32(greatest) * np.float32(1 / (448 if kind == "MXFP8" else 6)))
    if math.isinf(descale):
        return 0xFE
    mantissa, power = math.frexp(descale)
    return power - 1 + 127 + (mantissa > 0.5)


def expected(group: Any, kind: str, alg: str) -> tuple[int, list[int]]:
    wide = group.astype(np.float64)
    e = exponent(float(np.max(np.abs(wide))), kind, alg)
    scaled = np.float32(wide * 2.0 ** (127 - e) if e != 0xFF else np.full(32, np.nan))
    if kind == "MXFP8":
        with np.errstate(invalid="ignore"):
            codes = np.clip(scaled, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        return e, np.where(np.isnan(scaled), 0x7F, codes).tolist()
    codes = np.clip(scaled, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return e, np.where(np.isnan(scaled), 7, codes & 15).tolist()


def groups(kind: str, src: str, x: Any, **attrs: str) -> Bench:
    """Runs tquant.mx on x with flat tiles for one value a group."""
    rows, cols = x.shape
    count = rows * cols // 32
    flat = -(-count // 32) * 32
    bench = Bench("a5")
    bench.tile("a", f"vec, {rows}x{cols}x{src}", x)
    packed = kind != "MXFP8"
    to = f"{cols // 2}x!pto.f4E2M1x2" if packed else f"{cols}xf8E4M3FN"
    bench.tile("d", f"vec, {rows}x{to}")
    bench.tile("e", f"vec, 1x{flat}xui8")
    bench.tile("m", f"vec, 1x{flat}xf32")
    bench.tile("f", f"vec, 1x{flat}xf32")
    bench.tile("z", f"vec, 1x{flat}xui8")
    words = ", ".join(
        [f"quant_type = #pto<quant_type {kind}>", *(f"{k} = {v}" for k, v in attrs.items())]
    )
    outs = "%d, %e, %m, %f : {d}, {e}, {m}, {f}"
    if "store_mode" in attrs:
        outs = "%d, %e, %m, %f, %z : {d}, {e}, {m}, {f}, {z}"
    bench.run(f"pto.tquant.mx ins(%a : {{a}}) outs({outs}) {{{words}}}")
    return bench


def sample(src: str, rows: int, cols: int) -> Any:
    x = RNG.standard_normal((rows, cols)) * 10.0 ** RNG.integers(-3, 4, (rows, 1))
    x[0] = 0
    x[1, 5], x[2, 7], x[3] = INF, NAN, 3.5 * 2.0 ** RNG.integers(-3, 3, cols)
    return x.astype(KINDS[src])


@pytest.mark.parametrize("src", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("alg", ["OCP", "NV"])
@pytest.mark.parametrize("kind", ["MXFP8", "MXFP4_E2M1"])
def test_groups_along_a_row_share_an_exponent(kind: str, alg: str, src: str):
    x = sample(src, 6, 96)
    bench = groups(kind, src, x, scale_alg=f'"{alg}"')
    wants = [expected(x[i, 32 * g : 32 * g + 32], kind, alg) for i in range(6) for g in range(3)]
    assert bench["e"][0, :18].tolist() == [e for e, _ in wants]
    data = bench["d"].view(np.uint8)
    if kind != "MXFP8":
        data = np.stack([data & 15, data >> 4], axis=-1).reshape(6, 96)
    assert data.reshape(18, 32).tolist() == [codes for _, codes in wants]


def test_values_of_a_group_by_hand():
    x = np.zeros((1, 32), np.float32)
    x[0, :4] = [12.0, -3.0, 0.75, 1e-9]
    bench = groups("MXFP8", "f32", x)
    # 12 = 1.5 * 2**3: exponent field 130, less 8 is 122, so data is scaled by 2**5
    assert bench["e"][0, 0] == 122
    assert bench["m"][0, 0] == 12 and bench["f"][0, 0] == 32
    assert bench["d"][0, :4].astype(np.float32).tolist() == [384, -96, 24, 0]


def test_groups_along_a_column():
    x = sample("f32", 64, 8)
    bench = groups("MXFP8", "f32", x, grp_axis="0")
    wants = [
        [expected(x[32 * g : 32 * g + 32, j], "MXFP8", "OCP") for j in range(8)] for g in (0, 1)
    ]
    assert bench["e"][0, :16].tolist() == [e for line in wants for e, _ in line]
    data = bench["d"].view(np.uint8)
    for g in (0, 1):
        for j in range(8):
            assert data[32 * g : 32 * g + 32, j].tolist() == wants[g][j][1]


def test_interleaved_exponents_of_two_row_groups():
    x = np.abs(sample("f32", 64, 8)) + 1
    plain = groups("MXFP8", "f32", x, grp_axis="0")["e"][0, :16].reshape(2, 8)
    found = groups("MXFP8", "f32", x, grp_axis="0", interleave="true")["e"][0, :16]
    assert found.tolist() == [int(plain[k, j]) for j in range(8) for k in (0, 1)]


def test_zigzag_exponents_are_boxes_of_16_by_2():
    x = np.float32(2.0) ** np.arange(32 * 4).reshape(32, 4).repeat(32, axis=1)
    bench = groups("MXFP8", "f32", x, store_mode='"NZ"')
    plain = bench["e"][0, :128].reshape(32, 4)
    want = [
        int(plain[16 * rb + r, 2 * gb + g])
        for rb in (0, 1) for gb in (0, 1) for r in range(16) for g in (0, 1)
    ]  # fmt: skip
    assert bench["z"][0, :128].tolist() == want


def test_exponents_at_their_element_where_the_tile_has_the_region_of_the_groups():
    x = sample("f32", 6, 64)
    bench = Bench("a5")
    bench.tile("a", "vec, 6x64xf32", x)
    bench.tile("d", "vec, 6x64xui8")
    bench.tile("e", "vec, 6x32xui8", valid=(6, 2))
    bench.tile("m", "vec, 6x8xf32", valid=(6, 2))
    bench.run(
        "pto.tquant.mx ins(%a : {a}) outs(%d, %e, %m, %m : {d}, {e}, {m}, {m})"
        " {quant_type = #pto<quant_type MXFP8>}"
    )
    want = [
        [expected(x[i, 32 * g : 32 * g + 32], "MXFP8", "OCP")[0] for g in (0, 1)] for i in range(6)
    ]
    assert bench["e"][:, :2].tolist() == want and untouched(bench["e"], 6, 2)


def test_a_short_last_group_ends_in_zeros():
    x = np.full((2, 64), 3.0)
    bench = Bench("a5")
    bench.tile("a", "vec, 2x64xf32", x, valid=(2, 40))
    bench.tile("d", "vec, 2x64xf8E4M3FN", valid=(2, 40))
    bench.tile("e", "vec, 1x32xui8")
    bench.tile("m", "vec, 1x32xf32")
    bench.run(
        "pto.tquant.mx ins(%a : {a}) outs(%d, %e, %m, %m : {d}, {e}, {m}, {m})"
        " {quant_type = #pto<quant_type MXFP8>}"
    )
    assert bench["e"][0, :4].tolist() == [120] * 4
    assert (bench["d"][:, :40].astype(np.float32) == 384).all() and untouched(bench["d"], 2, 40)


def test_too_little_room_for_the_exponents_is_refused_before_anything_is_written():
    bench = Bench("a5")
    bench.tile("a", "vec, 64x64xf32", np.ones((64, 64)))
    bench.tile("d", "vec, 64x64xf8E4M3FN")
    bench.tile("e", "vec, 1x32xui8")
    bench.tile("m", "vec, 1x128xf32")
    with pytest.raises(PtoError, match="room for 32 values, not 128"):
        bench.run(
            "pto.tquant.mx ins(%a : {a}) outs(%d, %e, %m, %m : {d}, {e}, {m}, {m})"
            " {quant_type = #pto<quant_type MXFP8>}"
        )
    assert untouched(bench["d"], 0, 0) and untouched(bench["m"], 0, 0)
