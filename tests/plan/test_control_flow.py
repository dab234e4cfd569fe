"""Loops and branches: what lives through them, and what may share its bytes."""

from .programs import alloc, copy, overlap, plan, use


def loop(body: str, *, carries: str = "", results: str = "") -> str:
    return f"{results}scf.for %i = %c0 to %n step %c1 {carries} {{\n{body}\n}}"


def test_a_tile_from_outside_lives_through_the_loop_that_uses_it():
    inside = f"{alloc('t')}\n{use('t')}"
    found = plan(f"{alloc('a')}\n{loop(use('a') + chr(10) + inside)}")
    assert not overlap(found["%a"], found["%t"])


def test_a_tile_of_a_turn_is_free_for_the_next_tile_of_that_turn():
    inside = f"{alloc('s')}\n{use('s')}\n{alloc('t')}\n{use('t')}"
    found = plan(loop(inside))
    assert found["%s"].start == found["%t"].start


def test_nested_loops_keep_the_outer_tiles():
    inner = loop(f"{alloc('t')}\n{use('t')}").replace("%i", "%j")
    middle = f"{alloc('m')}\n{use('m')}\n{inner}\n{use('m')}"
    found = plan(f"{alloc('o')}\n{use('o')}\n{loop(middle)}\n{use('o')}")
    tiles = [found[n] for n in ("%o", "%m", "%t")]
    assert sorted(p.start for p in tiles) == [0, 4096, 8192]


def test_a_window_cut_inside_a_loop_keeps_its_tile_through_the_loop():
    cut = f"%s = pto.treshape %a : TILE -> TILE\n{use('s')}\n{alloc('t')}\n{use('t')}"
    found = plan(f"{alloc('a')}\n{loop(cut)}")
    assert not overlap(found["%a"], found["%t"])


def test_the_arms_of_an_if_share_their_bytes():
    arms = f"scf.if %cond {{\n{alloc('a')}\n{use('a')}\n}} else {{\n{alloc('b')}\n{use('b')}\n}}"
    found = plan(arms)
    assert found["%a"].start == found["%b"].start == 0


def test_what_an_if_yields_lives_until_its_result_is_used():
    body = f"""%r = scf.if %cond -> (TILE) {{
      {alloc("a")}
      {use("a")}
      scf.yield %a : TILE
    }} else {{
      {alloc("b")}
      {use("b")}
      scf.yield %b : TILE
    }}
    {alloc("c")}
    {use("c", "r")}"""
    found = plan(body)
    assert not overlap(found["%a"], found["%c"]) and not overlap(found["%b"], found["%c"])


def test_double_buffering_keeps_both_tiles_through_the_loop():
    body = f"""{alloc("a", "b")}
    %x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (TILE, TILE) {{
      {copy("p", "q")}
      {alloc("t")}
      {use("t")}
      scf.yield %q, %p : TILE, TILE
    }}
    {use("y")}"""
    found = plan(body)
    assert sorted(found[n].start for n in ("%a", "%b", "%t")) == [0, 4096, 8192]


def test_what_a_while_loop_carries_lives_through_it():
    body = f"""{alloc("a")}
    %r = scf.while (%p = %a) : (TILE) -> (TILE) {{
      {use("p")}
      scf.condition(%cond) %p : TILE
    }} do {{
    ^bb0(%q: TILE):
      {alloc("t")}
      {use("t", "q")}
      scf.yield %q : TILE
    }}
    {alloc("c")}
    {use("c", "r")}"""
    found = plan(body)
    assert not overlap(found["%a"], found["%t"]) and not overlap(found["%a"], found["%c"])
    assert overlap(found["%t"], found["%c"])


def test_a_strict_scope_uses_what_it_captures():
    p = "!pto.ptr<f32, ub>"
    body = f"""{alloc("a", "b")}
    {use("a")}
    %p = pto.tile_buf_addr %a : TILE -> {p}
    {use("b")}
    pto.strict_vecscope(%p) {{
    ^bb0(%x: {p}):
      %z = arith.constant 0 : index
      %v = pto.vlds %x[%z] : {p} -> !pto.vreg<64xf32>
    }} : ({p}) -> ()"""
    found = plan(body)
    assert not overlap(found["%a"], found["%b"])
