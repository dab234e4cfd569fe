"""Recognises loops between blocks that only the header exits, and counted loops among them."""

from __future__ import annotations

from dataclasses import dataclass

from pto.ir.graph import Operation, Span, Value
from pto.ir.text.blocks import BlockGraph, BlockLoop
from pto.ir.text.branches import BranchTarget
from pto.isa.row.attributes import Enum
from pto.isa.scalar.arith import ADDI, CMPI


@dataclass(frozen=True, slots=True)
class Way:
    """The exit test of a header: go `inside` while the flag is true (false if inverted), else
    `outside`."""

    where: Span
    flag: Value
    inside: BranchTarget
    outside: BranchTarget
    inverted: bool


@dataclass(frozen=True, slots=True)
class Count:
    """The induction variable of a counted loop, its bound and step."""

    variable: Value
    place: int  # among the arguments of the header
    upper: Value
    step: Value
    advance: Operation  # adds the step


def tested(graph: BlockGraph, loop: BlockLoop) -> Way | None:
    """The exit test of a loop that only its header exits, by a condition; else None."""
    branch = graph.ends[loop.header]
    if branch.on is None or [number for number, _ in branch.cases] != [None]:
        return None
    inside, outside = targets = branch.targets()
    inverted = inside.block not in loop.blocks
    inside, outside = targets[::-1] if inverted else targets
    if loop.ends_at(inside.block) or outside.block in loop.blocks:
        return None
    others = (b for b in graph.blocks if b in loop.blocks and b is not loop.header)
    if any(target.block not in loop.blocks for b in others for target in graph.targets(b)):
        return None
    return Way(branch.where, branch.on, inside, outside, inverted)


def counted(graph: BlockGraph, loop: BlockLoop, way: Way) -> Count | None:
    """The induction variable, if the loop has the semantics of `scf.for`; else None.

    The header compares the variable with a bound (signed), each iteration adds a positive step, and
    the variable is not used after the loop.
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
        if block in loop.blocks
        for target in graph.targets(block)
        if target.block is header
    ]
    index = next(n for n, v in enumerate(header.args) if v is variable)
    advance = back[0].values[index].maker if len(back) == 1 else None
    if advance is None or advance.row is not ADDI or not _inside(graph, loop, advance.results[0]):
        return None
    first, step = advance.operands
    if first is not variable:
        first, step = step, first
    if first is not variable or (step.literal or 0) <= 0 or _inside(graph, loop, step):
        return None
    single_use = (way.flag, advance.results[0])  # each has one use: the branch, the next iteration
    if any(len(graph.used[v]) > 1 for v in single_use) or variable in way.outside.values:
        return None
    if graph.leaves(variable, loop.blocks):
        return None
    return Count(variable, index, upper, step, advance)


def _inside(graph: BlockGraph, loop: BlockLoop, value: Value) -> bool:
    block = graph.made.get(value)
    return block is not None and block in loop.blocks
