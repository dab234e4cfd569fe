"""What an operation leaves in a special register is there once it is done: readers wait for it."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize
from pto.run.launch.host import launch

_PROGRAM = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %y: !pto.ptr<i16, gm>) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %counts = arith.constant 281479271743489 : i64
    %config = arith.constant 3841 : i64
    %s = pto.castptr %z : i64 -> !p
    %o = pto.castptr %bytes : i64 -> !p
    pto.mte_gm_ub %x, %s, %z, %bytes nburst(%n, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vmrgsort4 %o, %s, %s, %s, %s, %counts, %config : !p, !p, !p, !p, !p, i64, i64
    {order}
    %a, %b, %d, %e = pto.get_vms4_sr : i16, i16, i16, i16
    pto.store_scalar %a, %y[%c0] : !pto.ptr<i16, gm>, i16
    return
  }}
}}
"""
_FLAG = "\n".join(f'pto.{w}_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]' for w in ("set", "wait"))


@pytest.mark.parametrize("order", [_FLAG, 'pto.barrier "PIPE_ALL"'])
def test_the_scalar_unit_waits_for_the_pipe_that_leaves_a_count(order: str) -> None:
    """One record of each list: four lists of one."""
    right, wrong = (parse(_PROGRAM.format(order=text)) for text in (order, ""))
    x = np.ones(64, np.float32)
    assert sanitize(right, args=[x, np.zeros(16, np.int16)]).findings == ()
    (found,) = sanitize(wrong, args=[x, np.zeros(16, np.int16)]).findings
    assert found.code == "PTO-R001" and "special register vms4_sr" in found.message
    outs = [np.zeros(16, np.int16) for _ in range(2)]
    for module, y in zip((right, wrong), outs, strict=True):
        launch(module, args=[x, y], schedule="late")
    assert [int(y[0]) for y in outs] == [1, 0]  # the late pipe has left nothing yet
