"""One allocation has one address: when a program needs two tiles of it at once, it is refused."""

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.plan.memory import plan_memory

from .programs import A5, TILE, alloc, copy, plan, use


def carried(body: str, *, args: str = "%old = %first", types: str = "TILE") -> str:
    return f"""{alloc("first", "other")}
    %last = scf.for %i = %c0 to %n step %c1 iter_args({args}) -> ({types}) {{
      {body}
    }}"""


def refusal(body: str) -> PtoError:
    with pytest.raises(PtoError) as caught:
        plan(body)
    assert caught.value.code == "PTO-M122"
    return caught.value


def test_the_tile_of_the_turn_before_is_read_while_the_new_one_is_written():
    found = refusal(carried(f"{alloc('new')}\n{copy('old', 'new')}\nscf.yield %new : TILE"))
    (finding,) = found.diagnostics
    assert "%new" in finding.message
    assert finding.loc is not None and finding.loc.line == 6  # its allocation
    assert finding.notes[0].loc is not None and finding.notes[0].loc.line == 7


def test_the_tile_of_the_turn_before_is_read_after_the_new_one_was_written():
    refusal(carried(f"{alloc('new')}\n{use('new', 'old')}\nscf.yield %new : TILE"))


def test_done_with_the_old_before_the_new_is_begun():
    plan(carried(f"{alloc('new')}\n{use('old', 'new')}\nscf.yield %new : TILE"))


def test_a_tile_carried_twice_over():
    # %older is the tile of two turns ago.
    body = f"""{alloc("a", "b")}
    %x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%old = %a, %older = %b) -> (TILE, TILE) {{
      {use("older")}
      {alloc("new")}
      {use("new")}
      scf.yield %new, %old : TILE, TILE
    }}"""
    refusal(body)


def test_an_arm_that_keeps_the_old_excludes_the_arm_that_makes_a_new():
    body = f"""%r = scf.if %cond -> (TILE) {{
      {alloc("new")}
      {use("new")}
      scf.yield %new : TILE
    }} else {{
      {use("old")}
      scf.yield %old : TILE
    }}
    scf.yield %r : TILE"""
    plan(carried(body))


def test_the_old_is_kept_by_a_loop_that_begins_the_new():
    body = f"""{alloc("new")}
    scf.for %j = %c0 to %n step %c1 {{
      {use("old")}
      {use("new")}
    }}
    scf.yield %new : TILE"""
    refusal(carried(body))


def test_a_while_loop_that_reads_the_old_after_the_new():
    body = f"""{alloc("first")}
    %last = scf.while (%old = %first) : (TILE) -> (TILE) {{
      scf.condition(%cond) %old : TILE
    }} do {{
    ^bb0(%kept: TILE):
      {alloc("new")}
      {use("new", "kept")}
      scf.yield %new : TILE
    }}"""
    refusal(body)


def test_after_the_loop_the_last_tile_is_the_only_one():
    body = carried(f"{alloc('new')}\n{use('old', 'new')}\nscf.yield %new : TILE")
    plan(f"{body}\n{use('last')}")


def test_a_program_that_places_its_tiles_decides_for_itself():
    placed = "%at = arith.constant 0 : i64\n%new = pto.alloc_tile addr = %at : TILE"
    plan(carried(f"{placed}\n{copy('old', 'new')}\nscf.yield %new : TILE"))


MAKE = """module {
func.func @make() -> TILE {
  %m = pto.alloc_tile : TILE
  pto.tabs ins(%m : TILE) outs(%m : TILE)
  return %m : TILE
}
func.func @k(%cond: i1, %c0: index, %c1: index, %n: index) {
BODY
  return
}
}"""


def plan_calls(body: str) -> None:
    plan_memory(parse(MAKE.replace("BODY", body).replace("TILE", TILE)), A5)


FIRST = "%a = func.call @make() : () -> TILE"
SECOND = "%b = func.call @make() : () -> TILE"


def test_a_second_call_while_the_first_result_is_in_use():
    with pytest.raises(PtoError) as caught:
        plan_calls(f"{FIRST}\n{SECOND}\n{copy('a', 'b')}")
    assert caught.value.code == "PTO-M122"


def test_a_second_call_after_the_first_result_was_used():
    plan_calls(f"{FIRST}\n{use('a')}\n{SECOND}\n{use('b')}")


def test_calls_in_the_two_arms_of_an_if():
    plan_calls(f"""%r = scf.if %cond -> (TILE) {{
      {FIRST}
      scf.yield %a : TILE
    }} else {{
      {SECOND}
      scf.yield %b : TILE
    }}
    {use("r")}""")


def test_a_call_in_a_loop_while_the_result_of_the_turn_before_is_in_use():
    body = f"""{FIRST}
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %a) -> (TILE) {{
      {SECOND}
      {use("old")}
      scf.yield %b : TILE
    }}"""
    with pytest.raises(PtoError) as caught:
        plan_calls(body)
    assert caught.value.code == "PTO-M122"
