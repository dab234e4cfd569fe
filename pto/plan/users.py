"""The arguments in global memory that a function may write or read, also in functions it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pto.ir.graph import Operation, Value
from pto.isa.row.order import OpenQueue
from pto.isa.row.traits import Control
from pto.plan.calls import FunctionNames, callees_first, names_of
from pto.plan.stores import is_global, root

_Users = dict[int, Operation] | None  # by the position of the argument; None: any


def writers(function: Operation) -> dict[int, Operation] | None:
    """The arguments in global memory that may be written, with the first writer; None: any.

    Called functions count, with what they write; of unknown ones all that they get.
    """
    return _users(function, _targets)


def readers(function: Operation) -> dict[int, Operation] | None:
    """The arguments in global memory that may be read, as `writers` gives those written."""
    return _users(function, _sources)


def may_be_written(functions: Sequence[Operation], count: int) -> set[int]:
    """The positions of the arguments that may be written, of functions that take `count`."""
    found: set[int] = set()
    for function in functions:
        positions = writers(function)
        if positions is None or len(function.regions[0].block.args) != count:
            return set(range(count))
        found |= positions.keys()
    return found


def used_parameters(
    functions: Sequence[Operation],
    names: Sequence[str],
    users: Callable[[Operation], dict[int, Operation] | None] = writers,
) -> dict[str, Operation | None]:
    """The parameters of a launch that its functions may write, or read with `users=readers`, with
    the first such operation if it is known."""
    found: dict[str, Operation | None] = {}
    for function in functions:
        parameters = names_of(function.regions[0].block.args, names)
        positions = users(function)
        any_of: dict[int, Operation | None] = dict.fromkeys(range(len(parameters)))
        for number, op in (any_of if positions is None else positions).items():
            found[parameters[number]] = found.get(parameters[number]) or op
    return found


def _users(function: Operation, touched: Callable[[Operation], list[Value]]) -> _Users:
    """The arguments in global memory that `touched` operations reach, here and in callees."""
    summaries: dict[Operation, _Users] = {}
    for callee, outgoing in callees_first([function], FunctionNames()):
        summaries[callee] = _users_within(callee, touched, {op: summaries[f] for op, f in outgoing})
    return summaries[function]


def _users_within(
    function: Operation,
    touched: Callable[[Operation], list[Value]],
    calls: Mapping[Operation, _Users],
) -> _Users:
    """The same of one function; `calls` has the arguments that each call reaches."""
    args = {a: n for n, a in enumerate(function.regions[0].block.args)}
    found: dict[int, Operation] = {}
    for op in function.walk():
        inside = calls.get(op, {})
        if inside is None:
            return None
        reached = [(op.operands[n], inner) for n, inner in inside.items()]
        reached += [(v, op) for v in touched(op) if op not in calls]
        for value, user in reached:
            number = args.get(root(value))
            if number is None:
                return None
            found.setdefault(number, user)
    return found


def _targets(op: Operation) -> list[Value]:
    """Values in global memory that an operation may write.

    For a call, all that it passes; for a queue that is set up, the memory of its slots.
    """
    if op.control is Control.CALL or isinstance(op.order, OpenQueue):
        return [v for v in op.operands if is_global(v.type)]
    return [v for v in op.given("out", "inout") if is_global(v.type)]


def _sources(op: Operation) -> list[Value]:
    """Values in global memory that an operation may read; for a call, all that it passes."""
    if op.control is Control.CALL:
        return [v for v in op.operands if is_global(v.type)]
    if op.traits.names_only or op.traits.pure:
        return []
    return [v for v in op.given("in", "inout") if is_global(v.type)]
