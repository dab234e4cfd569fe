from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto.core import dtypes as d
from pto.core.convert import Round, clamps_specials, convert, round_integral
from pto.core.dtypes import DType, decode, encode
from pto.core.errors import PtoError
from tests.known import oracle

F32_MAX = float(np.finfo(np.float32).max)
MODES = [Round[name] for name in oracle.MODES]
INTEGERS = [t for t in d.ALL if t.is_integer and not t.is_packed]
FLOATS = [d.F16, d.BF16, d.F32]


def one(value: float | int, src: DType, dst: DType, mode: Round = Round.RINT, sat: bool = True):
    """One value through `convert`, as a Python number."""
    items = encode(src, [value], saturate=False).view(src.numpy)
    return decode(dst, convert(items, src, dst, mode, sat)).tolist()[0]


# --- wide sources against exact arithmetic ---


def near(power: int, spread: int = 5):
    return st.integers(-spread, spread).map(lambda n: 2**power + n)


def signed(magnitudes: st.SearchStrategy[int]) -> st.SearchStrategy[int]:
    return st.tuples(magnitudes, st.sampled_from([-1, 1])).map(lambda p: p[0] * p[1])


def tie(bits: int) -> st.SearchStrategy[int]:
    """An integer near halfway between two neighbours of `bits` significant bits."""
    kept = st.integers(2 ** (bits - 1), 2**bits - 1)
    shift = st.integers(1, 64 - bits)
    nudge = st.integers(-1, 1)
    return st.builds(lambda k, s, n: (k << s) + (1 << (s - 1)) + n, kept, shift, nudge)


WIDE_INTEGERS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 64).flatmap(near),
    *(tie(bits) for bits in (2, 3, 4, 8, 11, 24, 53)),
)


def fits(t: DType):
    return lambda v: t.min <= v <= t.max


@pytest.mark.parametrize("src", [d.I32, d.U32, d.I64, d.U64], ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_wide_integers_round_once_into_floats(src: DType, data: st.DataObject):
    drawn = data.draw(st.lists(signed(WIDE_INTEGERS), min_size=8, max_size=20))
    numbers = [n for n in drawn if fits(src)(n)]
    items = np.array(numbers, dtype=src.numpy)
    for dst in (*FLOATS, d.F64):
        for mode in MODES:
            got = decode(dst, convert(items, src, dst, mode, saturate=True)).tolist()
            expected = [oracle.round_to_float(dst.name, Fraction(n), mode.name) for n in numbers]
            assert got == [float(min(max(x, dst.min), dst.max)) for x in expected], (dst, mode)


@pytest.mark.parametrize("src", [d.I32, d.U32, d.I64, d.U64], ids=str)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_wide_integers_round_once_into_small_floats(src: DType, data: st.DataObject):
    drawn = data.draw(st.lists(signed(WIDE_INTEGERS), min_size=8, max_size=20))
    numbers = [n for n in drawn if fits(src)(n)]
    items = np.array(numbers, dtype=src.numpy)
    # Far above every tie of these formats: 64 bits fit the search after a clamp to 2^53.
    clamped = np.clip(np.array(numbers, dtype=object), -(2**53), 2**53).astype(np.float64)
    for dst in (d.F8E4M3, d.F8E5M2, d.HIFLOAT8):
        for mode in MODES:
            got = decode(dst, convert(items, src, dst, mode, saturate=False))
            expected = oracle.rounded(dst.name, clamped, mode.name, False)
            assert np.array_equal(got, expected, equal_nan=True), (dst, mode)


@settings(max_examples=150, deadline=None)
@given(values=st.lists(signed(WIDE_INTEGERS), min_size=1, max_size=20))
def test_integers_clamp_or_wrap_into_integers(values: list[int]):
    for src in INTEGERS:
        numbers = [n for n in values if fits(src)(n)]
        items = np.array(numbers, dtype=src.numpy)
        for dst in INTEGERS:
            tight = decode(dst, convert(items, src, dst, saturate=True)).tolist()
            assert tight == [min(max(n, dst.min), dst.max) for n in numbers]
            loose = decode(dst, convert(items, src, dst, saturate=False)).tolist()
            assert loose == [oracle.wrap(n, dst.bits, dst.is_signed) for n in numbers]


F64_VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.floats(-70000, 70000),
    signed(WIDE_INTEGERS).map(float),
    st.integers(-(2**24), 2**24).map(lambda n: n + 0.5),
    st.builds(np.nextafter, st.integers(-300, 300).map(lambda n: n + 0.5), st.floats(-400, 400)),
    # Halfway between two f32 values, and the float64 next to it; down into the subnormals.
    st.builds(
        lambda m, e, n: float(np.ldexp(float(m * 2 + 1) + n * 2.0**-20, e)),
        st.integers(2**22, 2**24 - 1),
        st.integers(-175, 80),
        st.integers(-1, 1),
    ),
)


