"""A walk through the control flow of a function in program order, with formulas of its integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from typing import Generic, TypeVar

from pto.ir.graph import Block, Operation
from pto.isa.row.traits import Control
from pto.prove.parts import WrittenPart
from pto.prove.regions import Regions
from pto.prove.values import Guards, Values, decided, guards

# The facts that hold at an operation. `meet`: those that hold on two ways.
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

    def block(self, block: Block, given: Guards) -> None:
        """Walk the operations of a block, where `given` are numbers that are not negative."""
        for op in block.ops:
            if op.control is None:
                self.operation(op, given)
            elif op.control is Control.FOR:
                self.loop(op, given)
            elif op.control is Control.IF:
                self._branch(op, given)
            elif op.control in (Control.SECTION, Control.REGION):
                for region in op.regions:
                    self.block(region.block, given)
            elif not op.control.is_terminator:
                self.other(op, given)

    def _branch(self, op: Operation, given: Guards) -> None:
        """Walk the arms that may run."""
        entry, ways, condition = self.state, list[S](), op.operands[0]
        sure = decided(self.values, condition, given)
        for n, holds in enumerate((True, False)):
            if sure in (None, holds):
                self.state = entry.copy()
                if n < len(op.regions) and op.regions[n].blocks:
                    inside = guards(self.values, condition, holds)
                    self.block(op.regions[n].block, (*given, *inside))
                ways.append(self.state)
        self.state = reduce(lambda a, b: a.meet(b), ways)
