"""Tile layouts against formulas written here independently, element by element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto.core.errors import PtoError
from pto.core.layout import (
    CACHED_ELEMENTS,
    DN,
    FR,
    ND,
    NN,
    NN_MX,
    NZ,
    NZ_ACC,
    RN,
    ZN,
    ZZ,
    ZZ_MX,
    BLayout,
    Layout,
    SLayout,
    layout,
    runs_between,
    signature_layout,
)

ALL = (ND, DN, NZ, ZN, ZZ, NN, NZ_ACC, ZZ_MX, NN_MX)
BOXED = tuple(each for each in ALL if each.is_boxed)


def oracle(each: Layout, r: int, c: int, rows: int, cols: int, itemsize: int) -> int:
    """pto-isa tile_offsets.hpp, spelled out letter by letter."""
    h, w = each.box(itemsize)
    br, ir, bc, ic = r // h, r % h, c // w, c % w
    return {
        "ND": r * cols + c,
        "DN": c * rows + r,
        "NZ": bc * rows * w + br * h * w + ir * w + ic,
        "ZN": br * cols * h + bc * h * w + ic * h + ir,
        "ZZ": br * cols * h + bc * h * w + ir * w + ic,
        "NN": bc * rows * w + br * h * w + ic * h + ir,
    }[each.name]


@st.composite
def legal(draw: st.DrawFn) -> tuple[Layout, int, int, int]:
    each = draw(st.sampled_from(ALL))
    itemsize = draw(st.sampled_from([1, 2, 4, 8]))
    h, w = each.box(itemsize)
    most = 5 if each.is_boxed else 40
    return each, h * draw(st.integers(1, most)), w * draw(st.integers(1, most)), itemsize


@given(legal())
def test_a_layout_is_a_bijection_between_elements_and_offsets(case: tuple[Layout, int, int, int]):
    each, rows, cols, itemsize = case
    offsets = each.index_map(rows, cols, itemsize)
    assert np.array_equal(np.sort(offsets, axis=None), np.arange(rows * cols))
    assert each.extent(rows, cols, itemsize) == rows * cols


@given(legal(), st.data())
def test_inverse_undoes_offset(case: tuple[Layout, int, int, int], data: st.DataObject):
    each, rows, cols, itemsize = case
    r, c = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    offset = each.offset(r, c, rows, cols, itemsize)
    assert each.inverse(offset, rows, cols, itemsize) == (r, c)


@given(legal())
def test_inverse_undoes_offset_on_whole_arrays(case: tuple[Layout, int, int, int]):
    each, rows, cols, itemsize = case
    r, c = each.inverse(np.arange(rows * cols), rows, cols, itemsize)
    assert np.array_equal(each.offset(r, c, rows, cols, itemsize), np.arange(rows * cols))


@given(legal(), st.data())
def test_offset_is_the_formula_of_the_isa(case: tuple[Layout, int, int, int], data: st.DataObject):
    each, rows, cols, itemsize = case
    r, c = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    wanted = oracle(each, r, c, rows, cols, itemsize)
    assert each.offset(r, c, rows, cols, itemsize) == wanted
    assert each.index_map(rows, cols, itemsize)[r, c] == wanted


@pytest.mark.parametrize(
    ("each", "itemsize", "shape", "element", "offset"),
    [
        # three results of a program built from the C++ headers
        (NZ, 2, (32, 32), (17, 18), 786),
        (ZN, 4, (16, 32), (9, 17), 393),
        (NZ_ACC, 4, (32, 32), (17, 18), 786),
        # by hand: box row 1, box column 2 of 16x8 boxes, then row 1, column 2 of the box
        (ZZ, 4, (32, 32), (17, 18), 1 * 512 + 2 * 128 + 1 * 8 + 2),
        # box column 1 of 8x16 boxes is 512 on, box row 2 is 256 on, column 2 of the box is 16 on
        (NN, 4, (32, 32), (17, 18), 512 + 256 + 16 + 1),
        (NN, 2, (32, 32), (17, 18), 512 + 256 + 32 + 1),
        # i8: boxes of 16x32, so column 40 is in the second column of boxes
        (NZ, 1, (32, 64), (20, 40), 32 * 32 + 20 * 32 + 8),
        # scales: 16x2 and 2x16 boxes of 32 bytes
        (ZZ_MX, 1, (32, 8), (17, 5), 1 * 128 + 2 * 32 + 1 * 2 + 1),
        (NN_MX, 1, (8, 32), (5, 17), 1 * 128 + 2 * 32 + 1 * 2 + 1),
        (ND, 2, (32, 32), (17, 18), 562),
        (DN, 2, (32, 32), (17, 18), 593),
    ],
)
def test_offsets_computed_by_hand(
    each: Layout, itemsize: int, shape: tuple[int, int], element: tuple[int, int], offset: int
):
    assert each.offset(*element, *shape, itemsize) == offset


@pytest.mark.parametrize(
    ("each", "itemsize", "box"),
    [
        (NZ, 1, (16, 32)),
        (NZ, 2, (16, 16)),
        (NZ, 4, (16, 8)),
        (NZ, 8, (16, 4)),
        (ZN, 1, (32, 16)),
        (ZN, 4, (8, 16)),
        (ZZ, 2, (16, 16)),
        (NZ_ACC, 4, (16, 16)),
        (NZ_ACC, 2, (16, 16)),
        (ZZ_MX, 1, (16, 2)),
        (NN_MX, 1, (2, 16)),
        (ND, 2, (1, 1)),
        (Layout(BLayout.ROW_MAJOR, SLayout.NONE_BOX, 1024), 4, (1, 1)),
        (FR, 2, (16, 16)),
        (RN, 4, (8, 16)),
    ],
)
def test_box_sizes(each: Layout, itemsize: int, box: tuple[int, int]):
    assert each.box(itemsize) == box


@pytest.mark.parametrize("each", ALL, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_storage_holds_each_element_at_its_offset(each: Layout, dtype: type[np.generic]):
    itemsize = np.dtype(dtype).itemsize
    h, w = each.box(itemsize)
    rows, cols = (3 * h, 2 * w) if each.is_boxed else (24, 7)
    tile = np.random.default_rng(1).integers(0, 100, (rows, cols)).astype(dtype)
    stored = each.to_storage(tile, itemsize)
    for r in range(rows):
        for c in range(cols):
            assert stored[oracle(each, r, c, rows, cols, itemsize)] == tile[r, c]
    back = each.to_logical(stored, rows, cols, itemsize)
    assert np.array_equal(back, tile)
    assert back.flags.c_contiguous
    assert not np.may_share_memory(back, stored)
    into = np.zeros_like(stored)
    assert each.to_storage(np.asfortranarray(tile), itemsize, out=into) is into
    assert np.array_equal(into, stored)


def test_a_plain_layout_is_seen_without_a_copy_and_a_boxed_one_is_not():
    flat = np.arange(6, dtype=np.int32)
    assert np.array_equal(ND.view(flat, 2, 3, 4), [[0, 1, 2], [3, 4, 5]])
    columns = DN.view(flat, 2, 3, 4)
    assert columns is not None
    assert np.array_equal(columns, [[0, 2, 4], [1, 3, 5]])
    columns[1, 2] = 50
    assert flat[5] == 50
    assert NZ.view(np.zeros(256, np.int32), 16, 16, 4) is None


@pytest.mark.parametrize("each", BOXED, ids=str)
def test_one_row_lies_contiguously_whatever_the_box(each: Layout):
    w = each.box(1)[1]
    assert np.array_equal(each.index_map(1, 4 * w, 1), [np.arange(4 * w)])
    assert each.extent(1, 4 * w, 1) == 4 * w


@pytest.mark.parametrize("each", BOXED, ids=str)
@pytest.mark.parametrize("rows", [3, 17, 31, 33])
def test_partial_boxes_keep_elements_apart_and_inside_the_extent(each: Layout, rows: int):
    cols = 2 * each.box(2)[1]
    offsets = each.index_map(rows, cols, 2)
    assert np.unique(offsets).size == rows * cols
    assert offsets.max() < each.extent(rows, cols, 2)
    tile = np.arange(rows * cols, dtype=np.uint16).reshape(rows, cols)
    stored = each.to_storage(tile, 2, out=np.full(each.extent(rows, cols, 2), 9999, np.uint16))
    assert np.array_equal(stored[offsets], tile)
    assert np.count_nonzero(stored == 9999) == stored.size - rows * cols
    assert np.array_equal(each.to_logical(stored, rows, cols, 2), tile)


def test_an_nz_column_of_17_rows_is_17_rows_apart():
    # pto-isa tile_offsets.hpp: the pitch of a column of boxes is Rows * w, also with Rows = 17
    assert NZ.offset(0, 16, 17, 32, 2) == 17 * 16
    assert NZ.offset(16, 0, 17, 32, 2) == 16 * 16
    assert NZ.extent(17, 32, 2) == 17 * 32


def test_partial_boxes_leave_gaps_that_no_element_owns():
    assert ZZ.extent(17, 16, 2) == 32 * 16
    with pytest.raises(PtoError, match="row 18 is outside the shape 17x16") as caught:
        ZZ.inverse(18 * 16, 17, 16, 2)
    assert caught.value.code == "PTO-S004"


def test_index_maps_are_shared_and_read_only():
    first = NZ.index_map(64, 64, 2)
    assert NZ.index_map(64, 64, 2) is first
    assert ZN.index_map(64, 64, 2).flags.writeable is False
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1


def test_maps_of_large_tiles_are_not_kept():
    rows = CACHED_ELEMENTS // 16 + 16
    assert NZ.index_map(rows, 16, 2) is not NZ.index_map(rows, 16, 2)


@pytest.mark.parametrize(("r", "c"), [(-1, 0), (32, 0), (0, -1), (0, 32)])
def test_an_element_outside_the_tile_has_no_offset(r: int, c: int):
    with pytest.raises(PtoError, match="outside the shape 32x32") as caught:
        NZ.offset(r, c, 32, 32, 2)
    assert caught.value.code == "PTO-S004"
    with pytest.raises(PtoError):
        NZ.offset(np.array([0, r]), np.array([0, c]), 32, 32, 2)


@pytest.mark.parametrize("each", (*ALL, FR, RN), ids=str)
def test_a_layout_is_found_by_its_name_in_any_case(each: Layout):
    assert layout(each.name.lower(), each.fractal) == each
    assert layout(each.name, each.fractal).name == each.name


def test_names_tell_the_box_only_where_it_is_unusual():
    assert [str(each) for each in (ND, NZ, NZ_ACC, ZZ_MX, FR)] == [
        "ND",
        "NZ",
        "NZ fractal 1024",
        "ZZ fractal 32",
        "FR",
    ]


def test_an_unknown_name_is_refused_with_the_nearest_names():
    with pytest.raises(PtoError, match="unknown tile layout `NZZ`") as caught:
        layout("NZZ")
    assert caught.value.code == "PTO-L001"
    assert "`NZ`" in str(caught.value.diagnostics[0].help)


def test_an_unknown_fractal_size_is_refused():
    with pytest.raises(PtoError, match="fractal is 16; a box is one of 512, 1024, 32") as caught:
        layout("NZ", 16)
    assert caught.value.code == "PTO-L002"


@pytest.mark.parametrize("each", [FR, RN], ids=str)
def test_fr_and_rn_have_a_name_and_a_box_and_no_address(each: Layout):
    with pytest.raises(PtoError, match="not defined by the ISA") as caught:
        each.offset(0, 0, 16, 16, 2)
    assert caught.value.code == "PTO-L003"
    assert each != NZ and each != ZN


def test_a_fractal_that_contradicts_its_layouts_is_refused():
    with pytest.raises(PtoError, match=r"fractal ZN needs .* and the tile has") as caught:
        signature_layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, "ZN")
    assert caught.value.code == "PTO-L004"
    with pytest.raises(PtoError, match="unknown tile layout `XY`"):
        signature_layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, "XY")


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("dst", BOXED)
@pytest.mark.parametrize("src", BOXED)
def test_runs_move_as_their_elements_do(src: Layout, dst: Layout, itemsize: int):
    found = runs_between(src, dst, 64, 96, itemsize)
    if found is None:
        same_inside = src.slayout is dst.slayout and src.box(itemsize) == dst.box(itemsize)
        assert not same_inside
        return
    order, run = found
    logical = np.arange(64 * 96).astype(f"u{itemsize}").reshape(64, 96)
    moved = src.to_storage(logical, itemsize).view(run)[order].view(logical.dtype)
    assert np.array_equal(moved, dst.to_storage(logical, itemsize))


def test_runs_need_whole_boxes():
    assert runs_between(NZ, ZZ, 16, 40, 2) is None
    assert runs_between(NZ, ND, 16, 32, 2) is None
