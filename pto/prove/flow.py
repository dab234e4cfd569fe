"""A walk through the control flow of a function in program order, with formulas of its integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Generic, TypeVar

from pto.ir.graph import Block, Operation, Value
from pto.isa.row.traits import Control
from pto.prove.decide import always_negative, never_negative
from pto.prove.parts import WrittenPart
from pto.prove.regions import Regions
from pto.prove.values import Guards, Values, guards, is_integer

# What holds at an operation. `meet`: what holds on two ways.
S = TypeVar("S", Regions, WrittenPart)


class FlowWalk(ABC, Generic[S]):
    def __init__(self, values: Values, state: S) -> None:
        self.values = values
        self.state = state  # before the operation that is walked

    @abstractmethod
    def operation(self, op: Operation, given: Guards) -> None: ...

    @abstractmethod
    def loop(self, op: Operation, given: Guards) -> None: ...

    @abstractmethod
    def other(self, op: Operation, given: Guards) -> None:
        """A call, a loop with a condition, or a region that runs as one operation."""

    def block(self, block: Block, given: Guards) -> list[Value]:
        """Walk the operations of a block, where `given` are numbers that are not negative; returns
        the values that it yields."""
        for op in block.ops:
            if op.is_terminator:
                return op.operands
            if op.control is None:
                self.operation(op, given)
            elif op.control is Control.FOR:
                self.loop(op, given)
            elif op.control is Control.IF:
                self._branch(op, given)
            elif op.control in (Control.SECTION, Control.REGION):
                self.join(op.results, [self.block(r.block, given) for r in op.regions])
            else:
                self.other(op, given)
        return []

    def _branch(self, op: Operation, given: Guards) -> None:
        """Walk the arms that may run."""
        entry, ways, handed = self.state, list[S](), list[list[Value]]()
        for n, holds in enumerate((True, False)):
            more, other = (guards(self.values, op.operands[0], h) for h in (holds, not holds))
            surely_other = bool(other) and all(never_negative(each, given) for each in other)
            if surely_other or any(always_negative(each, given) for each in more):
                continue
            self.state = entry.copy()
            if n < len(op.regions) and op.regions[n].blocks:
                handed.append(self.block(op.regions[n].block, (*given, *more)))
            ways.append(self.state)
        if ways:
            self.state = reduce(lambda a, b: a.meet(b), ways)
        self.join(op.results, handed)

    def join(self, results: Sequence[Value], handed: Sequence[Sequence[Value]]) -> None:
        """Results of control flow that are the same on every way."""
        for n, result in enumerate(results):
            ends = [self.values.number(each[n]) for each in handed if is_integer(result)]
            if ends and all(end == ends[0] for end in ends):
                self.values.numbers[id(result)] = ends[0]
