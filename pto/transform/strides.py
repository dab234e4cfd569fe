"""Loops: their trip counts, and how far an index moves from one iteration to the next."""

from __future__ import annotations

from collections.abc import Sequence

from pto.ir.builder import INDEX
from pto.ir.graph import Block, Operation, Value
from pto.isa.row.traits import Control
from pto.isa.row.types import Scalar
from pto.transform.index_math import known


def counted_loops(function: Operation) -> list[Operation]:
    """Counted loops, inner ones first."""
    return [op for op in function.walk() if op.control is Control.FOR][::-1]


def innermost(loops: Sequence[Operation]) -> list[Operation]:
    """The loops that contain no other loop."""
    return [op for op in loops if not any(inner.is_loop for inner in op.walk() if inner is not op)]


def trip_count(loop: Operation) -> int | None:
    """The number of iterations if bounds and step are constants."""
    low, high, step = (known(v) for v in loop.operands[:3])
    if isinstance(low, int) and isinstance(high, int) and isinstance(step, int) and step > 0:
        return max(0, -((low - high) // step))
    return None


def is_countable(loop: Operation) -> bool:
    """True if the counter is an index and the loop carries numbers alone, no tiles."""
    counter = loop.regions[0].block.args[0]
    return counter.type == INDEX and all(isinstance(v.type, Scalar) for v in loop.results)


def is_inside(value: Value, loop: Operation) -> bool:
    """True for a value that is defined in the body of a loop, or is an argument of it."""
    owner = value.owner
    block: Block | None = owner.parent if isinstance(owner, Operation) else owner
    while block is not None and block.region.owner is not loop:
        block = block.region.owner.parent
    return block is not None


def stride(value: Value, loop: Operation) -> int | None:
    """The factor of the loop counter in a value; 0 if the value is the same in all iterations,
    None if it is no sum of constant multiples of the counter and of invariant numbers."""
    if not is_inside(value, loop):
        return 0
    if value is loop.regions[0].block.args[0]:
        return 1
    maker = value.maker
    if maker is None or maker.traits.operator not in ("+", "-", "*") or len(maker.operands) != 2:
        return None
    a, b = maker.operands
    first, second = stride(a, loop), stride(b, loop)
    if first is None or second is None:
        return None
    if maker.traits.operator == "+":
        return first + second
    if maker.traits.operator == "-":
        return first - second
    if a.number is not None:
        return a.number * second
    return None if b.number is None else first * b.number
