"""Work items: values worked out by hand, on both engines; races between warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto.ir.text.parser import parse
from pto.observe.sanitize import sanitize
from pto.run.launch.host import launch

ENGINES = ("reference", "jit")
OUTER = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%out: !pto.ptr<{type}, gm>) attributes {{pto.aicore}} {{
    %x = arith.constant {x} : i32
    %y = arith.constant {y} : i32
    %one = arith.constant 1 : i32
    {start}
    return
  }}
  func.func @body(%out: !pto.ptr<{type}, gm>) attributes {{pto.simt_entry}} {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c16 = arith.constant 16 : i32
    %tx = pto.get_tid_x : i32
    %ty = pto.get_tid_y : i32
    %dx = pto.get_block_dim_x : i32
    %row = arith.muli %ty, %dx : i32
    %n = arith.addi %row, %tx : i32
    %i = arith.index_castui %n : i32 to index
    %lane = pto.get_laneid : i32
{body}
    return
  }}
}}
"""
LAUNCH = """pto.simt_launch @body<<<%x, %y, %one>>>(%out) : (!pto.ptr<{type}, gm>) -> ()"""
CALL = """pto.store_vfsimt_info %one, %y, %x : i32, i32, i32
    func.call @body(%out) : (!pto.ptr<{type}, gm>) -> ()"""


def program(body: str, *, x: int = 64, y: int = 1, type: str = "i32", start: str = LAUNCH) -> Any:
    started = start.format(type=type)
    return parse(OUTER.format(body=body, x=x, y=y, type=type, start=started))


def run(body: str, size: int = 64, engine: str = "reference", **more: Any) -> Any:
    out = np.zeros(size, {"i32": np.int32, "f32": np.float32}[more.get("type", "i32")])
    report = launch(program(body, **more), args=[out], engine=engine)
    assert not report.left_out, dict(report.left_out)
    return out


