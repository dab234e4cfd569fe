"""Traps of DMA, cube and fixpipe: what a plausible reading gets wrong, and what is right."""

import numpy as np
import pytest

from pto.core.memory import Space
from tests.fixpipes import fixpipe, ramp
from tests.transfers import FILL, Transfers, accumulated, nz, run_kernel

BYTES = (np.arange(8192) % 251).astype(np.uint8)


def test_trap_mte_l1_ub_counts_32_byte_blocks_and_gaps_not_bytes_and_strides():
    bench = Transfers()
    bench.at("s", "f32, l1", 0, BYTES)
    bench.at("d", "f32, ub", 0)
    bench.go("pto.mte_l1_ub %s, %d, #2 nburst(#3, #1, #0) : {s}, {d}, i64*4")
    ub = bench.memory(Space.UB)
    for row in range(3):
        assert ub[row * 64 : row * 64 + 64].tolist() == BYTES[row * 96 : row * 96 + 64].tolist()
    assert (ub[192:] == FILL).all()
    # a stride of 0 is no gap: the bursts follow each other
    bench.go("pto.mte_l1_ub %s, %d, #4 nburst(#10, #0, #0) : {s}, {d}, i64*4")
    assert ub[:1280].tolist() == BYTES[:1280].tolist()


def test_trap_loops_of_mte_l1_ub_count_bytes():
    bench = Transfers()
    bench.at("s", "f32, l1", 0, BYTES)
    bench.at("d", "f32, ub", 0)
    bench.go(
        "pto.mte_l1_ub %s, %d, #1 nburst(#1, #0, #0) loop(#3, #32, #64) : {s}, {d}, i64*4,"
        " loop i64*3"
    )
    ub = bench.memory(Space.UB)
    for n in range(3):
        assert ub[n * 64 : n * 64 + 32].tolist() == BYTES[n * 32 : n * 32 + 32].tolist()
        assert (ub[n * 64 + 32 : n * 64 + 64] == FILL).all()


def test_trap_copy_ubuf_to_gm_has_the_destination_stride_before_the_source_stride():
    bench = Transfers()
    gm = bench.pointer("g", "ui8, gm", np.full(256, FILL, np.uint8))
    bench.at("u", "ui8, ub", 0, BYTES)
    bench.go("pto.copy_ubuf_to_gm %u, %g, #0, #3, #16, #0, #20, #64 : {u}, {g}, i64*6")
    for row in range(3):
        assert gm[row * 20 : row * 20 + 16].tolist() == BYTES[row * 64 : row * 64 + 16].tolist()
    assert (gm[56:] == FILL).all()


def test_trap_copy_ubuf_to_gm_is_repeated_by_its_own_loop_registers():
    bench = Transfers()
    gm = bench.pointer("g", "ui8, gm", np.full(256, FILL, np.uint8))
    bench.at("u", "ui8, ub", 0, BYTES)
    bench.go(
        "pto.set_loop_size_ubtoout #1, #2 : i64, i64\n"
        "pto.set_loop1_stride_ubtoout #32, #50 : i64, i64\n"
        "pto.set_loop2_stride_ubtoout #0, #0 : i64, i64\n"
        "pto.copy_ubuf_to_gm %u, %g, #0, #1, #32, #0, #32, #32 : {u}, {g}, i64*6"
    )
    assert gm[:32].tolist() == BYTES[:32].tolist()
    assert gm[50:82].tolist() == BYTES[32:64].tolist()


@pytest.mark.parametrize("m, pitch", [(16, 16), (40, 48)])
def test_trap_source_stride_of_the_fixpipe_counts_rows_of_16_elements(m, pitch):
    acc = ramp(m, 40)
    got = fixpipe(acc, ", nz2nd", pitch=pitch, size=m * 160)
    assert got.reshape(m, 40).tolist() == acc.tolist()


def test_trap_destination_stride_of_the_fixpipe_counts_elements():
    acc = ramp(2, 16)
    got = fixpipe(
        acc,
        ", pre_quant(%q, mode = qf322f16_pre_scalar), nz2nd",
        kind=np.float16,
        payloads=(("q", "f32", 1.0),),
        stride=24,
    )
    assert got[24:40].tolist() == acc[1].tolist()


def test_trap_row_major_b_needs_transpose():
    a = np.eye(16, dtype=np.float16)
    b = np.arange(256, dtype=np.float16).reshape(16, 16)
    found = {}
    for transpose in (True, False):
        bench = Transfers()
        bench.at("a", "f16, l0a", 0, nz(a))
        bench.at("s", "f16, l1", 0, nz(b))  # as nd2nz leaves B[k,n]
        bench.at("b", "f16, l0b", 0)
        out = bench.at("c", "f32, l0c", 0)
        attr = "{transpose = true} " if transpose else ""
        bench.go(
            f"pto.mte_l1_l0b %s, %b, #16, #16 {attr}: {{s}}, {{b}}, i64*2\n"
            "pto.mad %a, %b, %c, #16, #16, #16 : {a}, {b}, {c}, i64*3"
        )
        found[transpose] = accumulated(out, 16, 16)
    assert found[True].tolist() == b.tolist()  # A x B
    assert found[False].tolist() == b.T.tolist()  # A x B^T: B was taken for B^T


