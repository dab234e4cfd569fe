"""Loops that wait by looking: a `while` that goes on until a place in global memory changes.

Only others can change it, so agents take turns at such a loop. A loop that reads another place each
turn, or writes to global memory itself, is work.
"""

from __future__ import annotations

from pto.ir.graph import Operation, Value
from pto.isa.row.traits import Control
from pto.plan.written import is_global


def polls(loop: Operation) -> bool:
    """Whether a loop ends when others write what its condition reads; it writes nothing itself."""
    if loop.control is not Control.WHILE:
        return False
    inner = [op for op in loop.walk() if op is not loop]
    if any(_writes_global(op) for op in inner):
        return False
    made = {id(r) for op in inner for r in op.results}
    made |= {id(a) for op in (loop, *inner) for r in op.regions for b in r.blocks for a in b.args}
    return any(_looks(op, made) for op in _behind_condition(loop, inner))


def _behind_condition(loop: Operation, inner: list[Operation]) -> list[Operation]:
    """The operations that the condition of a loop depends on, through values and through tiles."""
    before, after = (region.block for region in loop.regions)
    # what carries a value around: an argument has the one that is handed on
    sources: dict[int, list[Value]] = {}
    for args, values in (
        (after.args, before.ops[-1].operands[1:]),
        (before.args, after.ops[-1].operands),
    ):
        for arg, value in zip(args, values, strict=False):
            sources[id(arg)] = [value]
    writers: dict[int, list[Operation]] = {}
    for op in inner:
        for value in _written(op):
            writers.setdefault(id(value), []).append(op)
    found: dict[int, Operation] = {}
    seen: set[int] = set()
    left = [before.ops[-1].operands[0]]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        left += sources.get(id(value), [])
        makers = [] if value.maker is None else [value.maker]
        for op in (*makers, *writers.get(id(value), [])):
            if any(op is each for each in inner) and id(op) not in found:
                found[id(op)] = op
                left += op.operands
    return list(found.values())


def _looks(op: Operation, made: set[int]) -> bool:
    """Whether an operation reads global memory, at a place that no turn of the loop changes."""
    if op.row is None or op.row.traits.names_only or op.control is not None:
        return False
    read = [v for o in op.row.operands if o.role != "out" for v in op.group(o.name)]
    return any(is_global(v.type) for v in read) and all(_is_fixed(v, made) for v in read)


def _is_fixed(value: Value, made: set[int]) -> bool:
    """Made before the loop, or inside from such values alone, each turn anew."""
    if id(value) not in made:
        return True
    maker = value.maker
    if maker is None or maker.row is None or maker.regions:
        return False
    traits = maker.row.traits
    is_name = traits.names_only or traits.pure or traits.constant
    return is_name and all(_is_fixed(v, made) for v in maker.operands)


def _written(op: Operation) -> list[Value]:
    if op.row is None:
        return []
    return [v for o in op.row.operands if o.role in ("out", "inout") for v in op.group(o.name)]


def _writes_global(op: Operation) -> bool:
    calls = op.control is Control.CALL and any(is_global(v.type) for v in op.operands)
    return calls or any(is_global(v.type) for v in _written(op))
