"""Tiles: reading and writing through any layout, valid regions, padding, and what is refused."""

import numpy as np
import pytest

from pto.core import dtypes
from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.layout import (
    DN,
    ND,
    NN,
    NN_MX,
    NZ,
    NZ_ACC,
    ZN,
    ZZ,
    ZZ_MX,
    BLayout,
    Layout,
    SLayout,
)
from pto.core.memory import Memory, Role, Space, role
from pto.core.pad import Pad
from pto.core.tile import Tile, TileType

LAYOUTS = (ND, DN, NZ, ZN, ZZ, NN, NZ_ACC, ZZ_MX, NN_MX)
GARBAGE = 0xA5


def placed(tile_type: TileType, address: int = 64) -> Tile:
    """The tile in a memory full of garbage, so that untouched bytes can be told."""
    memory = Memory(tile_type.space, address + tile_type.nbytes + 64, align=32)
    memory.data[:] = GARBAGE
    return Tile(tile_type, memory, address)


def numbers(dtype: DType, shape: tuple[int, int]) -> np.ndarray:
    """Random items of any type, by their bits."""
    raw = np.random.default_rng(7).integers(0, 120, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype is dtypes.I1:
        raw &= 1
    return raw.reshape(shape[0], -1).view(dtype.numpy)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_what_is_written_is_read_whatever_type_and_layout(dtype: DType, layout: Layout):
    tile = placed(TileType.of(Role.MAT, dtype, 64, 64, layout))
    array = numbers(dtype, (64, 64))
    tile.write(array)
    assert tile.read().dtype == dtype.numpy
    assert tile.read().tobytes() == array.tobytes()
    assert (tile.memory.data[:64] == GARBAGE).all()
    assert (tile.memory.data[64 + tile.type.nbytes :] == GARBAGE).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_writing_the_valid_region_touches_nothing_else(layout: Layout):
    tile = placed(TileType.of(Role.MAT, dtypes.U16, 64, 64, layout))
    tile.set_valid(19, 37)
    array = numbers(dtypes.U16, (19, 37))
    tile.write_valid(array)
    assert np.array_equal(tile.read_valid(), array)
    whole = tile.read()
    assert np.array_equal(whole[:19, :37], array)
    whole[:19, :37] = GARBAGE * 257
    assert (whole == GARBAGE * 257).all()
    assert (tile.memory.data == GARBAGE).sum() >= tile.memory.size - 2 * array.size


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_padding_fills_exactly_what_is_outside_the_valid_region(layout: Layout):
    tile = placed(TileType.of(Role.MAT, dtypes.F16, 64, 64, layout, pad=Pad.MIN))
    tile.write(np.zeros((64, 64), np.float16))
    tile.set_valid(5, 9)
    tile.fill_pad()
    whole = tile.read()
    assert (whole[:5, :9] == 0).all()
    assert np.isneginf(whole).sum() == 64 * 64 - 5 * 9


@pytest.mark.parametrize("pad", [Pad.NULL, Pad.INVALID], ids=str)
def test_undefined_padding_is_left_as_it_is(pad: Pad):
    tile = placed(TileType.of(Role.VEC, dtypes.U8, 8, 32, valid=(4, 32), pad=pad))
    tile.fill_pad()
    assert (tile.memory.data == GARBAGE).all()
    tile.fill_pad(Pad.ZERO)
    assert (tile.read()[4:] == 0).all() and (tile.read()[:4] == GARBAGE).all()


def test_an_nz_tile_stores_its_elements_at_the_offsets_of_the_isa():
    tile = placed(TileType.of(Role.MAT, dtypes.F16, 32, 32, NZ))
    array = np.arange(1024, dtype=np.float16).reshape(32, 32)
    tile.write(array)
    stored = tile.memory.data[64 : 64 + 2048].view(np.float16)
    assert stored[786] == array[17, 18]  # a program built from the C++ headers
    assert stored[16] == array[1, 0] and stored[512] == array[0, 16]


def test_a_plain_tile_can_be_seen_in_place_and_a_boxed_one_cannot():
    tile = placed(TileType.of(Role.VEC, dtypes.F32, 4, 8))
    view = tile.view()
    assert view is not None
    view[3, 7] = 2.5
    assert tile.read()[3, 7] == 2.5
    assert placed(TileType.of(Role.MAT, dtypes.F32, 16, 8, NZ)).view() is None


def test_a_packed_type_counts_items():
    fp4 = TileType.of(Role.LEFT, dtypes.FLOAT4_E2M1X2, 16, 32, NZ)
    assert fp4.box == (16, 32)
    assert fp4.nbytes == 512
    assert placed(fp4).read().dtype == np.uint8


@pytest.mark.parametrize(
    ("tile_type", "nbytes"),
    [
        (TileType.of(Role.VEC, dtypes.F32, 16, 16), 1024),
        (TileType.of(Role.LEFT, dtypes.F16, 1, 64, ZZ), 128),
        (TileType.of(Role.ACC, dtypes.F32, 32, 32, NZ_ACC), 4096),
        (TileType.of(Role.VEC, dtypes.F16, 17, 32, NZ), 17 * 32 * 2),
        (TileType.of(Role.VEC, dtypes.F16, 16, 32, NZ, compact=Compact.ROW_PLUS_ONE), 17 * 32 * 2),
        (TileType.of(Role.SCALE_RIGHT, dtypes.E8M0, 3, 16, NN_MX), 4 * 16),
    ],
)
def test_bytes_a_tile_needs(tile_type: TileType, nbytes: int):
    assert tile_type.nbytes == nbytes


# --- valid region ------------------------------------------------------------------------------


def test_the_valid_region_is_the_shape_until_it_is_set():
    tile = placed(TileType.of(Role.VEC, dtypes.F16, 16, 16))
    assert tile.get_valid() == (16, 16)
    tile.set_valid(0, 16)
    assert tile.get_valid() == (0, 16)
    assert tile.read_valid().shape == (0, 16)


@pytest.mark.parametrize("valid", [(17, 1), (-1, 1), (1, 33), (1, -2)])
def test_a_valid_region_outside_the_tile_is_refused_and_the_old_one_stays(valid: tuple[int, int]):
    tile = placed(TileType.of(Role.VEC, dtypes.F16, 16, 32))
    with pytest.raises(PtoError, match=r"do not fit a tile with .*vec 16x32xf16 ND") as caught:
        tile.set_valid(*valid)
    assert caught.value.code == "PTO-V001"
    assert tile.get_valid() == (16, 32)
    with pytest.raises(PtoError):
        TileType.of(Role.VEC, dtypes.F16, 16, 32, valid=valid)
    with pytest.raises(PtoError):
        Tile(tile.type, tile.memory, 64, valid)


def test_a_dynamic_valid_region_must_be_set_before_use():
    tile = placed(TileType.of(Role.VEC, dtypes.F16, 16, 32, valid=(None, 32)))
    with pytest.raises(PtoError, match="dynamic and was not set") as caught:
        tile.read_valid()
    assert caught.value.code == "PTO-V002"
    tile.set_valid(3, 32)
    assert tile.read_valid().shape == (3, 32)


# --- compact storage ---------------------------------------------------------------------------


def test_a_compact_tile_keeps_only_the_boxes_with_valid_elements():
    tile = placed(TileType.of(Role.LEFT, dtypes.F16, 64, 32, NZ, compact=Compact.NORMAL))
    tile.set_valid(20, 20)
    array = np.arange(400, dtype=np.float16).reshape(20, 20)
    tile.write_valid(array)
    assert np.array_equal(tile.read_valid(), array)
    stored = tile.memory.data[64:].view(np.float16)
    # 20 rows take 32 rows of storage: the second column of boxes starts at 32 * 16
    assert stored[32 * 16] == array[0, 16]
    assert np.array_equal(tile.read()[:20, :20], array)
    assert (tile.read()[32:] == 0).all()
    tile.write(np.ones((64, 32), np.float16))
    assert (tile.memory.data[64 + 2 * 32 * 32 :] == GARBAGE).all()


def test_row_plus_one_spreads_the_columns_of_boxes():
    tile = placed(TileType.of(Role.VEC, dtypes.F16, 16, 32, NZ, compact=Compact.ROW_PLUS_ONE))
    array = np.arange(512, dtype=np.float16).reshape(16, 32)
    tile.write(array)
    stored = tile.memory.data[64:].view(np.float16)
    assert stored[17 * 16] == array[0, 16]
    assert (stored[16 * 16 : 17 * 16].view(np.uint8) == GARBAGE).all()
    assert np.array_equal(tile.read(), array)


# --- windows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_window_reads_and_writes_the_bytes_of_its_parent(layout: Layout):
    parent = placed(TileType.of(Role.MAT, dtypes.U16, 64, 64, layout))
    array = numbers(dtypes.U16, (64, 64))
    parent.write(array)
    window = parent.window(16, 32, TileType.of(Role.MAT, dtypes.U16, 32, 16, layout))
    assert np.array_equal(window.read(), array[16:48, 32:48])
    window.set_valid(19, 5)
    assert np.array_equal(window.read_valid(), array[16:35, 32:37])
    window.write_valid(np.full((19, 5), 7, np.uint16))
    array[16:35, 32:37] = 7
    assert np.array_equal(parent.read(), array)
    window.write(np.full((32, 16), 9, np.uint16))
    array[16:48, 32:48] = 9
    assert np.array_equal(parent.read(), array)
    assert (parent.memory.data[:64] == GARBAGE).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_padding_of_a_window_stays_inside_it(layout: Layout):
    parent = placed(TileType.of(Role.MAT, dtypes.F16, 64, 64, layout))
    parent.write(np.zeros((64, 64), np.float16))
    window = parent.window(32, 16, TileType.of(Role.MAT, dtypes.F16, 16, 32, layout), (3, 4))
    window.fill_pad(Pad.MAX)
    wanted = np.zeros((64, 64), np.float16)
    wanted[32:48, 16:48] = np.inf
    wanted[32:35, 16:20] = 0
    assert np.array_equal(parent.read(), wanted)


@pytest.mark.parametrize(("layout", "strides"), [(ND, (64, 4)), (DN, (4, 64))], ids=str)
def test_a_window_of_a_plain_tile_can_be_seen_in_place(layout: Layout, strides: tuple[int, int]):
    parent = placed(TileType.of(Role.VEC, dtypes.F32, 16, 16, layout))
    parent.write(np.zeros((16, 16), np.float32))
    view = parent.window(3, 5, TileType.of(Role.VEC, dtypes.F32, 8, 8, layout)).view()
    assert view is not None and view.strides == strides
    view[...] = 1
    assert parent.read().sum() == 64 and parent.read()[3, 5] == parent.read()[10, 12] == 1


def test_a_window_of_a_window_lies_in_the_first_tile():
    parent = placed(TileType.of(Role.VEC, dtypes.I32, 16, 32))
    array = np.arange(512, dtype=np.int32).reshape(16, 32)
    parent.write(array)
    middle = parent.window(2, 8, TileType.of(Role.VEC, dtypes.I32, 12, 16))
    inner = middle.window(1, 3, TileType.of(Role.VEC, dtypes.I32, 4, 8))
    assert np.array_equal(inner.read(), array[3:7, 11:19])
    assert inner.address == 64 + 4 * (3 * 32 + 11)
    assert inner.nbytes == 4 * (3 * 32 + 8)  # up to its last element, gaps included


def test_a_window_of_a_tile_with_an_extra_row_keeps_its_pitch():
    parent = placed(TileType.of(Role.VEC, dtypes.F16, 16, 32, NZ, compact=Compact.ROW_PLUS_ONE))
    array = np.arange(512, dtype=np.float16).reshape(16, 32)
    parent.write(array)
    part = TileType.of(Role.VEC, dtypes.F16, 16, 16, NZ, compact=Compact.ROW_PLUS_ONE)
    window = parent.window(0, 16, part)
    assert window.address == 64 + 2 * 17 * 16
    assert np.array_equal(window.read(), array[:, 16:])


def test_whole_lines_are_a_plain_tile_of_their_own():
    parent = placed(TileType.of(Role.VEC, dtypes.F32, 16, 16))
    window = parent.window(4, 0, TileType.of(Role.VEC, dtypes.F32, 8, 16))
    assert window.nbytes == 8 * 64
    assert window.retyped(TileType.of(Role.VEC, dtypes.U8, 16, 32)).address == 64 + 256


@pytest.mark.parametrize(("row", "col"), [(-1, 0), (0, -8), (9, 0), (0, 9), (1 << 40, 0)])
def test_a_window_outside_its_parent_is_refused(row: int, col: int):
    parent = placed(TileType.of(Role.VEC, dtypes.F32, 16, 16))
    with pytest.raises(PtoError, match="is not inside vec 16x16xf32 ND") as caught:
        parent.window(row, col, TileType.of(Role.VEC, dtypes.F32, 8, 8))
    assert caught.value.code == "PTO-S073"


def test_a_window_that_cuts_boxes_is_refused():
    parent = placed(TileType.of(Role.MAT, dtypes.F16, 64, 64, NZ))
    with pytest.raises(PtoError, match=r"\(8, 0\) .* cuts its 16x16 boxes") as caught:
        parent.window(8, 0, TileType.of(Role.MAT, dtypes.F16, 16, 16, NZ))
    assert caught.value.code == "PTO-L070"


def test_a_window_with_gaps_keeps_its_lines_under_another_type_or_is_refused():
    parent = placed(TileType.of(Role.VEC, dtypes.F32, 16, 16))
    parent.write(np.ones((16, 16), np.float32))
    window = parent.window(8, 8, TileType.of(Role.VEC, dtypes.F32, 8, 8))
    same = window.retyped(TileType.of(Role.VEC, dtypes.I32, 8, 8))
    assert (same.read() == 0x3F800000).all()
    with pytest.raises(PtoError, match="window with gaps between its lines") as caught:
        window.retyped(TileType.of(Role.VEC, dtypes.F32, 4, 16))
    assert caught.value.code == "PTO-L180"


def test_a_tile_moved_elsewhere_keeps_its_pitch_and_its_valid_region():
    parent = placed(TileType.of(Role.VEC, dtypes.F32, 16, 16))
    window = parent.window(0, 8, TileType.of(Role.VEC, dtypes.F32, 8, 8), (2, 3))
    other = Memory(Space.UB, 4096, align=32)
    other.data[:] = GARBAGE
    moved = window.moved(other, 32)
    assert moved.get_valid() == (2, 3)
    moved.write(np.zeros((8, 8), np.float32))
    changed = np.flatnonzero(other.data != GARBAGE)
    assert changed.size == 256 and changed[-1] == 32 + 7 * 64 + 31


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tile_type", "sentence"),
    [
        (
            TileType.of(Role.MAT, dtypes.F16, 24, 32, NZ),
            "mat 24x32xf16 NZ: rows 24 is not a multiple of 16, the box is 16x16",
        ),
        (
            TileType.of(Role.MAT, dtypes.I8, 16, 48, NZ),
            "mat 16x48xi8 NZ: cols 48 is not a multiple of 32, the box is 16x32",
        ),
        (
            TileType.of(Role.RIGHT, dtypes.F32, 12, 16, ZN),
            "right 12x16xf32 ZN: rows 12 is not a multiple of 8, the box is 8x16",
        ),
        (
            TileType.of(Role.ACC, dtypes.F32, 16, 24, NZ_ACC),
            "acc 16x24xf32 NZ fractal 1024: cols 24 is not a multiple of 16, the box is 16x16",
        ),
    ],
)
def test_a_shape_that_is_no_multiple_of_its_box_is_found(tile_type: TileType, sentence: str):
    assert [(d.code, d.message) for d in tile_type.findings()] == [("PTO-S002", sentence)]
    with pytest.raises(PtoError, match="is not a multiple of"):
        tile_type.check()


