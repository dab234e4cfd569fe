"""Proofs about blocks and bounds, judged by counting: random programs whose windows are formulas of
block numbers and loop counters, and every block and iteration of them enumerated in Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pto.ir.text.parser import parse
from pto.prove.blocks import conflicts
from pto.prove.bounds import leaving
from pto.prove.facts import KernelUses, facts

Env = dict[str, int]
ROWS, COLS = 48, 16
FORMS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "minsi": min,
    "maxsi": max,
    "floordivsi": lambda a, b: a // b,
    "remsi": lambda a, b: a % b,
}


@dataclass
class Program:
    """Lines of text, and where each access lies, as functions of block and counters."""

    lines: list[str] = field(default_factory=list[str])
    numbers: dict[str, Callable[[Env], int]] = field(
        default_factory=dict[str, Callable[[Env], int]]
    )
    accesses: list[tuple[str, bool, list[str], list[str]]] = field(default_factory=list[Any])
    loops: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    count: int = 0

    def new(self, text: str, value: Callable[[Env], int]) -> str:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"%{name} = {text}")
        self.numbers[name] = value
        return name

    def constant(self, value: int) -> str:
        return self.new(f"arith.constant {value} : index", lambda env: value)

    def two(self, kind: str, a: str, b: str) -> str:
        one, other, work = self.numbers[a], self.numbers[b], FORMS[kind]
        return self.new(f"arith.{kind} %{a}, %{b} : index", lambda e: work(one(e), other(e)))


def drawn(rng: random.Random) -> tuple[Program, int]:
    """A program of one or two windows on two arrays, and its number of blocks."""
    p, blocks = Program(), rng.choice((1, 2, 3, 4, 6, 8, 12))
    p.lines.append("%raw = pto.get_block_idx")
    b = p.new("arith.index_cast %raw : i64 to index", lambda env: env["block"])
    p.lines.append("%many = pto.get_block_num")
    count = p.new("arith.index_cast %many : i64 to index", lambda env: env["blocks"])
    known = [b]
    for divisor in rng.sample((2, 3, 4), rng.randrange(3)):
        by = p.constant(divisor)
        known.append(p.two("floordivsi", b, by))
        known.append(p.two("remsi", b, by))
    for _ in range(rng.randrange(3)):
        turns = rng.choice((1, 2, 3, 4))
        zero, end, step = p.constant(0), p.constant(turns), p.constant(rng.choice((1, 1, 2)))
        counter = f"i{len(p.loops)}"
        p.lines.append(f"scf.for %{counter} = %{zero} to %{end} step %{step} {{")
        p.numbers[counter] = lambda env, counter=counter: env[counter]
        p.loops.append((counter, f"{turns} {p.numbers[step]({})}"))
        known.append(counter)
        if rng.random() < 0.4:  # a grid-stride loop
            known.append(p.two("addi", p.two("muli", counter, count), b))
    for _ in range(rng.choice((1, 1, 2, 3))):
        array, writes = rng.choice("xy"), rng.random() < 0.7
        sizes = [p.constant(rng.choice((1, 2, 4, 8))), p.constant(rng.choice((4, 8, 16)))]
        offsets = [_offset(p, rng, known, limit) for limit in (ROWS, COLS)]
        if rng.random() < 0.4:  # a tail, as `x[i:, :]` of the Python interface writes it
            offsets[0], sizes[0] = _tail(p, offsets[0], sizes[0])
        p.accesses.append((array, writes, offsets, sizes))
        at, size = (", ".join(f"%{n}" for n in each) for each in (offsets, sizes))
        part = "!pto.partition_tensor_view<?x?xf32>"
        name = f"w{p.count}"
        p.count += 1
        p.lines.append(
            f"%{name} = pto.partition_view %{array}_view, offsets = [{at}], sizes = [{size}]"
            f" : !pto.tensor_view<{ROWS}x{COLS}xf32> -> {part}"
        )
        tile = "%tile : !pto.tile_buf<vec, 8x16xf32>"
        view = f"%{name} : {part}"
        p.lines.append(
            f"pto.tstore ins({tile}) outs({view})"
            if writes
            else f"pto.tload ins({view}) outs({tile})"
        )
    p.lines += ["}"] * len(p.loops)
    return p, blocks


def _offset(p: Program, rng: random.Random, known: list[str], limit: int) -> str:
    found = p.constant(rng.choice((0, 0, 0, 1, 4)))
    for name in rng.sample(known, min(len(known), rng.randrange(3))):
        factor = p.constant(rng.choice((1, 2, 4, 8, 16, -1, -4)))
        found = p.two("addi", found, p.two("muli", name, factor))
    if rng.random() < 0.3:
        found = p.two(rng.choice(("minsi", "maxsi")), found, p.constant(rng.choice((0, 8, limit))))
    return found


def _tail(p: Program, offset: str, size: str) -> tuple[str, str]:
    rows, zero = p.constant(ROWS), p.constant(0)
    left = p.two("maxsi", p.two("subi", rows, offset), zero)
    return p.two("minsi", offset, rows), p.two("minsi", left, size)


def text(p: Program) -> str:
    view = f"!pto.tensor_view<{ROWS}x{COLS}xf32>"
    views = [
        f"%{a}_view = pto.make_tensor_view %{a}, shape = [%rows, %cols], strides = [%cols, %one]"
        f" : {view}"
        for a in "xy"
    ]
    head = [
        f"%rows = arith.constant {ROWS} : index",
        f"%cols = arith.constant {COLS} : index",
        "%one = arith.constant 1 : index",
        "%tile = pto.alloc_tile : !pto.tile_buf<vec, 8x16xf32>",
    ]
    body = "\n".join([*head, *views, *p.lines, "return"])
    return f"module {{ func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{\n{body}\n}} }}"


def iterations(p: Program, blocks: int) -> Iterator[Env]:
    def inner(env: Env, loops: list[tuple[str, str]]) -> Iterator[Env]:
        if not loops:
            yield env
            return
        (name, turns), *rest = loops
        end, step = map(int, turns.split())
        for n in range(0, end, step):
            yield from inner({**env, name: n}, rest)

    for block in range(blocks):
        yield from inner({"block": block, "blocks": blocks}, p.loops)


def truth(p: Program, blocks: int) -> tuple[bool, bool]:
    """Whether blocks are independent, and whether all windows are inside their views."""
    touched: dict[tuple[str, int, int], set[int]] = {}
    written: set[tuple[str, int, int]] = set()
    inside = True
    for env in iterations(p, blocks):
        for array, writes, offsets, sizes in p.accesses:
            (i, j), (m, n) = ([p.numbers[name](env) for name in each] for each in (offsets, sizes))
            inside &= min(i, j) >= 0 and i + m <= ROWS and j + n <= COLS
            for r in range(i, i + m):
                for c in range(j, j + n):
                    place = array, 0, r * COLS + c  # as it lies in memory
                    touched.setdefault(place, set()).add(env["block"])
                    if writes:
                        written.add(place)
    return all(len(touched[place]) == 1 for place in written), inside


def proved(found: KernelUses) -> tuple[bool, bool]:
    assert not found.unknown
    sizes = {use.window.root: ROWS * COLS * 4 for use in found.uses}
    return not conflicts(found), not leaving(found, sizes)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_proved_that_counting_refutes(seed: int):
    """And most that is true is proved."""
    rng, true, found = random.Random(seed), [0, 0], [0, 0]
    for n in range(60):
        p, blocks = drawn(rng)
        source = text(p)
        (function,) = parse(source).functions()
        told, real = proved(facts(function, blocks=blocks)), truth(p, blocks)
        for question in (0, 1):
            assert real[question] or not told[question], (seed, n, question, source)
            true[question] += real[question]
            found[question] += told[question]
    assert found[0] >= 0.8 * true[0], (found, true)
    assert found[1] >= 0.9 * true[1], (found, true)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_proved_for_every_grid_that_a_grid_refutes(seed: int):
    rng, real, found = random.Random(100 + seed), 0, 0
    for n in range(60):
        p, _ = drawn(rng)
        source = text(p)
        (function,) = parse(source).functions()
        told = not conflicts(facts(function))
        holds = all(truth(p, blocks)[0] for blocks in (2, 3, 4, 5, 8))
        assert holds or not told, (seed, n, source)
        real, found = real + holds, found + told
    assert found >= 0.6 * real, (found, real)


_GRID = """
module {{ func.func @k(%y: !pto.ptr<f32>, %m: index, %n: index, %grid_x: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %tile = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
  %raw = pto.get_block_idx
  %b = arith.index_cast %raw : i64 to index
  %many = pto.get_block_num
  %blocks = arith.index_cast %many : i64 to index
  %v = pto.make_tensor_view %y, shape = [%m, %n], strides = [%n, %c1] : !pto.tensor_view<?x?xf32>
  {place}
  %i = arith.muli %row, %c8 : index
  %j = arith.muli %col, %c64 : index
  %w = pto.partition_view %v, offsets = [%i, %j], sizes = [%c8, %c64]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x64xf32>
  pto.tstore ins(%tile : !pto.tile_buf<vec, 8x64xf32>)
      outs(%w : !pto.partition_tensor_view<8x64xf32>)
  {end}
  return
}} }}
"""
_AXES = """%col = arith.remsi %b, %grid_x : index
  %row = arith.divsi %b, %grid_x : index"""
_STRIDE = """%end = arith.divsi %m, %c8 : index
  %col = arith.constant 0 : index
  scf.for %row = %b to %end step %blocks {"""


@pytest.mark.parametrize(
    ("place", "end", "is_apart"),
    [
        (_AXES, "", True),
        (_AXES.replace("remsi %b, %grid_x", "remsi %b, %m"), "", False),
        (_AXES.replace("divsi %b, %grid_x", "divsi %b, %c8"), "", False),
        (_STRIDE, "}", True),
        (_STRIDE.replace("step %blocks", "step %c1"), "}", False),
        (_STRIDE.replace("step %blocks", "step %m"), "}", False),
    ],
)
def test_axes_and_strides_of_any_grid(place: str, end: str, is_apart: bool):
    (function,) = parse(_GRID.format(place=place, end=end)).functions()
    assert (not conflicts(facts(function), inside=True)) == is_apart


_ROWS = """
module {{ func.func @k(%y: !pto.ptr<f32>) {{
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %tile = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
  %raw = pto.get_block_idx
  %b = arith.index_cast %raw : i64 to index
  {lines}
  %v = pto.make_tensor_view %y, shape = [%c4, %c64], strides = [%step, %c1]
      : !pto.tensor_view<?x?xf32>
  %c0 = arith.constant 0 : index
  %w = pto.partition_view %v, offsets = [%row, %c0], sizes = [%c1, %c64]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x64xf32>
  pto.tstore ins(%tile : !pto.tile_buf<vec, 1x64xf32>)
      outs(%w : !pto.partition_tensor_view<1x64xf32>)
  return
}} }}
"""


@pytest.mark.parametrize(
    ("lines", "is_apart"),
    [
        ("%step = arith.constant 64 : index\n %row = arith.addi %b, %c1 : index", True),
        # rows 3 and 2 of steps 128 and 192 are one place
        (
            "%n = arith.addi %b, %c1 : index\n %step = arith.muli %n, %c64 : index\n"
            " %row = arith.subi %c4, %b : index",
            False,
        ),
        # blocks 0 and 256 write one row
        (
            "%step = arith.constant 64 : index\n %n = arith.index_cast %b : index to i32\n"
            " %few = arith.trunci %n : i32 to i8\n %row = arith.index_cast %few : i8 to index",
            False,
        ),
    ],
)
def test_rows_of_a_view_that_differs_between_blocks(lines: str, is_apart: bool):
    (function,) = parse(_ROWS.format(lines=lines)).functions()
    assert (not conflicts(facts(function), inside=True)) == is_apart
