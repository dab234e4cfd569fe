"""Vector code on the fast engine: the same bits as on the reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike

_PROGRAM = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @add(%a: !pto.ptr<f32, gm>, %n: i32) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %end = arith.constant {end} : index
    %zero = arith.constant 0 : i64
    %ub = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    pto.vecscope {{
      %rest = scf.for %i = %c0 to %end step %c64 iter_args(%left = %n) -> (i32) {{
        %m, %less = pto.plt_b32 %left : i32 -> !pto.mask<b32>, i32
        %x = pto.vlds %ub[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %y = pto.vexp %x, %m : !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
        %z = pto.vadd %x, %y, %m
          : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
        pto.vsts %z, %ub[%i], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
        scf.yield %less : i32
      }}
    }}
    return
  }}
}}
"""


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200, 1000])
def test_a_loop_with_a_tail(count: int) -> None:
    agree(_PROGRAM.format(end=256), [np.zeros(4, np.float32), count])


def test_an_address_outside_the_buffer_is_named_as_the_reference_names_it() -> None:
    code = fails_alike(_PROGRAM.format(end=1 << 20), [np.zeros(4, np.float32), 64])
    assert code == "PTO-M001"