@pytest.mark.parametrize(
    "tile_type",
    [
        TileType.of(Role.VEC, dtypes.F16, 17, 32, NZ),
        TileType.of(Role.LEFT, dtypes.F16, 1, 32, ZZ),
        TileType.of(Role.SCALE_LEFT, dtypes.E8M0, 5, 4, ZZ_MX),
        TileType.of(Role.SCALAR, dtypes.F16, 1, 1),
    ],
    ids=str,
)
def test_rows_may_be_partial_for_vec_scales_and_single_rows(tile_type: TileType):
    assert tile_type.findings() == []


def test_all_findings_are_reported_not_the_first():
    codes = [d.code for d in TileType.of(Role.MAT, dtypes.F16, 17, 17, NZ).findings()]
    assert codes == ["PTO-S002", "PTO-S002"]


def test_a_row_that_is_no_multiple_of_a_block_is_found_where_the_target_asks():
    narrow = TileType.of(Role.VEC, dtypes.U8, 256, 16)
    assert [d.message for d in narrow.findings()] == [
        "vec 256x16xu8 ND: a row has 16 elements = 16 bytes, not a multiple of 32 bytes"
    ]
    assert narrow.findings(block=1) == []
    column = TileType.of(Role.VEC, dtypes.F16, 1, 16, DN)
    assert [d.code for d in column.findings()] == ["PTO-S005"]


