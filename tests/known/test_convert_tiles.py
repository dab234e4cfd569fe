"""tcvt and tpack: rounding modes, what saturates by default on which profile, packed columns."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.isa.tile.convert import CONVERSIONS
from pto.target import profile as find_profile
from pto.verify import verify
from tests.known import oracle
from tests.known.rows import INF, KINDS, NAN, bits, same, untouched
from tests.machine import Bench

TEXT = {
    "u8": "ui8",
    "u16": "ui16",
    "u32": "ui32",
    "f8e4m3": "f8E4M3FN",
    "f8e5m2": "f8E5M2",
    "hifloat8": "!pto.hif8",
    "float4_e1m2x2": "!pto.f4E1M2x2",
    "float4_e2m1x2": "!pto.f4E2M1x2",
    "i4x2": "i4",
}


def convert(
    src: str,
    dst: str,
    row: Any,
    rmode: str = "",
    sat: str = "",
    profile: str = "a5",
    tmp: bool = False,
) -> Any:
    """One row converted; packed types are given and found as bytes."""
    values = np.asarray(row)[None, :]
    cols = values.shape[1] * (1 + src.endswith("x2")) // (1 + dst.endswith("x2"))
    bench = Bench(profile)
    bench.tile("a", f"vec, 1x{values.shape[1]}x{TEXT.get(src, src)}", values)
    bench.tile("d", f"vec, 1x{cols}x{TEXT.get(dst, dst)}")
    names = [f"rmode = #pto<round_mode {rmode}>"] if rmode else []
    names += [f"sat_mode = #pto<saturation_mode {sat}>"] if sat else []
    attrs = f" {{{', '.join(names)}}}" if names else ""
    if tmp:
        bench.tile("t", "vec, 1x256xui8")
        bench.run(f"pto.tcvt ins(%a, %t{attrs} : {{a}}, {{t}}) outs(%d : {{d}})")
    else:
        bench.run(f"pto.tcvt ins(%a{attrs} : {{a}}) outs(%d : {{d}})")
    return bench["d"][0]


HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6, -2.6, 3.0]


@pytest.mark.parametrize("rmode", ["NONE", *oracle.MODES, "CAST_RINT"])
def test_each_rounding_mode_to_integers(rmode: str):
    mode = {"NONE": "TRUNC", "CAST_RINT": "RINT"}.get(rmode, rmode)
    want = [oracle.round_fraction(Fraction(x), mode) for x in HALVES]
    assert convert("f32", "i32", HALVES, rmode).tolist() == want
    assert convert("f16", "i32", HALVES, rmode).tolist() == [
        oracle.round_fraction(Fraction(float(np.float16(x))), mode) for x in HALVES
    ]


@pytest.mark.parametrize("rmode", oracle.MODES)
def test_each_rounding_mode_between_floats(rmode: str):
    rng = np.random.default_rng(11)
    x = (rng.standard_normal(300) * 10.0 ** rng.integers(-6, 4, 300)).astype(np.float32)
    for dst in ("f16", "bf16"):
        want = oracle.rounded(dst, x.astype(np.float64), rmode, True)
        assert convert("f32", dst, x, rmode).astype(np.float64).tolist() == want.tolist()


@pytest.mark.parametrize("rmode", oracle.MODES)
def test_f32_to_f32_rounds_to_integral_values(rmode: str):
    row = [*HALVES, INF, -INF, NAN, 1e30, -0.0]
    want = [float(oracle.round_fraction(Fraction(x), rmode)) for x in HALVES]
    found = convert("f32", "f32", row, rmode, profile="cpu")
    if rmode != "ODD":  # no NPU rounds f32 to odd integral values
        assert same(convert("f32", "f32", row, rmode), found)
    assert found[: len(HALVES)].tolist() == want
    assert same(found[len(HALVES) :], np.float32([INF, -INF, NAN, 1e30, -0.0]))


def test_the_default_is_nearest_even():
    assert convert("f32", "i32", [0.5, 1.5, 2.5, -2.5]).tolist() == [0, 2, 2, -2]
    assert convert("f32", "f32", [0.5, 1.5]).tolist() == [0.0, 2.0]
    assert convert("f32", "f16", [1 + 2**-11, 1 + 3 * 2**-11]).tolist() == [1, 1 + 2**-9]


@pytest.mark.parametrize("rmode", ["", "RINT", "ROUND", "TRUNC"])
def test_into_hifloat8_ties_go_away_from_zero_whatever_the_mode(rmode: str):
    x = np.float32([17.0, -17.0, 18.9, 1.0625, 3e4, 1e9])  # steps of 2 from 16 on, of 0.125 from 1
    want = oracle.rounded("hifloat8", x.astype(np.float64), "ROUND", False)
    found = oracle.values_of_codes("hifloat8")[convert("f32", "hifloat8", x, rmode, "ON")]
    assert found.tolist() == want.tolist()


@pytest.mark.parametrize("src", ["f32", "f16"])
def test_hifloat8_keeps_infinities_and_nan_whatever_satmode_says(src: str):
    x = np.array([np.nan, np.inf, -np.inf, 60000.0], np.float32 if src == "f32" else np.float16)
    for sat in ("", "OFF", "ON"):
        assert convert(src, "hifloat8", x, sat=sat).tolist() == [0x80, 0x6F, 0xEF, 0x6F]


# Pairs without the mode: the default of the header is toward zero into integers, to nearest even
# elsewhere (npu/a2a3/TCvt.hpp: `default:` of each switch; npu/a5/TCvt.hpp: ROUND_R of f8).
ABSENT = [
    *(("a2a3", "f32", dst, "ODD") for dst in ("bf16", "f32", "i16", "i32", "i64")),
    *(("a2a3", "f16", dst, "ODD") for dst in ("i8", "u8", "i16", "i32")),
    *(("a2a3", *pair, "ODD") for pair in (("bf16", "i32"), ("i32", "f32"), ("i64", "f32"))),
    *(("a2a3", "i32", "f16", mode) for mode in ("ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")),
    *(("a5", "f32", f8, m) for f8 in ("f8e4m3", "f8e5m2") for m in ("FLOOR", "CEIL", "ODD")),
    ("a5", "f32", "f32", "ODD"),
    ("a5", "bf16", "float4_e2m1x2", "ODD"),
]  # fmt: skip


@pytest.mark.parametrize(("profile", "src", "dst", "rmode"), ABSENT)
def test_a_mode_that_a_pair_lacks_is_its_default(profile: str, src: str, dst: str, rmode: str):
    if src.startswith("i"):
        x = np.array([2051, 2049, -2051, 2**24 + 1, 2**24 + 3, -(2**24) - 1], KINDS[src])
        x = x[:3] if dst == "f16" else x
    else:
        x = np.float64([2.5, -2.5, 3.75, 17.3, -1.0625, 5.0, 0.3, 100.8]).astype(KINDS[src])
    exact = [Fraction(float(v)) if src in oracle.OUTSIDE else Fraction(int(v)) for v in x]
    found = convert(src, dst, x, rmode, profile=profile)
    if dst in LIMITS:
        whole = [oracle.round_fraction(v, "TRUNC") for v in exact]
        assert found.tolist() == [v % 256 if dst == "u8" else v for v in whole]
    elif dst == "f32":
        want = [float(oracle.round_fraction(v, "RINT")) for v in exact]
        if src.startswith("i"):
            want = np.array([int(v) for v in exact], np.int64).astype(np.float32).tolist()
        assert found.tolist() == want
    elif dst == "float4_e2m1x2":
        want = np.asarray(x, np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        assert found.tolist() == [
            int(a | b << 4) for a, b in zip(want[::2], want[1::2], strict=True)
        ]
    else:
        kind = oracle.OUTSIDE[dst]
        want = np.float64([float(v) for v in exact]).astype(kind)
        assert found.astype(np.float64).tolist() == want.astype(np.float64).tolist()


@pytest.mark.parametrize(("profile", "src", "dst", "rmode"), ABSENT)
def test_a_mode_that_a_pair_lacks_is_a_warning(profile: str, src: str, dst: str, rmode: str):
    assert codes_of(profile, src, dst, rmode) == ["PTO-T046"]
    assert codes_of(profile, src, dst, "RINT") == []
    assert "PTO-T046" not in codes_of("cpu", src, dst, rmode)


@pytest.mark.parametrize(
    ("src", "dst", "rmode", "codes"),
    [
        ("f32", "bf16", "ODD", ["PTO-L066"]),  # a5/TCvt.hpp takes the default, PTOAS rounds to odd
        ("i32", "f32", "ODD", ["PTO-L066"]),
        ("f32", "f8e4m3", "TRUNC", ["PTO-L066"]),
        ("f32", "f16", "ODD", []),  # both have it
        ("f16", "f32", "ODD", []),  # exact: nothing is rounded
        ("u8", "f16", "FLOOR", []),
        ("i32", "i16", "ODD", []),
    ],
)
def test_modes_of_which_the_sources_of_a5_disagree(
    src: str, dst: str, rmode: str, codes: list[str]
):
    assert codes_of("a5", src, dst, rmode) == codes


def codes_of(profile: str, src: str, dst: str, rmode: str) -> list[str]:
    items = 1 + dst.endswith("x2")
    a, d = TEXT.get(src, src), TEXT.get(dst, dst)
    source, target = f"!pto.tile_buf<vec, 4x64x{a}>", f"!pto.tile_buf<vec, 4x{64 // items}x{d}>"
    module = parse(
        f"func.func @f(%a: {source}, %d: {target}) {{ pto.tcvt"
        f" ins(%a {{rmode = #pto<round_mode {rmode}>}} : {source}) outs(%d : {target}) return }}"
    )
    return [found.code for found in verify(module, find_profile(profile))]


# ---- saturation

CUT = {("f32", "i16"), ("f16", "i8"), ("f16", "u8"), ("f16", "i16"), ("i64", "i32"), ("i32", "i16")}
LIMITS = {
    "i8": (-128, 127), "u8": (0, 255), "i16": (-(2**15), 2**15 - 1), "u16": (0, 2**16 - 1),
    "i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "i64": (-(2**63), 2**63 - 1),
}  # fmt: skip
TO_INTEGERS = sorted(
    {(src, dst) for src, names in CONVERSIONS["a5"].items() for dst in names.split()
     if dst in LIMITS and src in {**LIMITS, "f16": 0, "f32": 0, "bf16": 0}}
)  # fmt: skip


def numbers(src: str) -> Any:
    """Values that leave most ranges, exactly representable in the source."""
    if src in LIMITS:
        low, high = LIMITS[src]
        picks = [0, 1, 127, 128, 255, 256, 300, 32767, 32768, 65536, 70000, 2**31, 2**40 + 5]
        kept = [x for p in picks for x in (p, -p) if low <= x <= high]
        return np.array([low, high, *kept], KINDS[TEXT.get(src, src)])
    return np.float64([0, 1, -1, 200, -200, 300, -300, 40000, -40000]).astype(KINDS[src])


@pytest.mark.parametrize(("src", "dst"), TO_INTEGERS)
@pytest.mark.parametrize("sat", ["", "ON", "OFF"])
def test_saturation_of_each_pair_on_a5(src: str, dst: str, sat: str):
    x = numbers(src)
    low, high = LIMITS[dst]
    cut = sat == "OFF" or (sat == "" and (src, dst) in CUT)
    width = np.dtype(KINDS[TEXT.get(dst, dst)]).itemsize * 8
    exact = [int(v) for v in x.tolist()]
    want = [oracle.wrap(v, width, low < 0) if cut else min(max(v, low), high) for v in exact]
    assert convert(src, dst, x, sat=sat).tolist() == want


def test_specials_to_integers():
    row = [INF, -INF, NAN]
    assert convert("f32", "i32", row).tolist() == [2**31 - 1, -(2**31), 0]
    assert convert("f16", "u8", row, sat="ON").tolist() == [255, 0, 0]
    assert convert("f32", "i16", row).tolist() == [-1, 0, 0]  # low bits of the clamped i32


def test_floats_saturate_by_default_and_overflow_without():
    row = [1e6, -1e6, 65519, 65520, INF, -INF]
    assert convert("f32", "f16", row).tolist() == [65504, -65504, 65504, 65504, 65504, -65504]
    assert convert("f32", "f16", row, sat="OFF").tolist() == [INF, -INF, 65504, INF, INF, -INF]
    assert same(convert("f32", "f16", [NAN], sat="OFF"), np.float16([NAN]))
    assert convert("f32", "f8e4m3", [1e6, -500.0]).astype(np.float32).tolist() == [448, -448]


def test_cpu_cuts_every_pair_by_default():
    assert convert("f32", "i32", [3e9], profile="cpu").tolist() == [3000000000 - 2**32]
    assert convert("f32", "f16", [1e6], profile="cpu").tolist() == [INF]
    assert convert("f32", "i32", [3e9], sat="ON", profile="cpu").tolist() == [2**31 - 1]


def test_a2a3_without_tmp_cuts_only_the_pairs_it_cuts_by_default():
    assert convert("f16", "i8", [300], sat="OFF", profile="a2a3").tolist() == [44]
    assert convert("f32", "i32", [3e9], sat="OFF", profile="a2a3").tolist() == [2**31 - 1]
    found = convert("f32", "i32", [3e9], sat="OFF", profile="a2a3", tmp=True)
    assert found.tolist() == [3000000000 - 2**32]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("sat", ["ON", "OFF"])
def test_integers_of_one_width_saturate_by_the_sign_of_their_source(
    bits: int, signed: bool, sat: str
):
    """cpu alone has such pairs: TCvt.hpp of cpu clamps to the range of the destination."""
    src, dst = (f"i{bits}", f"u{bits}") if signed else (f"u{bits}", f"i{bits}")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = [low, high, 1, high // 3 * 2, low // 3]
    least, most = (0, 2**bits - 1) if signed else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    want = [
        min(max(v, least), most) if sat == "ON" else oracle.wrap(v, bits, not signed)
        for v in values
    ]
    names = {"u64": "ui64"} | TEXT
    row = np.array([values], np.dtype(f"{'i' if signed else 'u'}{bits // 8}"))
    for engine in ("reference", "jit"):
        found = np.zeros_like(row.view(f"{'u' if signed else 'i'}{bits // 8}"))
        program = _same_width(names.get(src, src), names.get(dst, dst), sat)
        pto.launch(pto.parse(program), args=[row, found], engine=engine)
        assert found[0].tolist() == want, engine


def _same_width(src: str, dst: str, sat: str) -> str:
    """A program that converts a row of five elements."""
    views = "".join(
        f"%v{at} = pto.make_tensor_view %{at}, shape = [%c1, %c5], strides = [%c5, %c1]"
        f" : !pto.tensor_view<1x5x{kind}>\n"
        f"%p{at} = pto.partition_view %v{at}, offsets = [%c0, %c0], sizes = [%c1, %c5]"
        f" : !pto.tensor_view<1x5x{kind}> -> !pto.partition_tensor_view<1x5x{kind}>\n"
        f"%t{at} = pto.alloc_tile : !pto.tile_buf<vec, 1x32x{kind}, valid=1x5>\n"
        for at, kind in (("x", src), ("y", dst))
    )
    tile, into = (f"!pto.tile_buf<vec, 1x32x{kind}, valid=1x5>" for kind in (src, dst))
    return f"""
