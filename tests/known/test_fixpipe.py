"""The fixpipe: where the elements of an accumulator tile go, by hand."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from tests.fixpipes import fixpipe, ramp
from tests.transfers import FILL, Transfers, places, run_kernel

# ---- layouts


@pytest.mark.parametrize("to", ["gm", "l1", "ub"])
@pytest.mark.parametrize("clause", [", nz2nd", ""])
def test_nz2nd_writes_rows_and_so_does_no_layout(to, clause):
    acc = ramp(5, 20)
    got = fixpipe(acc, clause, to=to, stride=24)
    for m in range(5):
        assert got[m * 24 : m * 24 + 20].tolist() == acc[m].tolist()
        assert (got[m * 24 + 20 : m * 24 + 24].view(np.uint8) == FILL).all()
    assert (got[4 * 24 + 20 :].view(np.uint8) == FILL).all()


def test_only_the_rectangle_asked_for_is_written():
    acc = ramp(16, 32)
    got = fixpipe(acc, ", nz2nd", m=3, n=18, stride=18)
    assert got[: 3 * 18].reshape(3, 18).tolist() == acc[:3, :18].tolist()
    assert (got[3 * 18 :].view(np.uint8) == FILL).all()


def test_integers_leave_as_they_are():
    acc = np.array([[2**31 - 1, -(2**31), 5]], np.int32)
    assert fixpipe(acc, ", nz2nd", kind=np.int32)[:3].tolist() == acc[0].tolist()


def test_nz2dn_writes_columns():
    acc = ramp(4, 18)
    got = fixpipe(acc, ", nz2dn(#1)", stride=6, numbers=1)
    for n in range(18):
        assert got[n * 6 : n * 6 + 4].tolist() == acc[:, n].tolist()
        if n < 17:
            assert (got[n * 6 + 4 : n * 6 + 6].view(np.uint8) == FILL).all()


def test_nz2dn_steps_over_rows_of_the_source():
    acc = ramp(8, 16)
    got = fixpipe(acc, ", nz2dn(#2)", m=4, stride=4, numbers=1)
    assert got[: 16 * 4].reshape(16, 4).tolist() == acc[0:8:2].T.tolist()


@pytest.mark.parametrize("split, wide", [(0, 16), (1, 8)])
def test_nz2nz_keeps_blocks_of_columns(split, wide):
    acc = ramp(4, 28)
    got = fixpipe(acc, f", nz2nz(#{split})", stride=16 * wide, numbers=1, size=16384)
    for m in range(4):
        for n in range(28):
            assert got[n // wide * 16 * wide + m * wide + n % wide] == acc[m, n]
    assert (got[4 * wide : 16 * wide].view(np.uint8) == FILL).all()


def test_loop3_repeats_the_whole_rectangle():
    acc = ramp(32, 16)  # two tiles of 16 rows behind each other
    got = fixpipe(acc, ", nz2nd, loop3(#2, #16, #100)", m=4, stride=16, numbers=3)
    assert got[:64].reshape(4, 16).tolist() == acc[:4].tolist()
    assert got[100:164].reshape(4, 16).tolist() == acc[16:20].tolist()


@pytest.mark.parametrize("mode", ["split_m", "split_n"])
def test_both_sub_blocks_get_a_half(mode):
    acc = ramp(16, 32)
    eye = np.eye(16, dtype=np.float32)
    out = [np.zeros((16, 32), np.float32) for _ in range(2)]
    run_kernel(
        ", ".join(f"%{n}: !pto.ptr<f32, gm>" for n in ("a", "b", "o0", "o1")),
        f"""
        %l1a = pto.castptr #0 : i64 -> !pto.ptr<f32, l1>
        %l1b = pto.castptr #4096 : i64 -> !pto.ptr<f32, l1>
        %l0a = pto.castptr #0 : i64 -> !pto.ptr<f32, l0a>
        %l0b = pto.castptr #0 : i64 -> !pto.ptr<f32, l0b>
        %l0c = pto.castptr #0 : i64 -> !pto.ptr<f32, l0c>
        %ub = pto.castptr #256 : i64 -> !pto.ptr<f32, ub>
        pto.section.cube {{
          pto.mte_gm_l1_frac %a, %l1a, nd2nz, shape(#16, #16), src_layout(#64),
            dst_group(#1, #1, #16, #0), ctrl(#0, #false) : !pto.ptr<f32, gm>, !pto.ptr<f32, l1>,
            nd2nz, shape i64, i64, src_layout(i64), dst_group i64*4, ctrl i64, i1
          pto.mte_gm_l1_frac %b, %l1b, nd2nz, shape(#16, #32), src_layout(#128),
            dst_group(#1, #1, #16, #0), ctrl(#0, #false) : !pto.ptr<f32, gm>, !pto.ptr<f32, l1>,
            nd2nz, shape i64, i64, src_layout(i64), dst_group i64*4, ctrl i64, i1
          pto.mte_l1_l0a %l1a, %l0a, #16, #16 : !pto.ptr<f32, l1>, !pto.ptr<f32, l0a>, i64, i64
          pto.mte_l1_l0b %l1b, %l0b, #16, #32 {{transpose = true}}
            : !pto.ptr<f32, l1>, !pto.ptr<f32, l0b>, i64, i64
          pto.mad %l0a, %l0b, %l0c, #16, #32, #16
            : !pto.ptr<f32, l0a>, !pto.ptr<f32, l0b>, !pto.ptr<f32, l0c>, i64*3
          pto.mte_l0c_ub %l0c, %ub, #16, #32, #16, #32, dst_mode({mode}), nz2nd
            : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64*4
          pto.sync.set <PIPE_FIX>, 1
          pto.sync.set <PIPE_FIX>, 17
        }}
        pto.section.vector {{
          pto.sync.wait <PIPE_MTE3>, 1
          %sub = pto.get_subblock_idx
          %first = arith.cmpi eq, %sub, #0 : i64
          scf.if %first {{
            pto.mte_ub_gm %ub, %o0, #2048 nburst(#1, #0, #0)
              : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64*4
          }} else {{
            pto.mte_ub_gm %ub, %o1, #2048 nburst(#1, #0, #0)
              : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64*4
          }}
        }}""",
        [eye, acc, *out],
    )
    for sub in range(2):
        want = np.zeros((16, 32), np.float32)
        if mode == "split_m":
            want[:8] = acc[8 * sub : 8 * sub + 8]
        else:  # the pitch of the destination stays that of the whole tile
            want[:, :16] = acc[:, 16 * sub : 16 * sub + 16]
        assert out[sub].tolist() == want.tolist()


# ---- atomics


@pytest.mark.parametrize("op, want", [("add", [15, 5]), ("max", [10, 10]), ("min", [5, -5])])
def test_atomic_stores_combine(op, want):
    before = np.array([10, 10], np.float32)
    got = fixpipe(
        np.array([[5.0, -5.0]], np.float32),
        f", nz2nd, atomic(type = f32, op = {op})",
        to="gm",
        before=before.view(np.uint8),
    )
    assert got.tolist() == want


def test_atomic_types_of_integers_wrap():
    got = fixpipe(
        np.array([[100, 1]], np.int32),
        ", nz2nd, atomic(type = s32, op = add)",
        kind=np.int32,
        to="gm",
        before=np.array([1, 2**31 - 1], np.int32).view(np.uint8),
    )
    assert got.tolist() == [101, -(2**31)]


def test_an_atomic_type_of_another_width():
    with pytest.raises(PtoError) as caught:
        fixpipe(ramp(1, 2), ", nz2nd, atomic(type = f16, op = add)", to="gm")
    assert caught.value.code == "PTO-T163"


def test_the_atomic_type_of_the_control_register_holds_without_a_clause():
    got = fixpipe(
        np.array([[5.0]], np.float32),
        ", nz2nd",
        to="gm",
        before=np.array([1.0], np.float32).view(np.uint8),
        ctrl=1 << 48 | 1 << 6,
    )
    assert got.tolist() == [6.0]


# ---- what is refused


def test_a_row_outside_the_destination_is_found_before_anything_is_written():
    before = np.full(100, FILL, np.uint8)
    with pytest.raises(PtoError) as caught:
        fixpipe(ramp(4, 8), ", nz2nd", to="gm", before=before)
    assert caught.value.code == "PTO-M161"
    assert "burst 3 writes gm bytes 0x60 to 0x80" in str(caught.value)
    assert (before == FILL).all()


def test_a_sub_block_that_does_not_exist():
    bench = Transfers()
    bench.at("s", "f32, l0c", 0)
    bench.at("d", "f32, ub", 0)
    bench.scalar("b", "i64", 2)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mte_l0c_ub %s, %d, #1, #16, #16, #16, dst_mode(%b), nz2nd : {s}, {d}, i64*5")
    assert caught.value.code == "PTO-S168"


def test_halves_of_an_odd_tile():
    bench = Transfers()
    bench.at("s", "f32, l0c", 0)
    bench.at("d", "f32, ub", 0)
    bench.scalar("m", "i64", 3)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mte_l0c_ub %s, %d, %m, #16, #16, #16, dst_mode(split_m) : {s}, {d}, i64*4")
    assert caught.value.code == "PTO-S166"


# ---- everything in two words


def raw(acc, to, config0, config1, *, kind=np.float32, setup="", table=None, before=None):
    m, n = acc.shape
    bench = Transfers()
    out = bench.at("s", "f32, l0c", 0).view(np.float32)
    out[places(m, n, 16)] = acc
    elem = {np.float32: "f32", np.float16: "f16", np.int8: "i8"}[kind]
    if to == "gm":
        live = bench.bytes("d", elem, np.zeros(4096, np.uint8) if before is None else before)
    else:
        live = bench.at("d", f"{elem}, {to}", 0)[:4096]
    if table is not None:
        space, raw_bytes = table
        bench.core.memory(space).data[: raw_bytes.size] = raw_bytes
    name = {"gm": "gm", "l1": "cbuf", "ub": "ub"}[to]
    config1 -= (config1 >> 63) << 64
    bench.go(
        f"{setup}pto.copy_matrix_cc_to_{name} %s, %d, #{config0}, #{config1} : {{s}}, {{d}}, i64*2"
    )
    return live.view(kind)


def words(m, n, dst_stride, *, quant=0, relu=0, clip=0, split=0, nd=0, dn=0, own=0):
    config0 = n << 4 | m << 16 | dst_stride << 32
    config1 = 16 | own << 16 | (quant >> 5) << 29 | clip << 30 | (quant & 31) << 34 | relu << 39
    return config0, config1 | split << 42 | nd << 43 | dn << 62


@pytest.mark.parametrize("to", ["gm", "l1", "ub"])
def test_words_hold_sizes_strides_and_layout(to):
    acc = ramp(3, 20)
    got = raw(acc, to, *words(3, 20, 24, nd=1))
    for m in range(3):
        assert got[m * 24 : m * 24 + 20].tolist() == acc[m].tolist()
    got = raw(acc, to, *words(3, 20, 4, dn=1))
    for n in range(20):
        assert got[n * 4 : n * 4 + 3].tolist() == acc[:, n].tolist()
    got = raw(acc, to, *words(3, 20, 128, split=1))
    for m in range(3):
        for n in range(20):
            assert got[n // 8 * 128 + m * 8 + n % 8] == acc[m, n]


def test_words_and_registers_repeat_the_rectangle():
    loop3 = 2 | 4 << 16 | 64 << 32  # twice, 4 rows further, to 64 elements further
    setup = f"pto.set_loop3_para #{loop3 & (1 << 40) - 1}, #{loop3 >> 40} : i64*2\n"
    acc = ramp(8, 16)
    got = raw(acc, "l1", *words(4, 16, 16, nd=1), setup=setup)
    assert got[:64].reshape(4, 16).tolist() == acc[:4].tolist()
    assert got[64:128].reshape(4, 16).tolist() == acc[4:].tolist()


def test_the_channel_register_holds_the_step_of_nz2dn():
    setup = f"pto.set_channel_para #0, #{2 << 8} : i64*2\n"  # 2 << 48
    acc = ramp(8, 16)
    got = raw(acc, "l1", *words(4, 16, 4, dn=1), setup=setup)
    assert got[:64].reshape(16, 4).tolist() == acc[0:8:2].T.tolist()


def test_registers_hold_scale_slope_and_clip():
    half, quarter, eight = 0x3F000000, 0x3E800000, 0x4800  # f32, f32, f16
    setup = (
        f"pto.set_quant_pre #{half} : i64\npto.set_relu_alpha #{quarter} : i64\n"
        f"pto.set_fix_clip_relu #{eight} : i64\n"
    )
    acc = np.array([[-8.0, 4.0, 100.0]], np.float32)
    fields = words(1, 3, 16, quant=32, relu=2, clip=1, nd=1)  # qf322f16_pre_scalar, scalar_relu
    got = raw(acc, "l1", *fields, kind=np.float16, setup=setup)
    assert got[:3].tolist() == [-1.0, 2.0, 8.0]


def test_a_scale_word_has_an_offset_and_a_sign():
    bits = 0x3F800000 | (-10 & 0x1FF) << 37 | 1 << 46
    acc = np.array([[5.0, 200.0, -200.0]], np.float32)
    setup = f"pto.set_quant_pre #{bits} : i64\n"
    got = raw(acc, "l1", *words(1, 3, 16, quant=24, nd=1), kind=np.int8, setup=setup)
    assert got[:3].tolist() == [-5, 127, -128]


def test_fpc_holds_where_channel_parameters_lie():
    table = np.zeros(512, np.uint8)
    table[128:256] = np.array([0x40000000] * 16, np.uint64).view(np.uint8)  # 2.0 in row 1
    acc = ramp(1, 16)
    got = raw(
        acc,
        "l1",
        *words(1, 16, 16, quant=14, nd=1),  # qf322f32_pre_vec
        setup=f"pto.set_fpc #{1 << 8} : i64\n",
        table=(Space.FIXPIPE, table),
    )
    assert got[:16].tolist() == (acc[0] * 2).tolist()


def test_atomics_of_words_are_those_of_the_control_register():
    before = np.full(4, 10, np.float32).view(np.uint8)
    setup = f"pto.set_ctrl #{1 << 48 | 1 << 6 | 1 << 9} : i64\n"  # f32, max
    got = raw(
        np.array([[5.0, 20.0]], np.float32), "gm", *words(1, 2, 2, nd=1), setup=setup, before=before
    )
    assert got.tolist() == [10, 20, 10, 10]


@pytest.mark.parametrize("fields", [{"relu": 4}, {"quant": 63}])
def test_fields_without_a_meaning(fields):
    with pytest.raises(PtoError) as caught:
        raw(ramp(1, 16), "l1", *words(1, 16, 16, nd=1, **fields))
    assert caught.value.code == "PTO-S169"


def test_a_dual_destination_without_a_meaning():
    with pytest.raises(PtoError) as caught:
        raw(ramp(2, 32), "ub", *words(2, 32, 32, nd=1, own=3))
    assert caught.value.code == "PTO-S169"


def test_words_name_the_second_sub_block():
    with pytest.raises(PtoError) as caught:
        raw(ramp(2, 32), "ub", *words(2, 32, 32, nd=1, own=4))
    assert caught.value.code == "PTO-M111"  # the bench has one