def test_a_plain_tile_that_names_an_accumulator_box_needs_16_columns():
    plain = Layout(BLayout.ROW_MAJOR, SLayout.NONE_BOX, 1024)
    assert TileType.of(Role.VEC, dtypes.F32, 16, 16, plain).findings() == []
    found = TileType.of(Role.VEC, dtypes.F32, 16, 8, plain).findings()
    assert [d.code for d in found] == ["PTO-S002"]


def test_a_scalar_tile_is_one_by_one():
    found = TileType.of(Role.SCALAR, dtypes.F32, 1, 8).findings()
    assert [d.code for d in found] == ["PTO-S008"]


@pytest.mark.parametrize(("rows", "cols"), [(0, 16), (16, 0), (-1, 16)])
def test_an_empty_shape_is_refused(rows: int, cols: int):
    with pytest.raises(PtoError, match=f"{rows}x{cols} must be positive") as caught:
        TileType.of(Role.VEC, dtypes.F32, rows, cols)
    assert caught.value.code == "PTO-S001"


def test_a_tile_belongs_in_the_buffer_of_its_role():
    with pytest.raises(PtoError, match="left 16x16xf16 NZ belongs in l0a, not in ub") as caught:
        Tile(TileType.of(Role.LEFT, dtypes.F16, 16, 16, NZ), Memory(Space.UB, 4096))
    assert caught.value.code == "PTO-M004"


