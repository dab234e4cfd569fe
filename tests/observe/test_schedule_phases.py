"""Schedules and phases: a wrong order between phases, or around working space, shows in the values.

The programs and faults are those of the catalogue. What the scalar unit does it does at once, so
that a missing wait for the scalar unit shows in no schedule.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters, parse_args
from pto.run.launch.host import launch
from tests.observe.catalogue import Fault, Program, faults, programs

_ABOUT = ("phase_", "working_space sum")
_SHOWN = (
    "the wait is MTE2's own",
    "the flag is set before the indices are loaded",
    "MTE2 does not wait for the store of the source",
    "the wait is MTE3's",
    "the ramp does not wait for the product",
    "V does not wait for the loads",
    "MTE3 is taken for the pipe of the scatter",
    "the next load does not wait for V",
    "working space over a tile that MTE3 still stores",
    "the flag is set before the store",
    "a load into working space in use",
)
_SCHEDULES = ("program", "early", "late", "random:1", "random:2")


def outcomes(text: str) -> set[bytes]:
    """The bits of all arrays, under each schedule."""
    module = parse(text)
    words = re.search(r"// args: (.*)", text)
    given = parse_args(words[1].split() if words else [])
    found: set[bytes] = set()
    for schedule in _SCHEDULES:
        args = build(parameters(*entry_functions(module, None)), given, 0)
        if "mgather" in text:
            args[1][:] = np.arange(16) * 3
        how = {} if schedule == "program" else {"schedule": schedule}
        launch(module, args=args, check=False, **how)
        found.add(b"".join(a.tobytes() for a in args))
    return found


@pytest.mark.parametrize("program", [p for p in programs() if str(p).startswith(_ABOUT)], ids=str)
def test_a_right_program_gives_the_same_bits_in_every_schedule(program: Program):
    assert len(outcomes(program.text)) == 1


WRONG = [f for f in faults() if str(f).startswith(_ABOUT) and str(f).endswith(_SHOWN)]


@pytest.mark.parametrize("fault", WRONG, ids=str)
def test_a_schedule_shows_the_fault_in_the_values(fault: Fault):
    assert len(outcomes(fault.text)) > 1


def test_all_of_these_faults_are_tried():
    assert {name for f in WRONG for name in _SHOWN if str(f).endswith(name)} == set(_SHOWN)


@pytest.mark.parametrize(("binary", "kept"), [("", True), (" {isBinary = true}", False)])
def test_a_sum_of_columns_fills_its_scratch_tile_only_in_pairs(binary: str, kept: bool):
    """The a2a3 header reaches tmp in the branch of isBinary alone: TColSum.hpp."""
    tile, view = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tensor_view<16x64xf32>"
    text = f"""
module attributes {{pto.target_arch = "a2a3", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.aicore}} {{
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %first = arith.constant 0 : i64
    %next = arith.constant 8192 : i64
    %last = arith.constant 16384 : i64
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : {view}
    %w = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : {view}
    %a = pto.alloc_tile addr = %first : {tile}
    %tmp = pto.alloc_tile addr = %next : {tile}
    %sum = pto.alloc_tile addr = %last : {tile}
    pto.tload ins(%v : {view}) outs(%a : {tile})
    pto.tload ins(%v : {view}) outs(%tmp : {tile})
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tcolsum ins(%a, %tmp{binary} : {tile}, {tile}) outs(%sum : {tile})
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%tmp : {tile}) outs(%w : {view})
    return
  }}
}}"""
    x = np.arange(1024, dtype=np.float32)
    for schedule in ("early", "late"):
        y = np.zeros_like(x)
        launch(parse(text), args=[x.copy(), y], check=False, schedule=schedule)
        assert (y.tobytes() == x.tobytes()) is kept
