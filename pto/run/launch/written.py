"""The arguments that a launch may write: the other arrays need no copies."""

from __future__ import annotations

from collections.abc import Sequence

from pto.ir.graph import Operation, Value
from pto.isa.row import types as t


def may_be_written(functions: Sequence[Operation], count: int) -> set[int]:
    """Positions of the arguments that an operation may write.

    An argument that a loop carries, that is passed to a function or queue, or that is converted to
    a number counts as written.
    """
    found: set[int] = set()
    for function in functions:
        args = function.regions[0].block.args
        if len(args) != count:
            return set(range(count))
        found |= _Trace(args).follow(function)
    return found


class _Trace:
    """The arguments from which values are derived."""

    def __init__(self, args: Sequence[Value]) -> None:
        self._of = {id(a): {n} for n, a in enumerate(args) if not isinstance(a.type, t.Scalar)}
        self.written: set[int] = set()

    def follow(self, function: Operation) -> set[int]:
        for op in function.walk():
            if any(id(value) in self._of for value in op.operands):
                self._use(op)
        return self.written

    def _use(self, op: Operation) -> None:
        row, given = op.row, self._behind(op.operands)
        is_plain = row is not None and row.order is None and op.control is None
        if row is None or not is_plain or op.regions:
            self.written |= given
            return
        known = {id(value) for value in op.given("in")}
        self.written |= self._behind([v for v in op.operands if id(v) not in known])
        for result in op.results:
            if not isinstance(result.type, t.Scalar):
                self._of[id(result)] = given
            elif row.traits.names_only:  # no load: the number may become an address again
                self.written |= given

    def _behind(self, values: Sequence[Value]) -> set[int]:
        return set[int]().union(*(self._of.get(id(value), ()) for value in values))
