"""The arguments of a function that may be written, found from its operations alone."""

from __future__ import annotations

from pto.ir.graph import Operation, Value
from pto.isa.row import types as t
from pto.isa.row.order import OpenQueue
from pto.isa.row.traits import Control


def writers(function: Operation) -> dict[int, Operation] | None:
    """The arguments in global memory that may be written, with the first writer; None: any."""
    args = {a: n for n, a in enumerate(function.regions[0].block.args)}
    found: dict[int, Operation] = {}
    for op in function.walk():
        for value in _targets(op):
            number = args.get(root(value))
            if number is None:
                return None
            found.setdefault(number, op)
    return found


def _targets(op: Operation) -> list[Value]:
    """Values in global memory that an operation may write.

    For a call, all that it passes; for a queue that is set up, the memory of its slots.
    """
    if op.row is None or op.control is Control.CALL or isinstance(op.order, OpenQueue):
        return [v for v in op.operands if is_global(v.type)]
    return [v for v in op.given("out", "inout") if is_global(v.type)]


def root(value: Value) -> Value:
    """The origin of a pointer or view, through all operations that only rename memory."""
    return value.origin(lambda op: is_global(op.operands[0].type))


def is_global(type: t.Type) -> bool:
    if isinstance(type, t.Ptr | t.MemRef):
        return not type.space.is_local
    return isinstance(type, t.View)
