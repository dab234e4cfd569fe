"""Regions, layouts and element types that a program leaves open and constants decide."""

from __future__ import annotations

import numpy as np

import pto
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.target.profile import profile
from pto.transform.layouts import state_columns
from pto.transform.regions import state_constants
from pto.transform.scratch import complete

F32 = pto.Global[pto.f32]


def stated(body: str, does) -> str:
    module = parse(f"func.func @k(%n: index, %p: !pto.ptr<f32>) {{\n{body}\nreturn\n}}")
    does(next(iter(module.functions())))
    return print_module(module)


ALLOC = """%c1 = arith.constant 1 : index
    %c48 = arith.constant 48 : index
    %t = pto.alloc_tile valid_row = %n valid_col = %c48 : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
"""


def test_a_constant_extent_stands_in_the_type():
    text = stated(ALLOC, state_constants)
    assert "pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 16x64xf32, valid=?x48>" in text


def test_a_region_that_is_set_later_stays_open():
    body = ALLOC + "pto.set_validshape %t, %n, %n : !pto.tile_buf<vec, 16x64xf32, valid=?x?>"
    assert "valid=?x48" not in stated(body, state_constants)


VIEW = """%c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %v = pto.make_tensor_view %p, shape = [%n, %n], strides = [%c1, %n] : !pto.tensor_view<?x?xf32>
    %w = pto.partition_view %v, offsets = [%c1, %c1], sizes = [%c16, %c1]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x1xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, {tile}>
    pto.tload ins(%w : !pto.partition_tensor_view<16x1xf32>) outs(%t : !pto.tile_buf<vec, {tile}>)
"""


def test_a_view_that_is_moved_by_columns_says_so():
    text = stated(VIEW.format(tile="16x1xf32, blayout=col_major"), state_columns)
    assert "layout = #pto.layout<dn>" in text


def test_a_view_that_is_moved_by_rows_says_nothing():
    assert "layout = " not in stated(VIEW.format(tile="16x8xf32, valid=16x1"), state_columns)


def test_indices_of_a_sort_are_unsigned_words():
    tiles = [f"!pto.tile_buf<vec, 1x{n}>" for n in ("32xf32", "32xi32", "64xf32")]
    module = parse(f"""func.func @k(%s: {tiles[0]}, %i: {tiles[1]}, %d: {tiles[2]}) {{
    pto.tsort32 ins(%s, %i : {tiles[0]}, {tiles[1]}) outs(%d : {tiles[2]})
    return
    }}""")
    text = print_module(complete(module, profile("a2a3")))
    unsigned = tiles[1].replace("xi32", "xui32")
    assert f"%i_seen = pto.bitcast %i : {tiles[1]} -> {unsigned}" in text
    assert f"pto.tsort32 ins(%s, %i_seen : {tiles[0]}, {unsigned})" in text


@pto.kernel(profile="a2a3")
def turned(a: F32, b: F32, c: F32) -> None:
    pto.store(c, pto.dot(pto.load(a, 32, 64), pto.load(b.T, 64, 32)))


def test_a_turned_factor_is_loaded_as_the_library_can():
    """TLOAD has ND to NZ and DN to ZN, and a product of a turned array is that of its elements."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 9, (32, 64)).astype(np.float32) for _ in "ab")
    c = np.zeros((32, 32), np.float32)
    turned(a, b, c)
    assert np.array_equal(c, a @ b.T)
    assert "mat, 64x32xf32, slayout=col_major" in turned.ir
    assert "Layout::DN" in turned.cpp(a, b, c)


def test_a_kernel_is_marked_as_an_entry():
    """PTOAS makes `__global__` functions of marked ones alone."""
    turned.module(*(np.zeros((32, 64), np.float32),) * 2, np.zeros((32, 32), np.float32))
    assert "attributes {pto.entry}" in turned.ir
