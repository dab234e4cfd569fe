"""Branches that go back become loops, and run so on both engines."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.copied import same
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe.sanitize import sanitize
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.profile import profile

HEAD = """func.func @f(%n: i32, %p: !pto.ptr<i32>) attributes {pto.entry} {
  %at = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %ten = arith.constant 10 : i32
"""
STORE = "  pto.store_scalar %r, %p[%at] : !pto.ptr<i32>, i32\n  return\n}\n"


def kernel(body: str) -> str:
    return f"{HEAD}{body}{STORE}"


def run(text: str, n: int) -> int:
    """What the kernel stores, on both engines."""
    found = [np.full(1, -1, np.int32) for _ in range(2)]
    for engine, array in zip(("reference", "jit"), found, strict=True):
        launch(text, args=[n, array], profile="a2a3", engine=engine)
    assert found[0][0] == found[1][0]
    return int(found[0][0])


COUNTED = kernel("""
  cf.br ^head(%zero, %zero : i32, i32)
^head(%i: i32, %sum: i32):
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^end
^body:
  %next = arith.addi %sum, %i : i32
  %j = arith.addi %i, %two : i32
  cf.br ^head(%j, %next : i32, i32)
^end:
  %r = arith.muli %sum, %ten : i32
""")


def test_a_loop_that_counts_is_a_for() -> None:
    written = kernel("""
  %sum = scf.for %i = %zero to %n step %two iter_args(%a = %zero) -> (i32) : i32 {
    %next = arith.addi %a, %i : i32
    scf.yield %next : i32
  }
  %r = arith.muli %sum, %ten : i32
""")
    assert same(parse(COUNTED).op, parse(written).op)
    assert [run(COUNTED, n) for n in (0, 1, 7)] == [0, 0, 120]  # 10 * (0 + 2 + 4 + 6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r = arith.muli %sum, %ten", "%r = arith.muli %i, %ten"),  # seen behind the loop
        ("slt, %i, %n", "ult, %i, %n"),
        ("%j = arith.addi %i, %two", "%j = arith.addi %i, %n"),  # a step that may be 0
        ("%j = arith.addi %i, %two", "%j = arith.muli %i, %two"),
        ("%j, %next : i32, i32", "%next, %j : i32, i32"),
    ],
)
def test_what_does_not_count_is_a_while(old: str, new: str) -> None:
    assert old in COUNTED
    text = print_module(parse(COUNTED.replace(old, new)))
    assert text.count("scf.while") == 1 and "scf.for" not in text


# Each with arguments and what they store, by hand.
SHAPES: dict[str, tuple[str, Mapping[int, int]]] = {
    # halve until it is not positive: how often
    "the header decides, inside where the test fails": (
        """
  cf.br ^head(%n, %zero : i32, i32)
^head(%x: i32, %count: i32):
  %done = arith.cmpi sle, %x, %zero : i32
  cf.cond_br %done, ^end, ^body
^body:
  %half = arith.divsi %x, %two : i32
  %next = arith.addi %count, %one : i32
  cf.br ^head(%half, %next : i32, i32)
^end:
  %r = arith.addi %count, %zero : i32
""",
        {0: 0, 1: 1, 8: 4, 100: 7},
    ),
    # double at least once, up to 10
    "the body comes first": (
        """
  cf.br ^body(%n : i32)
^body(%x: i32):
  %y = arith.muli %x, %two : i32
  %more = arith.cmpi slt, %y, %ten : i32
  cf.cond_br %more, ^body(%y : i32), ^end
^end:
  %r = arith.addi %y, %x : i32
""",
        {1: 24, 3: 18, 50: 150},  # 16 + 8, 12 + 6, 100 + 50
    ),
    # a guard, then the body with the test at its end: n + (n-1) + .. + 1
    "turned round": (
        """
  %any = arith.cmpi sgt, %n, %zero : i32
  cf.cond_br %any, ^body(%n, %zero : i32, i32), ^end(%zero : i32)
^body(%i: i32, %sum: i32):
  %next = arith.addi %sum, %i : i32
  %j = arith.subi %i, %one : i32
  %stop = arith.cmpi eq, %j, %zero : i32
  cf.cond_br %stop, ^end(%next : i32), ^body(%j, %next : i32, i32)
^end(%r: i32):
""",
        {0: 0, 1: 1, 5: 15},
    ),
    # the first i below 10 with i * i >= n, or -1
    "left in two places": (
        """
  %none = arith.constant -1 : i32
  cf.br ^head(%zero : i32)
^head(%i: i32):
  %more = arith.cmpi slt, %i, %ten : i32
  cf.cond_br %more, ^look, ^end(%none : i32)
^look:
  %square = arith.muli %i, %i : i32
  %found = arith.cmpi sge, %square, %n : i32
  cf.cond_br %found, ^end(%i : i32), ^on
^on:
  %j = arith.addi %i, %one : i32
  cf.br ^head(%j : i32)
^end(%r: i32):
""",
        {0: 0, 17: 5, 81: 9, 82: -1},
    ),
    # as above, and each exit does its own work with what the loop has made
    "left for two places": (
        """
  cf.br ^head(%zero : i32)
^head(%i: i32):
  %twice = arith.muli %i, %two : i32
  %more = arith.cmpi slt, %i, %ten : i32
  cf.cond_br %more, ^look, ^none
^look:
  %square = arith.muli %i, %i : i32
  %found = arith.cmpi sge, %square, %n : i32
  cf.cond_br %found, ^some, ^on
^on:
  %j = arith.addi %i, %one : i32
  cf.br ^head(%j : i32)
^some:
  %a = arith.addi %square, %twice : i32
  cf.br ^end(%a : i32)
^none:
  %b = arith.subi %zero, %twice : i32
  cf.br ^end(%b : i32)
^end(%r: i32):
""",
        {0: 0, 17: 35, 82: -20},  # 25 + 10; -(10 + 10)
    ),
    # pairs (i, j) with j < i < n and i + j not 5; the outer loop ends at the first i of 7
    "one in another, with continue and break": (
        """
  %five = arith.constant 5 : i32
  %seven = arith.constant 7 : i32
  cf.br ^outer(%zero, %zero : i32, i32)
^outer(%i: i32, %a: i32):
  %row = arith.cmpi slt, %i, %n : i32
  cf.cond_br %row, ^inner(%zero, %a : i32, i32), ^end(%a : i32)
^inner(%j: i32, %b: i32):
  %is7 = arith.cmpi eq, %i, %seven : i32
  cf.cond_br %is7, ^end(%b : i32), ^test
^test:
  %column = arith.cmpi slt, %j, %i : i32
  cf.cond_br %column, ^pair, ^next
^pair:
  %s = arith.addi %i, %j : i32
  %k = arith.addi %j, %one : i32
  %skip = arith.cmpi eq, %s, %five : i32
  cf.cond_br %skip, ^inner(%k, %b : i32, i32), ^count
^count:
  %more = arith.addi %b, %one : i32
  cf.br ^inner(%k, %more : i32, i32)
^next:
  %up = arith.addi %i, %one : i32
  cf.br ^outer(%up, %b : i32, i32)
^end(%r: i32):
""",
        {
            0: 0,
            3: 3,
            4: 5,
            6: 12,
            9: 18,
        },  # of 3, 6, 15, 21 pairs; (3, 2), (4, 1), (5, 0) are left out
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_loops(name: str) -> None:
    body, wanted = SHAPES[name]
    text = kernel(body)
    assert {n: run(text, n) for n in wanted} == wanted
    printed = print_module(parse(text))
    assert " cf." not in printed and print_module(parse(printed)) == printed


def test_numbers_as_names_stay_names_that_mlir_reads() -> None:
    """It has `%5` and `%v5_1`, and no `%5_1`."""
    text = COUNTED
    for n, old in enumerate(("i", "sum", "more", "next", "j"), 1):
        text = re.sub(rf"%{old}\b", f"%{n}", text)
    text = text.replace("%3 = arith.cmpi slt", "%3 = arith.cmpi ult")
    printed = print_module(parse(text))
    assert "%v1_1" in printed and not re.search(r"%\d+_", printed)
    assert print_module(parse(printed)) == printed


def test_text_may_have_blocks_in_any_order() -> None:
    body, wanted = SHAPES["left for two places"]
    first, *blocks = body.split("\n^")
    *others, last = blocks
    text = kernel("\n^".join([first, *reversed(others), last]))
    assert {n: run(text, n) for n in wanted} == wanted


def test_a_function_that_returns_from_a_loop() -> None:
    text = """
    func.func private @log(%n: i32) -> i32 {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      cf.br ^head(%n, %zero : i32, i32)
    ^head(%x: i32, %count: i32):
      %bad = arith.cmpi slt, %x, %one : i32
      cf.cond_br %bad, ^negative, ^test
    ^negative:
      %minus = arith.subi %zero, %one : i32
      return %minus : i32
    ^test:
      %last = arith.cmpi eq, %x, %one : i32
      cf.cond_br %last, ^found, ^on
    ^found:
      return %count : i32
    ^on:
      %half = arith.shrsi %x, %one : i32
      %next = arith.addi %count, %one : i32
      cf.br ^head(%half, %next : i32, i32)
    }
    """ + kernel("  %r = func.call @log(%n) : (i32) -> i32\n")
    assert [run(text, n) for n in (-3, 0, 1, 7, 64)] == [-1, -1, 0, 2, 6]


def test_what_leaves_a_loop_by_one_way_needs_a_stand_in_on_the_other() -> None:
    """Of numbers there is always one; of other types where the program has one before the loop."""
    body = """
  %flag = arith.cmpi eq, %n, %zero : i32
  cf.br ^head
^head:
  cf.cond_br %flag, ^some, ^r
^some:
  %q = pto.addptr %p, %at : !pto.ptr<i32> -> !pto.ptr<i32>
  cf.cond_br %flag, ^use, ^head
^use:
  pto.store_scalar %ten, %q[%at] : !pto.ptr<i32>, i32
  cf.br ^end
^r:
  pto.store_scalar %two, %p[%at] : !pto.ptr<i32>, i32
  cf.br ^end
^end:
  %r = pto.load_scalar %p[%at] : !pto.ptr<i32> -> i32
"""
    assert [run(kernel(body), n) for n in (0, 1)] == [10, 2]
    made = "%q = pto.alloc_tile : !pto.tile_buf<vec, 8x8xi32>"
    other = body.replace("%q = pto.addptr %p, %at : !pto.ptr<i32> -> !pto.ptr<i32>", made)
    use = "pto.tabs ins(%q : !pto.tile_buf<vec, 8x8xi32>) outs(%q : !pto.tile_buf<vec, 8x8xi32>)"
    other = other.replace("pto.store_scalar %ten, %q[%at] : !pto.ptr<i32>, i32", use)
    with pytest.raises(PtoError) as caught:
        parse(kernel(other))
    found = caught.value.diagnostics[0]
    assert (
        found.code == "PTO-P024" and "%q is used after a loop with several exits" in found.message
    )


TILES = """
func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
  %b = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
  %in = pto.make_tensor_view %x, shape = [%n, %c8], strides = [%c8, %c1]
    : !pto.tensor_view<?x?xf32>
  %out = pto.make_tensor_view %y, shape = [%n, %c8], strides = [%c8, %c1]
    : !pto.tensor_view<?x?xf32>
  cf.br ^turn(%c0, %a, %b : index, !pto.tile_buf<vec, 8x8xf32>, !pto.tile_buf<vec, 8x8xf32>)
^turn(%i: index, %t: !pto.tile_buf<vec, 8x8xf32>, %u: !pto.tile_buf<vec, 8x8xf32>):
  %p = pto.partition_view %in, offsets = [%i, %c0], sizes = [%c8, %c8]
    : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x8xf32>
  %q = pto.partition_view %out, offsets = [%i, %c0], sizes = [%c8, %c8]
    : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x8xf32>
  pto.tload ins(%p : !pto.partition_tensor_view<8x8xf32>) outs(%t : !pto.tile_buf<vec, 8x8xf32>)
  pto.tadd ins(%t, %t : !pto.tile_buf<vec, 8x8xf32>, !pto.tile_buf<vec, 8x8xf32>)
    outs(%t : !pto.tile_buf<vec, 8x8xf32>)
  pto.tstore ins(%t : !pto.tile_buf<vec, 8x8xf32>) outs(%q : !pto.partition_tensor_view<8x8xf32>)
  %j = arith.addi %i, %c8 : index
  %more = arith.cmpi slt, %j, %n : index
  cf.cond_br %more,
    ^turn(%j, %u, %t : index, !pto.tile_buf<vec, 8x8xf32>, !pto.tile_buf<vec, 8x8xf32>), ^end
^end:
  return
}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_tiles_of_a_loop_are_ordered_and_watched(target: str) -> None:
    """Two tiles change places each turn: flags are inserted, and a watched run finds no race."""
    data = np.arange(320, dtype=np.float32).reshape(40, 8)
    module = insert(parse(TILES), profile(target))
    out = np.zeros_like(data)
    assert not sanitize(module, args=[data, out, 40], profile=target).findings
    np.testing.assert_array_equal(out, 2 * data)
    text = print_module(module)
    assert text.count("scf.while") == 1 and "set_flag" in text
    for engine in ("reference", "jit"):
        out = np.zeros_like(data)
        launch(text, args=[data, out, 40], profile=target, engine=engine)
        np.testing.assert_array_equal(out, 2 * data)


