"""vcvt: which lanes, how they round and saturate; vtrc and vbitcast."""

import ml_dtypes
import numpy as np
import pytest

from pto.core.convert import convert
from pto.core.dtypes import dtype
from pto.core.floats import Round
from pto.ir.text.parser import parse
from pto.isa.meaning.vector.shortcut import converter
from pto.target import profile
from pto.verify import verify
from tests.known import oracle
from tests.vectors import Registers, reg

INF, NAN = np.inf, np.nan
BF16 = ml_dtypes.bfloat16


def converted(src, dst, values, attrs, lanes=None):
    bench = Registers()
    bench.vreg("a", src, values)
    bench.mask("m", min(8 * dtype(src).itemsize, 32), lanes)
    return bench.one(f"%r = pto.vcvt %a, %m {{{attrs}}} : {{a}}, {{m}} -> {reg(dst)}", reg(dst))


NARROW = 'rnd = "R", sat = "SAT", part = "{}"'


@pytest.mark.parametrize("part, at", [("EVEN", 0), ("ODD", 1)])
def test_narrowing_fills_every_second_lane(part, at):
    got = converted("f32", "f16", np.arange(64), NARROW.format(part))
    assert got[at::2].tolist() == list(range(64))
    assert got[1 - at :: 2].tobytes() == bytes(128)


@pytest.mark.parametrize("p", range(4))
def test_narrowing_to_a_quarter_fills_every_fourth_lane(p):
    got = converted("ui32", "ui8", np.arange(64) * 8, f'sat = "SAT", part = "P{p}"')
    assert got.reshape(64, 4)[:, p].tolist() == [min(8 * i, 255) for i in range(64)]
    assert not np.delete(got.reshape(64, 4), p, axis=1).any()


@pytest.mark.parametrize("part, at", [("EVEN", 0), ("ODD", 1), ("PART_ODD", 1)])
def test_widening_reads_every_second_lane(part, at):
    got = converted("f16", "f32", np.arange(128), f'part = "{part}"')
    assert got.tolist() == list(range(at, 128, 2))


@pytest.mark.parametrize("p", range(4))
def test_widening_from_a_quarter(p):
    got = converted("i8", "i32", np.arange(256) - 128, f'part = "P{p}"')
    assert got.tolist() == list(range(p - 128, 128, 4))


def test_masked_source_lanes_give_zero():
    got = converted("f32", "f16", [7.0], NARROW.format("ODD"), lanes=[0, 63])
    assert np.flatnonzero(got).tolist() == [1, 127]
    got = converted("f16", "f32", [7.0], 'part = "ODD"', lanes=[0, 1, 5, 6])
    assert np.flatnonzero(got).tolist() == [0, 2]  # lanes 1 and 5 are the odd ones of the mask
    got = converted("i32", "f32", [7], 'rnd = "R"', lanes=[3])
    assert np.flatnonzero(got).tolist() == [3]


def test_64_bit_sources_go_by_every_eighth_bit():
    got = converted("i64", "f32", np.arange(1, 33), 'rnd = "R", part = "EVEN"', lanes=[0, 1, 2])
    assert got[:8].tolist() == [1, 0, 2, 0, 0, 0, 0, 0]


def test_saturating_f32_to_f16():
    got = converted("f32", "f16", [1e6, -1e6, INF, -INF, NAN, 65519.0, 1.5], NARROW.format("EVEN"))
    assert got[0:14:2].tolist() == [65504, -65504, 65504, -65504, 0, 65504, 1.5]


def test_not_saturating_f32_to_f16_keeps_infinities_and_nan():
    got = converted("f32", "f16", [1e6, -INF, NAN, 1.5], 'rnd = "R", sat = "NOSAT", part = "EVEN"')
    assert got[[0, 2]].tolist() == [INF, -INF] and np.isnan(got[4]) and got[6] == 1.5


@pytest.mark.parametrize(
    "rnd, want",
    [
        ("R", [2, 2, 4, -2, 0]),
        ("A", [2, 3, 4, -3, 1]),
        ("F", [1, 2, 3, -3, 0]),
        ("C", [2, 3, 4, -2, 1]),
        ("Z", [1, 2, 3, -2, 0]),
        ("ROUND_Z", [1, 2, 3, -2, 0]),
    ],
)
def test_rounding_of_f32_to_i32(rnd, want):
    got = converted("f32", "i32", [1.75, 2.5, 3.75, -2.5, 0.5], f'rnd = "{rnd}", sat = "SAT"')
    assert got[:5].tolist() == want