@settings(max_examples=80, deadline=None)
@given(values=st.lists(F64_VALUES.map(float), min_size=1, max_size=20))
def test_f64_rounds_once_into_floats(values: list[float]):
    for dst in FLOATS:
        for mode in MODES:
            exact = [oracle.round_to_float(dst.name, Fraction(v), mode.name) for v in values]
            limited = [float(min(max(x, Fraction(dst.min)), Fraction(dst.max))) for x in exact]
            got = decode(dst, convert(np.array(values), d.F64, dst, mode, saturate=True))
            inside = np.abs(values) <= dst.max
            assert np.array_equal(got[inside], np.array(limited)[inside]), (dst, mode)
            assert np.array_equal(np.signbit(got), np.signbit(values))
            if dst is not d.F32:  # f32 never saturates
                assert np.array_equal(got, limited), (dst, mode)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(F64_VALUES.map(float), min_size=1, max_size=20))
def test_f64_to_integers(values: list[float]):
    for dst in INTEGERS:
        for mode in MODES:
            exact = [oracle.round_fraction(Fraction(v), mode.name) for v in values]
            tight = decode(dst, convert(np.array(values), d.F64, dst, mode, saturate=True))
            assert tight.tolist() == [min(max(n, dst.min), dst.max) for n in exact]
            loose = decode(dst, convert(np.array(values), d.F64, dst, mode, saturate=False))
            kept = [min(max(n, -(2**63)), 2**64 - 1) for n in exact]
            assert loose.tolist() == [oracle.wrap(n, dst.bits, dst.is_signed) for n in kept]


@settings(max_examples=200, deadline=None)
@given(bits=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=64))
def test_f32_nearest_agrees_with_numpy_and_ml_dtypes(bits: list[int]):
    items = np.array(bits, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for dst in (d.F16, d.BF16, d.F64, d.F8E4M3, d.F8E5M2):
            expected = items.astype(oracle.OUTSIDE[dst.name]).astype(np.float64)
            got = decode(dst, convert(items, d.F32, dst, saturate=False))
            assert np.array_equal(got, expected, equal_nan=True)
            known = ~np.isnan(expected)
            assert np.array_equal(np.signbit(got[known]), np.signbit(expected[known]))


# --- cases by hand ---


@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [
        (2.5, Round.RINT, 2),
        (3.5, Round.RINT, 4),
        (-2.5, Round.RINT, -2),
        (2.5, Round.ROUND, 3),
        (-2.5, Round.ROUND, -3),
        (-2.5, Round.FLOOR, -3),
        (-2.5, Round.CEIL, -2),
        (2.9, Round.TRUNC, 2),
        (-2.9, Round.TRUNC, -2),
        (2.25, Round.ODD, 3),  # von Neumann (type.hpp); the CPU header says 2
        (3.75, Round.ODD, 3),
        (-2.25, Round.ODD, -3),
        (4.0, Round.ODD, 4),
        (2.9, Round.NONE, 2),
        (-2.9, Round.NONE, -2),
    ],
)
def test_float_to_integer_by_hand(value: float, mode: Round, expected: int):
    assert one(value, d.F32, d.I32, mode) == expected


