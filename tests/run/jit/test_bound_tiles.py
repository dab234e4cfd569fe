"""Tiles that are given another place while a program runs: every later use goes there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike

PROGRAM = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %row: i32, %col: i32)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %vx = pto.make_tensor_view %x, shape = [%c8, %c16], strides = [%c16, %c1]
      : !pto.tensor_view<?x?xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c8, %c16]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x16xf32>
    %vy = pto.make_tensor_view %y, shape = [%c2, %c16], strides = [%c16, %c1]
      : !pto.tensor_view<?x?xf32>
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c2, %c16]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<2x16xf32>
    %s = pto.alloc_tile : !pto.tile_buf<vec, 8x16xf32>
    %d = pto.alloc_tile : !pto.tile_buf<vec, 2x16xf32>
    pto.tload ins(%px : !pto.partition_tensor_view<8x16xf32>)
      outs(%s : !pto.tile_buf<vec, 8x16xf32>)
    scf.for %i = %c0 to %c2 step %c1 {{
      pto.tadd ins(%d, %d : !pto.tile_buf<vec, 2x16xf32>, !pto.tile_buf<vec, 2x16xf32>)
        outs(%d : !pto.tile_buf<vec, 2x16xf32>)
      {bind}
    }}
    pto.tstore ins(%d : !pto.tile_buf<vec, 2x16xf32>)
      outs(%py : !pto.partition_tensor_view<2x16xf32>)
    return
  }}
}}
"""
PART = """pto.tsubview ins(%s, %row, %col : !pto.tile_buf<vec, 8x16xf32>, i32, i32)
        outs(%d : !pto.tile_buf<vec, 2x16xf32>)"""
ALIAS = """pto.talias ins(%s : !pto.tile_buf<vec, 8x16xf32>)
        outs(%d : !pto.tile_buf<vec, 2x16xf32>)"""


@pytest.mark.parametrize(("bind", "row"), [(PART, 0), (PART, 3), (PART, 6), (ALIAS, 0)])
def test_later_uses_see_the_new_place(bind: str, row: int) -> None:
    """The second turn of the loop doubles the rows that the first turn has named."""
    x = np.arange(128, dtype=np.float32)
    args = [x, np.zeros(32, np.float32), row, 0]
    found = agree(PROGRAM.format(bind=bind), args, check=bind is PART)  # no profile has talias
    np.testing.assert_array_equal(found[1], 2 * x[16 * row : 16 * row + 32])


def test_a_part_outside_is_told_alike() -> None:
    args = [np.zeros(128, np.float32), np.zeros(32, np.float32), 7, 0]
    assert fails_alike(PROGRAM.format(bind=PART), args) == "PTO-S060"
