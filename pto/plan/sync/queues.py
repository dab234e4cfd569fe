"""Order that a pair of queues implies: a pop comes after the push that it answers.

Two functions that push to each other and pop alternately wait for each other: the peer's push that
a pop takes comes after the peer's earlier pops, and those after our pushes. No flag is needed for
work before such a push. This is applied only if both do so in one loop each, equally often in every
iteration, and on every path through it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto.ir.graph import Block, Operation
from pto.isa.row.order import Allocate, OfQueue, Pop, Push
from pto.isa.row.traits import Control
from pto.plan.calls import FunctionNames, partners
from pto.plan.sync.effects import NUMBER
from pto.plan.sync.tree import Node, WorkNode, walk
from pto.plan.sync.walk import PlacedFence

_TURNING = (Push, Pop)


def known_order(
    function: Operation, items: list[Node], names: FunctionNames
) -> Iterator[PlacedFence]:
    """Flags that need not be inserted: from a push to the pop that follows its end."""
    peer = _peer(function, names)
    if peer is None or _peer(peer, names) is not function:
        return
    ours, theirs = _turn(function), _turn(peer)
    pushes, pops = _of(ours, Push), _of(ours, Pop)
    answers = _of(theirs, Push)
    if not (pushes and pops) or (len(pushes), len(pops)) != (len(_of(theirs, Pop)), len(answers)):
        return
    by_op = {item.op: item for item in walk(items)}
    for pop, answer in zip(pops, answers, strict=True):
        done = len(_of(theirs[: _at(theirs, answer)], Pop))
        push = pushes[done - 1] if done else None
        before = _next_item(pop, by_op)
        after = None if push is None else by_op.get(push)
        if push is None or not isinstance(after, WorkNode) or before is None:
            continue
        if _at(ours, push) < _at(ours, pop):
            node = by_op.get(pop)
            target = node.work.pipe if isinstance(node, WorkNode) else NUMBER["S"]
            yield PlacedFence(after.work.pipe, target, after, before)


def _peer(function: Operation, names: FunctionNames) -> Operation | None:
    peers = {other for _, other in partners(function, names) if other is not None}
    return peers.pop() if len(peers) == 1 else None


def _turn(function: Operation) -> list[Operation]:
    """Pushes and pops of one iteration of the only loop with any; empty in all other cases."""
    queue_ops = [op for op in function.walk() if isinstance(op.order, OfQueue)]
    turning = [op for op in queue_ops if isinstance(op.order, _TURNING)]
    if (
        any(isinstance(op.order, Allocate) for op in queue_ops)
        or len(set(map(_name, turning))) != 1
    ):
        return []
    blocks = {op.parent for op in turning}
    block = blocks.pop() if len(blocks) == 1 else None
    loop = block.region.owner if isinstance(block, Block) else None
    if loop is None or loop.control is not Control.FOR:
        return []
    around = (op for op in loop.ancestors() if op.control is not Control.FUNCTION)
    return [] if any(op.is_loop or op.control is Control.IF for op in around) else turning


def _name(op: Operation) -> object:
    """The queue of an operation; a handle names a different one each time."""
    order, names = op.order, op.row.operand_names
    if not isinstance(order, OfQueue) or (order.handle in names and op.group(order.handle)):
        return op
    return str(op.attrs.get(order.id))


def _of(ops: list[Operation], kind: type) -> list[Operation]:
    return [op for op in ops if isinstance(op.order, kind)]


def _at(ops: list[Operation], op: Operation) -> int:
    return next(n for n, candidate in enumerate(ops) if candidate is op)


def _next_item(op: Operation, by_op: dict[Operation, Node]) -> Node | None:
    """The operation itself, or the next in its block that matters for order."""
    behind = op.parent.ops if op.parent is not None else []
    return next((by_op[e] for e in behind[_at(behind, op) :] if e in by_op), None)