ITEMS = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @item(%out: !pto.ptr<i32, gm>) attributes {pto.simt_entry} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %tx = pto.get_tid_x : i32
    %start = arith.addi %tx, %one : i32
    cf.br ^head(%start, %zero : i32, i32)
  ^head(%n: i32, %count: i32):
    %done = arith.cmpi eq, %n, %one : i32
    cf.cond_br %done, ^end, ^step
  ^step:
    %bit = arith.andi %n, %one : i32
    %odd = arith.cmpi eq, %bit, %one : i32
    %next = arith.addi %count, %one : i32
    cf.cond_br %odd, ^up, ^down
  ^up:
    %m = arith.muli %n, %three : i32
    %p = arith.addi %m, %one : i32
    cf.br ^head(%p, %next : i32, i32)
  ^down:
    %h = arith.shrsi %n, %one : i32
    cf.br ^head(%h, %next : i32, i32)
  ^end:
    %i = arith.index_castui %tx : i32 to index
    pto.store %count, %out[%i] : !pto.ptr<i32, gm>, i32
    return
  }
  func.func @kernel(%out: !pto.ptr<i32, gm>) attributes {pto.aicore} {
    %x = arith.constant 64 : i32
    %y = arith.constant 1 : i32
    pto.simt_launch @item<<<%x, %y, %y>>>(%out) : (!pto.ptr<i32, gm>) -> ()
    return
  }
}
"""


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_work_items_go_round_as_often_as_each_needs(engine: str) -> None:
    """Collatz: a number becomes 3 n + 1 or its half until it is 1."""

    def turns(n: int) -> int:
        return 0 if n == 1 else 1 + turns(3 * n + 1 if n % 2 else n // 2)

    out = np.full(64, -1, np.int32)
    launch(parse(ITEMS), args=[out], engine=engine)
    assert out.tolist() == [turns(n) for n in range(1, 65)]


# ---- graphs at random, against an interpreter that goes from block to block

Ways = list[tuple[int, list[str]]]  # block, and what it gets


class Blocks:
    """Blocks with two values each; the last one ends. Values of blocks that dominate are used."""

    def __init__(self, seed: int) -> None:
        self.random = rng = random.Random(seed)
        self.last = last = rng.randint(2, 8)
        ends = [rng.choice((1, 2, 2, 3)) for _ in range(last)]
        self.ways = [[self._near(n) for _ in range(count)] for n, count in enumerate(ends)]
        self.args = [0, *(rng.randint(0, 2) for _ in range(last))]
        reached = self._reached(None)
        self.above = [
            [a for a in sorted(reached - {n}) if n in reached and n not in self._reached(a)]
            for n in range(last + 1)
        ]
        self.sources = [[self._value(n) for _ in range(2)] for n in range(last + 1)]
        self.given: list[Ways] = [
            [(to, [self._value(n, own=True) for _ in range(self.args[to])]) for to in ways]
            for n, ways in enumerate(self.ways)
        ]

    def _near(self, n: int) -> int:
        if self.random.random() < 0.6:
            return min(self.last, n + self.random.randint(1, 2))
        return self.random.randint(max(1, n - 4), min(self.last, n + 3))

    def _reached(self, without: int | None) -> set[int]:
        left = [0] if without != 0 else []
        seen = set(left)
        while left:
            n = left.pop()
            fresh = {t for t in (self.ways[n] if n < self.last else []) if t != without} - seen
            seen |= fresh
            left += fresh
        return seen

    def _value(self, n: int, own: bool = False) -> str:
        args = [f"a{n}_{k}" for k in range(self.args[n])]
        return self.random.choice([*args, *(f"v{a}" for a in self.above[n]), "n", *[f"v{n}"] * own])

    def text(self) -> str:
        lines: list[str] = []
        for n, (a, b) in enumerate(self.sources):
            args = ", ".join(f"%a{n}_{k}: i32" for k in range(self.args[n]))
            lines.append(f"^b{n}({args}):" if n else "")
            lines.append(f"%m{n} = arith.muli %{a}, %three : i32")
            lines.append(f"%s{n} = arith.addi %m{n}, %{b} : i32")
            lines.append(f"%k{n} = arith.constant {n + 1} : i32")
            lines.append(f"%v{n} = arith.addi %s{n}, %k{n} : i32")
            lines.append(
                self._branch(n) if n < self.last else f"%r = arith.addi %v{n}, %zero : i32"
            )
        return kernel("  %three = arith.constant 3 : i32\n" + "\n".join(lines) + "\n")

    def _branch(self, n: int) -> str:
        ways = [
            f"^b{to}"
            + f"({', '.join('%' + v for v in vs)} : {', '.join(['i32'] * len(vs))})" * bool(vs)
            for to, vs in self.given[n]
        ]
        if len(ways) == 1:
            return f"cf.br {ways[0]}"
        if len(ways) == 2:
            bit = f"%q{n} = arith.andi %v{n}, %two : i32\n%f{n} = arith.cmpi eq, %q{n}, %zero : i32"
            return f"{bit}\ncf.cond_br %f{n}, {ways[0]}, {ways[1]}"
        cases = f"[default: {ways[0]}, 1: {ways[1]}, 2: {ways[2]}]"
        return f"%q{n} = arith.andi %v{n}, %three : i32\ncf.switch %q{n} : i32, {cases}"

    def stored(self, n: int) -> int | None:
        """What is stored, None if it takes very long."""
        known, block = {"n": n}, 0
        for _ in range(300):
            a, b = (known[name] for name in self.sources[block])
            value = known[f"v{block}"] = (3 * a + b + block + 1) % 2**32
            if block == self.last:
                return value - 2**32 * (value >= 2**31)
            ways = self.given[block]
            if len(ways) == 2:
                taken = 0 if value & 2 == 0 else 1
            else:
                taken = value & 3 if len(ways) == 3 and value & 3 in (1, 2) else 0
            block, names = ways[taken]
            known |= {f"a{block}_{k}": known[name] for k, name in enumerate(names)}
        return None


def test_random_graphs_do_what_their_blocks_say() -> None:
    """Where no structure is found, it is said; the others run as their blocks, one by one."""
    ran = refused = loops = 0
    for seed in range(80):
        blocks = Blocks(seed)
        try:
            module = parse(blocks.text())
        except PtoError as error:
            assert error.diagnostics[0].code == "PTO-P024"
            refused += 1
            continue
        loops += print_module(module).count("scf.while")
        for n in (0, 1, 2, 5):
            wanted = blocks.stored(n)
            if wanted is not None:
                found = np.zeros(1, np.int32)
                launch(module, args=[n, found], profile="a2a3", engine="reference")
                assert int(found[0]) == wanted, f"seed {seed}, n {n}"
                ran += 1
    assert ran > 120 and loops > 30 and 0 < refused < 40
