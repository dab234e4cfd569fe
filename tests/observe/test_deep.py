"""`pto check --deep`: inputs it makes up, and runs that do not come to their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pto.cli.main import main

_PROGRAM = """
!view = !pto.tensor_view<16x64xf32>
!part = !pto.partition_tensor_view<{rows}x64xf32>
!tile = !pto.tile_buf<vec, {rows}x64xf32>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %n: index, %yes: i1) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %rows = arith.constant {rows} : index
    %add = arith.constant {add} : index
    %at = arith.addi %n, %add : index
    %zero = arith.constant 0 : i64
    %one = arith.constant 1.0 : f32
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %p = pto.partition_view %v, offsets = [%at, %c0], sizes = [%rows, %c64] : !view -> !part
    %t = pto.alloc_tile addr = %zero : !tile
    pto.tload ins(%p : !part) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    scf.if %yes {{
      {inside}
    }}
    pto.tadds ins(%t, %one : !tile, f32) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%t : !tile) outs(%p : !part)
    return
  }}
}}
"""
_LOAD = "pto.tload ins(%p : !part) outs(%t : !tile)"


def _checked(path: Path, capsys: Any, **parts: Any) -> tuple[int, str, str]:
    path.write_text(_PROGRAM.format(**{"add": 0, "inside": "", "rows": 1, **parts}))
    code = main(["check", "--deep", str(path)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("rows", [1, 16])
def test_numbers_stay_inside_what_the_program_bounds(rows: int, tmp_path: Path, capsys: Any):
    """16 is no row of 16; where all rows are taken at once, only 0 is."""
    code, out, told = _checked(tmp_path / "k.pto", capsys, rows=rows)
    assert code == 0, out
    assert "2 of 2 runs" in told


def test_conditions_are_tried_both_ways(tmp_path: Path, capsys: Any) -> None:
    """Nobody waits for the load that the condition adds."""
    code, out, _ = _checked(tmp_path / "k.pto", capsys, inside=_LOAD)
    assert code == 1
    assert "PTO-R001" in out


def test_a_run_that_does_not_come_to_its_end_is_no_clean_result(tmp_path: Path, capsys: Any):
    code, out, told = _checked(tmp_path / "k.pto", capsys, rows=16, add=1)
    assert code == 1
    assert "PTO-U233" in out
    assert "n=16" in out
    assert "PTO-M006" in out
    assert "0 of 2 runs" in told