PUT = "    pto.store {}, %out[%i] : !pto.ptr<i32, gm>, i32"
n = np.arange(64)
lane = n % 32
LANES = {
    "tid": ("", "%tx", n),
    "lane": ("", "%lane", lane),
    "below": ("%v = pto.get_lanemask_lt : i32", "%v", ((1 << lane) - 1).astype(np.int32)),
    "shuffle": ("%v = pto.shuffle_idx %n, %c3 : i32, i32 -> i32", "%v", n // 32 * 32 + 3),
    "up": (
        "%v = pto.shuffle_up %n, %c2 : i32, i32 -> i32",
        "%v",
        np.where(lane < 2, n, n - 2),
    ),
    "butterfly of 16": (
        "%v = pto.shuffle_bfly %n, %c1 {width = 16 : i32} : i32, i32 -> i32",
        "%v",
        n ^ 1,
    ),
    "sum": (
        "%v = pto.redux_add %n signed : i32 -> i32",
        "%v",
        np.where(n < 32, 31 * 16, 31 * 16 + 32 * 32),
    ),
    "ballot": (
        "%b = arith.cmpi slt, %tx, %c2 : i32\n%v = pto.vote_ballot %b : i1 -> i32",
        "%v",
        np.where(n < 32, 3, 0),
    ),
    "comparison that is always true": (
        "%f = arith.sitofp %n : i32 to f32\n%b = arith.cmpf true, %f, %f : f32\n"
        "%v = pto.vote_ballot %b : i1 -> i32",
        "%v",
        np.full(64, -1),
    ),
    "choice by a comparison that is always false": (
        "%f = arith.sitofp %n : i32 to f32\n%b = arith.cmpf false, %f, %f : f32\n"
        "%v = arith.select %b, %n, %c3 : i32",
        "%v",
        np.full(64, 3),
    ),
    "high half": (
        "%big = arith.constant -2 : i32\n%v = pto.mulhi %n, %big unsigned : i32, i32 -> i32",
        "%v",
        np.maximum(n - 1, 0),  # n * (2^32 - 2) = (n - 1) * 2^32 + 2^32 - 2n
    ),
    "bytes": (
        "%a = arith.constant 287454020 : i32\n%s = arith.constant 291 : i32"
        "\n%v = pto.prmt %n, %a, %s : i32, i32, i32 -> i32",
        "%v",  # nibbles 3, 2, 1, 0 of 0x0123: bytes 3, 2, 1, 0 of 0x11223344
        np.full(64, 0x44332211),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LANES)
def test_what_a_lane_sees(name: str, engine: str):
    body, value, expected = LANES[name]
    found = run(f"{body}\n{PUT.format(value)}", engine=engine)
    np.testing.assert_array_equal(found, expected.astype(np.int32))


@pytest.mark.parametrize("start", (LAUNCH, CALL))
def test_two_dimensions_count_x_first(start: str):
    found = run(PUT.format("%ty"), x=16, y=4, start=start)
    np.testing.assert_array_equal(found, n // 16)


@pytest.mark.parametrize("engine", ENGINES)
def test_items_that_part_ways_meet_again(engine: str):
    body = f"""
    %odd = arith.andi %n, %c1 : i32
    %b = arith.cmpi eq, %odd, %c1 : i32
    %v = scf.if %b -> (i32) {{
      %here = pto.vote_all %b : i1 -> i1
      %w = arith.extui %here : i1 to i32
      scf.yield %w : i32
    }} else {{
      scf.yield %c3 : i32
    }}
{PUT.format("%v")}"""
    np.testing.assert_array_equal(run(body, engine=engine), np.where(n % 2, 1, 3))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_item_has_its_own_number_of_turns(engine: str):
    body = f"""
    %zero = arith.constant 0 : index
    %step = arith.constant 1 : index
    %v = scf.for %k = %zero to %i step %step iter_args(%s = %c0) -> (i32) {{
      %ki = arith.index_cast %k : index to i32
      %t = arith.addi %s, %ki : i32
      scf.yield %t : i32
    }}
{PUT.format("%v")}"""
    np.testing.assert_array_equal(run(body, engine=engine), n * (n - 1) // 2)


def test_atomic_updates_of_one_place_count_every_item():
    body = "    %old = pto.atomic_add %out, %c2 signed : !pto.ptr<i32, gm>, i32 -> i32"
    assert run(body)[0] == 128


def test_old_values_are_those_of_the_items_before():
    body = f"""
    %at = arith.constant 64 : index
    %p = pto.addptr %out, %at : !pto.ptr<i32, gm> -> !pto.ptr<i32, gm>
    %old = pto.atomic_add %p, %c1 signed : !pto.ptr<i32, gm>, i32 -> i32
{PUT.format("%old")}"""
    np.testing.assert_array_equal(run(body, 65)[:64], n)


@pytest.mark.parametrize(
    ("op", "fn"),
    [("sqrt", np.sqrt), ("sin", np.sin), ("cos", np.cos), ("floor", np.floor), ("absf", np.abs)],
)
def test_functions_of_f32(op: str, fn: Any):
    body = f"""
    %f = pto.convert %n round(r) nosat signed : i32 -> f32
    %q = arith.constant 0.375 : f32
    %g = arith.mulf %f, %q : f32
    %v = pto.{op} %g : f32 -> f32
    pto.store %v, %out[%i] : !pto.ptr<f32, gm>, f32"""
    expected = fn(n * 0.375).astype(np.float32)
    np.testing.assert_array_equal(run(body, type="f32"), expected)


STAGES = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%out: !pto.ptr<i32, gm>) attributes {pto.aicore} {
    %x = arith.constant 40 : i32
    %y = arith.constant SIZE : i32
    %one = arith.constant 1 : i32
    pto.simt_launch @first<<<%x, %one, %one>>>() : () -> ()
    pto.simt_launch @second<<<%y, %one, %one>>>(%out) : (!pto.ptr<i32, gm>) -> ()
    return
  }
  func.func @first() attributes {pto.simt_entry} {
    %tx = pto.get_tid_x : i32
    pto.keep %tx {slot = 0 : i64} : i32
    return
  }
  func.func @second(%out: !pto.ptr<i32, gm>) attributes {pto.simt_entry} {
    %v = pto.resume {slot = 0 : i64} : i32
    %tx = pto.get_tid_x : i32
    %i = arith.index_castui %tx : i32 to index
    %w = arith.addi %v, %tx : i32
    pto.store %w, %out[%i] : !pto.ptr<i32, gm>, i32
    return
  }
}
"""


def test_an_entry_resumes_what_another_kept():
    out = np.zeros(40, np.int32)
    launch(parse(STAGES.replace("SIZE", "40")), args=[out])
    np.testing.assert_array_equal(out, 2 * np.arange(40))
    with pytest.raises(pto.PtoError, match="PTO-V218"):
        launch(parse(STAGES.replace("SIZE", "41")), args=[np.zeros(64, np.int32)])


def test_an_item_outside_its_array_is_named():
    with pytest.raises(pto.PtoError, match="work item 60"):
        run(PUT.format("%n"), 60)


def test_a_barrier_that_some_do_not_reach_is_refused():
    body = """
    %b = arith.cmpi slt, %n, %c16 : i32
    scf.if %b {
      pto.syncthreads
    }"""
    with pytest.raises(pto.PtoError, match=r"PTO-D115.*16 of 64"):
        run(body)


EXCHANGE = """
    pto.store %n, %out[%i] : !pto.ptr<i32, gm>, i32
    {between}
    %last = arith.constant 63 : i32
    %m = arith.subi %last, %n : i32
    %j = arith.index_castui %m : i32 to index
    %v = pto.load %out[%j] : !pto.ptr<i32, gm> -> i32
    pto.syncthreads
    pto.store %v, %out[%i] : !pto.ptr<i32, gm>, i32"""


def codes(body: str, size: int = 64) -> set[str]:
    verdict = sanitize(program(body), args=[np.zeros(size, np.int32)])
    return {d.code for d in verdict.findings}


def test_warps_that_exchange_need_a_barrier():
    assert codes(EXCHANGE.format(between="pto.syncthreads")) == set()
    assert codes(EXCHANGE.format(between="pto.threadfence")) == {"PTO-R041"}
    np.testing.assert_array_equal(run(EXCHANGE.format(between="pto.syncthreads")), 63 - n)


@pytest.mark.parametrize(
    ("value", "place", "severities"),
    [
        ("%lane", "%zero", {"error"}),
        ("%c3", "%zero", {"warning"}),  # all of them say the same
        ("%ty", "%half", {"warning"}),
        ("%odd", "%half", {"error"}),  # two and two, apart
        ("%lane", "%i", set[str]()),
    ],
)
def test_items_that_store_one_place_at_once_are_told(value: str, place: str, severities: set[str]):
    body = f"""
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %half = arith.divui %i, %two : index
    %odd = arith.andi %n, %c1 : i32
    pto.store {value}, %out[{place}] : !pto.ptr<i32, gm>, i32"""
    found = sanitize(program(body), args=[np.zeros(64, np.int32)]).findings
    assert {d.severity for d in found if d.code == "PTO-R042"} == severities


def test_items_that_combine_one_place_are_in_order():
    assert codes("    %o = pto.atomic_add %out, %c1 : !pto.ptr<i32, gm>, i32 -> i32") == set()


def test_items_that_point_into_two_memories_are_refused():
    body = """
    %at = arith.constant 0 : i64
    %ub = pto.castptr %at : i64 -> !pto.ptr<i32, ub>
    %b = arith.cmpi slt, %n, %c16 : i32
    %raw = builtin.unrealized_conversion_cast %ub : !pto.ptr<i32, ub> to !pto.ptr<i32, gm>
    %p = arith.select %b, %raw, %out : !pto.ptr<i32, gm>
    pto.store %n, %p[%i] : !pto.ptr<i32, gm>, i32"""
    with pytest.raises(pto.PtoError, match="PTO-M116"):
        run(body)


def test_what_no_document_defines_is_said_aloud():
    """llvm.inttoptr is read for the programs that carry it."""
    body = "    %p = llvm.inttoptr %n : i32 to !llvm.ptr"
    with pytest.raises(pto.PtoError, match="PTO-X020"):
        run(body)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slot_that_an_entry_resumes_and_keeps_must_be_filled_before(engine: str):
    body = "    %v = pto.resume {slot = 0} : i32\n    pto.keep %n {slot = 0} : i32"
    with pytest.raises(pto.PtoError, match="slot 0 holds nothing; 64 work items resume it"):
        launch(program(body), args=[np.zeros(64, np.int32)], engine=engine, check=False)
