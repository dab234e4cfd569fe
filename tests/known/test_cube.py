"""The way to the matrix unit: which byte of L1, L0A, L0B and the tables each element is."""

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from tests.transfers import FILL, NAMES, Transfers, nz, up

BYTES = (np.arange(8192) % 251).astype(np.uint8)
BF16 = ml_dtypes.bfloat16
NUMBERS = "shape i64, i64, src_layout({}), dst_group i64*4, ctrl i64, i1"


# ---- fractal loads


def fractal(values, mode, n, d, inner, group, *, outer="", small="false"):
    bench = Transfers()
    elem = NAMES[values.dtype.type]
    bench.pointer("g", f"{elem}, gm", values)
    bench.at("d", f"{elem}, l1", 64)
    layout = f"#{inner}, #{outer}" if outer != "" else f"#{inner}"
    types = NUMBERS.format("i64, i64" if outer != "" else "i64")
    bench.go(
        f"pto.mte_gm_l1_frac %g, %d, {mode}, shape(#{n}, #{d}), src_layout({layout}),"
        f" dst_group({', '.join(f'#{x}' for x in group)}), ctrl(#0, #{small})"
        f" : {{g}}, {{d}}, {mode}, {types}"
    )
    return bench.memory(Space.L1)[64:]


@pytest.mark.parametrize("kind, n, d", [(np.float16, 5, 20), (np.float32, 3, 11), (np.int8, 2, 40)])
def test_nd2nz_puts_blocks_of_32_bytes_of_columns_behind_each_other(kind, n, d):
    values = np.arange(1, n * (d + 3) + 1).astype(kind).reshape(n, d + 3)
    size = values.itemsize
    l1 = fractal(values, "nd2nz", n, d, (d + 3) * size, (1, 1, 16, 0))
    wide = 32 // size
    for i in range(n):
        for j in range(up(d, wide)):
            at = (j // wide) * 16 * 32 + i * 32 + (j % wide) * size
            want = values[i, j] if j < d else 0
            assert l1[at : at + size].view(kind)[0] == want, (i, j)
    assert (l1[n * 32 : 16 * 32] == FILL).all()  # rows up to the pitch are not written


def test_dn2nz_reads_columns():
    values = np.arange(1, 61, dtype=np.float16).reshape(6, 10)  # d rows of n
    l1 = fractal(values, "dn2nz", 10, 6, 20, (1, 1, 16, 0)).view(np.float16)
    for n in range(10):
        assert l1[n * 16 : n * 16 + 16].tolist() == [*values[:, n].tolist(), *[0] * 10]


def test_groups_advance_by_bytes_in_the_source_and_blocks_in_the_destination():
    values = np.arange(1, 65, dtype=np.float32).reshape(2, 4, 8)
    l1 = fractal(values, "nd2nz", 4, 8, 32, (2, 2, 16, 10), outer=128).view(np.float32)
    for g in range(2):
        for n in range(4):
            at = (g * 10 + n * 2) * 8
            assert l1[at : at + 8].tolist() == values[g, n].tolist()


def test_small_c0_packs_four_channels_a_row():
    values = np.arange(1, 16, dtype=np.float16).reshape(5, 3)
    l1 = fractal(values, "nd2nz", 5, 3, 6, (1, 1, 16, 0), small="true").view(np.float16)
    want = np.zeros(32)
    want[:20].reshape(5, 4)[:, :3] = values
    assert l1[:32].tolist() == want.tolist()  # 20 values, zeros to the next 32 bytes
    assert (l1[32:].view(np.uint8) == FILL).all()


def test_low_level_fractal_loads_take_their_pattern_from_a_register():
    values = np.arange(1, 41, dtype=np.float16).reshape(4, 10)
    for op, pairs in (("nd2nz", values), ("dn2nz", values.T.copy())):
        bench = Transfers()
        bench.pointer("g", "f16, gm", pairs)
        bench.at("d", "f16, l1", 0)
        bench.go(
            f"pto.set_mte2_nz_para #{1 | 1 << 16 | 16 << 32} : i64\n"
            f"pto.copy_gm_to_cbuf_multi_{op} %g, %d, #0, #{pairs.strides[0]}, #0, #4, #10, #0,"
            " #false"
            " : {g}, {d}, i64*6, i1"
        )
        l1 = bench.memory(Space.L1).view(np.float16)
        for n in range(4):
            assert l1[n * 16 : n * 16 + 16].tolist() == [*values[n].tolist(), *[0] * 6]


@pytest.mark.parametrize(
    "shape, group, code",
    [((16, 32), (1, 1, 1, 0), "PTO-M165"), ((4000, 4000), (1, 1, 16, 0), "PTO-M161")],
)
def test_fractals_that_cannot_be(shape, group, code):
    values = np.zeros((16, 32), np.float16)
    with pytest.raises(PtoError) as caught:
        fractal(values, "nd2nz", *shape, 64, group)
    assert caught.value.code == code


# ---- L1 to L0


def loaded(op, matrix, a, b, *, transpose=False, more="", pitch=None):
    """L0 after mte_l1_l0a or mte_l1_l0b of a matrix that lies in L1 as NZ."""
    elem = NAMES[matrix.dtype.type]
    side = op[-3:]
    bench = Transfers()
    bench.at("s", f"{elem}, l1", 0, nz(matrix, pitch))
    bench.at("d", f"{elem}, {side}", 512)
    attr = " {transpose = true}" if transpose else ""
    types = "i64*4" if more else "i64*2"
    bench.go(f"pto.{op} %s, %d, #{a}, #{b}{more}{attr} : {{s}}, {{d}}, {types}")
    return bench.memory(Space.L0A if side == "l0a" else Space.L0B)[512:].view(matrix.dtype)


def test_mte_l1_l0a_keeps_the_strips_of_a_left_tile():
    a = np.arange(1, 20 * 40 + 1, dtype=np.float16).reshape(20, 40)
    l0a = loaded("mte_l1_l0a", a, 20, 40)
    for m in range(20):
        for k in range(40):
            assert l0a[(k // 16) * 32 * 16 + m * 16 + k % 16] == a[m, k]


@pytest.mark.parametrize("kind", [np.float16, np.float32, BF16])
def test_mte_l1_l0b_transposes_a_row_major_right_tile(kind):
    b = np.arange(1, 20 * 40 + 1).astype(kind).reshape(20, 40)  # k x n
    wide = 32 // b.itemsize
    l0b = loaded("mte_l1_l0b", b, 20, 40, transpose=True)
    pitch = up(40, 16)
    for k in range(20):
        for n in range(40):
            assert l0b[(k // wide) * pitch * wide + n * wide + k % wide] == b[k, n]


def test_mte_l1_l0b_without_transpose_takes_a_tile_of_n_rows():
    bt = np.arange(1, 18 * 20 + 1, dtype=np.float16).reshape(18, 20)  # n x k
    l0b = loaded("mte_l1_l0b", bt, 20, 18)
    for k in range(20):
        for n in range(18):
            assert l0b[(k // 16) * 32 * 16 + n * 16 + k % 16] == bt[n, k]


def test_mte_l1_l0a_transposes_a_tile_of_k_rows():
    at = np.arange(1, 32 * 16 + 1, dtype=np.float16).reshape(32, 16)  # k x m
    l0a = loaded("mte_l1_l0a", at, 16, 32, transpose=True)
    for m in range(16):
        for k in range(32):
            assert l0a[(k // 16) * 16 * 16 + m * 16 + k % 16] == at[k, m]


def test_bytes_are_transposed_in_squares_of_32():
    b = (np.arange(64 * 32) % 127).astype(np.int8).reshape(64, 32)  # k x n
    l0b = loaded("mte_l1_l0b", b, 64, 32, transpose=True, pitch=64)
    for k in range(64):
        for n in range(32):
            assert l0b[(k // 32) * 32 * 32 + n * 32 + k % 32] == b[k, n]


def test_starts_count_16_rows_and_32_bytes():
    a = np.arange(48 * 48, dtype=np.float32).reshape(48, 48).astype(np.float16)
    elem = "f16"
    bench = Transfers()
    bench.at("s", f"{elem}, l1", 0, nz(a))
    bench.at("d", f"{elem}, l0a", 0)
    # the pitch of the source is that of a tile of 48 rows only if m is 33 to 48
    bench.go("pto.mte_l1_l0a %s, %d, #48, #16, #0, #2 : {s}, {d}, i64*4")
    l0a = bench.memory(Space.L0A).view(np.float16)
    assert l0a[: 48 * 16].reshape(48, 16).tolist() == a[:, 32:48].tolist()


def test_load_cbuf_to_ca_moves_windows_of_fractals():
    a = (np.arange(64 * 64) % 2039).astype(np.float16).reshape(64, 64)
    bench = Transfers()
    bench.at("s", "f16, l1", 0, nz(a))
    bench.at("d", "f16, l0a", 0)
    bench.go("pto.load_cbuf_to_ca %s, %d, #1, #2, #2, #2, #4, #3 : {s}, {d}, i64*6")
    l0a = bench.memory(Space.L0A).view(np.float16)
    for col in range(2):
        got = l0a[col * 3 * 256 :][: 32 * 16].reshape(32, 16)
        assert got.tolist() == a[16:48, (2 + col) * 16 : (3 + col) * 16].tolist()
    assert (l0a[2 * 256 : 3 * 256].view(np.uint8) == FILL).all()  # the gap of the stride


def test_load_cbuf_to_cb_transposes_by_attribute():
    b = np.arange(16 * 16, dtype=np.float16).reshape(16, 16)
    bench = Transfers()
    bench.at("s", "f16, l1", 0, nz(b))
    bench.at("d", "f16, l0b", 0)
    bench.go(
        "pto.load_cbuf_to_cb %s, %d, #0, #0, #1, #1, #1, #1 {transpose = true} : {s}, {d}, i64*6"
    )
    assert bench.memory(Space.L0B).view(np.float16)[:256].reshape(16, 16).tolist() == b.T.tolist()


def test_four_bit_loads_transpose_nibbles():
    codes = (np.arange(64 * 64) * 7 % 16).astype(np.uint8).reshape(64, 64)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4  # 64 rows of 32 bytes: one strip
    for op, space in (("ca", Space.L0A), ("cb", Space.L0B)):
        bench = Transfers()
        bench.at("s", "i8, l1", 0, packed)
        bench.at("d", f"i8, l0{op[1]}", 0)
        bench.go(
            f"pto.load_cbuf_to_{op}_s4 %s, %d, #0, #0, #4, #1, #4, #4, #1 : {{s}}, {{d}}, i64*7"
        )
        got = bench.memory(space)[: 64 * 32].reshape(64, 32)
        turned = codes.T
        assert got.tolist() == (turned[:, 0::2] | turned[:, 1::2] << 4).tolist()


def test_a_transposed_load_of_half_a_square():
    bench = Transfers()
    bench.at("s", "i8, l1", 0)
    bench.at("d", "i8, l0b", 0)
    with pytest.raises(PtoError) as caught:
        bench.go(
            "pto.load_cbuf_to_cb %s, %d, #0, #0, #1, #1, #1, #2 {transpose = true}"
            " : {s}, {d}, i64*6"
        )
    assert caught.value.code == "PTO-S163"


def test_a_load_outside_l0_is_found_before_anything_is_written():
    bench = Transfers()
    bench.at("s", "f16, l1", 0)
    bench.at("d", "f16, l0a", 64 * 1024 - 512)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mte_l1_l0a %s, %d, #16, #32 : {s}, {d}, i64*2")
    assert caught.value.code == "PTO-M161" and "writes l0a" in str(caught.value)
    assert (bench.memory(Space.L0A) == FILL).all()


# ---- the tables


@pytest.mark.parametrize("kind, elem", [(np.float16, "f16"), (BF16, "bf16")])
def test_mte_l1_bt_widens_narrow_floats(kind, elem):
    values = np.array([1.5, -2, 0.1, np.inf] * 8, kind)
    bench = Transfers()
    bench.at("s", f"{elem}, l1", 0, values)
    bench.at("d", "f32, bt", 64)
    bench.go("pto.mte_l1_bt %s, %d, #1 nburst(#2, #0, #1) : {s}, {d}, i64*4")
    table = bench.memory(Space.BIAS)
    assert table[64:128].view(np.float32).tolist() == values[:16].astype(np.float32).tolist()
    assert (table[128:160] == FILL).all()  # the gap of 32 bytes
    assert table[160:224].view(np.float32).tolist() == values[16:].astype(np.float32).tolist()


@pytest.mark.parametrize("kind, elem", [(np.float32, "f32"), (np.int32, "i32")])
def test_mte_l1_bt_copies_words(kind, elem):
    values = np.array([1, -2, 3, 4, 5, 6, 7, 8], kind)
    bench = Transfers()
    bench.at("s", f"{elem}, l1", 0, values)
    bench.at("d", f"{elem}, bt", 0)
    bench.go("pto.mte_l1_bt %s, %d, #1 nburst(#1, #0, #0) : {s}, {d}, i64*4")
    assert bench.memory(Space.BIAS)[:32].view(kind).tolist() == values.tolist()


def test_copy_cbuf_to_bt_widens_where_its_control_says_so():
    values = np.arange(1, 17, dtype=np.float16)
    for conv in ("true", "false"):
        bench = Transfers()
        bench.at("s", "f16, l1", 0, values)
        bench.at("d", "f32, bt", 0)
        bench.go(f"pto.copy_cbuf_to_bt %s, %d, #{conv}, #1, #1, #0, #0 : {{s}}, {{d}}, i1, i64*4")
        table = bench.memory(Space.BIAS)[:64]
        if conv == "true":
            assert table.view(np.float32).tolist() == values.tolist()
        else:  # the f16 in the low half of a slot
            assert table.view(np.uint32).tolist() == values.view(np.uint16).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "pto.mte_l1_fb %s, %d, #2 nburst(#2, #1, #0) : {s}, {d}, i64*4",
        "pto.copy_cbuf_to_fbuf %s, %d, #2, #2, #1, #0 : {s}, {d}, i64*4",
    ],
)
def test_fixpipe_parameters_move_in_units_of_64_bytes(text):
    bench = Transfers()
    bench.at("s", "ui64, l1", 0, BYTES[:1024])
    bench.at("d", "f32, fb", 128)
    bench.go(text)
    table = bench.memory(Space.FIXPIPE)
    assert table[128:256].tolist() == BYTES[:128].tolist()
    assert table[256:384].tolist() == BYTES[192:320].tolist()
    assert (table[384:] == FILL).all()


def test_the_segment_of_relu_parameters_is_a_place_of_its_own():
    bench = Transfers()
    bench.at("s", "ui32, l1", 0, BYTES[:64])
    bench.at("d", "f32, fb", 0x10040)
    bench.go("pto.mte_l1_fb %s, %d, #1 nburst(#1, #0, #0) : {s}, {d}, i64*4")
    assert (bench.memory(Space.FIXPIPE) == FILL).all()