def test_trap_per_channel_words_keep_19_bits_of_the_scale():
    acc = np.ones((1, 16), np.float32)
    exact, cut = 1 + 2.0**-10, 1 + 2.0**-11
    bits = [int(np.float32(x).view(np.uint32)) for x in (exact, cut)]
    words = np.array([bits[0], bits[1]] * 8, np.uint64)
    got = fixpipe(
        acc,
        ", pre_quant(%q, mode = qf322f32_pre_vec), nz2nd",
        payloads=(("q", "f32, fb", (0, words)),),
    )[:2]
    assert got.tolist() == [exact, 1.0]
    whole = fixpipe(
        acc,
        ", pre_quant(%q, mode = qf322f32_pre_scalar), nz2nd",
        payloads=(("q", "f32", cut),),
    )[:1]
    assert whole.tolist() == [cut]  # a scalar keeps all of them


def test_trap_a_word_a_channel_is_8_bytes_whatever_the_pointer_says():
    acc = np.ones((1, 4), np.float32)
    words = np.array([0x3F800000, 0x40000000, 0x40400000, 0x40800000], np.uint64)  # 1, 2, 3, 4
    got = fixpipe(
        acc,
        ", pre_quant(%q, mode = qf322f32_pre_vec), nz2nd",
        payloads=(("q", "f32, fb", (0, words)),),
    )[:4]
    assert got.tolist() == [1, 2, 3, 4]


def test_trap_pad_counts_are_elements():
    bench = Transfers()
    bench.pointer("g", "f16, gm", np.arange(1, 15, dtype=np.float16))
    bench.at("u", "f16, ub", 0)
    bench.scalar("v", "f16", 9)
    bench.go(
        "pto.mte_gm_ub %g, %u, #0, #28 nburst(#1, #28, #32) pad(%v, #2, #0)"
        " : {g}, {u}, i64*5, pad {v}, i64*2"
    )
    assert bench.memory(Space.UB)[:32].view(np.float16).tolist() == [9, 9, *range(1, 15)]


def test_trap_rows_beyond_n_are_not_written_by_nd2nz():
    bench = Transfers()
    bench.pointer("g", "f16, gm", np.ones((5, 16), np.float16))
    bench.at("d", "f16, l1", 0)
    bench.go(
        "pto.mte_gm_l1_frac %g, %d, nd2nz, shape(#5, #16), src_layout(#32),"
        " dst_group(#1, #1, #16, #0), ctrl(#0, #false) : {g}, {d}, nd2nz, shape i64, i64,"
        " src_layout(i64), dst_group i64*4, ctrl i64, i1"
    )
    assert (bench.memory(Space.L1)[5 * 32 :] == FILL).all()


def test_trap_eight_bit_right_tiles_are_padded_to_32_columns_when_transposed():
    # 16 columns take the room of 32 in L0B, and mad reads strips of 16: golden mad_mx
    b = np.arange(64 * 16).reshape(64, 16).astype(np.int8)
    bench = Transfers()
    bench.at("s", "i8, l1", 0, nz(b, 64))
    bench.at("d", "i8, l0b", 0)
    bench.go("pto.mte_l1_l0b %s, %d, #64, #16 {transpose = true} : {s}, {d}, i64*2")
    l0b = bench.memory(Space.L0B)[:2048].view(np.int8).reshape(2, 32, 32)
    assert l0b[0, :16].tolist() == b[:32].T.tolist()
    assert l0b[1, :16].tolist() == b[32:].T.tolist()


def test_trap_the_cube_adds_16_to_the_id_for_the_second_sub_block():
    out = np.zeros((2, 8), np.float32)
    run_kernel(
        "%g: !pto.ptr<f32, gm>, %o: !pto.ptr<f32, gm>",
        """
        %l1 = pto.castptr #0 : i64 -> !pto.ptr<f32, l1>
        %ub = pto.castptr #0 : i64 -> !pto.ptr<f32, ub>
        pto.section.cube {
          pto.mte_gm_l1 %g, %l1, #64 nburst(#1, #0, #0)
            : !pto.ptr<f32, gm>, !pto.ptr<f32, l1>, i64*4
          %c8 = arith.constant 8 : index
          %second = pto.addptr %l1, %c8 : !pto.ptr<f32, l1> -> !pto.ptr<f32, l1>
          pto.copy_cbuf_to_ubuf %l1, %ub, #0, #1, #1, #0, #0
            : !pto.ptr<f32, l1>, !pto.ptr<f32, ub>, i64*5
          pto.sync.set <PIPE_FIX>, 3
          pto.copy_cbuf_to_ubuf %second, %ub, #1, #1, #1, #0, #0
            : !pto.ptr<f32, l1>, !pto.ptr<f32, ub>, i64*5
          pto.sync.set <PIPE_FIX>, 19
        }
        pto.section.vector {
          pto.sync.wait <PIPE_MTE3>, 3
          %sub = pto.get_subblock_idx
          %eight = arith.muli %sub, #8 : i64
          %at = arith.index_cast %eight : i64 to index
          %place = pto.addptr %o, %at : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>
          pto.mte_ub_gm %ub, %place, #32 nburst(#1, #0, #0)
            : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64*4
        }""",
        [np.arange(16, dtype=np.float32), out],
    )
    assert out.reshape(-1).tolist() == list(range(16))
