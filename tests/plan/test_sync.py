"""Inserted synchronisation: flags and barriers worked out by hand, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.copied import same
from pto.ir.graph import Block, Module, Operation
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.isa.row.attributes import Enum
from pto.observe.sanitize import sanitize
from pto.plan.sync import insert, ordered
from pto.target.profile import profile
from pto.verify import verify
from tests.plan.paths import with_flags

VEC = "!pto.tile_buf<vec, 16x64xf32>"
VIEW = "!pto.tensor_view<?x64xf32>"
PART = "!pto.partition_tensor_view<16x64xf32>"
TARGETS = ("a2a3", "a5")


def program(body: str, *, tiles: str = "abcdef", placed: bool = True) -> Module:
    """A kernel over x and y, 256 x 64, with tiles that never share bytes where they are placed."""
    lines: list[str] = []
    for n, name in enumerate(tiles):
        at = f"addr = %at{n} " if placed else ""
        lines += [f"%at{n} = arith.constant {n * 4096} : i64"] if placed else []
        lines.append(f"%{name} = pto.alloc_tile {at}: {VEC}")
    made = "\n  ".join(lines)
    return parse(f"""
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %vx = pto.make_tensor_view %x, shape = [%c256, %c64], strides = [%c64, %c1] : {VIEW}
  %vy = pto.make_tensor_view %y, shape = [%c256, %c64], strides = [%c64, %c1] : {VIEW}
  {part("px", "vx", "c0")}
  {part("py", "vy", "c0")}
  {made}
  {body}
  return
}}""")


def part(name: str, view: str, at: str) -> str:
    window = f"offsets = [%{at}, %c0], sizes = [%c16, %c64]"
    return f"%{name} = pto.partition_view %{view}, {window} : {VIEW} -> {PART}\n"


def load(tile: str, window: str = "px") -> str:
    return f"pto.tload ins(%{window} : {PART}) outs(%{tile} : {VEC})\n"


def store(tile: str, window: str = "py") -> str:
    return f"pto.tstore ins(%{tile} : {VEC}) outs(%{window} : {PART})\n"


def add(a: str, b: str, c: str) -> str:
    return f"pto.tadd ins(%{a}, %{b} : {VEC}, {VEC}) outs(%{c} : {VEC})\n"


def loop(body: str) -> str:
    rows = "%r = arith.muli %i, %c16 : index\n" + part("xi", "vx", "r") + part("yi", "vy", "r")
    return f"scf.for %i = %c0 to %n step %c1 {{\n{rows}{body}}}\n"


def branch(then: str, other: str = "") -> str:
    arms = f"{{\n{then}}} else {{\n{other}}}\n" if other else f"{{\n{then}}}\n"
    return f"%is = arith.cmpi slt, %n, %c16 : index\nscf.if %is {arms}"


def outline(module: Module) -> str:
    """What moves data or orders it, a word each: `set:MTE2:V:0`, `tadd`, `for( .. )`."""
    function = next(module.functions())
    return " ".join(_words(function.regions[0].block))


def _words(block: Block) -> Iterator[str]:
    for op in block.ops:
        name = op.name.split(".", 1)[1]
        if op.name.startswith("scf.") and op.regions:
            yield f"{name}("
            for n, region in enumerate(r for r in op.regions if r.blocks):
                yield from ["|"] * (n > 0)
                yield from _words(region.block)
            yield ")"
        elif name in ("set_flag", "wait_flag", "barrier"):
            yield ":".join([name.removesuffix("_flag"), *_pipes(op)])
        elif op.name.startswith("pto.t"):
            yield name


def _pipes(op: Operation) -> Iterator[str]:
    for key in ("pipe", "src_pipe", "dst_pipe", "event_id"):
        value = op.attrs.get(key)
        if isinstance(value, Enum):
            yield value.value.removeprefix("PIPE_").removeprefix("EVENT_ID")


def findings(module: Module, target: str, n: int = 4) -> list[str]:
    """Codes about order that a run finds; needless fences are among them."""
    x, y = (np.arange(256 * 64, dtype=np.float32) for _ in range(2))
    verdict = sanitize(module, args=[x, y, n], profile=target)
    assert verdict.mode == "flags"
    return [d.code for d in verdict.findings if d.code[:5] in ("PTO-R", "PTO-D")]


def inserted(module: Module, target: str) -> str:
    """The outline of the result, after a run has found nothing wrong with it."""
    made = insert(module, profile(target))
    assert findings(made, target) == []
    return outline(made)


# ---- straight lines


@pytest.mark.parametrize("target", TARGETS)
def test_one_flag_orders_two_loads_before_the_vector_unit_uses_them(target: str):
    module = program(load("a") + load("b", "px") + add("a", "b", "c") + store("c"))
    assert inserted(module, target) == (
        "tload tload set:MTE2:V:0 wait:MTE2:V:0 tadd set:V:MTE3:0 wait:V:MTE3:0 tstore"
    )


def test_an_element_that_the_scalar_unit_stores_is_waited_for():
    """memref.store writes what it names: S comes between the load and the vector unit."""
    memory = "memref<16x64xf32, #pto.address_space<vec>>"
    module = program(
        load("a")
        + f"%m = builtin.unrealized_conversion_cast %a : {VEC} to {memory}\n"
        + "%one = arith.constant 1.0 : f32\n"
        + f"memref.store %one, %m[%c0, %c0] : {memory}\n"
        + add("a", "a", "c")
    )
    assert inserted(module, "a5") == ("tload set:MTE2:S:0 wait:MTE2:S:0 set:S:V:0 wait:S:V:0 tadd")


def test_a_tile_that_is_needed_later_is_waited_for_later():
    module = program(load("a") + load("b") + add("a", "a", "c") + add("b", "b", "d"))
    assert inserted(module, "a5") == (
        "tload set:MTE2:V:0 tload set:MTE2:V:1 wait:MTE2:V:0 tadd wait:MTE2:V:1 tadd"
    )


def test_dependent_vector_work_needs_a_barrier_where_its_pipe_is_not_ordered():
    module = program(load("a") + add("a", "a", "b") + add("b", "b", "c") + add("a", "a", "d"))
    start = "tload set:MTE2:V:0 wait:MTE2:V:0 tadd"
    assert inserted(module, "a2a3") == f"{start} barrier:V tadd tadd"
    assert inserted(module, "a5") == f"{start} tadd tadd"


def test_what_another_pipe_implies_is_not_waited_for_again():
    """The store waits for V, and V has waited for the load into the same tile."""
    module = program(load("a") + add("a", "a", "a") + store("a"))
    assert inserted(module, "a5") == (
        "tload set:MTE2:V:0 wait:MTE2:V:0 tadd set:V:MTE3:0 wait:V:MTE3:0 tstore"
    )


def test_a_barrier_is_not_needed_after_a_round_trip():
    """V to MTE3 and back: its first addition is done when the second begins."""
    module = program(load("a") + add("a", "a", "b") + store("b") + add("a", "b", "b"))
    assert inserted(module, "a2a3") == (
        "tload set:MTE2:V:0 wait:MTE2:V:0 tadd set:V:MTE3:0 wait:V:MTE3:0 tstore"
        " set:MTE3:V:0 wait:MTE3:V:0 tadd"
    )


def test_a_store_comes_before_a_load_of_the_same_tensor_and_not_of_another():
    same_tensor = program(load("a") + store("a", "py") + load("b", "py"))
    assert inserted(same_tensor, "a5") == (
        "tload set:MTE2:MTE3:0 wait:MTE2:MTE3:0 tstore set:MTE3:MTE2:0 wait:MTE3:MTE2:0 tload"
    )
    other = program(load("a") + store("a", "py") + load("b", "px"))
    assert inserted(other, "a5") == "tload set:MTE2:MTE3:0 wait:MTE2:MTE3:0 tstore tload"


def test_windows_of_one_tensor_that_are_apart_are_not_ordered():
    module = program(load("a") + part("low", "vy", "c64") + store("a") + load("b", "low"))
    assert inserted(module, "a5") == "tload set:MTE2:MTE3:0 wait:MTE2:MTE3:0 tstore tload"


def test_a_scalar_read_waits_and_what_is_issued_after_it_does_not():
    read = f"%s = pto.tgetval ins(%b, %c0 : {VEC}, index) outs : f32\n"
    module = program(load("a") + add("a", "a", "b") + read + store("b"))
    assert inserted(module, "a5") == (
        "tload set:MTE2:V:0 wait:MTE2:V:0 tadd set:V:S:0 wait:V:S:0 tgetval tstore"
    )


def test_tiles_that_the_planner_puts_on_the_same_bytes_are_ordered():
    """Four tiles of 64 KiB, of which only two live at a time, in 256 KiB: c lies where a was."""
    big = "!pto.tile_buf<vec, 256x192xf32>"
    view = "!pto.tensor_view<256x192xf32>"
    window = "!pto.partition_tensor_view<256x192xf32>"
    text = f"""
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %c256 = arith.constant 256 : index
  %vx = pto.make_tensor_view %x, shape = [%c256, %c192], strides = [%c192, %c1] : {view}
  %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c256, %c192] : {view} -> {window}
  %a = pto.alloc_tile : {big}
  %b = pto.alloc_tile : {big}
  pto.tload ins(%px : {window}) outs(%a : {big})
  pto.tabs ins(%a : {big}) outs(%a : {big})
  pto.tload ins(%px : {window}) outs(%b : {big})
  pto.tabs ins(%b : {big}) outs(%b : {big})
  return
}}"""
    assert outline(insert(parse(text), profile("a5"))) == (
        "tload set:MTE2:V:0 wait:MTE2:V:0 tabs"
        " set:V:MTE2:0 wait:V:MTE2:0 tload set:MTE2:V:1 wait:MTE2:V:1 tabs"
    )


# ---- loops and branches


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_is_primed_and_drained_for_what_turns_do_to_each_other(target: str):
    module = program(loop(load("a", "xi") + add("a", "a", "b") + store("b", "yi")))
    free = 1 if target == "a2a3" else 0  # V has id 0 up for MTE3: taken on a2a3 if another is free
    assert inserted(module, target) == (
        f"set:V:MTE2:{free} set:MTE3:V:0 for("
        f" wait:V:MTE2:{free} tload set:MTE2:V:0"
        f" wait:MTE2:V:0 wait:MTE3:V:0 tadd set:V:MTE3:0 set:V:MTE2:{free}"
        " wait:V:MTE3:0 tstore set:MTE3:V:0"
        f" ) wait:V:MTE2:{free} wait:MTE3:V:0"
    )


def test_two_buffers_in_turn_have_flags_of_their_own():
    """While V works on one tile the next load goes into the other."""
    module = program(loop(load("a") + load("b") + add("a", "a", "c") + add("b", "b", "d")))
    assert inserted(module, "a5") == (
        "set:V:MTE2:0 set:V:MTE2:1 for("
        " wait:V:MTE2:0 tload set:MTE2:V:0 wait:V:MTE2:1 tload set:MTE2:V:1"
        " wait:MTE2:V:0 tadd set:V:MTE2:0 wait:MTE2:V:1 tadd set:V:MTE2:1"
        " ) wait:V:MTE2:0 wait:V:MTE2:1"
    )


def test_a_sum_over_turns_needs_a_barrier_in_the_loop():
    module = program(load("a") + loop(add("a", "b", "b")) + store("b"))
    loaded = "tload set:MTE2:V:0 wait:MTE2:V:0"
    stored = "set:V:MTE3:0 wait:V:MTE3:0 tstore"
    assert inserted(module, "a2a3") == f"{loaded} for( barrier:V tadd ) {stored}"
    assert inserted(module, "a5") == f"{loaded} for( tadd ) {stored}"


def test_stores_of_one_place_in_every_turn_are_ordered_and_of_many_places_not():
    once = program(load("a") + loop(store("a", "py")))
    loaded = "tload set:MTE2:MTE3:0 wait:MTE2:MTE3:0"
    assert inserted(once, "a5") == f"{loaded} for( barrier:MTE3 tstore )"
    many = program(load("a") + loop(store("a", "yi")))
    assert inserted(many, "a5") == f"{loaded} for( tstore )"


def test_priming_a_loop_orders_what_stands_before_it():
    """The flag set before the loop tells of the addition there too."""
    module = program(load("a") + add("a", "a", "b") + loop(load("a") + add("a", "a", "b")))
    assert inserted(module, "a5") == (
        "tload set:MTE2:V:0 wait:MTE2:V:0 tadd set:V:MTE2:0 for("
        " wait:V:MTE2:0 tload set:MTE2:V:1 wait:MTE2:V:1 tadd set:V:MTE2:0 ) wait:V:MTE2:0"
    )


@pytest.mark.parametrize("n", [4, 40])
def test_flags_of_a_branch_are_balanced_whichever_way_it_goes(n: int):
    module = program(load("a") + branch(add("a", "a", "b"), add("a", "a", "c")) + store("a"))
    made = insert(module, profile("a2a3"))
    assert outline(made) == (
        "tload set:MTE2:V:0 set:MTE2:MTE3:1 wait:MTE2:V:0 if( tadd | tadd ) wait:MTE2:MTE3:1 tstore"
    )
    assert findings(made, "a2a3", n) == []


def test_arms_of_a_branch_do_not_wait_for_each_other():
    module = program(branch(load("a"), load("a")))
    assert outline(insert(module, profile("a5"))) == "if( tload | tload )"


def test_what_an_arm_needs_of_itself_stays_in_the_arm():
    module = program(branch(load("a") + add("a", "a", "b")))
    assert inserted(module, "a5") == "if( tload set:MTE2:V:0 wait:MTE2:V:0 tadd )"


def test_the_test_of_a_while_is_ordered_with_its_body():
    """The test reads what the body writes, once more behind the last turn. Its first flag tells
    of the loads too: V knows them."""
    body = f"""
  %end = scf.while (%k = %c0) : (index) -> (index) {{
    %s = pto.tgetval ins(%b, %c0 : {VEC}, index) outs : f32
    %more = arith.cmpi slt, %k, %n : index
    scf.condition(%more) %k : index
  }} do {{
  ^bb0(%j: index):
    {add("a", "a", "b")}
    %next = arith.addi %j, %c1 : index
    scf.yield %next : index
  }}
