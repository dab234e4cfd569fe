"""Buffers of other agents of a core, in compiled code: a vector names the cube's L1.

On a chip the cube brings it back; here a vector may, with checks left out.
"""

from __future__ import annotations

import numpy as np

from tests.run.jit.both import agree, fails_alike

# UB to L1 of the cube, where each sub-block has a place of its own, and back to another place.
VECTOR = """
  func.func @vector(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {{{attributes}}} {{
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %n = arith.constant 256 : i64
    %far = arith.constant 4096 : i64
    %sub = pto.get_subblock_idx
    %place = arith.muli %sub, %n : i64
    %at = arith.muli %sub, %far : i64
    %elements = arith.constant 64 : index
    %which = arith.index_cast %sub : i64 to index
    %skip = arith.muli %which, %elements : index
    %from = pto.addptr %x, %skip : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>
    %to = pto.addptr %y, %skip : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>
    %ub = pto.castptr %c0 : i64 -> !pto.ptr<f32, ub>
    %back = pto.castptr %far : i64 -> !pto.ptr<f32, ub>
    %l1 = pto.castptr %at : i64 -> !pto.ptr<f32, l1>
    pto.mte_gm_ub %from, %ub, %c0, %n nburst(%c1, %n, %n)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_l1 %ub, %l1, %c8 nburst(%c1, %c0, %c0)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, l1>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_l1_ub %l1, %back, %c8 nburst(%c1, %c0, %c0)
      : !pto.ptr<f32, l1>, !pto.ptr<f32, ub>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %back, %to, %n nburst(%c1, %n, %n) l2_cache_ctl(%c0)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64, i64
    return
  }}"""
CUBE = """
  func.func @cube(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>)
      attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
    return
  }"""


def program(*, cube: bool) -> str:
    kind = "pto.kernel_kind = #pto.kernel_kind<vector>"
    body = VECTOR.format(attributes=kind) + (CUBE if cube else "")
    return 'module attributes {pto.target_arch = "a5"} {' + body + "\n}"


def test_a_vector_reaches_the_l1_of_its_cube() -> None:
    x = np.arange(128, dtype=np.float32)
    _, y = agree(program(cube=True), [x, np.zeros_like(x)], check=False)
    np.testing.assert_array_equal(y, x)


def test_without_a_cube_nobody_has_it() -> None:
    x = np.zeros(128, np.float32)
    assert fails_alike(program(cube=False), [x, x.copy()], check=False) == "PTO-M160"
