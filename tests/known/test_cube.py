"""The way to the matrix unit and its products: addresses by hand, sums by plain Python floats."""

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from tests.transfers import FILL, Transfers

BYTES = (np.arange(8192) % 251).astype(np.uint8)
E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
NAMES = {
    np.float16: "f16",
    np.float32: "f32",
    np.int8: "i8",
    BF16: "bf16",
    E4M3: "f8E4M3FN",
    ml_dtypes.float8_e5m2: "f8E5M2",
}
NUMBERS = "shape i64, i64, src_layout({}), dst_group i64*4, ctrl i64, i1"


def up(n, step):
    return -(-n // step) * step


def nz(matrix, rows=None):
    """A matrix as strips of 32 bytes of columns, each of all rows, padded with zeros."""
    wide = 32 // matrix.dtype.itemsize
    height, width = matrix.shape
    whole = np.zeros((rows or up(height, 16), up(width, wide)), matrix.dtype)
    whole[:height, :width] = matrix
    return np.concatenate(
        [whole[:, c : c + wide].reshape(-1) for c in range(0, whole.shape[1], wide)]
    )


def l0c_of(raw, m, n, kind=np.float32):
    """The matrix in L0C: blocks of 16 columns, all rows (padded to 16) of one before the next."""
    items, pitch = raw.view(kind), up(m, 16)
    return np.array(
        [[items[((j // 16) * pitch + i) * 16 + j % 16] for j in range(n)] for i in range(m)]
    )


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
    want = [*sum(([*row, 0] for row in values.tolist()), []), *[0] * 12]
    assert l1[:32].tolist() == want  # 20 values, zeros to the next 32 bytes
    assert (l1[32:].view(np.uint8) == FILL).all()


def test_low_level_fractal_loads_take_their_pattern_from_a_register():
    values = np.arange(1, 41, dtype=np.float16).reshape(4, 10)
    for op, pairs in (("nd2nz", values), ("dn2nz", values.T.copy())):
        bench = Transfers()
        bench.pointer("g", "f16, gm", pairs)
        bench.at("d", "f16, l1", 0)
        bench.go(
            f"pto.set_mte2_nz_para #{1 | 1 << 16 | 16 << 32} : i64\n"
            f"pto.copy_gm_to_cbuf_multi_{op} %g, %d, #0, #{pairs.strides[0]}, #0, #4, #10, #0, #false"
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


# ---- products


def product(a, b, *, into=np.float32, op="mad", clauses="", start=None, bias=None, ctrl=None):
    """L0C after a product of a (m x k) and b (k x n)."""
    m, k = a.shape
    n = b.shape[1]
    kinds = {np.float32: "f32", np.int32: "i32", np.float16: "f16"}
    bench = Transfers()
    bench.at("a", f"{NAMES[a.dtype.type]}, l0a", 0, nz(a))
    bench.at("b", f"{NAMES[b.dtype.type]}, l0b", 0, nz(b.T.copy()))
    out = bench.at("c", f"{kinds[into]}, l0c", 0)
    if start is not None:
        pitch, items = up(m, 16), out.view(into)
        for i in range(m):
            for j in range(n):
                items[((j // 16) * pitch + i) * 16 + j % 16] = start[i, j]
    table = ""
    if bias is not None:
        bench.at("t", f"{kinds[into]}, bt", 0, bias)
        table = "%t, "
    types = "{a}, {b}, {c}, " + ("{t}, " if table else "")
    head = f"pto.set_ctrl #{ctrl} : i64\n" if ctrl is not None else ""
    bench.go(f"{head}pto.{op} %a, %b, %c, {table}#{m}, #{n}, #{k} {clauses} : {types}i64*3")
    return l0c_of(out, m, n, into)


def in_order(a, b):
    """sum over k, product and sum rounded to f32 each, from plus zero."""
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = np.float32(0)
            for k in range(a.shape[1]):
                s = np.float32(s + np.float32(np.float32(a[i, k]) * np.float32(b[k, j])))
            out[i, j] = s
    return out


def random(shape, kind, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


@pytest.mark.parametrize(
    "kind", [np.float16, BF16, np.float32, E4M3, ml_dtypes.float8_e5m2], ids=lambda k: k.__name__
)
def test_mad_adds_products_in_the_order_of_k(kind):
    a, b = random((5, 37), kind), random((37, 19), kind, 1)
    got = product(a, b)
    assert got.tobytes() == in_order(a, b).tobytes()


def test_order_and_rounding_show_in_the_sum():
    # 2^24 + 1 + 1 is 2^24 when each sum is rounded, 2^24 + 2 when the ones come first
    a = np.zeros((2, 16), np.float32)
    a[0, :3], a[1, :3] = [2.0**24, 1, 1], [1, 1, 2.0**24]
    got = product(a, np.ones((16, 1), np.float32))
    assert got[:, 0].tolist() == [2.0**24, 2.0**24 + 2]


def test_products_are_rounded_before_they_are_added():
    x = np.float32(1 + 2.0**-12)
    a = np.array([[-1.0, x]], np.float32).repeat(2, 0)
    b = np.array([[1.0], [x]], np.float32)
    # x*x = 1 + 2^-11 + 2^-24 exactly, 1 + 2^-11 rounded; a fused sum would keep 2^-24
    assert product(a, b)[0, 0] == np.float32(2.0**-11)


def test_integers_are_exact_and_wrap():
    rng = np.random.default_rng(3)
    a = rng.integers(-128, 128, (17, 50)).astype(np.int8)
    b = rng.integers(-128, 128, (50, 33)).astype(np.int8)
    assert (
        product(a, b, into=np.int32).tolist() == (a.astype(np.int64) @ b.astype(np.int64)).tolist()
    )
    top = np.full((17, 33), 2**31 - 1)
    got = product(a, b, into=np.int32, op="mad_acc", start=top)
    want = (a.astype(np.int64) @ b.astype(np.int64) + 2**31 - 1).astype(np.int32)
    assert got.tolist() == want.tolist()


def test_mad_acc_adds_the_old_value_once_at_the_end():
    a, b, old = (
        random((4, 20), np.float16),
        random((20, 8), np.float16, 1),
        random((4, 8), np.float32),
    )
    got = product(a, b, op="mad_acc", start=old)
    assert got.tobytes() == (old + in_order(a, b)).tobytes()


def test_mad_bias_adds_a_value_a_column_and_forgets_the_accumulator():
    a, b = random((4, 20), np.float16), random((20, 18), np.float16, 1)
    bias = random((18,), np.float32, 2)
    got = product(a, b, op="mad_bias", start=np.full((4, 18), 9.0), bias=bias)
    assert got.tobytes() == (in_order(a, b) + bias).tobytes()


def test_f16_accumulators_round_the_finished_sum():
    a, b = np.full((1, 3), 0.1, np.float16), np.ones((3, 1), np.float16)
    got = product(a, b, into=np.float16, clauses="disable_gemv")
    assert got.tolist() == in_order(a, b).astype(np.float16).tolist()


def test_only_the_logical_elements_of_l0c_are_written():
    a, b = np.ones((3, 16), np.float16), np.ones((16, 5), np.float16)
    bench = Transfers()
    bench.at("a", "f16, l0a", 0, nz(a))
    bench.at("b", "f16, l0b", 0, nz(b.T.copy()))
    out = bench.at("c", "f32, l0c", 0)
    bench.go("pto.mad %a, %b, %c, #3, #5, #16 : {a}, {b}, {c}, i64*3")
    rows = out[: 16 * 64].reshape(16, 64)
    assert (rows[:3, :20].copy().view(np.float32) == 16).all()
    assert (rows[:3, 20:] == FILL).all() and (rows[3:] == FILL).all() and (out[1024:] == FILL).all()


def test_one_row_is_read_as_a_contiguous_vector_unless_disabled():
    values = np.arange(1, 65, dtype=np.float16)
    b = np.eye(64, 16, dtype=np.float16)
    bench = Transfers()
    bench.at("a", "f16, l0a", 0, values)
    bench.at("b", "f16, l0b", 0, nz(b.T.copy()))
    out = bench.at("c", "f32, l0c", 0)
    bench.go("pto.mad %a, %b, %c, #1, #16, #64 : {a}, {b}, {c}, i64*3")
    assert out[:64].view(np.float32).tolist() == list(range(1, 17))
    got = product(values[None, :], b, clauses="disable_gemv")
    assert got[0].tolist() == list(range(1, 17))


def test_tf32_rounds_the_factors_only():
    a = np.array([[1 + 2.0**-11, 1 + 3 * 2.0**-11]], np.float32).repeat(2, 0)  # ties
    b = np.eye(2, dtype=np.float32)
    even = product(a, b, clauses="tf32_mode(round_even)")
    away = product(a, b, clauses="tf32_mode(round_away)")
    assert even[0].tolist() == [1.0, 1 + 2.0**-9]
    assert away[0].tolist() == [1 + 2.0**-10, 1 + 2.0**-9]
    assert product(a, b)[0].tolist() == a[0].tolist()


def test_tf32_keeps_specials():
    a = np.array([[np.inf, 0], [0, -np.inf]], np.float32)
    quiet = np.array([[0x7F800001, 0]], np.uint32).view(np.float32).repeat(2, 0)
    assert product(a, np.full((2, 1), 2.0, np.float32), clauses="tf32_mode(round_even)")[
        :, 0
    ].tolist() == [np.inf, -np.inf]
    assert np.isnan(
        product(quiet, np.ones((2, 1), np.float32), clauses="tf32_mode(round_away)")
    ).all()


def test_saturation_replaces_specials_and_stops_overflow():
    a = np.array([[np.inf, 1], [np.nan, 1]], np.float16)
    b = np.array([[1.0], [1.0]], np.float16)
    assert product(a, b, clauses="sat")[:, 0].tolist() == [65505.0, 1.0]
    kept = product(a, b, clauses="nosat")[:, 0]
    assert kept[0] == np.inf and np.isnan(kept[1])
    big = np.full((2, 2), 3e38, np.float32)
    most = float(np.finfo(np.float32).max)
    ones = np.array([[1.0], [1.0]], np.float32)
    assert product(big, ones, clauses="sat")[:, 0].tolist() == [most, most]
    assert product(big, ones, clauses="nosat")[:, 0].tolist() == [np.inf, np.inf]
    # what has overflowed stays at the end of the range and comes back from there
    back = np.array([[3e38, 3e38, -3e38]] * 2, np.float32)
    want = np.float32(np.float32(most) - np.float32(3e38))
    assert product(back, np.ones((3, 1), np.float32), clauses="sat")[0, 0] == want


def test_without_a_clause_control_bit_48_decides():
    a, b = np.full((2, 1), np.inf, np.float16), np.ones((1, 1), np.float16)
    assert product(a, b)[0, 0] == np.inf  # a program that never writes CTRL
    assert product(a, b, ctrl=1 << 48)[0, 0] == np.inf
    assert product(a, b, ctrl=0)[0, 0] == 65504.0


@pytest.mark.parametrize(
    "codes, values, elem",
    [
        ([0x08, 0x10, 0x88], [1.0, 2.0, -1.0], "!pto.hif8"),  # Dot field 0001, exponent 0 and 1
    ],
)
def test_hifloat8_factors(codes, values, elem):
    a = np.array([codes] * 2, np.uint8)
    bench = Transfers()
    bench.at("a", f"{elem}, l0a", 0, nz(a))
    bench.at("b", f"{elem}, l0b", 0, nz(np.array([[0x08] * 3], np.uint8)))
    out = bench.at("c", "f32, l0c", 0)
    bench.go("pto.mad %a, %b, %c, #2, #1, #3 : {a}, {b}, {c}, i64*3")
    assert l0c_of(out, 2, 1)[0, 0] == sum(values)


def test_four_bit_right_tiles():
    codes = np.array([[1, 2, 0xF, 8]], np.uint8)  # 1, 2, -1, -8 along k
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    bench = Transfers()
    bench.at("a", "f16, l0a", 0, nz(np.array([[1, 10, 100, 1000]] * 2, np.float16)))
    bench.at("b", "i4, l0b", 0, nz(packed))
    out = bench.at("c", "f32, l0c", 0)
    bench.go("pto.mad %a, %b, %c, #2, #1, #4 : {a}, {b}, {c}, i64*3")
    assert l0c_of(out, 2, 1)[0, 0] == 1 + 20 - 100 - 8000


def test_an_undefined_product():
    with pytest.raises(PtoError) as caught:
        product(np.ones((2, 2), np.float16), np.ones((2, 2), np.float16), into=np.int32)
    assert caught.value.code == "PTO-T161"


@pytest.mark.parametrize("m, n, k", [(0, 16, 16), (16, 4096, 16), (16, 16, -1)])
def test_sizes_are_fields_of_12_bits(m, n, k):
    bench = Transfers()
    for name, type in (("a", "f16, l0a"), ("b", "f16, l0b"), ("c", "f32, l0c")):
        bench.at(name, type, 0)
    for name, size in (("m", m), ("n", n), ("k", k)):
        bench.scalar(name, "i64", size)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mad %a, %b, %c, %m, %n, %k : {a}, {b}, {c}, i64*3")
    assert caught.value.code == "PTO-S164"


def test_a_product_outside_l0c_is_found_before_it_is_written():
    bench = Transfers()
    bench.at("a", "f16, l0a", 0, np.zeros(1024, np.float16))
    bench.at("b", "f16, l0b", 0, np.zeros(1024, np.float16))
    bench.at("c", "f32, l0c", 256 * 1024 - 1024)
    with pytest.raises(PtoError) as caught:
        bench.go("pto.mad %a, %b, %c, #16, #32, #16 : {a}, {b}, {c}, i64*3")
    assert caught.value.code == "PTO-M161" and "writes l0c" in str(caught.value)
    assert (bench.memory(Space.L0C) == FILL).all()


# ---- low-level products


def raw(word, op="mad_raw", old=100.0, bias=None, ctrl=1 << 48, kind=np.float16):
    a, b = np.full((16, 16), 1 + 2.0**-11, kind), np.eye(16, dtype=kind)
    bench = Transfers()
    bench.at("a", f"{NAMES[kind]}, l0a", 0, nz(a))
    bench.at("b", f"{NAMES[kind]}, l0b", 0, nz(b))
    out = bench.at("c", "f32, l0c", 0, np.full(256, old, np.float32))
    table = types = ""
    if bias is not None:
        bench.at("t", "f32, bt", 0, bias)
        table, types = "%t, ", "{t}, "
    word -= (word >> 63) << 64  # as an i64
    bench.go(
        f"pto.set_ctrl #{ctrl} : i64\npto.{op} %a, %b, %c, {table}#{word} : {{a}}, {{b}}, {{c}}, {types}i64"
    )
    return l0c_of(out, 16, 16)


SIZES = 16 | 16 << 12 | 16 << 24


def test_raw_words_say_what_the_accumulator_starts_from():
    one = float(np.float16(1 + 2.0**-11))
    assert (raw(SIZES | 1 << 63) == one).all()
    assert (raw(SIZES) == 100 + one).all()
    bias = np.arange(16, dtype=np.float32)
    assert (raw(SIZES | 1 << 62, "mad_bias_raw", bias=bias) == one + bias).all()
    assert (raw(SIZES, "mad_bias_raw", bias=bias) == 100 + one).all()


def test_raw_words_without_a_bias_operand_cannot_take_it():
    with pytest.raises(PtoError) as caught:
        raw(SIZES | 1 << 62)
    assert caught.value.code == "PTO-S165"


@pytest.mark.parametrize("bits, want", [(0, 1 + 2.0**-11), (1 << 46, 1.0), (3 << 46, 1 + 2.0**-10)])
def test_raw_products_round_to_tf32_as_control_says(bits, want):
    got = raw(SIZES | 1 << 63, kind=np.float32, ctrl=1 << 48 | bits)
    assert (got == np.float32(want)).all()


# ---- block scales


def mx(op, a, b, sa, sb, *, clauses="", word=None, start=None, bias=None, low_level=False):
    """L0C after an MX product; scale codes are (m, k/32) and (k/32, n)."""
    (m, k), n = a.shape, b.shape[1]
    bench = Transfers()
    left = np.zeros((up(m, 16) // 16, -(-k // 64), 16, 2), np.uint8)
    right = np.zeros((up(n, 16) // 16, -(-k // 64), 16, 2), np.uint8)
    for g in range(sa.shape[1]):
        for i in range(m):
            left[i // 16, g // 2, i % 16, g % 2] = sa[i, g]
        for j in range(n):
            right[j // 16, g // 2, j % 16, g % 2] = sb[g, j]
    bench.at("sa", "f8E4M3FN, l1", 0, left)
    bench.at("sb", "f8E4M3FN, l1", 4096, right)
    bench.at("a", "f8E4M3FN, l0a", 512, nz(a))
    bench.at("b", "f8E4M3FN, l0b", 1024, nz(b.T.copy()))
    out = bench.at("c", "f32, l0c", 0, np.full((up(m, 16) * up(n, 16)), start or 0, np.float32))
    if low_level:
        x, y = right.shape[:2]
        loads = (
            f"pto.load_cbuf_to_ca_mx %sa, %a, #{m}, #{k} : {{sa}}, {{a}}, i64*2\n"
            f"pto.load_cbuf_to_cb_mx %sb, %b, #0, #0, #{x}, #{y}, #{y}, #{y} : {{sb}}, {{b}}, i64*6\n"
        )
    else:
        loads = (
            f"pto.mte_l1_l0a_mx %sa, %a, #{m}, #{k} : {{sa}}, {{a}}, i64*2\n"
            f"pto.mte_l1_l0b_mx %sb, %b, #{k}, #{n} : {{sb}}, {{b}}, i64*2\n"
        )
    table = types = ""
    if bias is not None:
        bench.at("t", "f32, bt", 0, bias)
        table, types = "%t, ", "{t}, "
    numbers, count = (f"#{word}", 1) if word is not None else (f"#{m}, #{n}, #{k} {clauses}", 3)
    bench.go(
        f"{loads}pto.{op} %a, %b, %c, {table}{numbers} : {{a}}, {{b}}, {{c}}, {types}i64*{count}"
    )
    return l0c_of(out, m, n)


def mx_case():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(20, 128)).astype(E4M3), rng.normal(size=(128, 33)).astype(E4M3)
    sa = rng.integers(120, 134, (20, 4)).astype(np.uint8)
    sb = rng.integers(120, 134, (4, 33)).astype(np.uint8)
    left = a.astype(np.float64) * np.repeat(2.0 ** (sa.astype(int) - 127), 32, 1)
    right = b.astype(np.float64) * np.repeat(2.0 ** (sb.astype(int) - 127), 32, 0)
    total = np.zeros((20, 33), np.float32)
    for k in range(128):
        total = total + (left[:, k : k + 1] * right[k]).astype(np.float32)
    return a, b, sa, sb, total


@pytest.mark.parametrize("low_level", [False, True])
def test_mad_mx_scales_each_group_of_32(low_level):
    a, b, sa, sb, want = mx_case()
    assert mx("mad_mx", a, b, sa, sb, low_level=low_level).tobytes() == want.tobytes()


def test_mad_mx_acc_and_bias():
    a, b, sa, sb, want = mx_case()
    assert mx("mad_mx_acc", a, b, sa, sb, start=3.0).tobytes() == (want + np.float32(3)).tobytes()
    bias = np.arange(33, dtype=np.float32)
    got = mx("mad_mx_bias", a, b, sa, sb, start=3.0, bias=bias)
    assert got.tobytes() == (want + bias).tobytes()


def test_raw_mx_products():
    a, b, sa, sb, want = mx_case()
    sizes = 20 | 128 << 12 | 33 << 24
    fresh = sizes | 1 << 63
    got = mx("mad_mx_raw", a, b, sa, sb, start=3.0, word=fresh - (1 << 64))
    assert got.tobytes() == want.tobytes()
    bias = np.arange(33, dtype=np.float32)
    got = mx("mad_mx_bias_raw", a, b, sa, sb, start=3.0, word=sizes | 1 << 62, bias=bias)
    assert got.tobytes() == (want + bias).tobytes()


def test_scales_reach_beyond_the_range_of_f32_factors():
    # 448 * 2^127 is no f32, times 2^-127 it is 448 again
    a, b = np.full((2, 64), 448.0, E4M3), np.zeros((64, 1), E4M3)
    b[0] = 1.0
    sa, sb = np.full((2, 2), 254, np.uint8), np.full((2, 1), 0, np.uint8)
    assert mx("mad_mx", a, b, sa, sb)[0, 0] == 448.0


def test_a_scale_of_all_ones_is_not_a_number():
    a, b = np.ones((2, 64), E4M3), np.ones((64, 1), E4M3)
    sa, sb = np.full((2, 2), 127, np.uint8), np.full((2, 1), 127, np.uint8)
    sa[1, 1] = 255
    got = mx("mad_mx", a, b, sa, sb)[:, 0]
    assert got[0] == 64 and np.isnan(got[1])
