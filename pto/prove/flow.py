"""A walk through the control flow of a function in program order, with formulas of its integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import reduce
from typing import Generic, TypeVar

from pto.ir.graph import Block, Operation
from pto.isa.row.traits import Control
from pto.prove.decide import always_negative, never_negative
from pto.prove.nodes import Undecided
from pto.prove.number import Number, number, of, product, quotient
from pto.prove.parts import WrittenPart
from pto.prove.regions import Regions
from pto.prove.values import Guards, Values, decided, guards, is_integer

_ROUNDS = 8  # walks of the later iterations of a loop

# The facts that hold at an operation. `meet`: those that hold on two ways.
S = TypeVar("S", Regions, WrittenPart)


class FlowWalk(ABC, Generic[S]):
    def __init__(self, values: Values, state: S) -> None:
        self.values = values
        self.state: S = state  # before the operation that is walked

    @abstractmethod
    def operation(self, op: Operation, guards: Guards) -> None: ...

    @abstractmethod
    def loop(self, op: Operation, guards: Guards) -> None: ...

    @abstractmethod
    def other(self, op: Operation, guards: Guards) -> None:
        """A call, a loop with a condition, or a region that runs as one operation."""

    def block(self, block: Block, guards: Guards) -> None:
        """Walk the operations of a block, where `guards` are numbers that are not negative."""
        for op in block.ops:
            if op.control is None:
                self.operation(op, guards)
            elif op.control is Control.FOR:
                self.loop(op, guards)
            elif op.control is Control.IF:
                self._branch(op, guards)
            elif op.control in (Control.SECTION, Control.REGION):
                for region in op.regions:
                    self.block(region.block, guards)
            elif not op.control.is_terminator:
                self.other(op, guards)

    def _branch(self, op: Operation, known_guards: Guards) -> None:
        """Walk the arms that may run."""
        entry = self.state
        ways = list[S]()
        condition = op.operands[0]
        sure = decided(self.values, condition, known_guards)
        for n, holds in enumerate((True, False)):
            if sure in (None, holds):
                self.state = entry.copy()
                if n < len(op.regions) and op.regions[n].blocks:
                    inside = guards(self.values, condition, holds)
                    self.block(op.regions[n].block, (*known_guards, *inside))
                ways.append(self.state)
        self.state = reduce(lambda a, b: a.meet(b), ways)


class PeeledWalk(FlowWalk[S]):
    """A walk that takes the first iteration of each loop by itself and the later ones together, so
    that a branch for the first iteration is known to be taken. Raises Undecided for loops that it
    cannot follow."""

    def __init__(self, values: Values, state: S) -> None:
        super().__init__(values, state)
        self.found: dict[Operation, str] = {}  # what is wrong with an operation

    def loop(self, op: Operation, guards: Guards) -> None:
        low, high = map(self.values.number, op.operands[:2])
        entry = self.state.copy()
        if always_negative(high - low - 1, guards):
            return
        self.iterations(op, guards)
        if not never_negative(high - low - 1, guards):
            self.state = entry.meet(self.state)

    def iterations(self, op: Operation, guards: Guards) -> None:
        """Walk a loop that has at least one iteration."""
        block, values = op.regions[0].block, self.values
        low, high, step = map(values.number, op.operands[:3])
        before, runs = dict(values.numbers), (*guards, high - low - 1)
        values.numbers[id(block.args[0])] = low
        for carried, first in zip(block.args[1:], op.operands[3:], strict=True):
            if is_integer(carried):
                values.numbers[id(carried)] = values.number(first)
        self.block(block, runs)
        if not never_negative(step - 1, guards):
            raise Undecided(op, "its step is not known to be positive")
        if not always_negative(high - low - step - 1, runs):
            self._later(op, runs, before)
        values.numbers = before

    def _later(self, op: Operation, guards: Guards, before: dict[int, Number]) -> None:
        """Walk the iterations after the first, with the facts that no iteration changes: those that
        a walk changes are dropped, and the walk is repeated."""
        findings_before = dict(self.found)
        for _ in range(_ROUNDS):
            steady = self.state.copy()
            self.found, self.values.numbers = dict(findings_before), dict(before)
            self._one_later(op, guards)
            self.state = steady.meet(self.state)
            if self.state == steady:
                return
        raise Undecided(op, "what its iterations overwrite does not repeat")

    def _one_later(self, op: Operation, guards: Guards) -> None:
        values, block = self.values, op.regions[0].block
        low, high, step = map(values.number, op.operands[:3])
        turns = quotient(high - low - 1, step)
        counter = values.launch.symbol("iteration", "counter", number(1), turns)
        at = low + product(step, of(counter))
        values.numbers[id(block.args[0])] = at
        self.block(block, (*guards, high - at - 1))


class RegionWalk(PeeledWalk[Regions]):
    """A walk that follows the valid regions of tiles and nothing else."""

    def operation(self, op: Operation, guards: Guards) -> None:
        self.state.operation(op, self.values)

    def other(self, op: Operation, guards: Guards) -> None:
        raise Undecided(op, "what it holds is not followed")


def regions_after(
    op: Operation, values: Values, regions: Regions, guards: Guards
) -> Regions | None:
    """The regions behind each iteration of a loop; None if they are not known."""
    walk = RegionWalk(values.copy(), regions.copy())
    try:
        walk.iterations(op, guards)
    except Undecided:
        return None
    return walk.state
