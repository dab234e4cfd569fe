"""What a turn of a loop or a block leaves behind is not seen by the next: regions, buffers."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.text.parser import parse
from pto.run.launch.engine import ENGINES
from pto.run.launch.host import launch

_TILE = "!pto.tile_buf<vec, 1x8xf32, valid=?x?>"
_PROGRAM = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @regions(%out: !pto.ptr<i32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
{body}
    return
  }}
}}
"""
_CHANGED = f"""
    scf.for %i = %c0 to %c3 step %c1 {{
      %t = pto.alloc_tile valid_row = %c1 valid_col = %c8 : {_TILE}
      %n = pto.tile_valid_cols %t : {_TILE} -> index
      %number = arith.index_cast %n : index to i32
      pto.store_scalar %number, %out[%i] : !pto.ptr<i32>, i32
      pto.set_validshape %t, %c1, %c4 : {_TILE}
    }}
"""
_CARRIED = f"""
    %a = pto.alloc_tile valid_row = %c1 valid_col = %c8 : {_TILE}
    %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%old = %a) -> ({_TILE}) {{
      %t = pto.alloc_tile valid_row = %c1 valid_col = %c8 : {_TILE}
      %less = arith.muli %i, %c4 : index
      %width = arith.subi %c8, %less : index
      pto.set_validshape %t, %c1, %width : {_TILE}
      %n = pto.tile_valid_cols %old : {_TILE} -> index
      %number = arith.index_cast %n : index to i32
      pto.store_scalar %number, %out[%i] : !pto.ptr<i32>, i32
      scf.yield %t : {_TILE}
    }}
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("body", "seen"),
    [
        pytest.param(_CHANGED, [8, 8, 8], id="a tile is made with its region, not the last one"),
        pytest.param(_CARRIED, [8, 8, 4], id="a tile that is handed on keeps its region"),
    ],
)
def test_each_turn_has_a_tile_of_its_own(engine: str, body: str, seen: list[int]):
    out = np.zeros(3, np.int32)
    launch(parse(_PROGRAM.format(body=body)), args=[out], engine=engine)
    assert out.tolist() == seen


@pto.kernel
def first_block_only(y: pto.Global[pto.f32]) -> None:
    t = pto.tile(1, 8, pto.f32)
    if pto.block_idx() == 0:
        isa.texpands(t, 1.0)
    isa.tstore(y[pto.block_idx(), :], t)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_begins_with_empty_buffers(engine: str):
    y = np.full((3, 8), 7.0, np.float32)
    first_block_only[3](y, engine=engine)
    assert y.tolist() == [[1.0] * 8, [0.0] * 8, [0.0] * 8]
