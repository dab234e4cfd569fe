"""Loops between blocks that a header decides alone, and those of them that count."""

from __future__ import annotations

from dataclasses import dataclass

from pto.ir.graph import Operation, Span, Value
from pto.ir.text.blocks import Graph, Loop
from pto.ir.text.branches import Target
from pto.isa.row.attributes import Enum, Int
from pto.isa.scalar.arith import ADDI, CMPI


@dataclass(frozen=True, slots=True)
class Way:
    """How a header decides: inside while the flag holds (does not hold: inverted), else outside."""

    where: Span
    flag: Value
    inside: Target
    outside: Target
    inverted: bool


@dataclass(frozen=True, slots=True)
class Count:
    """What a counted loop counts."""

    variable: Value
    place: int  # among the arguments of the header
    upper: Value
    step: Value
    advance: Operation  # adds the step


def tested(graph: Graph, loop: Loop) -> Way | None:
    """The way of a loop that is left from its header alone, by a condition."""
    branch = graph.ends[id(loop.header)]
    if branch.on is None or [number for number, _ in branch.cases] != [None]:
        return None
    inside, outside = targets = branch.targets()
    inverted = id(inside.block) not in loop.blocks
    inside, outside = targets[::-1] if inverted else targets
    if loop.ends_at(inside.block) or id(outside.block) in loop.blocks:
        return None
    others = (b for b in graph.blocks if id(b) in loop.blocks and b is not loop.header)
    if any(id(target.block) not in loop.blocks for b in others for target in graph.targets(b)):
        return None
    return Way(branch.where, branch.on, inside, outside, inverted)


def counted(graph: Graph, loop: Loop, way: Way) -> Count | None:
    """What it counts, where its header compares a number that each turn adds a step to.

    It is what `scf.for` means: a positive step, both ends compared with signs, and the number is
    not seen behind the loop.
    """
    header = loop.header
    test = way.flag.maker
    if way.inverted or test is None or test.row is not CMPI or header.ops != [test]:
        return None
    variable, upper = test.operands
    less = test.attrs["predicate"] == Enum("cmpi_predicate", "slt")
    if not less or not any(v is variable for v in header.args) or _inside(graph, loop, upper):
        return None
    back = [
        target
        for block in graph.blocks
        if id(block) in loop.blocks
        for target in graph.targets(block)
        if target.block is header
    ]
    place = next(n for n, v in enumerate(header.args) if v is variable)
    advance = back[0].values[place].maker if len(back) == 1 else None
    if advance is None or advance.row is not ADDI or not _inside(graph, loop, advance.results[0]):
        return None
    first, step = advance.operands
    if first is not variable:
        first, step = step, first
    if first is not variable or not _is_positive(step) or _inside(graph, loop, step):
        return None
    own = (way.flag, advance.results[0])  # the branch and the next turn have them, nobody else
    if any(len(graph.used[id(v)]) > 1 for v in own) or variable in way.outside.values:
        return None
    if graph.leaves(variable, loop.blocks):
        return None
    return Count(variable, place, upper, step, advance)


def _inside(graph: Graph, loop: Loop, value: Value) -> bool:
    block = graph.made.get(id(value))
    return block is not None and id(block) in loop.blocks


def _is_positive(value: Value) -> bool:
    number = value.maker.attrs.get("value") if value.maker and value.maker.traits.constant else None
    return isinstance(number, Int) and number.value > 0
