"""Unrolls a counted loop: several iterations in one, then the iterations that are left over.

The trip count may be known only when the program runs, and may be zero. Iterations run in the order
in which they ran before.
"""

from __future__ import annotations

from pto.ir.builder import Builder
from pto.ir.copied import copied_operation
from pto.ir.graph import Operation, Value
from pto.isa.scalar.structure import YIELD
from pto.transform.index_math import IndexMath, Number, known
from pto.transform.strides import trip_count


def unrolled(loop: Operation, count: int, builder: Builder) -> list[list[Operation]]:
    """Let every iteration of `loop` do the work of `count` iterations; a copy of the loop does the
    rest. Returns the operations of each iteration that the loop now holds.

    The loop must have at least `count` iterations if their number is known.
    """
    numbers, total = IndexMath(builder, loop), trip_count(loop)
    low, high, step = (known(v) for v in loop.operands[:3])
    if total is None or total % count:
        end = _end_of_groups(numbers, low, high, step, count)
        _append_rest(loop, numbers.value(end))
    else:
        end = high
    stride = numbers.mul(step, count)
    loop.set_operands([loop.operands[0], *map(numbers.value, (end, stride)), *loop.operands[3:]])
    return _repeated(loop, step, count, builder)


def _end_of_groups(
    numbers: IndexMath, low: Number, high: Number, step: Number, count: int
) -> Number:
    """The end of the iterations that come in groups of `count`."""
    trips = numbers.max(numbers.cdiv(numbers.sub(high, low), step), 0)
    groups = numbers.floordiv(trips, count)
    return numbers.add(low, numbers.mul(groups, numbers.mul(step, count)))


def _append_rest(loop: Operation, begin: Value) -> None:
    """Put a copy of the loop behind it, for the iterations from `begin` on."""
    rest = copied_operation(loop, {})
    for old, new in zip(loop.results, rest.results, strict=True):
        old.replace_all_uses(new)
    rest.operands = [begin, *rest.operands[1:3], *loop.results]
    loop.home.insert(loop.home.ops.index(loop) + 1, rest)


def _repeated(loop: Operation, step: Number, count: int, builder: Builder) -> list[list[Operation]]:
    """Copy the body behind itself, each copy with its counter and with the values carried to it."""
    body = loop.regions[0].block
    counter, *carried = body.args
    *work, end = body.ops
    assert end.row is YIELD
    passed, groups = list(end.operands), [work]
    for number in range(1, count):
        start = len(body.ops) - 1
        numbers = IndexMath(builder, end)
        moved = numbers.add(counter, numbers.mul(step, number))
        twins: dict[Value, Value] = dict(zip(carried, passed, strict=True))
        if isinstance(moved, Value):
            twins[counter] = moved
        copies = [copied_operation(op, twins) for op in work]
        body.insert(len(body.ops) - 1, *copies)
        passed = [twins.get(v, v) for v in end.operands]
        groups.append(body.ops[start:-1])
    end.set_operands(passed)
    return groups
