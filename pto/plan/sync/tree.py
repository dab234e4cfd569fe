"""A function as pieces of work in their control flow, as one side of a core runs it.

Sections of the side are part of the code around them; those of the other side are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pto.ir.graph import Block, Operation, Region
from pto.isa.meaning import Launch
from pto.isa.row.order import Barrier
from pto.isa.row.traits import Control
from pto.plan.calls import Names
from pto.plan.sync.effects import NUMBER, Effects, Work
from pto.verify.operation import constant
from pto.verify.simt import ENTRY


@dataclass(slots=True, eq=False)
class Item:
    """One operation that matters for order; fences stand before and after it."""

    op: Operation


@dataclass(slots=True, eq=False)
class Leaf(Item):
    work: Work


@dataclass(slots=True, eq=False)
class Stop(Item):
    """A barrier of the program itself, of the pipes it names."""

    pipes: frozenset[int]


@dataclass(slots=True, eq=False)
class Call(Item):
    """A called function: whatever it does, on these pipes."""

    callee: Operation
    pipes: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Branch(Item):
    arms: list[list[Item]]  # an absent arm is empty


@dataclass(slots=True, eq=False)
class Loop(Item):
    parts: list[list[Item]]  # of scf.for its body; of scf.while the test and the body
    surely_runs: bool = False


@dataclass(slots=True)
class Reader:
    """Reads a function for one side; None: one agent runs all of it."""

    effects: Effects
    names: Names
    side: str | None
    items: dict[int, Item] = field(default_factory=dict[int, Item])

    def block(self, block: Block) -> list[Item]:
        return [item for op in block.ops for item in self.read(op)]

    def region(self, region: Region) -> list[Item]:
        return self.block(region.block) if region.blocks else []

    def read(self, op: Operation) -> Iterator[Item]:
        if op.control is Control.SECTION:
            if self.side in (None, op.side()):
                yield from self.region(op.regions[0])
        elif op.control is Control.REGION:
            yield from self.region(op.regions[0])
        elif op.control is Control.IF:
            arms = [self.region(r) for r in op.regions]
            if any(arms):
                yield Branch(op, arms if len(arms) > 1 else [*arms, []])
        elif op.is_loop:
            parts = [self.region(r) for r in op.regions]
            if any(parts):
                yield Loop(op, parts, _surely_runs(op))
        elif op.control is Control.SCOPE or (op.regions and isinstance(op.body, Launch)):
            yield from self._leaf(op, self.effects.of_scope(op))
        elif "callee" in op.attrs:
            yield from self._call(op)
        elif op.row is not None and isinstance(op.row.order, Barrier):
            yield Stop(op, self.effects.barred(op, op.row))
        else:
            yield from self._leaf(op, self.effects.of(op))

    def _leaf(self, op: Operation, work: Work | None) -> Iterator[Item]:
        if work is not None:
            yield Leaf(op, work)

    def _call(self, op: Operation) -> Iterator[Item]:
        function = next(op.around(Control.FUNCTION))
        callee = self.names.find(op.attrs.get("callee"), function)
        if callee is None or self.side not in (None, callee.side() or self.side):
            return
        pipes = self._pipes(callee)
        if pipes:
            yield Call(op, callee, tuple(sorted(pipes)))

    def _pipes(self, function: Operation) -> set[int]:
        """The pipes that a function, and those it calls, have work for."""
        if ENTRY in function.attrs:
            return {NUMBER["V"]}
        found: set[int] = set()
        for op in function.walk():
            callee = self.names.find(op.attrs.get("callee"), function)
            if callee is not None:
                found |= self._pipes(callee)
            elif op.control is Control.SCOPE or isinstance(op.body, Launch):
                found.add(NUMBER["V"])
            else:
                found |= self.effects.pipes(op)
        return found


def _surely_runs(loop: Operation) -> bool:
    if loop.control is not Control.FOR:
        return False
    low, high = constant(loop.operands[0]), constant(loop.operands[1])
    return low is not None and high is not None and low < high


def walk(items: list[Item]) -> Iterator[Item]:
    """Every item, outer ones first."""
    for item in items:
        yield item
        for part in inner(item):
            yield from walk(part)


def inner(item: Item) -> list[list[Item]]:
    """The sequences inside an item."""
    if isinstance(item, Loop):
        return item.parts
    return item.arms if isinstance(item, Branch) else []
