"""A function as operations in their control flow, as one side of a core runs it.

Sections of the side are part of the enclosing code; those of the other side are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pto.ir.graph import Block, Operation, Region
from pto.isa.meaning.kinds import ItemLaunch
from pto.isa.row.order import Barrier
from pto.isa.row.traits import Control
from pto.plan.calls import FunctionNames
from pto.plan.sync.effects import NUMBER, Effects, SyncWork
from pto.verify.functions import SIMT_ENTRY


@dataclass(slots=True, eq=False)
class Node:
    """One operation that matters for order; fences are placed before and after it."""

    op: Operation


@dataclass(slots=True, eq=False)
class WorkNode(Node):
    work: SyncWork


@dataclass(slots=True, eq=False)
class BarrierNode(Node):
    """A barrier of the program itself, of the pipes it names."""

    pipes: frozenset[int]


@dataclass(slots=True, eq=False)
class CallNode(Node):
    """A called function: any work on these pipes."""

    callee: Operation
    pipes: tuple[int, ...]


@dataclass(slots=True, eq=False)
class BranchNode(Node):
    arms: list[list[Node]]  # an absent arm is empty


@dataclass(slots=True, eq=False)
class LoopNode(Node):
    parts: list[list[Node]]  # of scf.for its body; of scf.while the test and the body
    surely_runs: bool = False


@dataclass(slots=True)
class TreeReader:
    """Reads a function for one side; None: one agent runs all of it."""

    effects: Effects
    names: FunctionNames
    side: str | None

    def block(self, block: Block) -> list[Node]:
        return [item for op in block.ops for item in self.read(op)]

    def region(self, region: Region) -> list[Node]:
        return self.block(region.block) if region.blocks else []

    def read(self, op: Operation) -> Iterator[Node]:
        if op.control is Control.SECTION:
            if self.side in (None, op.side()):
                yield from self.region(op.regions[0])
        elif op.control is Control.REGION:
            yield from self.region(op.regions[0])
        elif op.control is Control.IF:
            arms = [self.region(r) for r in op.regions]
            if any(arms):
                yield BranchNode(op, arms if len(arms) > 1 else [*arms, []])
        elif op.is_loop:
            parts = [self.region(r) for r in op.regions]
            if any(parts):
                yield LoopNode(op, parts, _surely_runs(op))
        elif op.control is Control.SCOPE or (op.regions and isinstance(op.body, ItemLaunch)):
            yield from self._leaf(op, self.effects.of_scope(op))
        elif "callee" in op.attrs:
            yield from self._call(op)
        elif isinstance(op.order, Barrier):
            yield BarrierNode(op, self.effects.barred(op, op.row))
        else:
            yield from self._leaf(op, self.effects.of(op))

    def _leaf(self, op: Operation, work: SyncWork | None) -> Iterator[Node]:
        if work is not None:
            yield WorkNode(op, work)

    def _call(self, op: Operation) -> Iterator[Node]:
        function = next(op.around(Control.FUNCTION))
        callee = self.names.find(op.attrs.get("callee"), function)
        if callee is None or self.side not in (None, callee.side() or self.side):
            return
        pipes = self._pipes(callee)
        if pipes:
            yield CallNode(op, callee, tuple(sorted(pipes)))

    def _pipes(self, function: Operation) -> set[int]:
        """The pipes that a function and its callees use."""
        if SIMT_ENTRY in function.attrs:
            return {NUMBER["V"]}
        pipes: set[int] = set()
        for op in function.walk():
            callee = self.names.find(op.attrs.get("callee"), function)
            if callee is not None:
                pipes |= self._pipes(callee)
            elif op.control is Control.SCOPE or isinstance(op.body, ItemLaunch):
                pipes.add(NUMBER["V"])
            else:
                pipes |= self.effects.pipes(op)
        return pipes


def _surely_runs(loop: Operation) -> bool:
    if loop.control is not Control.FOR:
        return False
    low, high = loop.operands[0].number, loop.operands[1].number
    return low is not None and high is not None and low < high


def walk(items: list[Node]) -> Iterator[Node]:
    """Every item, outer ones first."""
    for item in items:
        yield item
        for part in inner(item):
            yield from walk(part)


def inner(item: Node) -> list[list[Node]]:
    """The sequences inside an item."""
    if isinstance(item, LoopNode):
        return item.parts
    return item.arms if isinstance(item, BranchNode) else []