def test_directed_rounding_of_f32_to_f16_by_hand():
    # 1.00061 lies between 1 and 1 + 2^-10; the CPU header ignores the mode here.
    assert one(1.00061, d.F32, d.F16, Round.FLOOR) == 1.0
    assert one(1.00061, d.F32, d.F16, Round.CEIL) == 1.0 + 2.0**-10
    assert one(-1.00061, d.F32, d.F16, Round.FLOOR) == -1.0 - 2.0**-10
    assert one(1.0 + 2.0**-11, d.F32, d.F16, Round.RINT) == 1.0
    assert one(1.0 + 2.0**-11, d.F32, d.F16, Round.ROUND) == 1.0 + 2.0**-10
    assert one(1.0 + 2.0**-20, d.F32, d.F16, Round.ODD) == 1.0 + 2.0**-10


def test_none_is_the_default_of_the_pair():
    tie_f16, tie_hif8 = 1.0 + 2.0**-11, 1.0 + 2.0**-4
    assert one(tie_f16, d.F32, d.F16, Round.NONE) == one(tie_f16, d.F32, d.F16, Round.RINT) == 1.0
    assert one(tie_hif8, d.F32, d.HIFLOAT8, Round.NONE) == 1.125
    assert one(tie_hif8, d.F32, d.HIFLOAT8, Round.RINT) == 1.0
    assert one(2**24 + 1, d.I32, d.F32, Round.NONE) == 2**24


def test_double_rounding_traps_by_hand():
    above = 1 + 2**-8 + 2**-40  # through f32 it would look like a tie of bf16
    assert one(above, d.F64, d.BF16) == 1 + 2**-7
    assert one(2**24 + 2**13 + 1, d.I32, d.BF16) == 2**24
    assert one(2**31 + 2**23 + 1, d.U32, d.BF16) == 2**31 + 2**24
    assert one(2**12 + 2 + 2**-40, d.F64, d.F16) == 2**12 + 4
    assert one(2**60 + 2**36 + 1, d.I64, d.F32) == 2**60 + 2**37
    assert one(2**63 + 2**10 + 1, d.U64, d.F64) == 2**63 + 2**11
    assert one(-(2**60) - 1, d.I64, d.F64, Round.FLOOR) == -(2**60) - 2**8


@pytest.mark.parametrize("dst", [d.F16, d.BF16, d.F8E4M3, d.F8E5M2, d.HIFLOAT8], ids=str)
def test_saturation_into_a_narrower_float_takes_inf_and_nan(dst: DType):
    # micro-instruction manual, vcvt, SAT: inf to the largest finite value, NaN to 0.
    specials = np.array([np.inf, -np.inf, np.nan, F32_MAX, -F32_MAX], np.float32)
    got = decode(dst, convert(specials, d.F32, dst))
    assert got.tolist() == [dst.max, -dst.max, 0.0, dst.max, -dst.max]
    kept = decode(dst, convert(specials, d.F32, dst, keep_nan=True))
    assert np.isnan(kept[2])
    assert kept[[0, 1, 3, 4]].tolist() == [dst.max, -dst.max, dst.max, -dst.max]


