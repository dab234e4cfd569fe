"""Fences as operations: set_flag, wait_flag and barrier beside the items they belong to."""

from __future__ import annotations

from collections.abc import Mapping

from pto.ir.builder import new_block
from pto.ir.graph import Operation
from pto.isa.row.attributes import Enum
from pto.isa.scalar.scope import SECTIONS
from pto.isa.table import lookup
from pto.plan.sync.effects import PIPES
from pto.plan.sync.tree import Item
from pto.plan.sync.walk import ALL, Fence, Fences


class Writer:
    """Collects operations before and after others, then puts them there all at once."""

    def __init__(self) -> None:
        self._before: dict[int, list[Operation]] = {}
        self._after: dict[int, list[Operation]] = {}
        self._beside: dict[int, Operation] = {}
        self._side: str | None = None

    def write(self, fences: Fences, ids: Mapping[Fence, int], side: str | None) -> None:
        """In the order in which the fences were reckoned with: see `Walk.step`.

        What is for one side of a core alone stands in sections of that side.
        """
        self._side = side
        for item, pipes in fences.barriers.items():
            for pipe in pipes:
                self._put(self._before, item.op, _barrier(pipe))
        for fence in fences.flags:
            self._put(self._before, fence.before.op, _flag("wait_flag", fence, ids[fence]))
        for fence in fences.flags:
            self._put(self._after, fence.after.op, _flag("set_flag", fence, ids[fence]))
        for loop, flags in fences.around.items():
            for fence in flags:
                self._around(loop, fence, ids[fence])

    def _around(self, loop: Item, fence: Fence, number: int) -> None:
        if fence.primed:
            self._put(self._before, loop.op, _flag("set_flag", fence, number))
        if fence.drained:
            self._put(self._after, loop.op, _flag("wait_flag", fence, number))

    def _put(self, where: dict[int, list[Operation]], beside: Operation, op: Operation) -> None:
        op.where = beside.where
        if self._side is not None and _around(beside) != self._side:
            op = _section(self._side, op)
        where.setdefault(id(beside), []).append(op)
        self._beside[id(beside)] = beside

    def finish(self) -> None:
        blocks = {id(op.parent): op.parent for op in self._beside.values()}
        for block in blocks.values():
            if block is None:
                continue
            ops: list[Operation] = []
            for op in block.ops:
                ops += [*self._before.get(id(op), ()), op, *self._after.get(id(op), ())]
            for op in ops:
                op.parent = block
            block.ops[:] = ops


def _around(op: Operation) -> str | None:
    """The side of a core that runs what stands beside an operation."""
    return op.parent_op.side() if op.parent_op else None


def _section(side: str, op: Operation) -> Operation:
    section = Operation.of(SECTIONS[side], where=op.where)
    block = new_block(section)
    op.parent = block
    block.ops.append(op)
    return section


def _barrier(pipe: int) -> Operation:
    name = "ALL" if pipe == ALL else PIPES[pipe]
    return Operation("pto.barrier", lookup("pto.barrier"), attrs={"pipe": _pipe(name)})


def _flag(name: str, fence: Fence, number: int) -> Operation:
    attrs = {
        "src_pipe": _pipe(PIPES[fence.source]),
        "dst_pipe": _pipe(PIPES[fence.target]),
        "event_id": Enum("event", f"EVENT_ID{number}"),
    }
    return Operation(f"pto.{name}", lookup(f"pto.{name}"), attrs=dict(attrs))


def _pipe(name: str) -> Enum:
    return Enum("pipe", f"PIPE_{name}")