def test_rounding_modes_of_f32_to_f16():
    x = 1 + 2.0**-11 + 2.0**-20  # just above the tie between 1 and 1 + 2^-10
    up = 1 + 2.0**-10
    for rnd, want in {"R": up, "A": up, "F": 1.0, "C": up, "Z": 1.0, "O": up}.items():
        got = converted("f32", "f16", [x, -x], f'rnd = "{rnd}", sat = "SAT", part = "EVEN"')
        negative = {"F": -up, "C": -1.0}.get(rnd, -want)
        assert got[[0, 2]].tolist() == [want, negative], rnd


def test_integers_saturate_or_keep_their_low_bits():
    x = [70000, -70000, 5, -5]
    assert converted("i32", "i16", x, 'sat = "SAT", part = "EVEN"')[0:8:2].tolist() == [
        32767,
        -32768,
        5,
        -5,
    ]
    low = [(v + 32768) % 65536 - 32768 for v in x]
    assert converted("i32", "i16", x, 'sat = "NOSAT", part = "EVEN"')[0:8:2].tolist() == low
    assert converted("i32", "ui16", x, 'sat = "SAT", part = "ODD"')[1:8:2].tolist() == [
        65535,
        0,
        5,
        0,
    ]
    assert converted("ui32", "i16", [2**32 - 1], 'sat = "SAT", part = "EVEN"')[0] == 32767


def test_floats_to_small_integers():
    got = converted("f16", "ui8", [300.0, -1.0, 2.5, NAN], 'rnd = "R", sat = "SAT", part = "EVEN"')
    assert got[0:8:2].tolist() == [255, 0, 2, 0]
    got = converted("f32", "i64", [1.5, 9.0, -2.5], 'rnd = "R", sat = "SAT", part = "EVEN"')
    assert got[:2].tolist() == [2, -2]


def test_bfloat16():
    got = converted("f32", "bf16", [1 + 2.0**-8, 3e38, 1.5], NARROW.format("EVEN"))
    assert got[0:6:2].tolist() == [BF16(1.0), BF16(3e38), BF16(1.5)]
    assert converted("bf16", "f32", [1.5, 2.0], 'part = "EVEN"')[0] == 1.5
    assert converted("bf16", "f16", [1.5, 1e30], 'rnd = "R", sat = "SAT"')[:2].tolist() == [
        1.5,
        65504,
    ]


def test_large_integers_round_once():
    x = np.array([2**24 + 1, 2**24 + 3, -(2**31)])
    assert converted("i32", "f32", x, 'rnd = "R"')[:3].tolist() == x.astype(np.float32).tolist()
    assert converted("i32", "f32", x, 'rnd = "Z"')[:3].tolist() == [2**24, 2**24 + 2, -(2**31)]


@pytest.mark.parametrize("elem", ["f16", "bf16", "f32"])
@pytest.mark.parametrize(
    "mode, want",
    [
        ("R", [2, -2, 2, -0.0, 4]),
        ("A", [3, -3, 2, -1, 4]),
        ("F", [2, -3, 1, -1, 3]),
        ("C", [3, -2, 2, -0.0, 4]),
        ("Z", [2, -2, 1, -0.0, 3]),
    ],
)
def test_vtrc_rounds_in_place(elem, mode, want):
    bench = Registers()
    bench.vreg("a", elem, [2.5, -2.5, 1.75, -0.5, 3.75])
    bench.mask("m", 8 * dtype(elem).itemsize, 4)
    got = bench.one(f'%r = pto.vtrc %a, %m, "{mode}" : {{a}}, {{m}} -> {{a}}', reg(elem))
    values = got[:5].astype(np.float64)
    assert values[:4].tobytes() == np.array(want[:4], np.float64).tobytes() and values[4] == 0


def test_vtrc_lets_infinities_and_nan_pass():
    bench = Registers()
    bench.vreg("a", "f32", [INF, -INF, NAN, -0.0, 2.0**30])
    bench.mask("m", 32)
    got = bench.one('%r = pto.vtrc %a, %m, "Z" : {a}, {m} -> {a}', reg("f32"))
    assert (
        got[[0, 1, 4]].tolist() == [INF, -INF, 2.0**30] and np.isnan(got[2]) and np.signbit(got[3])
    )


def test_vbitcast_keeps_the_bytes():
    bench = Registers()
    a = bench.vreg("a", "f32", np.arange(64))
    got = bench.one(f"%r = pto.vbitcast %a : {{a}} -> {reg('i16')}", reg("i16"))
    assert got.dtype == np.int16 and got.tobytes() == a.tobytes()


