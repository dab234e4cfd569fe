"""PTO manual, Layout Reference: its tables, except the TileType-Layout Compatibility Matrix."""

import numpy as np
import pytest

from pto.core import constants, dtypes
from pto.core.compact import Compact, ExtractMode
from pto.core.errors import PtoError
from pto.core.global_layout import global_layout
from pto.core.global_tensor import GlobalTensor
from pto.core.layout import DN, FR, ND, NZ, RN, ZN, BLayout, Layout, SLayout, signature_layout
from pto.core.memory import Memory, Space
from pto.core.pad import Pad, pad
from pto.core.tile import Role, Tile, TileType


def tensor(name: str, *shape: int) -> GlobalTensor:
    layout = global_layout(name)
    return GlobalTensor.of(Memory(Space.GM, 1 << 16), 0, dtypes.F16, shape, layout=layout)


def test_table_globaltensor_layout_nd_is_row_major():
    """stride[R] = Cols, and a matrix as far as it is large in the next dimension."""
    assert tensor("ND", 2, 3, 4, 5, 6).strides == (3 * 4 * 5 * 6, 4 * 5 * 6, 5 * 6, 6, 1)


def test_table_globaltensor_layout_dn_is_column_major():
    """stride[C] = Rows: elements of a column are contiguous."""
    assert tensor("DN", 5, 6).strides[3:] == (1, 5)


def test_table_globaltensor_layout_nz_matches_the_nz_tile():
    """GM data is stored for fractal tile compatibility: the bytes of an NZ tile as they are."""
    gm = tensor("NZ", 1, 3, 2, 16, 16)
    matrix = np.arange(32 * 48, dtype=np.uint16).view(np.float16).reshape(32, 48)
    gm.write_matrix(matrix)
    stored = gm.memory.data[: gm.nbytes].view(np.uint16)
    assert np.array_equal(stored[NZ.index_map(32, 48, 2)], matrix.view(np.uint16))


def test_table_blayout_values():
    """RowMajor: strides (Cols, 1); ColMajor: strides (1, Rows)."""
    rows, cols = 6, 10
    for layout, strides in ((ND, (cols, 1)), (DN, (1, rows))):
        view = layout.view(np.zeros(rows * cols, np.uint8), rows, cols, 1)
        assert view is not None and view.strides == strides


@pytest.mark.parametrize(
    ("slayout", "fractals"),
    [
        (SLayout.NONE_BOX, {None}),
        (SLayout.ROW_MAJOR, {"NZ", "FR"}),
        (SLayout.COL_MAJOR, {"ZN", "RN"}),
    ],
)
def test_table_slayout_values_requires(slayout: SLayout, fractals: set[str | None]):
    def is_accepted(fractal: str | None) -> bool:
        for blayout in BLayout:
            try:
                signature_layout(blayout, slayout, fractal)
            except PtoError:
                continue
            return True
        return False

    assert {each for each in (None, "NZ", "ZN", "FR", "RN") if is_accepted(each)} == fractals


@pytest.mark.parametrize(
    ("fractal", "slayout", "blayout", "wanted"),
    [
        (None, SLayout.NONE_BOX, BLayout.ROW_MAJOR, ND),
        (None, SLayout.NONE_BOX, BLayout.COL_MAJOR, DN),
        ("NZ", SLayout.ROW_MAJOR, BLayout.COL_MAJOR, NZ),
        ("ZN", SLayout.COL_MAJOR, BLayout.ROW_MAJOR, ZN),
        ("FR", SLayout.ROW_MAJOR, BLayout.COL_MAJOR, FR),
        ("RN", SLayout.COL_MAJOR, BLayout.ROW_MAJOR, RN),
    ],
)
def test_table_fractal_layout_values(
    fractal: str | None, slayout: SLayout, blayout: BLayout, wanted: Layout
):
    assert signature_layout(blayout, slayout, fractal) == wanted


def test_note_fractal_block_dimensions():
    """FRACTAL_NZ_ROW = 16 rows and CUBE_BLOCK_SIZE = 512 bytes a block."""
    for itemsize in (1, 2, 4, 8):
        rows, cols = NZ.box(itemsize)
        assert rows == 16 and rows * cols * itemsize == 512


def test_table_compact_mode_in_textract():
    """Padding is skipped and valid data packed: n valid elements take the places 0 .. n-1."""
    rows, cols = 19, 21
    values = np.arange(rows * cols)
    for name, reorders in (("ND2NZ", True), ("NZ2ND", True), ("ND", False), ("ND2NZ2", True)):
        moved = values[ExtractMode(name).index_map(rows, cols, 2)]
        assert np.array_equal(np.sort(moved), values)
        assert np.array_equal(moved, values) is not reorders
    assert {mode.value for mode in ExtractMode} == {"ND2NZ", "NZ2ND", "ND", "ND2NZ2"}


def test_table_compact_mode_nd2nz2_keeps_every_pair_of_rows_together():
    places = ExtractMode.ND2NZ2.destination.positions(6, 40, 2)
    for pair in range(3):
        assert sorted(places[2 * pair : 2 * pair + 2].ravel()) == list(
            range(80 * pair, 80 * pair + 80)
        )


def test_compact_addressing_of_a_left_tile_produces_addresses_for_valid_rows_only():
    """Compact Mode in TMATMUL_MX: padding rows are left out in whole boxes of 16 rows."""
    left = TileType.of(Role.LEFT, dtypes.F16, 64, 32, NZ, compact=Compact.NORMAL)
    tile = Tile(left, Memory(Space.L0A, left.nbytes), valid=(10, 32))
    tile.write_valid(np.ones((10, 32), np.float16))
    written = np.flatnonzero(tile.memory.data.view(np.float16))
    assert written.max() < 16 * 32


@pytest.mark.parametrize(("name", "defined"), [("Zero", True), ("Null", False), ("Invalid", False)])
def test_table_padding(name: str, defined: bool):
    assert pad(name).is_defined is defined
    assert Pad.custom(-1.0).is_defined


def test_example_normal_to_fractal_and_back():
    """Vec int8 16x16 to Left NZ (BLayout RowMajor in this example) and back again."""
    left = signature_layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, "NZ")
    source = np.arange(256, dtype=np.uint8).view(np.int8).reshape(16, 16)
    a, b = (
        Tile(t, Memory(t.role.space, t.nbytes))
        for t in (
            TileType.of(Role.LEFT, dtypes.I8, 16, 16, left),
            TileType.of(Role.VEC, dtypes.I8, 16, 16),
        )
    )
    a.write(source)
    assert a.memory.data.view(np.int8)[32] == source[1, 0]  # a box row is 32 bytes
    b.write(a.read())
    assert np.array_equal(b.read(), source)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BLOCK_BYTE_SIZE", 32),
        ("FIXP_BURST_UNIT_LEN", 64),
        ("FRACTAL_NZ_ROW", 16),
        ("CUBE_BLOCK_SIZE", 512),
        ("MX_COL_LEN", 2),
        ("MX_ROW_LEN", 16),
        ("MX_BLOCK_SIZE", 32),
    ],
)
def test_table_constants_reference(name: str, value: int):
    assert getattr(constants, name) == value
