import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from pto.core import dtypes as d
from pto.core.dtypes import DType, decode, dtype, encode
from pto.core.errors import PtoError
from pto.core.floats import Round, round_mode

CANONICAL = """
i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
f8e4m3 f8e5m2 hifloat8 e8m0 float4_e1m2x2 float4_e2m1x2 i1 i4x2 bf16x2
"""


def test_the_canonical_names():
    assert [t.name for t in d.ALL] == CANONICAL.split()


@pytest.mark.parametrize(
    ("spellings", "t"),
    [
        ("f8E4M3FN f8E4M3 float8_e4m3_t fp8_e4m3fn_t", d.F8E4M3),
        ("f8E5M2 float8_e5m2_t", d.F8E5M2),
        ("!pto.hif8 hif8 hifloat8 hifloat8_t", d.HIFLOAT8),
        ("!pto.f4E2M1x2 f4E2M1x2 f4e2m1x2 float4_e2m1x2_t", d.FLOAT4_E2M1X2),
        ("!pto.f4E1M2x2 f4E1M2x2 f4e1m2x2 float4_e1m2x2_t", d.FLOAT4_E1M2X2),
        ("e8m0 f8E8M0FNU float8_e8m0_t", d.E8M0),
        ("i8 si8 int8 int8_t", d.I8),
        ("u8 ui8 uint8_t", d.U8),
        ("ui16 u16", d.U16),
        ("ui32 unsigned uint32_t", d.U32),
        ("si64 i64", d.I64),
        ("half f16 float16", d.F16),
        ("bfloat16_t bf16 bfloat16", d.BF16),
        ("float f32 float32", d.F32),
        ("double f64", d.F64),
        ("i1 bool", d.I1),
        ("i4 i4x2 int4b_t", d.I4X2),
    ],
)
def test_spellings_of_programs_and_headers(spellings: str, t: DType):
    assert {dtype(spelling) for spelling in spellings.split()} == {t}


def test_no_spelling_names_two_types():
    spellings = [s for t in d.ALL for s in t.spellings]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize("t", d.ALL, ids=str)
def test_numpy_name_finds_the_type_of_an_array(t: DType):
    if t.numpy != t.storage or t.kind == "uint":
        assert dtype(np.zeros(1, t.numpy).dtype) is dtype(t.numpy.name) is t


@pytest.mark.parametrize("other", [ml_dtypes.float8_e4m3, np.complex64, ml_dtypes.int4])
def test_a_numpy_type_of_another_format_is_no_element_type(other: type):
    # ml_dtypes.float8_e4m3 has infinities; the machine's f8e4m3 has none.
    assert _error(dtype, np.dtype(other)).code == "PTO-T001"


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        ("F32", "did you mean `f32`"),
        ("f8E4M3FNX", "f8E4M3FN"),
        ("quux", "the element types are i8, u8"),
        ("", "the element types are"),
        ("index", "store an index as `i32` or `i64`"),
    ],
)
def test_unknown_type_is_a_coded_error_with_help(spelling: str, words: str):
    with pytest.raises(PtoError) as caught:
        dtype(spelling)
    assert caught.value.code == "PTO-T001"
    assert f"`{spelling}`" in str(caught.value)
    assert words in (caught.value.diagnostics[0].help or "")


@pytest.mark.parametrize("t", d.ALL, ids=str)
def test_a_type_is_one_object_even_after_copy_and_pickle(t: DType):
    assert copy.deepcopy(t) is t
    assert pickle.loads(pickle.dumps(t)) is t
    assert dtype(t) is t
    assert str(t) == t.name


@pytest.mark.parametrize("t", d.ALL, ids=str)
def test_views_of_an_item_have_one_size(t: DType):
    assert t.storage.kind == "u"
    assert t.numpy.itemsize == t.storage.itemsize == t.itemsize
    assert t.itemsize * 8 in (t.bits * t.values_per_item, 8)


def test_ranges_of_integers_are_numpys():
    for t in d.ALL:
        if t.is_integer and not t.is_packed:
            info = np.iinfo(t.numpy)
            assert (t.min, t.max) == (info.min, info.max)
    assert (d.I4X2.min, d.I4X2.max) == (-8, 7)
    assert (d.I1.min, d.I1.max) == (0, 1)


def test_ranges_of_floats_are_ml_dtypes():
    for t in (d.F16, d.BF16, d.F32, d.F64, d.F8E4M3, d.F8E5M2):
        info = ml_dtypes.finfo(t.numpy)
        assert (t.min, t.max) == (float(info.min), float(info.max))
    assert (d.E8M0.min, d.E8M0.max) == (2.0**-127, 2.0**127)
    assert d.HIFLOAT8.max == 32768
    assert (d.FLOAT4_E1M2X2.max, d.FLOAT4_E2M1X2.max) == (1.75, 6.0)