module attributes {{pto.target_arch = "cpu"}} {{
  func.func @f(%x: !pto.ptr<{src}>, %y: !pto.ptr<{dst}>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    {views}
    pto.tload ins(%px : !pto.partition_tensor_view<1x5x{src}>) outs(%tx : {tile})
    pto.tcvt ins(%tx {{satmode = #pto<saturation_mode {sat}>}} : {tile}) outs(%ty : {into})
    pto.tstore ins(%ty : {into}) outs(%py : !pto.partition_tensor_view<1x5x{dst}>)
    return
  }}
}}
"""


def test_f32_to_i16_in_tmp_goes_through_a_saturated_i32():
    """npu/a2a3/TCvt.hpp: to i32 with saturation, whose low 16 bits are kept."""
    row = [3e9, -3e9, 2**31 - 128, -(2.0**31), 70000.0, -70000.0, 2**33 + 5 * 2**10, INF, -INF, NAN]
    clamped = [min(max(int(x), -(2**31)), 2**31 - 1) for x in row[:7]]
    want = [oracle.wrap(x, 16, True) for x in clamped] + [-1, 0, 0]
    for sat in ("", "OFF"):
        assert convert("f32", "i16", row, sat=sat, profile="a2a3", tmp=True).tolist() == want
    found = convert("f32", "i16", row, sat="ON", profile="a2a3", tmp=True)
    assert found.tolist() == [min(max(x, -(2**15)), 2**15 - 1) for x in clamped] + [
        2**15 - 1, -(2**15), 0]  # fmt: skip


# ---- widening is exact, packed types count pairs


@pytest.mark.parametrize("src", ["f8e4m3", "f8e5m2", "hifloat8"])
def test_every_byte_of_an_eight_bit_float_widens_exactly(src: str):
    codes = np.arange(256, dtype=np.uint8)
    held = codes if src == "hifloat8" else codes.view(oracle.OUTSIDE[src])
    found = convert(src, "f32", held).astype(np.float64)
    want = oracle.values_of_codes(src)
    assert np.array_equal(found, want, equal_nan=True)


def test_pairs_of_four_bit_floats():
    row = np.array([0.5, -1.5, 6, 7, -0.26, 0.25, 2.5, 3.5], ml_dtypes.bfloat16)
    found = convert("bf16", "float4_e2m1x2", row)
    want = row.astype(np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert found.tolist() == [int(a | b << 4) for a, b in zip(want[::2], want[1::2], strict=True)]
    back = convert("float4_e2m1x2", "bf16", found)
    assert back.astype(np.float32).tolist() == [0.5, -1.5, 6, 6, -0.5, 0, 2, 4]


def test_pairs_of_four_bit_integers():
    found = convert("f16", "i4x2", [1.4, -8, 7, 9], profile="a2a3")
    assert found.tolist() == [0x81, 0x77]
    assert convert("i4x2", "f16", found, profile="a2a3").tolist() == [1, -8, 7, 7]


def test_an_odd_column_of_bf16_takes_half_a_pair():
    bench = Bench("a5")
    bench.tile("a", "vec, 2x32x!pto.f4E2M1x2", np.full((2, 32), 0x42, np.uint8))
    bench.tile("d", "vec, 2x64xbf16", valid=(2, 5))
    bench.run("pto.tcvt ins(%a : {a}) outs(%d : {d})")
    assert bench["d"][0, :5].astype(np.float32).tolist() == [1, 2, 1, 2, 1]
    assert untouched(bench["d"], 2, 5)


def test_only_the_valid_region_is_converted():
    bench = Bench("a5")
    bench.tile("a", "vec, 8x32xf32", np.full((8, 32), 2.5))
    bench.tile("d", "vec, 8x32xi8", valid=(3, 9))
    bench.run("pto.tcvt ins(%a {rmode = #pto<round_mode CEIL>} : {a}) outs(%d : {d})")
    assert (bench["d"][:3, :9] == 3).all() and untouched(bench["d"], 3, 9)


def test_boxed_tiles_on_cpu():
    values = np.arange(512).reshape(16, 32) - 100.5
    bench = Bench("cpu")
    bench.tile("a", "vec, 16x32xf32, blayout=col_major, slayout=row_major", values)
    bench.tile("d", "vec, 16x32xi16, slayout=row_major")
    bench.run("pto.tcvt ins(%a {rmode = #pto<round_mode FLOOR>} : {a}) outs(%d : {d})")
    assert (bench["d"] == np.floor(values)).all()


# ---- packing


@pytest.mark.parametrize(
    ("src", "dst"), [("i32", "i16"), ("i32", "ui8"), ("ui16", "i8"), ("i32", "i8")]
)
def test_packing_keeps_the_low_bits_of_integers(src: str, dst: str):
    values = [1, -2 if src[0] == "i" else 9, 300, 255, 128, 32767]
    bench = Bench("a5")
    bench.tile("a", f"vec, 2x8x{src}", [values, values[::-1]])
    bench.tile("d", f"vec, 2x8x{dst}", valid=(2, 6))
    bench.run("pto.tpack ins(%a : {a}) outs(%d : {d})")
    width = np.dtype(KINDS[dst]).itemsize * 8
    want = [oracle.wrap(v, width, dst[0] == "i") for v in values]
    assert bench["d"][:, :6].tolist() == [want, want[::-1]] and untouched(bench["d"], 2, 6)


def test_packing_of_floats_is_not_defined():
    bench = Bench("a5")
    bench.tile("a", "vec, 2x16xf32")
    bench.tile("d", "vec, 2x16xf16")
    with pytest.raises(PtoError, match="from f32 to f16") as caught:
        bench.run("pto.tpack ins(%a : {a}) outs(%d : {d})")
    assert caught.value.diagnostics[0].code == "PTO-T152"


def test_bits_of_converted_nan_are_the_quiet_one():
    assert bits(convert("f16", "f32", np.array([0xFE01], np.uint16).view(np.float16))) == [
        0x7FC00000
    ]