def test_a_tile_must_fit_its_buffer_and_its_alignment():
    tile_type = TileType.of(Role.VEC, dtypes.F32, 16, 16)
    memory = Memory(Space.UB, 2048, align=32)
    assert Tile(tile_type, memory, 1024).address == 1024
    for address, code in ((1056, "PTO-M001"), (16, "PTO-M002"), (-32, "PTO-M001")):
        with pytest.raises(PtoError) as caught:
            Tile(tile_type, memory, address)
        assert caught.value.code == code
    assert Tile(tile_type, Memory(Space.UB, 2048), 3).address == 3


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.zeros((16, 8), np.float32), "PTO-S006"),
        (np.zeros(256, np.float32), "PTO-S006"),
        (np.zeros((16, 16), np.float64), "PTO-T002"),
    ],
)
def test_an_array_of_another_shape_or_type_changes_nothing(array: np.ndarray, code: str):
    tile = placed(TileType.of(Role.VEC, dtypes.F32, 16, 16))
    for write in (tile.write, tile.write_valid):
        with pytest.raises(PtoError) as caught:
            write(array)
        assert caught.value.code == code
    assert (tile.memory.data == GARBAGE).all()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("vec", Role.VEC), ("Acc", Role.ACC), ("ScaleLeft", Role.SCALE_LEFT), ("scale", Role.SCALING)],
)
def test_roles_are_found_by_the_names_of_programs(name: str, wanted: Role):
    assert role(name) is wanted


def test_an_unknown_role_is_refused():
    with pytest.raises(PtoError, match="unknown tile role `vex`") as caught:
        role("vex")
    assert caught.value.code == "PTO-S003"


def test_tile_types_are_values():
    one, two = (TileType.of(Role.VEC, dtypes.F32, 16, 16, pad=Pad.ZERO) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one != TileType.of(Role.VEC, dtypes.F32, 16, 16)
