"""A plan written down: the same places, the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto.cli.main import main
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.isa.handle.tile import ALLOC_TILE
from pto.plan.memory import addressed, plan_memory
from pto.run.launch.host import launch
from pto.target.profile import profile

TILE = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"
TEXT = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @kernel(%x: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<?x?xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64]
      : !pto.tensor_view<?x?xf32> -> {VIEW}
    %a = pto.alloc_tile : {TILE}
    %b = pto.alloc_tile : {TILE}
    pto.tload ins(%p : {VIEW}) outs(%a : {TILE})
    pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})
    pto.tadd ins(%a, %b : {TILE}, {TILE}) outs(%b : {TILE})
    pto.tstore ins(%b : {TILE}) outs(%p : {VIEW})
    return
  }}
}}
"""


def test_every_tile_says_where_the_plan_has_it():
    module, target = parse(TEXT), profile("a5")
    planned = [op for op in module.walk() if op.row is ALLOC_TILE]
    wanted = [plan_memory(module, target).address(op) for op in planned]
    again = parse(print_module(addressed(module, target)))
    tiles = [op for op in again.walk() if op.row is ALLOC_TILE]
    assert [op.group("addr")[0].number for op in tiles] == wanted
    assert len(set(wanted)) == 2
    assert not any(op.group("addr") for op in planned), "the program itself stays as it is"


def test_a_placed_program_computes_the_same():
    x = np.arange(16 * 64, dtype=np.float32)
    launch(addressed(parse(TEXT), profile("a5")), args=[x])
    np.testing.assert_array_equal(x, 3 * np.arange(16 * 64))


def test_plan_writes_the_placed_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, out = tmp_path / "k.pto", tmp_path / "placed.pto"
    source.write_text(TEXT)
    assert main(["plan", str(source), "-o", str(out)]) == 0
    assert out.read_text().count("alloc_tile addr = ") == 2
    capsys.readouterr()
    assert main(["check", str(out)]) == 0