def test_kinds_of_types():
    assert [t.name for t in d.ALL if not t.is_signed] == ["u8", "u16", "u32", "u64", "e8m0", "i1"]
    assert [t.name for t in d.ALL if t.is_packed] == [
        "float4_e1m2x2",
        "float4_e2m1x2",
        "i4x2",
        "bf16x2",
    ]
    assert {t.name for t in d.ALL if t.is_float} & {t.name for t in d.ALL if t.is_integer} == set()
    assert (d.I1.kind, d.I1.is_float, d.I1.is_integer) == ("bool", False, False)
    forms = {t.name: t.form for t in d.ALL if t.form is not None and t.is_float}
    no_inf = ["f8e4m3", "e8m0", "float4_e1m2x2", "float4_e2m1x2"]
    assert [name for name, form in forms.items() if not form.inf] == no_inf
    assert [name for name, form in forms.items() if form.nan is None] == no_inf[2:]


# --- items <-> values ---


def test_hifloat8_codes_of_the_specification():
    # HiFloat8: specials, and one code of each dot prefix by hand.
    codes = {0x00: 0.0, 0x6E: 32768.0, 0x6F: np.inf, 0xEF: -np.inf, 0x01: 2.0**-22, 0x07: 2.0**-16}
    codes |= {
        0b0_0001_000: 1.0,  # D=0: E=0
        0b0_0001_111: 1.875,
        0b0_001_0_100: 3.0,  # D=1: E=+1, 1.5
        0b0_001_1_000: 0.5,  # D=1: E=-1
        0b0_01_01_001: 9.0,  # D=2: E=+3, 1.125
        0b0_10_100_11: 1.75 / 16,  # D=3: E=-4, 1.75
        0b1_11_0000_1: -384.0,  # D=4: E=+8, -1.5
    }
    found = decode(d.HIFLOAT8, np.array(list(codes), np.uint8))
    assert found.tolist() == list(codes.values())
    assert np.isnan(decode(d.HIFLOAT8, np.uint8(0x80)))


def test_packed_values_come_low_nibble_first():
    assert decode(d.FLOAT4_E2M1X2, np.array([0x72, 0x9F], np.uint8)).tolist() == [1, 6, -6, -0.5]
    assert decode(d.I4X2, np.array([[0x71, 0x8F]], np.uint8)).tolist() == [[1, 7, -1, -8]]
    assert encode(d.FLOAT4_E1M2X2, [0.25, -1.75, 0, 1]).tolist() == [0xF1, 0x40]
    assert encode(d.I4X2, [[1, 7], [-1, -8]]).tolist() == [[0x71], [0x8F]]


def test_an_odd_number_of_packed_values_is_refused():
    for values in ([1.0, 2.0, 3.0], 1.0):
        with pytest.raises(PtoError) as caught:
            encode(d.FLOAT4_E2M1X2, values)
        assert caught.value.code == "PTO-T003"
    assert "3 values do not pair up" in str(_error(encode, d.I4X2, [1, 2, 3]))


def _error(call, *arguments) -> PtoError:
    with pytest.raises(PtoError) as caught:
        call(*arguments)
    return caught.value


def test_items_of_the_wrong_type_are_refused():
    error = _error(decode, d.BF16, np.zeros(3, np.float32))
    assert error.code == "PTO-T002"
    assert "items of bf16 have the NumPy type uint16 or bfloat16, not float32" in str(error)
    assert "have the NumPy type uint8, not float32" in str(
        _error(decode, d.HIFLOAT8, np.zeros(3, np.float32))
    )


@pytest.mark.parametrize("values", ["abc", [2**64], [None], [1j], np.zeros(2, "i4,f4")])
def test_values_that_are_no_numbers_are_refused(values: object):
    assert _error(encode, d.F32, values).code == "PTO-T004"


def test_items_are_taken_in_either_view():
    x = np.array([1.5, -2.0], np.float32)
    assert decode(d.F32, x).tolist() == decode(d.F32, x.view(np.uint32)).tolist() == [1.5, -2.0]
    assert decode(d.I8, np.array([255], np.uint8)).tolist() == [-1]
    assert decode(d.I1, np.array([True, False])).tolist() == [1, 0]


def test_integers_decode_without_loss():
    assert decode(d.U64, np.array([2**64 - 1], np.uint64)).tolist() == [2**64 - 1]
    assert decode(d.I64, np.array([-(2**63)])).tolist() == [-(2**63)]
    assert decode(d.U32, np.array([2**32 - 1], np.uint32)).tolist() == [2**32 - 1]


