"""Compact tiles and the packed orders of TEXTRACT, checked against sorted element lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto.core.compact import PACKED_NZ, Compact, ExtractMode, storage_shape
from pto.core.errors import PtoError
from pto.core.layout import ND, NZ, ZN, ZZ

SIZES = st.integers(1, 70)


def rank(keys: dict[tuple[int, int], tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """Place of each element when the elements are sorted by their key."""
    return {element: place for place, element in enumerate(sorted(keys, key=keys.__getitem__))}


def sort_key(mode: ExtractMode, r: int, c: int, w: int) -> tuple[int, ...]:
    """The order a destination is packed in: blocks of w columns, for NZ2 inside pairs of rows."""
    return {
        ExtractMode.ND2NZ: (c // w, r, c),
        ExtractMode.NZ2ND: (r, c),
        ExtractMode.ND: (r, c),
        ExtractMode.ND2NZ2: (r // 2, c // w, r, c),
    }[mode]


@given(st.sampled_from(list(ExtractMode)), SIZES, SIZES, st.sampled_from([1, 2, 4]))
def test_valid_data_is_packed_contiguously_in_fractal_order(
    mode: ExtractMode, rows: int, cols: int, itemsize: int
):
    elements = [(r, c) for r in range(rows) for c in range(cols)]
    wanted = rank({(r, c): sort_key(mode, r, c, 32 // itemsize) for r, c in elements})
    found = mode.destination.positions(rows, cols, itemsize)
    assert {(r, c): int(found[r, c]) for r, c in elements} == wanted


@given(st.sampled_from(list(ExtractMode)), SIZES, SIZES)
def test_the_index_map_moves_every_valid_element_once(mode: ExtractMode, rows: int, cols: int):
    values = np.arange(rows * cols).reshape(rows, cols)
    packed = np.empty(rows * cols, int)
    packed[mode.source.positions(rows, cols, 2)] = values
    moved = packed[mode.index_map(rows, cols, 2)]
    assert np.array_equal(moved[mode.destination.positions(rows, cols, 2)], values)


def test_nd_to_nz_of_a_small_edge_tile_by_hand():
    # 2 valid rows, 5 valid columns of i64: boxes are 4 wide, so 4 + 4 elements, then 1 + 1
    assert ExtractMode.ND2NZ.destination.positions(2, 5, 8).tolist() == [
        [0, 1, 2, 3, 8],
        [4, 5, 6, 7, 9],
    ]


def test_nd_to_nz2_groups_rows_in_pairs_by_hand():
    # rows 0 and 1 come first, column block by column block, then row 2 alone
    assert ExtractMode.ND2NZ2.destination.positions(3, 5, 8).tolist() == [
        [0, 1, 2, 3, 8],
        [4, 5, 6, 7, 9],
        [10, 11, 12, 13, 14],
    ]


def test_without_padding_the_packed_order_is_the_nz_layout():
    assert np.array_equal(PACKED_NZ.positions(32, 48, 2), NZ.index_map(32, 48, 2))


def test_nz_to_nd_undoes_nd_to_nz():
    there = ExtractMode.ND2NZ.index_map(19, 37, 2)
    back = ExtractMode.NZ2ND.index_map(19, 37, 2)
    assert np.array_equal(there[back], np.arange(19 * 37))
    assert not np.array_equal(there, np.arange(19 * 37))


def test_an_empty_valid_region_packs_to_nothing():
    assert ExtractMode.ND2NZ.index_map(0, 5, 2).size == 0
    assert ExtractMode.ND2NZ2.index_map(3, 0, 2).size == 0


def test_a_negative_valid_region_is_refused():
    with pytest.raises(PtoError) as caught:
        ExtractMode.ND.index_map(-1, 5, 2)
    assert caught.value.code == "PTO-V001"


def test_a_normal_compact_tile_drops_the_boxes_without_valid_elements():
    def shape(valid: tuple[int, int]) -> tuple[int, int]:
        return storage_shape(NZ, Compact.NORMAL, (64, 64), valid, 2)

    assert shape((5, 9)) == (16, 16)
    assert shape((17, 48)) == (32, 48)
    assert shape((64, 64)) == (64, 64)
    assert shape((0, 0)) == (16, 16)
    assert storage_shape(NZ, Compact.NORMAL, (17, 64), (17, 64), 2) == (17, 64)


def test_row_plus_one_means_one_pitch_however_rows_are_written():
    for rows in (16, 17):
        shape = storage_shape(NZ, Compact.ROW_PLUS_ONE, (rows, 32), (16, 32), 2)
        assert NZ.offset(0, 16, *shape, 2) == 17 * 16
    assert storage_shape(ZN, Compact.ROW_PLUS_ONE, (16, 32), (16, 32), 2) == (16, 33)


def test_row_plus_one_is_undefined_where_no_source_defines_it():
    with pytest.raises(PtoError, match="row_plus_one is not defined by the ISA") as caught:
        storage_shape(ZZ, Compact.ROW_PLUS_ONE, (16, 32), (16, 32), 2)
    assert caught.value.code == "PTO-L003"


def test_compact_modes_change_nothing_without_boxes():
    for compact in Compact:
        assert storage_shape(ND, compact, (16, 16), (3, 3), 4) == (16, 16)
    assert storage_shape(NZ, Compact.NULL, (16, 16), (3, 3), 2) == (16, 16)
