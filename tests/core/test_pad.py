"""Pad values: bit patterns of pto-isa constants.hpp, and NumPy's own idea of min and max."""

import struct

import ml_dtypes
import numpy as np
import pytest

from pto.core import dtypes
from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.pad import Pad, pad

FLOATS = {dtypes.F32: np.float32, dtypes.F16: np.float16, dtypes.BF16: ml_dtypes.bfloat16}
INTS = (dtypes.I8, dtypes.U8, dtypes.I16, dtypes.U16, dtypes.I32, dtypes.U32)
ZERO_BITS = (
    *(dtypes.I64, dtypes.U64, dtypes.F8E4M3, dtypes.F8E5M2),
    *(dtypes.HIFLOAT8, dtypes.E8M0, dtypes.FLOAT4_E1M2X2, dtypes.FLOAT4_E2M1X2),
)


def bits_of(value: np.generic) -> int:
    return int.from_bytes(value.tobytes(), "little")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_min_and_max_of_floats_are_the_infinities(dtype: DType):
    kind = FLOATS[dtype]
    assert Pad.MIN.bits(dtype) == bits_of(kind(-np.inf))
    assert Pad.MAX.bits(dtype) == bits_of(kind(np.inf))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_min_and_max_of_integers_are_the_ends_of_their_range(dtype: DType):
    limits = np.iinfo(dtype.numpy)
    assert Pad.MIN.bits(dtype) == bits_of(dtype.numpy.type(limits.min))
    assert Pad.MAX.bits(dtype) == bits_of(dtype.numpy.type(limits.max))


@pytest.mark.parametrize("dtype", ZERO_BITS, ids=str)
def test_standard_pads_of_the_remaining_types_are_zero_bits(dtype: DType):
    assert [Pad.MIN.bits(dtype), Pad.MAX.bits(dtype), Pad.ZERO.bits(dtype)] == [0, 0, 0]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_zero_null_and_invalid_encode_as_zero_for_every_type(dtype: DType):
    assert {each.bits(dtype) for each in (Pad.ZERO, Pad.NULL, Pad.INVALID)} == {0}


def test_null_and_invalid_leave_elements_undefined():
    defined = (Pad.ZERO, Pad.MIN, Pad.MAX, Pad.custom(2.0))
    assert all(each.is_defined for each in defined)
    assert not Pad.NULL.is_defined and not Pad.INVALID.is_defined
    assert Pad.NULL != Pad.INVALID


def test_a_custom_pad_carries_the_bits_of_its_float():
    minus_one = Pad.custom(-1.0)
    assert minus_one.code == 0x1_BF80_0000
    assert minus_one.bits(dtypes.F32) == int.from_bytes(struct.pack("<f", -1.0), "little")
    assert Pad.custom(0.5).code == 0x1_3F00_0000
    assert minus_one.is_custom and not Pad.MIN.is_custom


def test_narrow_types_use_the_low_bits_of_a_custom_pad():
    assert Pad.custom(-1.0).bits(dtypes.F16) == 0  # the trap: low half of 0xbf800000
    assert Pad.custom_bits(0xBC00).bits(dtypes.F16) == bits_of(np.float16(-1))
    assert Pad.custom_bits(0xFFFF_FF80).bits(dtypes.I8) == 0x80
    assert Pad.custom_bits(0xDEADBEEF).bits(dtypes.U32) == 0xDEADBEEF


@pytest.mark.parametrize(
    ("spelling", "wanted"),
    [
        (0, Pad.NULL),
        (1, Pad.ZERO),
        (2, Pad.MAX),
        (3, Pad.MIN),
        ("Null", Pad.NULL),
        ("zero", Pad.ZERO),
        ("Max", Pad.MAX),
        ("min", Pad.MIN),
        ("Invalid", Pad.INVALID),
        (0x1_BF80_0000, Pad.custom(-1.0)),
    ],
)
def test_a_pad_is_found_by_name_number_or_custom_number(spelling: str | int, wanted: Pad):
    assert pad(spelling) == wanted


@pytest.mark.parametrize("spelling", ["zer", 4, -1, 0x2_0000_0000])
def test_an_unknown_pad_is_refused(spelling: str | int):
    with pytest.raises(PtoError, match="unknown pad value") as caught:
        pad(spelling)
    assert caught.value.code == "PTO-L005"


def test_a_custom_value_beyond_its_bits_is_refused():
    for make in (lambda: Pad.custom(1e39), lambda: Pad.custom_bits(1 << 32)):
        with pytest.raises(PtoError) as caught:
            make()
        assert caught.value.code == "PTO-L005"


@pytest.mark.parametrize("dtype", [dtypes.F64, dtypes.I1, dtypes.I4X2], ids=str)
def test_a_pad_the_isa_does_not_define_for_a_type_says_so(dtype: DType):
    with pytest.raises(PtoError, match=f"not defined by the ISA for {dtype.name}") as caught:
        Pad.MIN.bits(dtype)
    assert caught.value.code == "PTO-L006"
