"""Polling loops: a `while` that runs until a location in global memory changes.

Only another agent can change it, so each iteration lets other agents run. A loop that reads a
different location each iteration, or writes to global memory itself, is no polling loop.
"""

from __future__ import annotations

from pto.ir.graph import Operation, Value
from pto.isa.row.traits import Control
from pto.plan.stores import is_global


def polls(loop: Operation) -> bool:
    """True if a loop ends when another agent writes what its condition reads; it writes nothing."""
    if loop.control is not Control.WHILE:
        return False
    inner = [op for op in loop.walk() if op is not loop]
    if any(_writes_global(op) for op in inner):
        return False
    defined = {r for op in inner for r in op.results}
    defined |= {a for op in (loop, *inner) for r in op.regions for b in r.blocks for a in b.args}
    return any(_looks(op, defined) for op in _behind_condition(loop, inner))


def _behind_condition(loop: Operation, inner: list[Operation]) -> list[Operation]:
    """The operations that the condition of a loop depends on, through values and through tiles."""
    before, after = (region.block for region in loop.regions)
    # an argument has the value that the previous iteration yields
    sources: dict[Value, list[Value]] = {}
    for args, values in (
        (after.args, before.ops[-1].operands[1:]),
        (before.args, after.ops[-1].operands),
    ):
        for arg, value in zip(args, values, strict=False):
            sources[arg] = [value]
    writers: dict[Value, list[Operation]] = {}
    for op in inner:
        for value in op.given("out", "inout"):
            writers.setdefault(value, []).append(op)
    behind: dict[Operation, None] = {}
    visited: set[Value] = set()
    left = [before.ops[-1].operands[0]]
    while left:
        value = left.pop()
        if value in visited:
            continue
        visited.add(value)
        left += sources.get(value, [])
        makers = [] if value.maker is None else [value.maker]
        for op in (*makers, *writers.get(value, [])):
            if any(op is op_inside for op_inside in inner) and op not in behind:
                behind[op] = None
                left += op.operands
    return list(behind)


def _looks(op: Operation, defined: set[Value]) -> bool:
    """True if an operation reads global memory at an address that no iteration changes."""
    if op.row.traits.names_only or op.control is not None:
        return False
    read = op.given("in", "inout", "tmp")
    return any(is_global(v.type) for v in read) and all(_is_fixed(v, defined) for v in read)


def _is_fixed(value: Value, defined: set[Value]) -> bool:
    """True if a value is defined before the loop, or recomputed inside from such values alone."""
    if value not in defined:
        return True
    maker = value.maker
    if maker is None or maker.regions:
        return False
    traits = maker.row.traits
    is_name = traits.names_only or traits.pure or traits.constant
    return is_name and all(_is_fixed(v, defined) for v in maker.operands)


def _writes_global(op: Operation) -> bool:
    calls = op.control is Control.CALL and any(is_global(v.type) for v in op.operands)
    return calls or any(is_global(v.type) for v in op.given("out", "inout"))