@pytest.mark.parametrize(
    ("src", "dst"), [(d.F16, d.F32), (d.BF16, d.F32), (d.F16, d.BF16), (d.F64, d.F32)], ids=str
)
def test_a_wider_float_and_f32_keep_inf_and_nan(src: DType, dst: DType):
    specials = encode(src, [np.inf, -np.inf, np.nan]).view(src.numpy)
    got = decode(dst, convert(specials, src, dst, saturate=True))
    assert got[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(got[2])
    assert not clamps_specials(src, dst)


def test_overflow_without_saturation_follows_ieee():
    for mode, up, down in [
        (Round.RINT, np.inf, -np.inf),
        (Round.ROUND, np.inf, -np.inf),
        (Round.FLOOR, 65504, -np.inf),
        (Round.CEIL, np.inf, -65504),
        (Round.TRUNC, 65504, -65504),
        (Round.ODD, 65504, -65504),
    ]:
        assert one(1e6, d.F32, d.F16, mode, sat=False) == up
        assert one(-1e6, d.F32, d.F16, mode, sat=False) == down
    assert one(65519, d.F32, d.F16, sat=False) == 65504
    assert one(65520, d.F32, d.F16, sat=False) == np.inf
    assert np.isnan(one(465, d.F32, d.F8E4M3, sat=False))
    assert one(464, d.F32, d.F8E4M3, sat=False) == 448
    assert one(1e6, d.F32, d.F16, Round.TRUNC, sat=False) == 65504
    assert one(np.inf, d.F32, d.F16, Round.TRUNC, sat=False) == np.inf


def test_integer_overflow_without_saturation_wraps():
    # pto-isa TCvt.hpp, integers: low bits kept; 300.0 to i8 is 44.
    assert one(300.0, d.F32, d.I8, sat=False) == 44
    assert one(200.0, d.F16, d.I8, sat=False) == -56
    assert one(-40000.0, d.F32, d.I16, sat=False) == 25536
    assert one(3_000_000_000, d.I64, d.I32, sat=False) == -1_294_967_296
    for dst, ones in [(d.I8, -1), (d.U8, 255), (d.I16, -1), (d.I32, -1), (d.U32, 2**32 - 1)]:
        assert one(np.inf, d.F32, dst, sat=False) == ones
        assert one(-np.inf, d.F32, dst, sat=False) == 0
        assert one(np.nan, d.F32, dst, sat=False) == 0
        assert one(np.nan, d.F32, dst, sat=True) == 0


def test_the_ends_of_64_bit_ranges():
    assert one(2.0**63, d.F32, d.I64) == 2**63 - 1
    assert one(-(2.0**63), d.F32, d.I64) == -(2**63)
    assert one(2.0**64, d.F32, d.U64) == 2**64 - 1
    assert one(2.0**63, d.F32, d.U64) == 2**63
    assert one(-1.0, d.F32, d.U64) == 0
    assert one(-1.0, d.F32, d.U64, sat=False) == 2**64 - 1
    assert one(2.0**63, d.F32, d.I64, sat=False) == -(2**63)
    assert one(2**64 - 1, d.U64, d.I64) == 2**63 - 1
    assert one(-1, d.I64, d.U64) == 0


def test_scales_are_powers_of_two():
    assert one(1.5, d.F32, d.E8M0) == 2.0
    assert one(1.49, d.F32, d.E8M0) == 1.0
    assert one(7.9, d.F32, d.E8M0, Round.FLOOR) == 4.0
    assert one(4.1, d.F32, d.E8M0, Round.CEIL) == 8.0
    assert one(0.0, d.F32, d.E8M0) == 2.0**-127
    assert one(-3.0, d.F32, d.E8M0) == 2.0**-127
    assert one(np.inf, d.F32, d.E8M0) == 2.0**127
    for bad in (0.0, -3.0, np.inf, -np.inf, F32_MAX):
        assert np.isnan(one(bad, d.F32, d.E8M0, sat=False))
    assert np.isnan(one(np.nan, d.F32, d.E8M0, sat=True))
    assert one(255, d.U8, d.E8M0) == 256.0


def test_zero_keeps_its_sign_where_there_is_one():
    zeros = np.array([0.0, -0.0, -1e-300])
    for dst in (d.F16, d.BF16, d.F32, d.F8E4M3, d.F8E5M2):
        got = decode(dst, convert(zeros, d.F64, dst))
        assert got.tolist() == [0.0, 0.0, 0.0]
        assert np.signbit(got).tolist() == [False, True, True]
    assert convert(zeros, d.F64, d.HIFLOAT8).tolist() == [0, 0, 0]


def test_subnormals_are_not_flushed():
    assert one(2.0**-149, d.F32, d.F64) == 2.0**-149
    assert one(2.0**-149, d.F64, d.F32) == 2.0**-149
    assert one(2.0**-24, d.F32, d.F16) == 2.0**-24
    assert one(2.0**-25, d.F32, d.F16) == 0.0
    assert one(2.0**-25, d.F32, d.F16, Round.CEIL) == 2.0**-24
    assert one(3 * 2.0**-150, d.F64, d.F32) == 2.0**-148
    assert one(5e-324, d.F64, d.F32, Round.CEIL) == 2.0**-149


# --- packed types and shapes ---


def test_packing_pairs_values_along_the_last_axis():
    x = np.array([[0.5, 6.0, -1.0, 0.0]], ml_dtypes.bfloat16)
    packed = convert(x, d.BF16, d.FLOAT4_E2M1X2)
    assert packed.tolist() == [[0x71, 0x0A]]
    assert np.array_equal(convert(packed, d.FLOAT4_E2M1X2, d.BF16), x)
    assert convert(packed, d.FLOAT4_E2M1X2, d.I4X2).tolist() == [[0x60, 0x0F]]
    assert convert(np.uint8(0x21), d.I4X2, d.F16).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("src", [d.F32, d.U8, d.F16], ids=str)
def test_an_odd_row_does_not_pack(src: DType):
    with pytest.raises(PtoError) as caught:
        convert(np.zeros((2, 3), src.numpy), src, d.I4X2)
    assert caught.value.code == "PTO-T003"


@pytest.mark.parametrize("dst", [t for t in d.ALL if not t.is_packed], ids=str)
@pytest.mark.parametrize("src", [t for t in d.ALL if not t.is_packed], ids=str)
def test_shape_and_view_of_the_result(src: DType, dst: DType):
    for shape in ((), (0,), (2, 3)):
        items = encode(src, np.ones(shape)).view(src.numpy)
        got = convert(items, src, dst)
        assert isinstance(got, np.ndarray)
        assert (got.shape, got.dtype) == (shape, dst.numpy)
        assert (decode(dst, got) == 1).all()


def test_the_source_is_never_changed_nor_shared():
    x = np.array([np.nan, np.inf, 1.5], np.float32)
    before = x.tobytes()
    for dst in d.ALL:
        if not dst.is_packed:
            assert not np.shares_memory(convert(x, d.F32, dst), x)
    assert x.tobytes() == before


@pytest.mark.filterwarnings("error")
def test_signalling_nans_raise_no_warning():
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    for dst in (d.F16, d.BF16, d.F64, d.F8E4M3, d.HIFLOAT8):
        assert np.isnan(decode(dst, convert(signalling, d.F32, dst, saturate=False))).all()
        assert np.isfinite(convert(signalling, d.F32, d.I8)).all()
    wide = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    assert convert(wide, d.F64, d.F32, Round.FLOOR).view(np.uint32).tolist() == [0x7FC00000]


def test_a_type_converts_to_itself_bit_by_bit():
    odd_nan = np.array([0x7F800001, 0xFFC12345], np.uint32).view(np.float32)
    assert convert(odd_nan, d.F32, d.F32).tobytes() == odd_nan.tobytes()


def test_items_of_another_type_are_refused():
    with pytest.raises(PtoError) as caught:
        convert(np.zeros(2, np.float64), d.F32, d.F16)
    assert caught.value.code == "PTO-T002"


def test_round_integral_keeps_specials_and_signs():
    x = np.array([np.inf, -np.inf, np.nan, -0.0, -0.4, 0.49999999999999994, 2.0**60 + 2.0**8])
    for mode in (Round.RINT, Round.ROUND, Round.TRUNC, Round.CEIL):
        got = round_integral(x, mode)
        assert got[:2].tolist() == [np.inf, -np.inf]
        assert np.isnan(got[2])
        assert np.signbit(got[3:5]).all()
        assert (got[3:5] == 0).all()
        assert got[6] == x[6]
    assert round_integral(x, Round.ROUND)[5] == 0.0