@pytest.mark.parametrize("t", [t for t in d.ALL if not t.is_packed], ids=str)
def test_shape_is_kept(t: DType):
    for shape in ((), (0,), (3,), (2, 3), (2, 0, 4)):
        items = encode(t, np.ones(shape))
        assert (items.shape, items.dtype) == (shape, t.storage)
        assert decode(t, items).shape == shape
        assert (decode(t, items) == 1).all()


def test_packed_shape_halves_the_last_axis():
    items = encode(d.FLOAT4_E2M1X2, np.ones((2, 0, 6)))
    assert items.shape == (2, 0, 3)
    assert decode(d.FLOAT4_E2M1X2, items).shape == (2, 0, 6)
    assert decode(d.I4X2, np.uint8(0x21)).tolist() == [1, 2]


def test_strided_items_decode():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)[::2, ::-1]
    assert decode(d.F32, x).tolist() == x.tolist()
    assert encode(d.F16, x).view(np.float16).tolist() == x.tolist()


def test_encode_keeps_inf_and_nan_where_the_type_has_them():
    assert encode(d.F16, [np.inf, -np.inf, np.nan]).tolist() == [0x7C00, 0xFC00, 0x7E00]
    assert encode(d.F8E4M3, [np.inf, -np.inf, np.nan]).tolist() == [0x7E, 0xFE, 0x7F]
    assert encode(d.HIFLOAT8, [np.inf, -np.inf, np.nan]).tolist() == [0x6F, 0xEF, 0x80]
    assert encode(d.FLOAT4_E2M1X2, [np.inf, np.nan]).tolist() == [0x07]
    assert encode(d.E8M0, [np.inf, np.nan, 0.0, -5.0]).tolist() == [0xFE, 0xFF, 0x00, 0x00]
    assert encode(d.I8, [np.inf, -np.inf, np.nan]).tolist() == [0x7F, 0x80, 0]


def test_encode_saturates_or_overflows_finite_values():
    assert encode(d.F16, [1e6]).tolist() == [0x7BFF]
    assert encode(d.F16, [1e6], saturate=False).tolist() == [0x7C00]
    assert encode(d.F32, [1e300]).view(np.float32).tolist() == [np.inf]
    assert encode(d.U8, [300, -1]).tolist() == [255, 0]
    assert encode(d.U8, [300, -1], saturate=False).tolist() == [44, 255]
    assert encode(d.I1, [2, 3, -1]).tolist() == [1, 1, 0]
    assert encode(d.I1, [2, 3, -1], saturate=False).tolist() == [0, 1, 1]


def test_encode_takes_python_numbers_and_ml_dtypes_arrays():
    assert encode(d.U64, 2**64 - 1).tolist() == 2**64 - 1
    assert encode(d.BF16, np.array([1.5], ml_dtypes.bfloat16)).tolist() == [0x3FC0]
    assert encode(d.F32, np.array([2.0], ml_dtypes.float8_e5m2)).tolist() == [0x40000000]
    assert encode(d.I1, [True, False]).tolist() == [1, 0]
    assert encode(d.F16, np.array([6.0], ml_dtypes.float4_e2m1fn)).tolist() == [0x4600]


# --- rounding modes by name ---


@pytest.mark.parametrize(
    ("spellings", "mode"),
    [
        ("RINT CAST_RINT R r ROUND_R", Round.RINT),
        ("ROUND CAST_ROUND A a ROUND_A", Round.ROUND),
        ("FLOOR CAST_FLOOR F", Round.FLOOR),
        ("CEIL CAST_CEIL C", Round.CEIL),
        ("TRUNC CAST_TRUNC Z z", Round.TRUNC),
        ("ODD CAST_ODD O", Round.ODD),
        ("NONE CAST_NONE", Round.NONE),
    ],
)
def test_rounding_modes_by_every_spelling(spellings: str, mode: Round):
    assert {round_mode(spelling) for spelling in spellings.split()} == {mode}
    assert round_mode(mode) is mode


def test_unknown_rounding_mode_is_a_coded_error():
    error = _error(round_mode, "CAST_RNT")
    assert error.code == "PTO-T005"
    assert "`CAST_RINT`" in (error.diagnostics[0].help or "")
    assert "the modes are NONE, RINT" in (_error(round_mode, "?").diagnostics[0].help or "")


def test_round_mode_numbers_are_the_enum_of_the_headers():
    # pto-isa type.hpp.
    assert [(m.name, m.value) for m in Round] == [
        ("NONE", 0),
        ("RINT", 1),
        ("ROUND", 2),
        ("FLOOR", 3),
        ("CEIL", 4),
        ("TRUNC", 5),
        ("ODD", 6),
    ]
