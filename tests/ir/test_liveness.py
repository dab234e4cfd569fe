"""Lifetimes: positions are counted by hand on short programs, one operation a line."""

from pto.ir.graph import Module, Operation
from pto.ir.liveness import Lifetime, aliases, timeline
from pto.ir.text.parser import parse
from pto.target.profile import profile
from pto.verify import verify

TILE = "!pto.tile_buf<vec, 16x64xf32>"
ARGS = "%c0: index, %c1: index, %n: index, %cond: i1"


def function(body: str) -> Operation:
    return next(module(body).functions())


def module(body: str) -> Module:
    return parse(f"func.func @k({ARGS}) {{\n{body}\nreturn\n}}".replace("TILE", TILE))


def lives(body: str, *names: str, profile: str = "") -> list[tuple[int, int] | None]:
    """First and last line of each; the body begins at line 1, the function is line 0."""
    f = function(body)
    found = {r.name: r for op in f.walk() for r in op.results}
    times = timeline(f, [found[n] for n in names], profile)
    spans = [times.of(found[n]) for n in names]
    return [
        None if s is None else (line(times.order, s.first), line(times.order, s.last))
        for s in spans
    ]


def line(order: list[Operation], position: int) -> int:
    at = order[position].loc or order[position - 1].loc
    assert at is not None
    return at.line - 1


def test_a_lifetime_is_from_the_first_use_to_the_last():
    body = """%a = pto.alloc_tile : TILE
%b = pto.alloc_tile : TILE
pto.tabs ins(%b : TILE) outs(%b : TILE)
pto.tabs ins(%b : TILE) outs(%a : TILE)
pto.tabs ins(%a : TILE) outs(%a : TILE)"""
    assert lives(body, "a", "b") == [(4, 5), (3, 4)]


def test_a_value_never_used_has_no_lifetime():
    assert lives("%a = pto.alloc_tile : TILE", "a") == [None]


def test_describing_a_tile_is_no_use_of_its_bytes():
    body = """%a = pto.alloc_tile : TILE
%v = pto.subview %a[%c0, %c0] sizes [8, 64] : TILE
pto.tabs ins(%a : TILE) outs(%a : TILE)"""
    assert lives(body, "a") == [(3, 3)]


def test_a_loop_keeps_what_it_uses_from_outside():
    body = """%a = pto.alloc_tile : TILE
scf.for %i = %c0 to %n step %c1 {
%b = pto.alloc_tile : TILE
pto.tabs ins(%b : TILE) outs(%b : TILE)
pto.tabs ins(%a : TILE) outs(%a : TILE)
%z = arith.addi %i, %i : index
}"""
    assert lives(body, "a", "b") == [(2, 6), (4, 4)]


def test_only_the_outermost_loop_without_the_value_counts():
    body = """scf.for %i = %c0 to %n step %c1 {
%a = pto.alloc_tile : TILE
%y = arith.addi %i, %i : index
scf.for %j = %c0 to %n step %c1 {
pto.tabs ins(%a : TILE) outs(%a : TILE)
%z = arith.addi %i, %i : index
}
%x = arith.addi %i, %i : index
}"""
    assert lives(body, "a") == [(4, 6)]


def test_a_tile_made_in_a_turn_and_carried_lives_from_the_start_of_the_next():
    body = """%a = pto.alloc_tile : TILE
%r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %a) -> (TILE) {
%y = arith.addi %i, %i : index
pto.tabs ins(%old : TILE) outs(%old : TILE)
%b = pto.alloc_tile : TILE
pto.tabs ins(%b : TILE) outs(%b : TILE)
scf.yield %b : TILE
}
pto.tabs ins(%r : TILE) outs(%r : TILE)"""
    # %a may be the result as well: the loop may turn not once.
    assert lives(body, "a", "b") == [(2, 9), (2, 9)]


def test_scratch_counts_where_the_profile_uses_it():
    body = """%s = pto.alloc_tile : TILE
%t = pto.alloc_tile : TILE
pto.trowsum ins(%s, %t : TILE, TILE) outs(%s : TILE)"""
    assert lives(body, "s", "t", profile="a2a3") == [(3, 3), (3, 3)]
    assert lives(body, "s", "t", profile="a5") == [(3, 3), None]


def test_what_both_sides_of_a_core_use_lives_throughout():
    body = """%a = pto.alloc_tile : TILE
pto.section.vector {
pto.tabs ins(%a : TILE) outs(%a : TILE)
}
%z = arith.addi %n, %n : index
pto.section.cube {
pto.tabs ins(%a : TILE) outs(%a : TILE)
}"""
    f = function(body)
    root = next(r for op in f.walk() for r in op.results if r.name == "a")
    times = timeline(f, [root])
    assert times.of(root) == Lifetime(0, len(times.order) - 1)


def test_names_through_a_branch_and_a_loop():
    body = """%a = pto.alloc_tile : TILE
%b = pto.alloc_tile : TILE
%r = scf.if %cond -> (TILE) {
scf.yield %a : TILE
} else {
scf.yield %b : TILE
}
%x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%p = %r, %q = %a) -> (TILE, TILE) {
scf.yield %q, %p : TILE, TILE
}"""
    f = function(body)
    values = {r.name: r for op in f.walk() for r in op.results}
    values |= {a.name: a for op in f.walk() for r in op.regions for b in r.blocks for a in b.args}
    found = aliases(f, [values["a"], values["b"]])
    assert found[values["r"]] == (0, 1)
    assert found[values["x"]] == found[values["p"]] == (0, 1)
    apart = aliases(f, [values["p"], values["q"]], carried=False)
    assert apart[values["p"]] == (0,)
    assert apart[values["x"]] == (1,)  # the last turn hands on %q
    assert values["r"] not in apart


def test_a_number_read_from_a_tile_is_not_its_address():
    body = """%a = pto.alloc_tile : TILE
%rows = pto.tile_valid_rows %a : TILE -> index
%twice = arith.addi %rows, %rows : index"""
    f = function(body)
    values = {r.name: r for op in f.walk() for r in op.results}
    assert values["twice"] not in aliases(f, [values["a"]])


def test_lifetimes_meet_at_a_shared_position():
    assert Lifetime(0, 3).meets(Lifetime(3, 5))
    assert not Lifetime(0, 2).meets(Lifetime(3, 5))


def test_placed_tiles_are_compared_under_all_their_names():
    body = """%x = arith.constant 0 : i64
%y = arith.constant 2048 : i64
%a = pto.alloc_tile addr = %x : TILE
%b = pto.alloc_tile addr = %y : TILE
pto.tabs ins(%a : TILE) outs(%a : TILE)
%v = pto.treshape %a : TILE -> TILE
pto.tabs ins(%b : TILE) outs(%b : TILE)
pto.tabs ins(%v : TILE) outs(%v : TILE)"""
    codes = [d.code for d in verify(module(body), profile("a5"))]
    assert codes == ["PTO-M106"]
