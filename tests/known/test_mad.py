"""Products of the matrix unit: sums by plain Python, in the order that is part of the meaning."""

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from tests.transfers import FILL, NAMES, Transfers, accumulated, nz, up

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16


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
    return accumulated(out, m, n, into)


def in_order(a, b):
    """sum over k from plus zero: products exact (48 bits), sums in 64 bits rounded to f32."""
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = np.float32(0)
            for k in range(a.shape[1]):
                s = np.float32(s + np.longdouble(np.float64(a[i, k]) * np.float64(b[k, j])))
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


def test_products_are_exact_before_they_are_added():
    x = np.float32(1 + 2.0**-12)
    a = np.array([[-1.0, x]], np.float32).repeat(2, 0)
    b = np.array([[1.0], [x]], np.float32)
    # x*x = 1 + 2^-11 + 2^-24 exactly, 1 + 2^-11 rounded to f32
    assert product(a, b)[0, 0] == np.float32(2.0**-11 + 2.0**-24)


def test_a_sum_halfway_between_two_floats_is_rounded_once():
    # 1 + 2^-24 + 2^-70: in f64 the last term is lost, and what is left lies halfway, rounding to 1
    a = np.array([[1.0, 2.0**-12 + 2.0**-35]], np.float32)
    b = np.array([[1.0], [2.0**-12 + 2.0**-35]], np.float32)
    assert product(a, b)[0, 0] == np.float32(1 + 2.0**-23)


def test_sums_below_the_normal_floats_are_rounded_once():
    x = np.float32(2.0**-75 * (1 + 2.0**-23))  # x*x is just above half the least float, 2^-150
    assert product(np.array([[x]]), np.array([[x]]))[0, 0] == np.float32(2.0**-149)


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
    assert accumulated(out, 2, 1)[0, 0] == sum(values)


def test_four_bit_right_tiles():
    codes = np.array([[1, 2, 0xF, 8]], np.uint8)  # 1, 2, -1, -8 along k
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    bench = Transfers()
    bench.at("a", "f16, l0a", 0, nz(np.array([[1, 10, 100, 1000]] * 2, np.float16)))
    bench.at("b", "i4, l0b", 0, nz(packed))
    out = bench.at("c", "f32, l0c", 0)
    bench.go("pto.mad %a, %b, %c, #2, #1, #4 : {a}, {b}, {c}, i64*3")
    assert accumulated(out, 2, 1)[0, 0] == 1 + 20 - 100 - 8000


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
        f"pto.set_ctrl #{ctrl} : i64\n"
        f"pto.{op} %a, %b, %c, {table}#{word} : {{a}}, {{b}}, {{c}}, {types}i64"
    )
    return accumulated(out, 16, 16)


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


def mx(op, a, b, sa, sb, *, kinds=None, word=None, start=None, bias=None, low_level=False):
    """L0C after an MX product; scale codes are (m, k/32) and (k/32, n). Of kinds of fp4 the factors
    are codes, two of which are a byte along k, the first one low."""
    (m, k), n = a.shape, b.shape[1]
    bench = Transfers()
    left_kind, right_kind = kinds or ("f8E4M3FN", "f8E4M3FN")
    factors = [x[:, ::2] | x[:, 1::2] << 4 if kinds else x for x in (a, b.T.copy())]
    left = np.zeros((up(m, 16) // 16, -(-k // 64), 16, 2), np.uint8)
    right = np.zeros((up(n, 16) // 16, -(-k // 64), 16, 2), np.uint8)
    for g in range(sa.shape[1]):
        for i in range(m):
            left[i // 16, g // 2, i % 16, g % 2] = sa[i, g]
        for j in range(n):
            right[j // 16, g // 2, j % 16, g % 2] = sb[g, j]
    bench.at("sa", "f8E4M3FN, l1", 0, left)
    bench.at("sb", "f8E4M3FN, l1", 4096, right)
    bench.at("a", f"{left_kind}, l0a", 512, nz(factors[0]))
    bench.at("b", f"{right_kind}, l0b", 1024, nz(factors[1]))
    out = bench.at("c", "f32, l0c", 0, np.full((up(m, 16) * up(n, 16)), start or 0, np.float32))
    if low_level:
        x, y = right.shape[:2]
        loads = (
            f"pto.load_cbuf_to_ca_mx %sa, %a, #{m}, #{k} : {{sa}}, {{a}}, i64*2\n"
            f"pto.load_cbuf_to_cb_mx %sb, %b, #0, #0, #{x}, #{y}, #{y}, #{y}"
            " : {sb}, {b}, i64*6\n"
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
    numbers, count = (f"#{word}", 1) if word is not None else (f"#{m}, #{n}, #{k}", 3)
    bench.go(
        f"{loads}pto.{op} %a, %b, %c, {table}{numbers} : {{a}}, {{b}}, {{c}}, {types}i64*{count}"
    )
    return accumulated(out, m, n)


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


# sign, exponents and fractions as the bits say: e2m1 has bias 1, e1m2 has bias 1
_CODES = {
    "!pto.f4E2M1x2": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]),
    "!pto.f4E1M2x2": np.array([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]),
}


@pytest.mark.parametrize("left", _CODES)
@pytest.mark.parametrize("right", _CODES)
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 64), (20, 33, 128), (2, 5, 192)])
def test_mad_mx_of_pairs_of_four_bits(left, right, m, n, k):
    """Every sum is exact: multiples of 2^-4 below 2^17, scaled by 2^-4 to 2^3."""
    rng = np.random.default_rng(k)
    a, b = rng.integers(0, 16, (m, k)).astype(np.uint8), rng.integers(0, 16, (k, n))
    sa = rng.integers(125, 129, (m, k // 32)).astype(np.uint8)
    sb = rng.integers(125, 129, (k // 32, n)).astype(np.uint8)
    values = [np.concatenate([_CODES[kind], -_CODES[kind]]) for kind in (left, right)]
    x = values[0][a] * np.repeat(2.0 ** (sa.astype(int) - 127), 32, 1)
    y = values[1][b] * np.repeat(2.0 ** (sb.astype(int) - 127), 32, 0)
    found = mx("mad_mx", a, b.astype(np.uint8), sa, sb, kinds=(left, right))
    assert np.array_equal(found, x @ y)


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
