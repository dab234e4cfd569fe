"""Element type tables of the PTO manual: Data Format Reference, Target Profiles (VLane table)."""

import pytest

from pto.core.dtypes import dtype

# Data Format, Element Type Encoding, Standard Types: C++ type, SSA name, size, register width.
STANDARD = [
    ("half", "f16", 2, 128),
    ("bfloat16_t", "bf16", 2, 128),
    ("float", "f32", 4, 64),
    ("int8_t", "i8", 1, 256),
    ("uint8_t", "u8", 1, 256),
    ("int16_t", "i16", 2, 128),
    ("uint16_t", "u16", 2, 128),
    ("int32_t", "i32", 4, 64),
    ("uint32_t", "u32", 4, 64),
]

# Data Format, Element Type Encoding, A5-Only Types: C++ type, SSA name, size, lanes.
A5_ONLY = [
    ("float8_e4m3_t", "f8e4m3", 1, 256),
    ("float8_e5m2_t", "f8e5m2", 1, 256),
    ("hifloat8_t", "hifloat8", 1, 256),
    ("float4_e1m2x2_t", "float4_e1m2x2", 1, 256),
    ("float4_e2m1x2_t", "float4_e2m1x2", 1, 256),
]

# Data Format Reference, Vector Register Format: element types, lane count N, bytes a lane.
VECTOR_REGISTER = [
    ("f32", 64, 4),
    ("f16 bf16 i16 u16", 128, 2),
    ("i8 u8 f8e4m3 f8e5m2 hifloat8", 256, 1),
    ("float4_e1m2x2 float4_e2m1x2", 256, 1),
]

# Target Profiles, Elements per VLane by data type: types, elements a VLane, elements a register.
VLANE = [
    ("i8 u8", 32, 256),
    ("i16 u16 f16 bf16", 16, 128),
    ("i32 u32 f32", 8, 64),
    ("i64 u64", 4, 32),
]


@pytest.mark.parametrize(("cpp", "ssa", "size", "lanes"), STANDARD + A5_ONLY)
def test_standard_and_a5_only_types(cpp: str, ssa: str, size: int, lanes: int):
    t = dtype(ssa)
    assert dtype(cpp) is t
    assert (t.name, t.itemsize, t.lanes) == (ssa, size, lanes)


@pytest.mark.parametrize(("names", "lanes", "width"), VECTOR_REGISTER)
def test_vector_register_is_always_256_bytes(names: str, lanes: int, width: int):
    for t in map(dtype, names.split()):
        assert (t.lanes, t.itemsize, t.lanes * t.itemsize) == (lanes, width, 256)


@pytest.mark.parametrize(("names", "per_vlane", "lanes"), VLANE)
def test_elements_per_vlane(names: str, per_vlane: int, lanes: int):
    for t in map(dtype, names.split()):
        assert (t.per_vlane, t.lanes) == (per_vlane, lanes)


def test_group_reduction_example_has_eight_groups():
    # Data Format Reference, Group Reduction and VLanes: "K = N / 8, e.g. 8 for f32, 16 for f16".
    assert dtype("f32").per_vlane == dtype("f32").lanes // 8 == 8
    assert dtype("f16").per_vlane == dtype("f16").lanes // 8 == 16


def test_packed_float4_holds_two_values_a_byte():
    for name in ("float4_e1m2x2", "float4_e2m1x2"):
        t = dtype(name)
        assert (t.bits, t.values_per_item, t.itemsize) == (4, 2, 1)