"""
    module = program(load("a") + load("b") + body)
    made = insert(module, profile("a5"))
    assert outline(made) == (
        "tload tload set:MTE2:V:0 wait:MTE2:V:0"
        " set:V:S:0 while( wait:V:S:0 tgetval set:S:V:0 | wait:S:V:0 tadd set:V:S:0 ) wait:S:V:0"
    )
    for n in (0, 1, 3):
        assert findings(made, "a5", n) == []


# ---- the matrix unit


NAMES = {
    "MAT": "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>",
    "LEFT": "!pto.tile_buf<left, 16x16xf16, blayout=col_major, slayout=row_major>",
    "RIGHT": "!pto.tile_buf<right, 16x16xf16, slayout=col_major>",
    "ACC": "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>",
    "HALF": "!pto.partition_tensor_view<16x16xf16>",
    "WORD": "!pto.partition_tensor_view<16x16xf32>",
    "HALVES": "!pto.tensor_view<16x16xf16>",
    "WORDS": "!pto.tensor_view<16x16xf32>",
    "WINDOW": "offsets = [%c0, %c0], sizes = [%c16, %c16]",
    "SQUARE": "shape = [%c16, %c16], strides = [%c16, %c1]",
}


def cube(body: str) -> Module:
    text = f"""
func.func @k(%x: !pto.ptr<f16>, %y: !pto.ptr<f32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %vx = pto.make_tensor_view %x, SQUARE : HALVES
  %vy = pto.make_tensor_view %y, SQUARE : WORDS
  %px = pto.partition_view %vx, WINDOW : HALVES -> HALF
  %py = pto.partition_view %vy, WINDOW : WORDS -> WORD
  %m = pto.alloc_tile : MAT
  %l = pto.alloc_tile : LEFT
  %r = pto.alloc_tile : RIGHT
  %acc = pto.alloc_tile : ACC
  {body}
  return
}}"""
    return parse(re.sub(r"[A-Z]{3,}", lambda word: NAMES.get(word[0], word[0]), text))


MOVES = """pto.tload ins(%px : HALF) outs(%m : MAT)
  pto.tmov ins(%m : MAT) outs(%l : LEFT)
  pto.tmov ins(%m : MAT) outs(%r : RIGHT)
