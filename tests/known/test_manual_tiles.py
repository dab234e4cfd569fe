"""PTO manual, Tiles And Valid Regions: its tables and examples, except the layout combinations."""

from dataclasses import fields

import numpy as np
import pytest

from pto.core import dtypes
from pto.core.compact import ExtractMode
from pto.core.errors import PtoError
from pto.core.layout import (
    DN,
    FR,
    ND,
    NN,
    NZ,
    RN,
    ZN,
    BLayout,
    Layout,
    SLayout,
    layout,
    signature_layout,
)
from pto.core.memory import Memory, Role, role
from pto.core.pad import Pad, pad
from pto.core.tile import Tile, TileType


def placed(tile_type: TileType) -> Tile:
    return Tile(tile_type, Memory(tile_type.role.space, tile_type.nbytes))


def test_table_tile_template_signature():
    """Tile<TileType, DType, Rows, Cols, BLayout, SLayout, Fractal, Pad>."""
    names = {field.name for field in fields(TileType)}
    assert {"role", "dtype", "rows", "cols", "layout", "pad"} <= names
    assert {"blayout", "slayout", "fractal"} <= {field.name for field in fields(Layout)}
    for rows, cols in ((0, 1), (1, 0)):
        with pytest.raises(PtoError):
            TileType.of(Role.VEC, dtypes.F32, rows, cols)


@pytest.mark.parametrize(
    ("name", "unit"),
    [("Vec", "V"), ("Mat", "M"), ("Acc", "M"), ("Scalar", "S"), ("Left", "M"), ("Right", "M")],
)
def test_table_tiletype_pipeline(name: str, unit: str):
    assert role(name).unit == unit


def test_table_tiletype_scalar_has_one_row_and_one_column():
    assert TileType.of(Role.SCALAR, dtypes.F32, 1, 1).findings() == []
    assert TileType.of(Role.SCALAR, dtypes.F32, 2, 1).findings() != []


def test_formula_valid_region_domain():
    """Domain(dst) = { (i, j) | 0 <= i < Rv and 0 <= j < Cv }."""
    tile = placed(TileType.of(Role.VEC, dtypes.I32, 8, 8))
    tile.write(np.full((8, 8), -1, np.int32))
    tile.set_valid(3, 5)
    tile.write_valid(np.zeros((3, 5), np.int32))
    domain = {(int(i), int(j)) for i, j in np.argwhere(tile.read() == 0)}
    assert domain == {(i, j) for i in range(8) for j in range(8) if 0 <= i < 3 and 0 <= j < 5}


def test_table_block_layout_strides():
    """RowMajor: Cols and 1; ColMajor: 1 and Rows."""
    for each, strides in ((ND, (16, 1)), (DN, (1, 8))):
        view = placed(TileType.of(Role.VEC, dtypes.U8, 8, 16, each)).view()
        assert view is not None and view.strides == strides


@pytest.mark.parametrize(
    ("slayout", "fractals"),
    [(SLayout.ROW_MAJOR, ("NZ", "FR")), (SLayout.COL_MAJOR, ("ZN", "RN"))],
)
def test_table_stripe_layout(slayout: SLayout, fractals: tuple[str, str]):
    assert all(layout(name).slayout is slayout for name in fractals)


@pytest.mark.parametrize(
    ("name", "wanted"), [("NZ", NZ), ("ZN", ZN), ("FR", FR), ("RN", RN)], ids=str
)
def test_table_fractal_layout(name: str, wanted: Layout):
    assert layout(name) == wanted
    assert wanted.is_boxed and not ND.is_boxed and not DN.is_boxed


@pytest.mark.parametrize(
    ("name", "wanted"), [("Zero", Pad.ZERO), ("Null", Pad.NULL), ("Invalid", Pad.INVALID)]
)
def test_table_padding(name: str, wanted: Pad):
    """Zero writes zeros outside the valid region; Null and Invalid define nothing there."""
    assert pad(name) == wanted
    tile = placed(TileType.of(Role.VEC, dtypes.U8, 4, 32, pad=wanted, valid=(2, 30)))
    tile.write(np.full((4, 32), 7, np.uint8))
    tile.fill_pad()
    outside = np.ones((4, 32), bool)
    outside[:2, :30] = False
    assert set(tile.read()[outside]) == ({0} if wanted is Pad.ZERO else {7})


def test_table_compact_mode_in_textract():
    for name, source, destination in (
        ("ND2NZ", "ND", "NZ"),
        ("NZ2ND", "NZ", "ND"),
        ("ND", "ND", "ND"),
        ("ND2NZ2", "ND", "NZ2"),
    ):
        mode = ExtractMode(name)
        assert (mode.source.name, mode.destination.name) == (source, destination)


def test_example_1_edge_tile():
    """A 16x16 half tile of which tile[0..4][0..8] is meaningful."""
    tile = placed(TileType.of(Role.VEC, dtypes.F16, 16, 16, pad=Pad.ZERO))
    tile.set_valid(5, 9)
    assert tile.get_valid() == (5, 9)
    assert tile.read_valid().shape == (5, 9)


def test_example_2_matmul_roles_as_the_manual_spells_them():
    a = signature_layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, "NZ")
    b = signature_layout(BLayout.ROW_MAJOR, SLayout.NONE_BOX, "NN")
    c = signature_layout(BLayout.ROW_MAJOR, SLayout.NONE_BOX, None)
    assert (a, b, c) == (NZ, NN, ND)
    left, right, acc = (
        placed(TileType.of(each, dtype, 16, 16, lay, pad=padding))
        for each, dtype, lay, padding in (
            (Role.LEFT, dtypes.I8, a, Pad.NULL),
            (Role.RIGHT, dtypes.I8, b, Pad.NULL),
            (Role.ACC, dtypes.I32, c, Pad.ZERO),
        )
    )
    one = np.arange(256).reshape(16, 16) % 11 - 5
    left.write(one.astype(np.int8))
    right.write(one.T.astype(np.int8))
    acc.write(left.read().astype(np.int32) @ right.read().astype(np.int32))
    assert np.array_equal(acc.read(), one @ one.T)


def test_example_3_elementwise_over_the_valid_region():
    """dst.SetValidRegion(8, 8): only dst[0..7][0..7] changes."""
    dst, src0, src1 = (placed(TileType.of(Role.VEC, dtypes.F32, 16, 16)) for _ in range(3))
    src0.write(np.ones((16, 16), np.float32))
    src1.write(np.full((16, 16), 2, np.float32))
    dst.set_valid(8, 8)
    dst.write_valid(src0.read()[:8, :8] + src1.read()[:8, :8])
    wanted = np.zeros((16, 16), np.float32)
    wanted[:8, :8] = 3
    assert np.array_equal(dst.read(), wanted)
