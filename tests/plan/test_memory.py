"""Where the planner puts tiles: hand-made programs whose lifetimes are plain to see."""

import re

import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.text.parser import parse
from pto.plan.memory import plan_memory
from pto.target.profile import device, narrow, profile

from .programs import (
    A2A3,
    A5,
    BIG,
    TILE,
    alloc,
    by_name,
    copy,
    find,
    function_plan,
    overlap,
    plan,
    program,
    use,
)


def test_tiles_used_one_after_the_other_share_their_bytes():
    found = plan(alloc("a") + "\n" + use("a") + "\n" + alloc("b") + "\n" + use("b"))
    assert found["%a"].start == found["%b"].start == 0
    assert found["%a"].end == 4096


def test_a_tile_allocated_early_takes_no_room_before_its_first_use():
    found = plan(f"{alloc('a', 'b')}\n{use('a')}\n{use('b')}")
    assert found["%a"].start == found["%b"].start


def test_tiles_in_use_together_lie_apart():
    found = plan(f"{alloc('a', 'b')}\n{use('a', 'b', 'a')}")
    assert not overlap(found["%a"], found["%b"])


def test_source_and_destination_of_one_instruction_lie_apart():
    found = plan(f"{alloc('a', 'b')}\n{use('a')}\n{copy('a', 'b')}\n{use('b')}")
    assert not overlap(found["%a"], found["%b"])


def test_scratch_lies_apart_from_source_and_destination_where_it_is_used():
    body = f"""{alloc("s", "t")}
    %d = pto.alloc_tile : !pto.tile_buf<vec, 16x8xf32, valid=16x1>
    pto.trowsum ins(%s, %t : TILE, TILE) outs(%d : !pto.tile_buf<vec, 16x8xf32, valid=16x1>)"""
    found = plan(body, A2A3)
    tiles = [found[f"%{n}"] for n in "std"]
    assert not any(overlap(a, b) for i, a in enumerate(tiles) for b in tiles[:i])


def test_scratch_that_the_profile_never_touches_takes_no_room():
    # pto-isa TRowSum.hpp: a5 and cpu ignore tmp
    body = f"""{alloc("s", "t")}
    %d = pto.alloc_tile : !pto.tile_buf<vec, 16x8xf32, valid=16x1>
    pto.trowsum ins(%s, %t : TILE, TILE) outs(%d : !pto.tile_buf<vec, 16x8xf32, valid=16x1>)"""
    (use_of_ub,) = function_plan(plan_memory(program(body), A5), "k").uses
    assert use_of_ub.high == 4096 + 16 * 8 * 4