"""
PRODUCT = "pto.tmatmul ins(%l, %r : LEFT, RIGHT) outs(%acc : ACC)\n"
MORE = "pto.tmatmul.acc ins(%acc, %l, %r : ACC, LEFT, RIGHT) outs(%acc : ACC)\n"
OUT = "pto.tstore ins(%acc : ACC) outs(%py : WORD)\n"


def cube_findings(module: Module) -> list[str]:
    x, y = np.ones(256, np.float16), np.zeros(256, np.float32)
    verdict = sanitize(module, args=[x, y, 3], profile="a5")
    return [d.code for d in verdict.findings if d.code[:5] in ("PTO-R", "PTO-D")]


def test_a_product_goes_through_four_pipes_with_a_flag_between_each_two():
    made = insert(cube(MOVES + PRODUCT + OUT), profile("a5"))
    assert outline(made) == (
        "tload set:MTE2:MTE1:0 wait:MTE2:MTE1:0 tmov tmov set:MTE1:M:0 wait:MTE1:M:0 tmatmul"
        " set:M:FIX:0 wait:M:FIX:0 tstore"
    )
    assert cube_findings(made) == []


def test_products_into_one_accumulator_need_no_barrier():
    made = insert(cube(MOVES + PRODUCT + MORE + OUT), profile("a5"))
    assert outline(made).split()[-5:] == [
        "tmatmul",
        "tmatmul.acc",
        "set:M:FIX:0",
        "wait:M:FIX:0",
        "tstore",
    ]
    assert cube_findings(made) == []


def test_a_loop_of_products_frees_each_buffer_for_the_next_turn():
    made = insert(
        cube(f"scf.for %i = %c0 to %n step %c1 {{\n{MOVES}{PRODUCT}{OUT}}}\n"), profile("a5")
    )
    primed = outline(made).split(" for(")[0].split()
    assert sorted(primed) == ["set:FIX:M:0", "set:M:MTE1:0", "set:MTE1:MTE2:0"]
    assert cube_findings(made) == []


# ---- sides of a core


def test_each_side_is_ordered_by_itself_in_sections_of_its_own():
    """The cube loads what the vector side may store: that is not for flags inside a core."""
    mat = NAMES["MAT"].replace("16x16xf16", "16x64xf32")
    vector = load("a", "p") + "pto.tabs ins(%a : VEC) outs(%a : VEC)\n" + store("a", "p")
    text = f"""
