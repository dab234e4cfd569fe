"""Flags and registers on the fast engine: both engines count the same ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike

_LOOP = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @k(%a: !pto.ptr<f32, gm>, %n: index) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = arith.constant 1.5 : f32
    scf.for %i = %c0 to %n step %c1 {{
      pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
      {between}
      pto.barrier #pto.pipe<PIPE_V>
      pto.wait_flag["PIPE_MTE2", "PIPE_V", "{event}"]
    }}
    return
  }}
}}
"""


def _program(event: str = "EVENT_ID0", between: str = "") -> str:
    return _LOOP.format(event=event, between=between)


def test_flags_are_set_and_taken_in_a_loop() -> None:
    agree(_program(), [np.zeros(4, np.float32), 1000])


def test_flags_are_the_same_ones_inside_a_call_outside() -> None:
    # nothing compiles the print: the reference does it, between the flag and its wait
    agree(
        _program(between='pto.print ins("%f", %v : f32)'),
        [np.zeros(4, np.float32), 3],
        all_native=False,
        check=False,
    )


def test_a_flag_that_nothing_has_set_is_named() -> None:
    code = fails_alike(_program(event="EVENT_ID1"), [np.zeros(4, np.float32), 2], check=False)
    assert code == "PTO-D111"


_WHO = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @k(%a: !pto.ptr<i64, gm>) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = pto.get_block_idx
    %n = pto.get_block_num
    %s = pto.get_subblock_idx
    %m = pto.get_subblock_num
    %x = arith.muli %b, %n : i64
    %y = arith.addi %x, %s : i64
    %z = arith.addi %y, %m : i64
    %at = arith.index_cast %b : i64 to index
    pto.store_scalar %z, %a[%at] : !pto.ptr<i64, gm>, i64
    return
  }
}
"""


@pytest.mark.parametrize("blocks", [1, 5])
def test_agents_know_who_they_are(blocks: int) -> None:
    (found,) = agree(_WHO, [np.full(8, -1, np.int64)], blocks=blocks, all_native=False, check=False)
    assert (found[:blocks] >= 0).all()
