"""Which arguments of a function may be written to: known from its operations alone."""

from __future__ import annotations

from pto.ir.graph import Operation, Value
from pto.isa.row import types as t
from pto.isa.row.traits import Control


def writers(function: Operation) -> dict[int, Operation] | None:
    """Numbers of the arguments in global memory that may be written to, each with the first
    operation that may; None: any of them."""
    args = {id(a): n for n, a in enumerate(function.regions[0].block.args)}
    found: dict[int, Operation] = {}
    for op in function.walk():
        for value in _targets(op):
            number = args.get(id(root(value)))
            if number is None:
                return None
            found.setdefault(number, op)
    return found


def _targets(op: Operation) -> list[Value]:
    """Values that lead to global memory an operation may write to; of a call, all it hands on."""
    if op.row is None or op.control is Control.CALL:
        return [v for v in op.operands if is_global(v.type)]
    names = [o.name for o in op.row.operands if o.role in ("out", "inout")]
    return [v for name in names for v in op.group(name) if is_global(v.type)]


def root(value: Value) -> Value:
    """What a pointer or view was made from, through all that only name another place."""
    maker = value.maker
    while maker is not None and maker.operands and is_global(maker.operands[0].type):
        value = maker.operands[0]
        maker = value.maker
    return value


def is_global(type: t.Type) -> bool:
    if isinstance(type, t.Ptr | t.MemRef):
        return not type.space.is_local
    return isinstance(type, t.View)
