"""Work items are work of V: schedules may delay them, and `pto sync` orders them by flags."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.isa.row.order import WaitFlag
from pto.observe import sanitize
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.profile import choose
from tests.observe.catalogue import Fault, Program, faults, programs

_OURS = [p for p in programs() if p.path.stem == "work_items"]
_RACY = [f for f in faults() if f.name.endswith("the store does not wait for the items")]


def _stored(text: str, schedule: str) -> list[float]:
    x, y = np.arange(64, dtype=np.float32), np.full(64, -1, np.float32)
    launch(parse(text), args=[x, y], schedule=schedule, check=False)
    return y.tolist()


@pytest.mark.parametrize("schedule", ["early", "late", "random:3"])
@pytest.mark.parametrize("program", _OURS, ids=str)
def test_ordered_work_items_give_one_result_in_every_schedule(
    program: Program, schedule: str
) -> None:
    assert _stored(program.text, schedule) == list(range(64))


@pytest.mark.parametrize("fault", _RACY, ids=str)
def test_a_store_that_does_not_wait_takes_what_was_there_before(fault: Fault) -> None:
    """Buffers begin as zeros; `late` runs the work items after the store."""
    assert _stored(fault.text, "late") == [0.0] * 64


_TILES = """
!view = !pto.tensor_view<1x64xf32>
!part = !pto.partition_tensor_view<1x64xf32>
!tile = !pto.tile_buf<vec, 1x64xf32>
!p = !pto.ptr<f32, ub>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @body() attributes {{pto.simt_entry}} {{
    %zero = arith.constant 0 : i64
    %p = pto.castptr %zero : i64 -> !p
    {body}
    return
  }}
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i64
    %items = arith.constant 64 : i32
    %one = arith.constant 1 : i32
    %v = pto.make_tensor_view %x, shape = [%c1, %c64], strides = [%c64, %c1] : !view
    %w = pto.make_tensor_view %y, shape = [%c1, %c64], strides = [%c64, %c1] : !view
    %in = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c64] : !view -> !part
    %out = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c1, %c64] : !view -> !part
    %t = pto.alloc_tile addr = %zero : !tile
    %p = pto.castptr %zero : i64 -> !p
    pto.tload ins(%in : !part) outs(%t : !tile)
    {start}
    pto.tstore ins(%t : !tile) outs(%out : !part)
    return
  }}
}}
"""
_DOUBLE = """%i = pto.get_tid_x : i32
    %n = arith.index_cast %i : i32 to index
    %f = pto.load %p[%n] : !p -> f32
    %g = arith.addf %f, %f : f32
    pto.store %g, %p[%n] : !p, f32"""
_STARTS = {
    "section": f"pto.section.simt<<<64, 1, 1>>> {{\n{_DOUBLE}\n}}",
    "launch": "pto.simt_launch @body<<<%items, %one, %one>>>() : () -> ()",
    "call": "pto.store_vfsimt_info %one, %one, %items : i32, i32, i32\n"
    "    func.call @body() : () -> ()",
}


@pytest.mark.parametrize("how", _STARTS)
def test_sync_orders_work_items_on_both_sides(how: str) -> None:
    module = parse(_TILES.format(body=_DOUBLE, start=_STARTS[how]))
    ordered = insert(module, choose(profile_name="a5").profile)
    waits = [op for op in ordered.walk() if op.row is not None and type(op.row.order) is WaitFlag]
    assert len(waits) == 2  # MTE2 to V, V to MTE3
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert sanitize(ordered, args=[x, y]).findings == ()
    launch(ordered, args=[x, y], schedule="late")
    assert y.tolist() == (2 * x).tolist()
