"""Lanes moved: interleaved, squeezed, packed, slid; registers of one value; fused conversions."""

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.isa.meaning.memory.registers import SQZN, get
from tests.vectors import Registers, reg

INF, NAN = np.inf, np.nan
WIDTHS = [("f32", 64), ("i16", 128), ("ui8", 256)]


def pair(row, elem, attr=""):
    lanes = dtype(elem).lanes
    bench = Registers()
    bench.vreg("a", elem, np.arange(lanes) % 100)
    bench.vreg("b", elem, 100 + np.arange(lanes) % 100)
    types = "{a}, {b} -> {a}"
    if attr:
        return bench.one(f'%r = pto.{row} %a, %b, "{attr}" : {types}', reg(elem))
    return bench.two(f"%r, %s = pto.{row} %a, %b : {types}, {{a}}", reg(elem))


@pytest.mark.parametrize("elem, lanes", WIDTHS)
def test_interleave(elem, lanes):
    a, b = np.arange(lanes) % 100, 100 + np.arange(lanes) % 100
    stream = [v for two in zip(a, b, strict=True) for v in two]
    low, high = pair("vintlv", elem)
    assert low.tolist() == stream[:lanes] and high.tolist() == stream[lanes:]
    assert pair("vintlvv2", elem, "LOWER").tolist() == stream[:lanes]
    assert pair("vintlvv2", elem, "HIGHER").tolist() == stream[lanes:]


@pytest.mark.parametrize("elem, lanes", WIDTHS)
def test_deinterleave_takes_even_and_odd_positions_of_both(elem, lanes):
    stream = np.concatenate((np.arange(lanes) % 100, 100 + np.arange(lanes) % 100))
    low, high = pair("vdintlv", elem)
    assert low.tolist() == stream[0::2].tolist() and high.tolist() == stream[1::2].tolist()
    assert pair("vdintlvv2", elem, "LOWER").tolist() == stream[0::2].tolist()
    assert pair("vdintlvv2", elem, "HIGHER").tolist() == stream[1::2].tolist()


def masked(row, elem, values, lanes):
    bench = Registers()
    bench.vreg("a", elem, values)
    bench.mask("m", 8 * dtype(elem).itemsize, lanes)
    return bench.one(f"%r = pto.{row} %a, %m : {{a}}, {{m}} -> {{a}}", reg(elem)), bench.core


@pytest.mark.parametrize("elem, lanes", WIDTHS)
def test_vsqz_moves_active_lanes_to_the_front_and_counts_their_bytes(elem, lanes):
    kept = [1, 2, 50, lanes - 1]
    got, core = masked("vsqz", elem, np.arange(lanes), kept)
    assert got[:4].tolist() == kept and not got[4:].any()
    assert get(core, SQZN) == 4 * dtype(elem).itemsize
    got, core = masked("vsqz", elem, np.arange(lanes), 0)
    assert not got.any() and get(core, SQZN) == 0


def test_vusqz_of_bytes_wraps_like_its_type():
    got, _ = masked("vusqz", "i8", [0], None)
    assert got.tolist() == [(i + 128) % 256 - 128 for i in range(256)]


@pytest.mark.parametrize("source, result", [("i32", "ui16"), ("ui32", "ui16"), ("i16", "ui8")])
def test_vpack_keeps_low_halves_in_one_half(source, result):
    bench = Registers()
    lanes = dtype(source).lanes
    bench.vreg("a", source, np.arange(lanes) * 257 - 3)
    low = [(257 * i - 3) % (1 << (4 * dtype(source).itemsize)) for i in range(lanes)]
    for part, zeros in (("LOWER", slice(lanes, None)), ("HIGHER", slice(0, lanes))):
        got = bench.one(f'%r = pto.vpack %a, "{part}" : {{a}} -> {reg(result)}', reg(result))
        assert np.delete(got, zeros).tolist() == low and not got[zeros].any()


def unpacked(row, source, result, part):
    bench = Registers()
    lanes = dtype(source).lanes
    bench.vreg("a", source, np.arange(lanes) - 70)
    bench.scalar("p", "index", part)
    return bench.one(f"%r = pto.{row} %a, %p : {{a}} -> {reg(result)}", reg(result))


@pytest.mark.parametrize("part", [0, 1])
def test_unpack_extends_a_contiguous_half(part):
    start = 64 * part - 70
    assert unpacked("vsunpack", "i16", "i32", part).tolist() == list(range(start, start + 64))
    unsigned = [v % 65536 for v in range(start, start + 64)]
    assert unpacked("vzunpack", "ui16", "ui32", part).tolist() == unsigned
    assert unpacked("vzunpack", "i16", "i32", part).tolist() == unsigned
    start = 128 * part - 70
    signed = [(v + 128) % 256 - 128 for v in range(start, start + 128)]
    assert unpacked("vsunpack", "i8", "i16", part).tolist() == signed


def test_unpack_has_two_halves():
    with pytest.raises(PtoError, match="PTO-S140"):
        unpacked("vsunpack", "i16", "i32", 2)


def slid(amount):
    bench = Registers()
    bench.vreg("a", "f32", 100 + np.arange(64))
    bench.vreg("b", "f32", np.arange(64))
    bench.scalar("n", "i16", amount)
    return bench.one("%r = pto.vslide %a, %b, %n : {a}, {b}, i16 -> {a}", reg("f32"))


