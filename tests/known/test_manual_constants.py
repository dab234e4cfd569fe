"""PTO manual, Data Format Reference: the tables of memory, layouts, pads and constants.

Each test names the table it reproduces. The element types have tests of their own.
"""

import numpy as np
import pytest

from pto.core import constants, dtypes
from pto.core.dtypes import DType
from pto.core.layout import DN, ND, BLayout, Layout, SLayout, layout
from pto.core.memory import Space
from pto.core.pad import Pad
from pto.core.tile import Role


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BLOCK_BYTE_SIZE", 32),
        ("FIXP_BURST_UNIT_LEN", 64),
        ("FRACTAL_NZ_ROW", 16),
        ("CUBE_BLOCK_SIZE", 512),
        ("C0_SIZE_BYTE", 32),
        ("MX_COL_LEN", 2),
        ("MX_ROW_LEN", 16),
        ("MX_BLOCK_SIZE", 32),
        ("TMP_UB_SIZE", 8 * 1024),
        ("TMP_UB_OFFSET", 184 * 1024),
        ("MASK_LEN", 64),
        ("BLOCK_LEN", 16),
        ("VLane_COUNT", 8),
    ],
)
def test_table_constants_reference(name: str, value: int):
    assert getattr(constants, name.upper()) == value


def test_table_memory_spaces():
    """GM is off-chip; every other space is a local tile buffer."""
    assert not Space.GM.is_local
    assert all(space.is_local for space in Space if space is not Space.GM)


@pytest.mark.parametrize(
    ("role", "buffer"),
    [
        (Role.VEC, Space.UB),
        (Role.LEFT, Space.L0A),
        (Role.RIGHT, Space.L0B),
        (Role.ACC, Space.L0C),
        (Role.SCALE_LEFT, Space.SCALE_A),
        (Role.SCALE_RIGHT, Space.SCALE_B),
    ],
)
def test_table_hardware_mapping_of_local_tile_buffers(role: Role, buffer: Space):
    assert role.space is buffer


@pytest.mark.parametrize("itemsize", [1, 2, 4])
def test_formulas_in_memory_format(itemsize: int):
    rows, cols = 5, 7
    for r, c in np.ndindex(rows, cols):
        assert ND.offset(r, c, rows, cols, itemsize) * itemsize == (r * cols + c) * itemsize
        assert DN.offset(r, c, rows, cols, itemsize) * itemsize == (c * rows + r) * itemsize


def test_figure_vector_register_of_8_vlanes_of_32_bytes():
    assert constants.VREG_BYTES == 256
    assert constants.VLANE_BYTES == 32
    assert constants.VLANE_BYTES * constants.VLANE_COUNT == constants.VREG_BYTES


@pytest.mark.parametrize(
    ("pad", "dtype", "bits"),
    [
        (Pad.ZERO, dtypes.F32, 0x00000000),
        (Pad.ZERO, dtypes.F16, 0x0000),
        (Pad.ZERO, dtypes.I8, 0x00),
        (Pad.NULL, dtypes.F32, 0x00000000),
        (Pad.NULL, dtypes.BF16, 0x0000),
        (Pad.NULL, dtypes.U8, 0x00),
        (Pad.MIN, dtypes.F32, 0xFF800000),
        (Pad.MIN, dtypes.F16, 0xFC00),
        (Pad.MAX, dtypes.F32, 0x7F800000),
        (Pad.MAX, dtypes.F16, 0x7C00),
        (Pad.MAX, dtypes.I8, 0x7F),
    ],
)
def test_table_standard_pad_values(pad: Pad, dtype: DType, bits: int):
    assert pad.bits(dtype) == bits


@pytest.mark.parametrize(
    ("pad", "dtype", "manual", "ours"),
    [
        (Pad.MIN, dtypes.BF16, 0xFC00, 0xFF80),
        (Pad.MAX, dtypes.BF16, 0x7C00, 0x7F80),
        (Pad.MIN, dtypes.I8, 0xFF, 0x80),
        (Pad.MIN, dtypes.U8, 0xFF, 0x00),
        (Pad.MAX, dtypes.U8, 0x7F, 0xFF),
    ],
)
def test_table_standard_pad_values_cells_where_another_pattern_is_the_type_minimum(
    pad: Pad, dtype: DType, manual: int, ours: int
):
    """The table gives one column to half and bf16 and one to i8 and u8; its meaning column, "type
    minimum" and "type maximum", holds for our bits and not for those of the table."""
    assert pad.bits(dtype) == ours != manual
    as_number = np.array([manual, ours], dtype.storage).view(dtype.numpy).astype(np.float64)
    assert as_number[1] < as_number[0] if pad is Pad.MIN else as_number[1] > as_number[0]


def test_example_custom_pad_value():
    """PadValueCustom(-1.0f): all elements outside the valid region become -1.0f."""
    bits = np.array(Pad.custom(-1.0).bits(dtypes.F32), np.uint32)
    assert bits.view(np.float32) == -1.0


@pytest.mark.parametrize(
    ("name", "blayout", "slayout"),
    [
        ("ND", BLayout.ROW_MAJOR, SLayout.NONE_BOX),
        ("DN", BLayout.COL_MAJOR, SLayout.NONE_BOX),
        ("NZ", BLayout.COL_MAJOR, SLayout.ROW_MAJOR),
        ("ZN", BLayout.ROW_MAJOR, SLayout.COL_MAJOR),
        ("ZZ", BLayout.ROW_MAJOR, SLayout.ROW_MAJOR),
    ],
)
def test_table_fractal_layout_encoding(name: str, blayout: BLayout, slayout: SLayout):
    assert layout(name) == Layout(blayout, slayout)
    if slayout is not SLayout.NONE_BOX:
        for itemsize in (1, 2, 4):
            h, w = layout(name).box(itemsize)
            assert h * w * itemsize == constants.CUBE_BLOCK_SIZE == 512
