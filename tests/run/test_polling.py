"""Blocks that wait for each other by reading global memory: agents take turns, or it is a deadlock.

No hardware orders such reads without more; what counts here is that neither engine hangs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.observe import sanitize
from pto.plan.polling import polls

# every block but the last waits until the next one has written its word
SCALAR = """
module attributes {pto.target_arch = "a5"} {
  func.func @relay(%p: !pto.ptr<i32>, %last: i64) {
    %b = pto.get_block_idx
    %one = arith.constant 1 : i64
    %i = arith.index_cast %b : i64 to index
    %n = arith.addi %b, %one : i64
    %next = arith.index_cast %n : i64 to index
    %zero = arith.constant 0 : i32
    %waits = arith.cmpi slt, %b, %last : i64
    scf.if %waits {
      scf.while : () -> () {
        %v = pto.load_scalar %p[%next] : !pto.ptr<i32> -> i32
        %c = arith.cmpi eq, %v, %zero : i32
        scf.condition(%c)
      } do {
        scf.yield
      }
    }
    %w = arith.trunci %n : i64 to i32
    pto.store_scalar %w, %p[%i] : !pto.ptr<i32>, i32
    return
  }
}
"""
TILE = """
!tile = !pto.tile_buf<vec, 1x8xi32>
module attributes {pto.target_arch = "a5"} {
  func.func @relay(%p: !pto.ptr<i32>, %last: i64) {
    %b = pto.get_block_idx
    %one = arith.constant 1 : i64
    %n = arith.addi %b, %one : i64
    %i = arith.index_cast %b : i64 to index
    %next = arith.index_cast %n : i64 to index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c99 = arith.constant 99 : index
    %zero = arith.constant 0 : i32
    %t = pto.alloc_tile : !tile
    %all = pto.make_tensor_view %p, shape = [%c99, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x?xi32>
    %waits = arith.cmpi slt, %b, %last : i64
    scf.if %waits {
      scf.while : () -> () {
        %v = pto.partition_view %all, offsets = [%next, %c0], sizes = [%c1, %c8] : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<1x8xi32>
        pto.tload ins(%v : !pto.partition_tensor_view<1x8xi32>) outs(%t : !tile)
        pto.barrier #pto.pipe<PIPE_ALL>
        %x = pto.tgetval ins(%t, %c0 : !tile, index) outs : i32
        %c = arith.cmpi eq, %x, %zero : i32
        scf.condition(%c)
      } do {
        scf.yield
      }
    }
    %w = arith.trunci %n : i64 to i32
    pto.texpands ins(%w : i32) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    %o = pto.partition_view %all, offsets = [%i, %c0], sizes = [%c1, %c8] : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<1x8xi32>
    pto.tstore ins(%t : !tile) outs(%o : !pto.partition_tensor_view<1x8xi32>)
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }
}
"""  # noqa: E501
ENGINES = pytest.mark.parametrize("engine", ["reference", "jit"])
PROGRAMS = pytest.mark.parametrize(
    ("text", "width"), [(SCALAR, 1), (TILE, 8)], ids=["scalar", "tile"]
)


def words(width: int) -> Any:
    return np.zeros((99, width), np.int32)


@ENGINES
@PROGRAMS
def test_blocks_that_wait_for_the_next_one(text: str, width: int, engine: str) -> None:
    p = words(width)
    pto.launch(parse(text), args=[p, 6], blocks=7, engine=engine, timeout=100)
    assert p[:8, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


@ENGINES
@PROGRAMS
def test_a_block_that_waits_for_none_is_a_deadlock(text: str, width: int, engine: str) -> None:
    with pytest.raises(PtoError) as caught:
        pto.launch(parse(text), args=[words(width), 7], blocks=7, engine=engine, timeout=100)
    found = caught.value.diagnostics[0]
    assert found.code == "PTO-D110"
    assert found.loc is not None and "scf.while" in text.split("\n")[found.loc.line - 1]
    assert any("others to change what its loop looks at" in note.message for note in found.notes)


@PROGRAMS
def test_the_sanitizer_takes_turns_too(text: str, width: int) -> None:
    p = words(width)
    verdict = sanitize(parse(text), args=[p, 2], blocks=3, timeout=100)
    assert verdict.report is not None and p[:4, 0].tolist() == [1, 2, 3, 0]
    stuck = sanitize(parse(text), args=[words(width), 3], blocks=3, timeout=100)
    assert "PTO-D110" in {d.code for d in stuck.findings}


WORK = """
func.func @work(%p: !pto.ptr<i32>, %q: !pto.ptr<i32>, %c0: index, %c1: index, %zero: i32) {
  %r = scf.while (%i = %c0) : (index) -> index {
    %v = pto.load_scalar %p[PLACE] : !pto.ptr<i32> -> i32
    %c = arith.cmpi ne, %v, %zero : i32
    scf.condition(%c) %i : index
  } do {
  ^bb0(%j: index):
    WRITE
    %n = arith.addi %j, %c1 : index
    scf.yield %n : index
  }
  return
}
"""
_WRITE = "pto.store_scalar %zero, %q[%c0] : !pto.ptr<i32>, i32"


@pytest.mark.parametrize(
    ("place", "write", "wanted"),
    [("%c0", "", True), ("%i", "", False), ("%c0", _WRITE, False)],
    ids=["one place", "another place each turn", "it writes itself"],
)
def test_which_loops_wait(place: str, write: str, wanted: bool) -> None:
    module = parse(WORK.replace("PLACE", place).replace("WRITE", write))
    (loop,) = [op for op in module.walk() if op.name == "scf.while"]
    assert polls(loop) is wanted
