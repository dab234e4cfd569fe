"""The traps of the vector surface, a named test each: the text, the PTO manual and the goldens."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.target.profile import profile
from pto.verify import verify
from tests.machine import Bench
from tests.vectors import Registers, reg


def test_vcpadd_adds_pairs_into_the_low_half():
    bench = Registers()
    bench.vreg("a", "f32", np.arange(64))
    bench.mask("m", 32)
    got = bench.one("%r = pto.vcpadd %a, %m : {a}, {m} -> {a}", reg("f32"))
    assert got.tolist() == [4 * i + 1 for i in range(32)] + [0] * 32


def test_vcmax_puts_the_index_as_bits_into_lane_1():
    bench = Registers()
    bench.vreg("a", "f32", [1.0, 7.5, 3.0] + [0.0] * 61)
    bench.mask("m", 32)
    got = bench.one("%r = pto.vcmax %a, %m : {a}, {m} -> {a}", reg("f32"))
    assert got[0] == 7.5
    assert got.view(np.uint32)[1] == 1 and got[1] != 1.0  # a denormal, not the number 1


def test_pat_h_is_the_first_half():
    got = Registers().one('%r = pto.pset_b32 "PAT_H" : !pto.mask<b32>', "!pto.mask<b32>")
    assert np.flatnonzero(got).tolist() == list(range(0, 128, 4))


def test_lane_i_of_a_b32_mask_is_bit_4i():
    bench = Registers()
    bench.scalar("n", "i32", 3)
    mask, _ = bench.two(
        "%r, %s = pto.plt_b32 %n : i32 -> !pto.mask<b32>, i32", "!pto.mask<b32>", "i32"
    )
    assert np.flatnonzero(mask).tolist() == [0, 4, 8]


def test_psts_stores_sparse_bits_and_pstu_compact_ones():
    bench = Registers()
    sparse = bench.pointer("p", "ui32, ub", np.zeros(8))
    compact = bench.pointer("q", "ui32, ub", np.zeros(8))
    bench.mask("m", 32, [0, 1, 2])
    ptr = "!pto.ptr<ui32, ub>"
    bench.run(
        "%z = arith.constant 0 : index\n%z32 = arith.constant 0 : i32\n"
        'pto.psts %m, %p[%z], "NORM" : {m}, {p}, index\n'
        "%s = pto.init_align : !pto.align\n"
        f"%t, %e = pto.pstu %s, %m, %q : !pto.align, {{m}}, {ptr} -> !pto.align, {ptr}\n"
        f"pto.vstas %t, %e, %z32 : !pto.align, {ptr}, i32"
    )
    assert sparse[0] == 0x111 and compact[0] == 0b111


def test_plds_offsets_are_bytes_whatever_the_pointer():
    bench = Registers()
    bench.pointer("p", "f32, ub", np.arange(1, 33).astype(np.uint32).view(np.float32))
    bench.scalar("at", "index", 8)
    got = bench.one('%r = pto.plds %p[%at], "NORM" : {p}, index -> !pto.mask<b8>', "!pto.mask<b8>")
    assert np.packbits(got, bitorder="little")[:4].tolist() == [3, 0, 0, 0]  # the third word


def test_brc_and_dintlv_follow_the_width_of_the_token():
    bench = Registers()
    raw = np.arange(1, 257, dtype=np.uint32).astype(np.uint8)
    raw = np.concatenate((raw, raw))
    bench.pointer("p", "f32, ub", raw.view(np.float32))
    bench.scalar("z", "index", 0)
    got = bench.one(
        f'%r = pto.vlds %p[%z] {{dist = "BRC_B16"}} : {{p}} -> {reg("f32")}', reg("f32")
    )
    assert got.tobytes() == bytes([1, 2]) * 128
    low, high = bench.two(
        f'%r, %s = pto.vldsx2 %p[%z], "DINTLV_B8" : {{p}}, index -> {reg("f32")}, {reg("f32")}',
        reg("f32"),
    )
    assert low.tobytes() == raw[0::2].tobytes() and high.tobytes() == raw[1::2].tobytes()


def test_1pt_ignores_the_mask():
    bench = Registers()
    live = bench.pointer("p", "f32, ub", np.zeros(64))
    bench.vreg("v", "f32", np.arange(5, 69))
    bench.mask("m", 32, 0)
    bench.scalar("z", "index", 0)
    bench.run('pto.vsts %v, %p[%z], %m {dist = "1PT_B32"} : {v}, {p}, {m}')
    assert live.tolist() == [5.0] + [0.0] * 63


def test_vcvt_parts_zero_the_other_slots_and_vor_merges_them():
    bench = Registers()
    bench.vreg("a", "f32", np.arange(64))
    bench.vreg("b", "f32", -np.arange(64.0))
    bench.mask("m", 32)
    bench.mask("h", 16)
    even = '{rnd = "R", sat = "SAT", part = "EVEN"}'
    got = bench.one(
        f"%x = pto.vcvt %a, %m {even} : {{a}}, {{m}} -> {reg('f16')}\n"
        f"%y = pto.vcvt %b, %m {even.replace('EVEN', 'ODD')} : {{b}}, {{m}} -> {reg('f16')}\n"
        f"%r = pto.vor %x, %y, %h : {reg('f16')}, {reg('f16')}, {{h}} -> {reg('f16')}",
        reg("f16"),
    )
    assert got.tolist() == [sign * i for i in range(64) for sign in (1, -1)]


def test_vexpdif_takes_even_or_odd_halves_of_f16():
    bench = Registers()
    bench.vreg("a", "f16", np.arange(128) % 4)
    bench.vreg("b", "f16", [0.0])
    bench.mask("m", 16)
    for part, values in (("EVEN", [0, 2]), ("ODD", [1, 3])):
        got = bench.one(
            f'%r = pto.vexpdif %a, %b, %m, "{part}" : {{a}}, {{b}}, {{m}} -> {reg("f32")}',
            reg("f32"),
        )
        assert got.tolist() == [np.float32(np.exp(float(v))) for v in values] * 32


def test_vusqz_is_an_exclusive_prefix_count_of_the_mask():
    bench = Registers()
    bench.vreg("a", "i32", [99])
    bench.mask("m", 32, [0, 1, 5])
    got = bench.one("%r = pto.vusqz %a, %m : {a}, {m} -> {a}", reg("i32"))
    assert got.tolist() == [0, 1, 2, 2, 2, 2] + [3] * 58


def test_the_offset_of_vstus_counts_elements():
    bench = Registers()
    live = bench.pointer("p", "f32, ub", np.full(64, -1.0))
    bench.vreg("v", "f32", np.arange(64))
    bench.scalar("n", "i32", 3)
    bench.run(
        "%s = pto.init_align : !pto.align\n"
        "%t = pto.vstus %s, %n, %v, %p : !pto.align, i32, {v}, {p} -> !pto.align\n"
        "pto.vstas %t, %p, %n : !pto.align, {p}, i32"
    )
    assert live.tolist() == [0.0, 1.0, 2.0] + [-1.0] * 61


def test_the_carry_of_vsubc_is_1_without_borrow():
    bench = Registers()
    bench.vreg("a", "ui32", [5, 4, 3])
    bench.vreg("b", "ui32", [4, 4, 4])
    bench.mask("m", 32, 3)
    value, carry = bench.two(
        "%r, %s = pto.vsubc %a, %b, %m : {a}, {b}, {m} -> {a}, {m}", reg("ui32"), "!pto.mask<b32>"
    )
    assert value[:3].tolist() == [1, 0, 2**32 - 1]
    assert np.flatnonzero(carry).tolist() == [0, 4]


SORT = """module attributes {pto.target_arch = "a5"} {
  func.func @kernel(%o: !pto.ptr<f32, ub>, %s: !pto.ptr<f32, ub>, %i: !pto.ptr<ui32, ub>) {
    %n = arith.constant 1 : index
    OPEN
    pto.vbitsort %o, %s, %i, %n : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<ui32, ub>, index
    CLOSE
    return
  }
}"""


def test_vbitsort_is_stable_and_descending():
    bench = Bench()
    live = bench.pointer("o", "ui32, ub", np.zeros(64))
    scores = np.resize([2.0, 7.0, 2.0, 7.0], 32).astype(np.float32)
    bench.pointer("s", "f32, ub", scores)
    bench.pointer("i", "ui32, ub", np.arange(32))
    bench.scalar("n", "index", 1)
    bench.run("pto.vbitsort %o, %s, %i, %n : {o}, {s}, {i}, index")
    assert live[0::2].view(np.float32).tolist() == [7.0] * 16 + [2.0] * 16
    assert live[1::2].tolist() == [*range(1, 32, 2), *range(0, 32, 2)]


def test_vbitsort_stands_outside_a_vecscope():
    outside = parse(SORT.replace("OPEN", "").replace("CLOSE", ""))
    inside = parse(SORT.replace("OPEN", "pto.vecscope {").replace("CLOSE", "}"))
    assert verify(outside, profile("a5")) == []
    assert [d.severity for d in verify(inside, profile("a5"))] == ["error"]


def test_vlds_at_a_misaligned_address_names_vldas_and_vldus():
    bench = Registers()
    bench.pointer("p", "f32, ub", np.zeros(128))
    bench.scalar("at", "index", 3)
    with pytest.raises(PtoError, match="PTO-M140") as caught:
        bench.one(f"%r = pto.vlds %p[%at] : {{p}} -> {reg('f32')}", reg("f32"))
    help = str(caught.value.diagnostics[0].help)
    assert "pto.vldas" in help and "pto.vldus" in help


def test_masked_lanes_are_zeroed_not_kept():
    bench = Registers()
    bench.vreg("a", "f32", [3.0])
    bench.values["a"][5] = np.nan
    bench.mask("m", 32, [0])
    got = bench.one("%r = pto.vadd %a, %a, %m : {a}, {a}, {m} -> {a}", reg("f32"))
    assert got.tolist() == [6.0] + [0.0] * 63