def test_vslide_is_a_window_of_src1_then_src0():
    stream = [*range(64), *range(100, 164)]
    for amount in (0, 1, 63, 64):
        assert slid(amount).tolist() == stream[amount : amount + 64]
    for amount in (-1, 65):
        with pytest.raises(PtoError, match="PTO-S140"):
            slid(amount)


def test_vshift_moves_lanes_up_and_fills_with_zeros():
    bench = Registers()
    bench.vreg("a", "i16", np.arange(1, 129))
    for amount in (0, 3, 128):
        bench.scalar("n", "i16", amount)
        got = bench.one("%r = pto.vshift %a, %n : {a}, i16 -> {a}", reg("i16"))
        assert got.tolist() == ([0] * amount + list(range(1, 129)))[:128]


# ---- registers from one value


def made(row, elem, value, constant="", attrs=""):
    bench = Registers()
    bench.scalar("k", constant or elem, value)
    return bench.one(f"%r = pto.{row} %k {attrs} : {{k}} -> {reg(elem)}", reg(elem))


@pytest.mark.parametrize(
    "elem, constant, value, want",
    [
        ("f32", "", 2.5, 2.5),
        ("ui8", "i8", -1, 255),
        ("si8", "i8", -7, -7),
        ("f16", "", 1.5, 1.5),
        ("bf16", "", 3.0, 3.0),
    ],
)
def test_vbr_fills_a_register(elem, constant, value, want):
    assert made("vbr", elem, value, constant).tolist() == [want] * dtype(elem).lanes


def test_vci_counts_up_and_down_and_wraps():
    assert made("vci", "si32", 5, "i32").tolist() == list(range(5, 69))
    assert made("vci", "si32", 5, "i32", '{order = "DESC"}').tolist() == list(range(5, -59, -1))
    assert made("vci", "si8", 100, "i8").tolist() == [
        (100 + i + 128) % 256 - 128 for i in range(256)
    ]
    assert made("vci", "f16", 0.5, "f16").tolist() == [i + 0.5 for i in range(128)]
    assert made("vci", "f32", 2.0**24, "f32")[1] == 2.0**24


def test_vdup_of_a_scalar_zeroes_masked_lanes():
    bench = Registers()
    bench.scalar("k", "f32", 2.5)
    bench.mask("m", 32, [0, 9])
    got = bench.one(f"%r = pto.vdup %k, %m : f32, {{m}} -> {reg('f32')}", reg("f32"))
    assert np.flatnonzero(got).tolist() == [0, 9] and got[9] == 2.5


def test_vdup_of_a_lane_takes_the_first_or_last_of_the_register():
    bench = Registers()
    bench.vreg("a", "i16", np.arange(7, 135))
    bench.mask("m", 16, [0, 3])
    for position, want in (("LOWEST", 7), ("HIGHEST", 134)):
        got = bench.one(
            f'%r = pto.vdup %a, %m {{position = "{position}"}} : {{a}}, {{m}} -> {{a}}', reg("i16")
        )
        assert got[[0, 3]].tolist() == [want, want] and np.count_nonzero(got) == 2


# ---- arithmetic with a conversion


def fused(row, src, dst, a, b, lanes="none"):
    bench = Registers()
    bench.vreg("a", src, a)
    bench.vreg("b", src, b)
    mask = ""
    if lanes != "none":
        bench.mask("m", 8 * dtype(src).itemsize, lanes)
        mask = ", %m"
    types = "{a}, {b}" + (", {m}" if mask else "")
    return bench.one(f"%r = pto.{row} %a, %b{mask} : {types} -> {reg(dst)}", reg(dst))


def test_vaddreluconv_converts_the_positive_part():
    got = fused("vaddreluconv", "f32", "f16", [1.0, -5.0, 1e6], [2.0, 1.0, 1e6])
    assert got[:3].tolist() == [3.0, 0.0, 65504.0] and not got[64:].any()
    got = fused("vaddreluconv", "f16", "i8", [1.5, -5.0, 200.0], [1.0, 1.0, 1.0], lanes=[0, 2])
    assert got[:3].tolist() == [2, 0, 127] and not got[3:].any()


def test_vmulconv_converts_the_product():
    got = fused("vmulconv", "f16", "i8", [3.0, -2.0, 100.0], [2.0, 4.0, 2.0], lanes=3)
    assert got[:3].tolist() == [6, -8, 127] and not got[3:].any()


@pytest.mark.parametrize("part", ["EVEN", "ODD"])
def test_vexpdif_of_f32_has_one_result_a_lane(part):
    bench = Registers()
    bench.vreg("a", "f32", [1.0, 0.0, INF, -INF, NAN])
    bench.vreg("b", "f32", [1.0, 1.0, INF, 0.0, 0.0])
    bench.mask("m", 32, 5)
    got = bench.one(
        f'%r = pto.vexpdif %a, %b, %m, "{part}" : {{a}}, {{b}}, {{m}} -> {{a}}', reg("f32")
    )
    assert got[[0, 1, 3]].tolist() == [1.0, np.float32(np.exp(-1.0)), 0.0]
    assert np.isnan(got[[2, 4]]).all() and not got[5:].any()