PATTERNS = np.arange(0, 65536, 101, dtype=np.uint16)
SINGLES = np.concatenate(
    [
        np.array(
            [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 65504, 65519.99, 65520, 1e6, 3.4e38, INF, -INF, NAN],
            np.float32,
        ),
        np.array([2**n + d for n in (7, 8, 15, 16, 31, 32, 63) for d in (-1, 0, 1)], np.float32),
        -np.array([2**n + d for n in (7, 8, 15, 16, 31, 32, 63) for d in (-1, 0, 1)], np.float32),
        np.random.default_rng(4).integers(0, 2**32, 300, np.uint64).astype(np.uint32).view("f4"),
    ]
)
WORDS = np.concatenate((PATTERNS.astype(np.int32) - 32768, [2**31 - 1, -(2**31), 70000])).astype(
    "i4"
)


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize(
    "src, dst",
    [("f16", "f32"), ("bf16", "f32"), ("f32", "f16"), ("f32", "bf16")]
    + [(s, d) for s in ("f16", "bf16", "f32") for d in ("i8", "u8", "i16", "i32", "u32", "i64")]
    + [("i32", d) for d in ("u8", "i16", "u16", "i64")]
    + [("i16", "u8"), ("u16", "u8"), ("i16", "u32")],
)
def test_shortcuts_give_what_the_conversion_gives(src, dst, saturate):
    """One value at a time, since one lane out of the ordinary sends all of them the long way."""
    a, b = dtype(src), dtype(dst)
    items = {"f32": SINGLES, "i32": WORDS}.get(src, PATTERNS).astype(
        a.storage if a.itemsize == 2 else a.numpy
    )
    items = items.view(a.numpy)
    for mode in (Round.RINT, Round.FLOOR, Round.CEIL, Round.TRUNC):
        want = convert(items, a, b, mode, saturate)
        change = converter(a, b, mode, saturate)
        with np.errstate(all="ignore"):
            got = np.concatenate([change(items[i : i + 1]) for i in range(items.size)])
        assert got.tobytes() == want.tobytes(), mode


@pytest.mark.parametrize("sat", ["SAT", "NOSAT"])
@pytest.mark.parametrize(
    ("src", "dst", "rnd"),
    [
        ("f16", "hifloat8", "A"),
        *((src, dst, rnd) for src in ("f16", "bf16") for dst in ("f8e4m3", "f8e5m2")
          for rnd in "RAFZC"),
    ],
)  # fmt: skip
def test_sixteen_bit_floats_into_eight(src: str, dst: str, rnd: str, sat: str):
    """PTOAS VPTO.cpp, lookupVcvtContract; npu/a5/TCvt.hpp has f16 to hifloat8 by A."""
    mode = dict(zip("RAFZC", ("RINT", "ROUND", "FLOOR", "TRUNC", "CEIL"), strict=True))[rnd]
    kind = np.float16 if src == "f16" else BF16
    values = np.array([1.03, -1.03, 0.4375, 448.0, 463.0, 600.0, -6e4, 1e-3, 0.0], kind)
    text = {"hifloat8": "!pto.hif8", "f8e4m3": "f8E4M3FN", "f8e5m2": "f8E5M2"}[dst]
    attrs = f'rnd = "{rnd}", sat = "{sat}", part = "ODD"'
    got = converted(src, text, values, attrs).view(np.uint8)
    want = oracle.rounded(dst, values.astype(np.float64), mode, sat == "SAT")
    codes = oracle.values_of_codes(dst)[got[1::2]][: len(values)]
    assert np.array_equal(codes, want, equal_nan=True)
    assert not got[::2].any()


@pytest.mark.parametrize(
    ("src", "dst", "rnd"),
    [("f32", "f8E4M3FN", "F"), ("f32", "f8E5M2", "O"), ("f32", "!pto.hif8", "R"),
     ("f16", "!pto.hif8", "Z"), ("bf16", "f8E5M2", "O"), ("bf16", "!pto.f4E2M1x2", "O")],
)  # fmt: skip
def test_roundings_that_a_conversion_lacks(src: str, dst: str, rnd: str):
    bits = {"f32": 32}.get(src, 16)
    sat = "" if "f4" in dst else 'sat = "SAT", '
    part = "P0" if "f4" in dst or src == "f32" else "EVEN"
    wide, narrow = f"!pto.vreg<{2048 // bits}x{src}>", f"!pto.vreg<256x{dst}>"
    program = parse(
        f"func.func @f(%a: {wide}, %m: !pto.mask<b{bits}>) {{ pto.vecscope {{"
        f' %r = pto.vcvt %a, %m {{rnd = "{rnd}", {sat}part = "{part}"}}'
        f" : {wide}, !pto.mask<b{bits}> -> {narrow} }} return }}"
    )
    assert "PTO-T085" in [found.code for found in verify(program, profile("a5"))]