I32, HALF = "!pto.tile_buf<vec, 16x64xi32>", "!pto.tile_buf<vec, 8x64xf32>"
OPEN = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
NAMES = {
    "treshape": ("%v = pto.treshape %a : TILE -> TILE", use("v")),
    "bitcast": (
        f"%v = pto.bitcast %a : TILE -> {I32}",
        f"pto.tabs ins(%v : {I32}) outs(%v : {I32})",
    ),
    "subview": (
        "%v = pto.subview %a[%c0, %c0] sizes [8, 64] : TILE",
        f"pto.tabs ins(%v : {HALF}) outs(%v : {HALF})",
    ),
    "subset": (
        "%v = pto.subset %a[%c0, %c0] sizes [8, 64] : TILE",
        f"pto.tabs ins(%v : {OPEN}) outs(%v : {OPEN})",
    ),
    "address": (
        "%p = pto.tile_buf_addr %a : TILE -> !pto.ptr<f32, ub>\n"
        "%i = pto.castptr %p : !pto.ptr<f32, ub> -> i64\n"
        "%v = pto.castptr %i : i64 -> !pto.ptr<f32, ub>",
        "%r = pto.vlds %v[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>",
    ),
    "select": ("%v = arith.select %cond, %a, %a : TILE", use("v")),
    "tassign": ("%at = arith.constant 0 : i64\n%v = pto.tassign %a, %at : TILE -> TILE", use("v")),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_second_name_keeps_the_tile_alive(name: str):
    alias, later = NAMES[name]
    found = plan(f"{alloc('a', 'b')}\n{use('a')}\n{alias}\n{use('b')}\n{later}")
    assert not overlap(found["%a"], found["%b"])


def test_a_memref_and_the_tile_bound_to_it_are_one_buffer():
    m = "memref<16x16x16xf16, #pto.address_space<vec>>"  # 8,192 bytes
    found = plan(f"""
    %a = memref.alloc() : {m}
    %t = pto.bind_tile %a, %n, %n : {m} -> {m}
    %b = memref.alloc() : {m}
    pto.tabs ins(%t : {m}) outs(%t : {m})
    pto.tabs ins(%b : {m}) outs(%b : {m})
    pto.tabs ins(%t : {m}) outs(%t : {m})""")
    assert sorted((found["%a"].start, found["%b"].start)) == [0, 8192]


# ---- what cannot move


def test_planned_tiles_keep_away_from_placed_ones():
    body = f"""%at = arith.constant 4096 : i64
    %f = pto.alloc_tile addr = %at : TILE
    {alloc("a", "b")}
    {use("f", "a", "b", "a", "f")}"""
    found = plan(body)
    assert (found["%f"].start, found["%a"].start, found["%b"].start) == (4096, 0, 8192)


def test_a_placed_tile_is_no_obstacle_when_it_is_dead():
    body = f"""%at = arith.constant 0 : i64
    %f = pto.alloc_tile addr = %at : TILE
    {alloc("a")}
    {use("f", "a")}"""
    assert plan(body)["%a"].start == 0


def test_a_queue_buffer_is_kept_for_the_whole_function():
    body = f"""{alloc("a", "b")}
    {use("a")}
    %q = pto.reserve_buffer {{ name = "fifo", size = 100, location = #pto.address_space<vec>,
                              auto = true }} -> i32
    {use("b")}"""
    found = plan(body)
    assert found["%a"].start == found["%b"].start
    assert not overlap(found["fifo"], found["%a"])
    assert found["fifo"].start % 32 == 0


def test_a_queue_buffer_with_a_base_stays_there_and_its_importer_knows():
    text = f"""module {{
    func.func @consumer() {{
      %q = pto.reserve_buffer {{ name = "fifo", size = 8192, location = #pto.address_space<vec>,
                                auto = false, base = 0 }} -> i32
      {alloc("a")}
      {use("a")}
      return
    }}
    func.func @producer() {{
      %p = pto.import_reserved_buffer {{ name = "fifo", peer_func = @consumer }} -> i32
      return
    }}
    }}""".replace("TILE", TILE)
    module = parse(text)
    placement = plan_memory(module, A5)
    assert placement.address(find(module, "q")) == placement.address(find(module, "p")) == 0
    assert placement.address(find(module, "a")) == 8192


def test_an_import_alone_plans_its_peer_too():
    text = """module {
    func.func @consumer() {
      %t = pto.alloc_tile : TILE
      pto.tabs ins(%t : TILE) outs(%t : TILE)
      %q = pto.reserve_buffer { name = "fifo", size = 64, location = #pto.address_space<vec>,
                                auto = true } -> i32
      return
    }
    func.func @producer() {
      %p = pto.import_reserved_buffer { name = "fifo", peer_func = @consumer } -> i32
      return
    }
    }""".replace("TILE", TILE)
    module = parse(text)
    producer = next(f for f in module.functions() if find(module, "p") in f.walk())
    placement = plan_memory(producer, A5)
    assert placement.address(find(module, "p")) == placement.address(find(module, "q"))


def test_an_import_without_its_reservation_is_reported():
    with pytest.raises(PtoError) as caught:
        plan('%p = pto.import_reserved_buffer { name = "fifo", peer_func = @nobody } -> i32')
    assert caught.value.code == "PTO-M127"


def test_a_tile_that_a_queue_fills_takes_no_room_of_its_own():
    body = f"""%t = pto.declare_tile -> TILE
    %pipe = pto.initialize_l2l_pipe {{ dir_mask = 1, slot_size = 4096, slot_num = 8,
                                       flag_base = 0 }} (%at : i32) -> !pto.pipe
    pto.tpop(%t, %pipe : TILE, !pto.pipe) {{split = 0}}
    {alloc("a")}
    {use("a", "t")}"""
    module = program(body, args="%at: i32")
    found = by_name(plan_memory(module, A5), "k")
    assert (found["%t"].buffer.nbytes, found["%a"].start) == (0, 0)


def test_a_declared_tile_that_nobody_fills_is_planned():
    found = plan(f"%t = pto.declare_tile -> TILE\n{alloc('a')}\n{use('t', 'a', 't')}")
    assert not overlap(found["%t"], found["%a"])
    assert found["%t"].buffer.nbytes == 4096


# ---- sizes and alignment


@pytest.mark.parametrize(
    ("tile", "space", "step"),
    [
        ("vec, 1x8xf32", Space.UB, 32),
        ("mat, 16x16xf16", Space.L1, 512),
        ("left, 16x16xf16, blayout=col_major, slayout=row_major", Space.L0A, 512),
        ("right, 16x16xf16, slayout=col_major", Space.L0B, 512),
        ("bias, 1x8xf32", Space.BIAS, 64),
        ("scaling, 1x8xui64", Space.FIXPIPE, 128),
    ],
)
def test_tiles_begin_at_blocks_or_fractals(tile: str, space: Space, step: int):
    type = f"!pto.tile_buf<{tile}>"
    made = "\n".join(f"%t{n} = pto.alloc_tile : {type}" for n in range(3))
    used = "\n".join(f"pto.tabs ins(%t{n} : {type}) outs(%t{n} : {type})" for n in (0, 1, 2, 0, 1))
    found = plan(f"{made}\n{used}")
    assert sorted(found[f"%t{n}"].start for n in range(3)) == [0, step, 2 * step]
    assert found["%t0"].buffer.space is space


def test_small_accumulators_still_begin_at_fractals():
    small = "!pto.tile_buf<left, 16x8xf16, blayout=row_major>"  # 256 bytes
    made = "\n".join(f"%t{n} = pto.alloc_tile : {small}" for n in range(2))
    used = "\n".join(f"pto.tabs ins(%t{n} : {small}) outs(%t{n} : {small})" for n in (0, 1, 0))
    found = plan(f"{made}\n{used}")
    assert sorted(p.start for p in found.values()) == [0, 512]


def test_a_buffer_can_be_filled_to_the_last_byte():
    found = plan("""%a = pto.alloc_tile : BIG
    %b = pto.alloc_tile : BIG
    pto.tabs ins(%a : BIG) outs(%b : BIG)""")
    assert max(p.end for p in found.values()) == A5.buffers.ub == 262_144


def test_a_device_has_its_own_capacity():
    chip = narrow(profile("a2a3"), device("910b1"))
    body = """%a = pto.alloc_tile : BIG
    %b = pto.alloc_tile : BIG
    pto.tabs ins(%a : BIG) outs(%b : BIG)"""
    assert plan(body, A2A3)
    with pytest.raises(PtoError) as caught:
        plan(body, chip)
    assert caught.value.code == "PTO-M120"


def test_an_unused_tile_has_an_address_and_takes_no_room():
    found = plan(f"{alloc('a', 'b')}\n{use('a')}")
    assert found["%b"].start == 0
    assert found["%b"].buffer.alive is None


def test_a_memref_of_constant_size_operands():
    found = plan("""%k = arith.constant 64 : index
    %a = memref.alloc(%k) : memref<?x16xf32, #pto.address_space<vec>>""")
    assert found["%a"].buffer.nbytes == 64 * 16 * 4


def test_a_memref_of_unknown_size_is_refused():
    with pytest.raises(PtoError) as caught:
        plan("%a = memref.alloc(%n) : memref<?x16xf32, #pto.address_space<vec>>")
    assert caught.value.code == "PTO-M123"


def test_memrefs_in_global_memory_are_not_planned():
    assert plan("%a = memref.alloc() : memref<64x16xf32, #pto.address_space<gm>>") == {}


def test_the_same_program_gets_the_same_plan():
    body = f"{alloc(*'abcdef')}\n{use(*'abcabdef')}"
    assert [p.start for p in plan(body).values()] == [p.start for p in plan(body).values()]


def test_an_operation_of_another_program_has_no_address():
    placement = plan_memory(program(alloc("a")), A5)
    with pytest.raises(PtoError) as caught:
        placement.address(find(program(alloc("a")), "a"))
    assert caught.value.code == "PTO-M126"


# ---- side by side

_BARRIER = "pto.barrier #pto.pipe<PIPE_V>"


@pytest.mark.parametrize("between", ["", _BARRIER], ids=["no flags", "flags by hand"])
def test_tiles_lie_side_by_side_if_there_is_room(between: str):
    """A load into the second tile need not wait for the last use of the first."""
    body = f"{alloc('a')}\n{use('a')}\n{between}\n{alloc('b')}\n{use('b')}"
    found = by_name(plan_memory(program(body), A5), "k")
    assert (found["%a"].start, found["%b"].start) == (0, 4096)


def test_a_tile_keeps_away_from_an_address_that_is_used_before_or_after():
    body = f"""%at = arith.constant 0 : i64
    %a = pto.alloc_tile addr = %at : TILE
    {use("a")}
    {alloc("b")}
    {use("b")}"""
    assert by_name(plan_memory(program(body), A5), "k")["%b"].start == 4096


def test_bytes_are_reused_as_late_as_the_buffer_allows():
    """Of five quarters of UB used one after the other, only the first and the last share bytes."""
    quarter = "!pto.tile_buf<vec, 128x128xf32>"
    names = "abcde"
    body = "\n".join(
        f"%{n} = pto.alloc_tile : {quarter}\npto.tabs ins(%{n} : {quarter}) outs(%{n} : {quarter})"
        for n in names
    )
    found = by_name(plan_memory(program(body), A5), "k")
    starts = [found[f"%{n}"].start for n in names]
    assert starts[4] == starts[0] and sorted(starts[:4]) == [0, 65536, 131072, 196608]


def test_bytes_that_a_device_uses_itself_are_no_room():
    """The software of a board uses the last bytes of UB: three quarters fit, a fourth shares."""
    chip = narrow(profile("a5"), device("950pr"))
    tile = "!pto.tile_buf<vec, 128x128xf32>"
    body = "\n".join(
        f"%{n} = pto.alloc_tile : {tile}\npto.tabs ins(%{n} : {tile}) outs(%{n} : {tile})"
        for n in "abcd"
    )
    placement = plan_memory(program(body), chip)
    assert not placement.warnings
    assert function_plan(placement, "k").uses[0].high == 3 * 65536
    assert function_plan(plan_memory(program(body), A5), "k").uses[0].high == 4 * 65536


def test_a_callee_leaves_room_for_its_callers():
    """Side by side, the callee's tiles would fill UB; its caller has one alive during the call."""
    text = """module {
    func.func @inner() {
      %a = pto.alloc_tile : BIG
      pto.tabs ins(%a : BIG) outs(%a : BIG)
      %b = pto.alloc_tile : BIG
      pto.tabs ins(%b : BIG) outs(%b : BIG)
      return
    }
    func.func @outer() {
      %t = pto.alloc_tile : BIG
      pto.tabs ins(%t : BIG) outs(%t : BIG)
      func.call @inner() : () -> ()
      pto.tabs ins(%t : BIG) outs(%t : BIG)
      return
    }
    }""".replace("BIG", BIG)
    placement = plan_memory(parse(text), A5)
    a, b = (by_name(placement, "inner")[n] for n in ("%a", "%b"))
    assert a.start == b.start and by_name(placement, "outer")["%t"].start != a.start


def test_where_there_is_no_room_side_by_side_the_planner_says_which_tiles_share():
    """Three halves of UB: two lie side by side, the third on one of them."""
    big = [f"%{n} = pto.alloc_tile : BIG\npto.tabs ins(%{n} : BIG) outs(%{n} : BIG)" for n in "abc"]
    placement = plan_memory(program(f"\n{_BARRIER}\n".join(big)), A5)
    (found,) = [d for d in placement.warnings if d.code == "PTO-M129"]
    assert "393,216 bytes of ub side by side" in found.message
    tiles = function_plan(placement, "k").placed
    shared = [(a, b) for i, a in enumerate(tiles) for b in tiles[:i] if overlap(a, b)]
    named = set(re.findall(r"%\w", found.message))
    assert named in [{p.buffer.name for p in pair} for pair in shared]
    without = plan_memory(program("\n".join(big)), A5)
    assert not any(d.code == "PTO-M129" for d in without.warnings)


def test_scales_lie_at_a_sixteenth_of_the_address_of_their_operand():
    """mad_mx takes no address of scales (pto-isa TMatmul.hpp); GetScaleAddr shifts by 4."""
    elements = {
        "left": "left, 32x64xf8E4M3FN, blayout=col_major, slayout=row_major",
        "right": "right, 64x32xf8E4M3FN, slayout=col_major",
        "sl": "scaling, 32x2xf8E8M0FNU, slayout=row_major, fractal=32",
        "sr": "scaling, 2x32xf8E8M0FNU, blayout=col_major, slayout=col_major, fractal=32",
        "acc": "acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024",
    }
    types = {name: f"!pto.tile_buf<{text}>" for name, text in elements.items()}
    lines: list[str] = []
    for n in (0, 1):  # both pairs of scales are in place before the first product
        lines += [f"%{name}{n} = pto.alloc_tile : {type}" for name, type in types.items()]
    for name in ("left", "right", "sl", "sr"):
        mat = types[name].replace("scaling", "mat").replace("left", "mat").replace("right", "mat")
        lines.append(f"%m_{name} = pto.alloc_tile : {mat}")
        moved = "pto.tmov ins(%m_{0} : {1}) outs(%{0}{2} : {3})"
        lines += [moved.format(name, mat, n, types[name]) for n in (0, 1)]
    for n in (0, 1):
        given = ", ".join(f"%{name}{n}" for name in ("left", "sl", "right", "sr"))
        kinds = ", ".join(types[name] for name in ("left", "sl", "right", "sr"))
        lines.append(f"pto.tmatmul.mx ins({given} : {kinds}) outs(%acc{n} : {types['acc']})")
    found = plan("\n".join(lines), A5)
    for n in (0, 1):
        assert found[f"%sl{n}"].start == found[f"%left{n}"].start // 16
        assert found[f"%sr{n}"].start == found[f"%right{n}"].start // 16
    assert found["%left0"].start != found["%left1"].start
