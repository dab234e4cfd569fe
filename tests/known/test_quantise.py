"""What the fixpipe makes of accumulator values: by hand, and against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.fixpipes import fixpipe, ramp

NAN, INF, F16_MAX = np.nan, np.inf, 65504.0

SPECIALS = np.array([[1.0, 1e5, -1e5, INF, -INF, NAN, -0.0, 2049.0]], np.float32)
SCALAR = ", pre_quant(%q, mode = {}_scalar){}, nz2nd{}"


def scaled(acc, mode, kind, scale=1.0, *, relu="", end="", elem=None, payloads=(), **options):
    given = (("q", options.pop("scale_type", "f32"), scale), *payloads)
    clause = SCALAR.format(mode, relu, end)
    m, n = acc.shape
    got = fixpipe(acc, clause, kind=kind, elem=elem, payloads=given, **options)
    return got[: m * n].reshape(m, n)


def test_sat_clamps_and_drops_nan():
    got = scaled(SPECIALS, "qf322f16_pre", np.float16, end=", sat")[0]
    assert got.tolist() == [1.0, F16_MAX, -F16_MAX, F16_MAX, -F16_MAX, 0.0, 0.0, 2048.0]
    assert np.signbit(got[6])


def test_nosat_keeps_specials_and_overflows_to_infinity():
    got = scaled(SPECIALS, "qf322f16_pre", np.float16, end=", nosat")[0]
    assert got[:5].tolist() == [1.0, INF, -INF, INF, -INF] and np.isnan(got[5])


def test_sat_preserve_nan_keeps_nan_only():
    got = scaled(SPECIALS, "qf322fp8_pre", ml_dtypes.float8_e4m3fn, end=", sat(preserve_nan)")[
        0
    ].astype(np.float32)
    assert got[:5].tolist() == [1.0, 448, -448, 448, -448] and np.isnan(got[5])


def test_control_bits_stand_in_for_the_clause():
    keep = scaled(SPECIALS, "qf322f16_pre", np.float16)[0]
    assert keep[3] == INF and np.isnan(keep[5])  # CTRL never written
    clamp = scaled(SPECIALS, "qf322f16_pre", np.float16, ctrl=0)[0]
    assert clamp[3] == F16_MAX and clamp[5] == 0
    both = scaled(SPECIALS, "qf322f16_pre", np.float16, ctrl=1 << 50)[0]
    assert both[3] == F16_MAX and np.isnan(both[5])


def test_f32_destinations_keep_specials_under_sat():
    got = scaled(SPECIALS, "qf322f32_pre", np.float32, 2.0, end=", sat")[0]
    assert got[3] == INF and np.isnan(got[5]) and got[1] == 2e5


@pytest.mark.parametrize(
    "mode, kind",
    [
        ("qf322f16_pre", np.float16),
        ("qf322bf16_pre", ml_dtypes.bfloat16),
        ("qf322fp8_pre", ml_dtypes.float8_e4m3fn),
        ("qf322fp8_pre", ml_dtypes.float8_e5m2),
    ],
)
def test_scale_is_a_product_in_f32_then_one_rounding(mode, kind):
    acc = np.random.default_rng(1).normal(size=(7, 33)).astype(np.float32)
    got = scaled(acc, mode, kind, 1.7, end=", nosat")
    assert got.tobytes() == (acc * np.float32(1.7)).astype(kind).tobytes()


@pytest.mark.parametrize("mode, kind", [("f32_f16", np.float16), ("f32_bf16", ml_dtypes.bfloat16)])
def test_plain_conversions_ignore_their_payload(mode, kind):
    acc = np.random.default_rng(2).normal(size=(3, 17)).astype(np.float32)
    bench_clause = f", pre_quant(%q, mode = {mode}), nz2nd"
    got = fixpipe(acc, bench_clause, kind=kind, payloads=(("q", "f32", 5.0),))
    assert got[: 3 * 17].tobytes() == acc.astype(kind).tobytes()


def test_hifloat8_rounds_ties_away():
    # 1.0625 is half way between 1.0 (0x08) and 1.125 (0x09)
    acc = np.array([[1.0, 1.0625, -1.0625, 2.0]], np.float32)
    got = scaled(acc, "qf322hif8_pre", np.uint8, elem="!pto.hif8")
    assert got[0].tolist() == [0x08, 0x09, 0x89, 0x10]


def test_hybrid_rounding_is_not_defined():
    with pytest.raises(PtoError) as caught:
        scaled(SPECIALS, "qf322hif8_pre_hybrid", np.uint8, elem="!pto.hif8")
    assert caught.value.code == "PTO-T162"


@pytest.mark.parametrize("type", ["f16", "bf16", "f32"])
def test_scalar_payloads_are_widened(type):
    acc = ramp(2, 16)
    got = scaled(acc, "qf322f16_pre", np.float16, 0.25, scale_type=type)
    assert got.tolist() == (acc * 0.25).tolist()


INTS = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 300.0, -300.0, NAN, INF]], np.float32)


def test_bytes_round_to_even_and_saturate_by_the_sign_of_the_destination():
    signed = scaled(INTS, "qf322b8_pre", np.int8)[0]
    assert signed.tolist() == [0, 2, 2, 0, -2, 127, 127, -128, 0, 127]
    unsigned = scaled(INTS, "qf322b8_pre", np.uint8)[0]
    assert unsigned.tolist() == [0, 2, 2, 0, 0, 128, 255, 0, 0, 255]


def test_half_precision_modes_round_to_f16_first():
    acc = np.array([[2049.0, 4098.0]], np.float32)  # f16: 2048, 4096 (to even)
    got = scaled(acc, "qf162b8_pre", np.uint8, 1 / 64)[0]
    assert got.tolist() == [32, 64]
    direct = scaled(np.array([[2081.0]], np.float32), "qf322b8_pre", np.uint8, 1 / 64)
    through = scaled(np.array([[2081.0]], np.float32), "qf162b8_pre", np.uint8, 1 / 64)
    assert (direct[0, 0], through[0, 0]) == (33, 32)  # 32.516 and 2080/64 = 32.5


@pytest.mark.parametrize("mode", ["req8", "deqs32_int"])
def test_requantised_integers(mode):
    acc = np.array([[100, -100, 5, 3, 2**31 - 1, -(2**31)]], np.int32)
    got = scaled(acc, mode, np.int8, 0.5)[0]
    assert got.tolist() == [50, -50, 2, 2, 127, -128]


@pytest.mark.parametrize("mode", ["deqs16", "qf162s16_pre", "deqs32_int"])
def test_integers_of_16_bits(mode):
    acc = np.array([[100, -100, 30000, -30000]], np.int32)
    got = scaled(acc, mode, np.int16, 2.0)[0]
    assert got.tolist() == [200, -200, 32767, -32768]


def test_deqs32_int_to_i32_saturates():
    acc = np.array([[7, -(2**31), 2**31 - 1]], np.int32)
    got = scaled(acc, "deqs32_int", np.int32, 2.0)[0]
    assert got.tolist() == [14, -(2**31), 2**31 - 1]


@pytest.mark.parametrize(
    "mode, kind", [("req4", np.int32), ("qf322s4_pre", np.float32), ("qf162s4_pre", np.float32)]
)
def test_four_bit_results_are_packed_low_nibble_first(mode, kind):
    acc = np.array([[1, -1, 7, 100, -8, -100]], kind)
    got = scaled(acc, mode, np.uint8, elem="i4")
    assert got.reshape(-1)[:3].tolist() == [0xF1, 0x77, 0x88]


def test_four_bit_rows_start_at_bytes():
    with pytest.raises(PtoError) as caught:
        scaled(np.zeros((2, 4), np.int32), "req4", np.uint8, elem="i4", stride=5)
    assert caught.value.code == "PTO-S167"


@pytest.mark.parametrize(
    "mode, kind", [("deqf16", np.float16), ("qs322bf16_pre", ml_dtypes.bfloat16)]
)
def test_integers_become_floats(mode, kind):
    acc = np.array([[16777217, -3, 70000]], np.int32)  # 2^24 + 1 is 2^24 in f32
    got = scaled(acc, mode, kind, 0.25, end=", nosat")[0]
    with np.errstate(over="ignore"):
        want = (acc.astype(np.float32) * np.float32(0.25)).astype(kind)
    assert got.tobytes() == want[0].tobytes()


# ---- parameters a channel


def word(scale, offset=0, sign=0):
    bits = int(np.float32(scale).view(np.uint32))
    return bits | (offset & 0x1FF) << 37 | sign << 46


def by_channel(acc, mode, kind, words, **options):
    n = acc.shape[1]
    payload = ("q", "f32, fb", (128, np.array(words, np.uint64)))
    clause = f", pre_quant(%q, mode = {mode}_vec), nz2nd"
    got = fixpipe(acc, clause, kind=kind, payloads=(payload,), **options)
    return got[: acc.size].reshape(-1, n)


def test_each_channel_has_a_scale():
    acc = ramp(4, 20)
    scales = np.linspace(0.5, 2.5, 20).astype(np.float32)
    short = (scales.view(np.uint32) & 0xFFFFE000).view(np.float32)  # 10 mantissa bits
    got = by_channel(acc, "qf322f16_pre", np.float16, [word(s) for s in scales])
    assert got.tobytes() == (acc * short).astype(np.float16).tobytes()


def test_offset_is_added_after_rounding_and_sign_chooses_the_range():
    acc = np.array([[2.5, 2.5, -1.0, -1.0, 200.0, 200.0, 0.0]], np.float32)
    words = [
        word(1, 1, 1),
        word(1, -3, 1),
        word(1, 0, 1),
        word(1, 0, 0),
        word(1, 0, 1),
        word(1, 0, 0),
        word(1, -256, 1),
    ]
    got = by_channel(acc, "qf322b8_pre", np.int8, words)[0]
    # 2 + 1, 2 - 3, -1, 0 (unsigned), 127, 200 as a byte, -128
    assert got.tolist() == [3, -1, -1, 0, 127, 200 - 256, -128]


def test_scaled_bytes_have_nine_bits_before_the_offset():
    acc = np.array([[1000.0, -1000.0]], np.float32)
    got = by_channel(acc, "qf322b8_pre", np.int8, [word(1, -200, 1), word(1, 200, 1)])[0]
    assert got.tolist() == [55, -56]  # 255 - 200, -256 + 200


def test_parameters_start_at_rows_of_128_bytes():
    payload = ("q", "f32, fb", (64, np.array([word(1)] * 16, np.uint64)))
    with pytest.raises(PtoError) as caught:
        fixpipe(
            ramp(1, 16),
            ", pre_quant(%q, mode = qf322f16_pre_vec), nz2nd",
            kind=np.float16,
            payloads=(payload,),
        )
    assert caught.value.code == "PTO-M164"


# ---- relu and clip

SIGNS = np.array([[-4.0, -0.0, 0.0, 3.0, 20.0, NAN, -INF, INF]], np.float32)


def test_normal_relu():
    got = fixpipe(SIGNS, ", pre_relu(mode = normal_relu), nz2nd")[:8]
    assert got[:5].tolist() == [0, 0, 0, 3, 20] and not np.signbit(got[:3]).any()
    assert np.isnan(got[5]) and got[6] == 0 and got[7] == INF


def test_scalar_relu_scales_what_is_below_zero():
    clause = ", pre_relu(%r, mode = scalar_relu), nz2nd"
    got = fixpipe(SIGNS, clause, payloads=(("r", "f32", 0.25),))[:8]
    assert got[:5].tolist() == [-1, 0, 0, 3, 20] and np.signbit(got[1])
    assert np.isnan(got[5]) and got[6] == -INF


def test_vector_relu_has_a_slope_a_channel():
    acc = np.array([[-8.0] * 4, [8.0] * 4], np.float32)
    slopes = np.array([0.125, 0.25, 0.5, -1.0], np.float32)
    clause = ", pre_relu(%r, mode = vector_relu), nz2nd"
    got = fixpipe(acc, clause, payloads=(("r", "f32, fb", (64, slopes)),))[:8].reshape(2, 4)
    assert got.tolist() == [[-1, -2, -4, 8], [8, 8, 8, 8]]


def test_clip_limits_the_converted_value():
    acc = np.array([[7.9999, 8.0, 9.0, -20.0, NAN]], np.float32)
    got = scaled(
        acc,
        "qf322f16_pre",
        np.float16,
        relu=", pre_relu(mode = no_relu, clip = %c)",
        payloads=(("c", "f16", 8.0),),
    )[0]
    assert got[:4].tolist() == [8.0, 8.0, 8.0, -20.0] and np.isnan(got[4])


def test_clip_of_integers_after_relu():
    acc = np.array([[-5, 3, 90, 300]], np.int32)
    got = scaled(
        acc,
        "req8",
        np.int8,
        relu=", pre_relu(mode = normal_relu, clip = %c)",
        payloads=(("c", "i8", 50),),
    )[0]
    assert got.tolist() == [0, 3, 50, 50]


def test_relu_comes_after_the_scale():
    got = scaled(
        np.array([[2.0, -2.0]], np.float32),
        "qf322f16_pre",
        np.float16,
        -1.0,
        relu=", pre_relu(mode = normal_relu)",
    )[0]
    assert got.tolist() == [0.0, 2.0]
