"""Functions and the sides of a core: nobody touches the tiles of another."""

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.plan.memory import plan_memory

from .programs import A5, TILE, alloc, find, overlap, plan, tight, use

CALLS = """module {
func.func @leaf(%x: TILE) {
  %l = pto.alloc_tile : TILE
  pto.tabs ins(%x : TILE) outs(%l : TILE)
  return
}
func.func @middle(%x: TILE) {
  %m = pto.alloc_tile : TILE
  pto.tabs ins(%x : TILE) outs(%m : TILE)
  func.call @leaf(%m) : (TILE) -> ()
  return
}
func.func @top() {
  %t = pto.alloc_tile : TILE
  pto.tabs ins(%t : TILE) outs(%t : TILE)
  func.call @middle(%t) : (TILE) -> ()
  %u = pto.alloc_tile : TILE
  pto.tabs ins(%u : TILE) outs(%u : TILE)
  return
}
}""".replace("TILE", TILE)


def test_a_callee_does_not_touch_the_tiles_of_its_callers():
    module = parse(CALLS)
    placement = tight(module)
    leaf, m, t, u = (placement.address(find(module, n)) for n in "lmtu")
    assert len({leaf, m, t}) == 3
    assert u in {leaf, m, t}  # free again after the call


def test_one_function_is_planned_with_all_it_calls():
    module = parse(CALLS)
    top = next(f for f in module.functions() if find(module, "t") in f.walk())
    names = {p.name for p in plan_memory(top, A5).functions}
    assert names == {"leaf", "middle", "top"}


def test_a_tile_that_a_call_returns_lives_on_in_its_caller():
    text = """module {
    func.func @make() -> TILE {
      %m = pto.alloc_tile : TILE
      pto.tabs ins(%m : TILE) outs(%m : TILE)
      return %m : TILE
    }
    func.func @k() {
      %r = func.call @make() : () -> TILE
      %a = pto.alloc_tile : TILE
      pto.tabs ins(%a : TILE) outs(%a : TILE)
      pto.tabs ins(%r : TILE) outs(%r : TILE)
      return
    }
    }""".replace("TILE", TILE)
    module = parse(text)
    placement = plan_memory(module, A5)
    assert placement.address(find(module, "m")) != placement.address(find(module, "a"))


def test_recursion_is_refused():
    text = "module {\nfunc.func @f() {\nfunc.call @f() : () -> ()\nreturn\n}\n}"
    with pytest.raises(PtoError) as caught:
        plan_memory(parse(text), A5)
    assert caught.value.code == "PTO-S104"


def test_a_long_chain_of_calls_is_planned():
    links = [
        f"func.func @f{n}() {{\nfunc.call @f{n + 1}() : () -> ()\nreturn\n}}" for n in range(2000)
    ]
    text = "module {\n" + "\n".join([*links, "func.func @f2000() {\nreturn\n}"]) + "\n}"
    assert len(plan_memory(parse(text), A5).functions) == 2001


def test_the_sections_of_a_core_run_at_once():
    # The vector section comes first in the text, yet the cube may write %x before or after.
    body = f"""{alloc("x", "y")}
    pto.section.vector {{
      {use("y")}
      {use("x")}
    }}
    pto.section.cube {{
      {use("x")}
    }}"""
    found = plan(body)
    assert not overlap(found["%x"], found["%y"])