func.func @k(%x: !pto.ptr<f32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : {VIEW}
  {part("p", "v", "c0")}
  scf.for %i = %c0 to %n step %c1 {{
    pto.section.vector {{
      %a = pto.alloc_tile : VEC
      {vector}
    }}
    pto.section.cube {{
      %m = pto.alloc_tile : {mat}
      pto.tload ins(%p : {PART}) outs(%m : {mat})
    }}
  }}
  return
}}""".replace("VEC", VEC)
    made = insert(parse(text), profile("a5"))
    vectors = [op for op in made.walk() if op.name == "pto.section.vector"]
    inside = [" ".join(_words(op.regions[0].block)) for op in vectors]
    assert inside == [
        "set:MTE3:MTE2:0",
        "wait:MTE3:MTE2:0 tload set:MTE2:V:0 wait:MTE2:V:0 tabs"
        " set:V:MTE3:0 wait:V:MTE3:0 tstore set:MTE3:MTE2:0",
        "wait:MTE3:MTE2:0",
    ]
    (cube_side,) = [op for op in made.walk() if op.name == "pto.section.cube"]
    assert list(_words(cube_side.regions[0].block)) == ["barrier:MTE2", "tload"]
    errors = [d for d in verify(made, profile("a5")) if d.severity == "error"]
    assert errors == []


def test_a_flag_that_an_instruction_uses_inside_is_left_to_it():
    """On a2a3 trowmax sets and waits for the flag from V to S with id 0 by itself."""
    column = "!pto.tile_buf<vec, 16x8xf32, valid=16x1>"
    row_max = f"pto.trowmax ins(%a, %c : {VEC}, {VEC}) outs(%m : {column})\n"
    read = f"%s = pto.tgetval ins(%b, %c0 : {VEC}, index) outs : f32\n"
    tile = f"%at = arith.constant 65536 : i64\n%m = pto.alloc_tile addr = %at : {column}\n"
    module = program(load("a") + tile + add("a", "a", "b") + row_max + read)
    words = inserted(module, "a2a3").split()
    assert words.index("set:V:S:1") < words.index("trowmax") < words.index("wait:V:S:1")


# ---- ids


def test_ids_are_taken_in_turn_and_used_again_when_all_were():
    rounds = "".join(load("a") + add("a", "a", "b") for _ in range(10))
    words = inserted(program(rounds), "a5").split()
    ids = [word[-1] for word in words if word.startswith("set:MTE2:V")]
    assert ids == list("0123456701")


def test_of_more_flags_than_ids_two_tell_together():
    """Nine loads are needed one by one, in the order in which they came: V waits for the first two
    at once."""
    tiles = "abcdefghi"
    body = "".join(load(t) for t in tiles) + "".join(add(t, t, t) for t in tiles)
    words = inserted(program(body, tiles=tiles), "a5").split()
    assert "barrier:ALL" not in words
    assert words[:4] == ["tload", "tload", "set:MTE2:V:0", "tload"]
    ids = [word[-1] for word in words if word.startswith("set:MTE2:V")]
    assert ids == list("01234567")


# ---- nothing needless


STRAIGHT = load("a") + load("b") + add("a", "b", "c") + store("c") + load("a") + add("a", "c", "c")
INNER = f"scf.for %j = %c0 to %n step %c1 {{\n{add('a', 'b', 'b')}}}\n"
DELETED = (
    STRAIGHT,
    loop(load("a", "xi") + add("a", "a", "b") + store("b", "yi")),
    loop(load("a") + INNER + store("b")),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", range(len(DELETED)))
def test_without_any_one_fence_the_sanitizer_complains(number: int, target: str):
    made = insert(program(DELETED[number]), profile(target))
    assert findings(made, target) == []
    fences = {_fence(op) for op in made.walk() if _fence(op)}
    assert fences
    for fence in fences:
        less = insert(program(DELETED[number]), profile(target))
        for op in list(less.walk()):
            if _fence(op) == fence and op.parent is not None:
                op.parent.ops.remove(op)
        left = findings(less, target) if any(map(_fence, less.walk())) else ["none left"]
        assert left, fence


def _fence(op: Operation) -> str:
    """A flag with all of its sets and waits, or one barrier where it stands."""
    name = op.name.removeprefix("pto.")
    if name == "barrier":
        return f"{':'.join(_pipes(op))} at {op.loc}"
    return ":".join(_pipes(op)) if name in ("set_flag", "wait_flag") else ""


# ---- what is given and what is not touched


def test_the_program_given_stays_as_it_is():
    module = program(load("a") + add("a", "a", "b"))
    before = parse(print_module(module))
    made = insert(module, profile("a2a3"))
    assert same(module.op, before.op)
    assert not same(made.op, before.op)
    assert same(parse(print_module(made)).op, made.op)


ALL = "pto.barrier #pto.pipe<PIPE_ALL>\n"


def test_what_a_barrier_of_the_program_orders_needs_no_flag():
    module = program(load("a") + ALL + add("a", "a", "b") + store("b"))
    assert inserted(module, "a5") == "tload barrier:ALL tadd set:V:MTE3:0 wait:V:MTE3:0 tstore"
    assert outline(ordered(module, profile("a5"))) == outline(insert(module, profile("a5")))


def test_a_barrier_in_a_turn_orders_the_turns_too():
    module = program(loop(load("a", "xi") + ALL + add("a", "a", "b") + ALL + store("b", "yi")))
    assert inserted(module, "a5") == "for( tload barrier:ALL tadd barrier:ALL tstore )"
    once = program(loop(load("a", "xi") + ALL + store("a", "yi")))
    assert inserted(once, "a5") == (
        "set:MTE3:MTE2:0 for( wait:MTE3:MTE2:0 tload barrier:ALL tstore set:MTE3:MTE2:0 )"
        " wait:MTE3:MTE2:0"
    )


def test_a_barrier_of_one_pipe_orders_that_pipe_alone():
    vector = ALL.replace("ALL", "V")
    chain = add("a", "a", "b") + vector + add("b", "b", "c")
    assert inserted(program(load("a") + chain), "a2a3") == (
        "tload set:MTE2:V:0 wait:MTE2:V:0 tadd barrier:V tadd"
    )


def test_a_barrier_on_one_way_is_none_on_the_other():
    made = insert(program(load("a") + branch(ALL) + add("a", "a", "b")), profile("a5"))
    assert findings(made, "a5", n=20) == []
    assert outline(made) == "tload set:MTE2:V:0 if( barrier:ALL ) wait:MTE2:V:0 tadd"


def test_a_program_with_a_flag_is_refused_with_its_place():
    flag = "pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]\n"
    module = program(load("a") + flag + add("a", "a", "b"))
    with pytest.raises(PtoError) as caught:
        insert(module, profile("a5"))
    assert caught.value.code == "PTO-U250"
    assert "pto.set_flag" in str(caught.value)
    assert ordered(module, profile("a5")) is module


def test_calls_are_ordered_by_flags_of_the_pipes_they_have_work_for():
    text = f"""
module {{
  func.func private @twice(%t: {VEC}) {{
    pto.tadd ins(%t, %t : {VEC}, {VEC}) outs(%t : {VEC})
    return
  }}
  func.func @k(%x: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : {VIEW}
    {part("p", "v", "c0")}
    %t = pto.alloc_tile : {VEC}
    func.call @twice(%t) : ({VEC}) -> ()
    {load("t", "p")}
    func.call @twice(%t) : ({VEC}) -> ()
    {store("t", "p")}
    return
  }}
}}"""
    made = insert(parse(text), profile("a2a3"))
    entry = next(f for f in made.functions() if "pto.entry" in f.attrs)
    shown = ("func.call", "pto.tload", "pto.tstore", "pto.set_flag", "pto.wait_flag", "pto.barrier")
    names = [op.name.rpartition(".")[2] for op in entry.walk() if op.name in shown]
    flag = ["set_flag", "wait_flag"]
    assert names == ["call", *flag, "tload", *flag, "call", *flag, "tstore"]
    assert with_flags(made, [np.ones(16 * 64, np.float32)], "a2a3") == 4  # one after the other
    x = np.ones(16 * 64, np.float32)
    verdict = sanitize(made, args=[x], profile="a2a3")
    assert [d.code for d in verdict.findings if d.code[:5] in ("PTO-R", "PTO-D")] == []
