"""Remedies: a change of the program that was timed before it is offered."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.errors import PtoError
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.isa.row.order import Barrier, Fence, MemoryBarrier, Within
from pto.plan.sync import insert
from pto.target.facts import Profile


def with_flags(module: Module, functions: Sequence[Operation], profile: Profile) -> Module | None:
    """Flags instead of barriers, as `pto sync` puts them; None where there are others already."""
    if not _orders(functions) or not all(_is_barrier(op) for op in _orders(functions)):
        return None
    again = copied(module)
    for op in list(again.walk()):
        for block in (block for region in op.regions for block in region.blocks):
            block.ops[:] = [each for each in block.ops if not _is_barrier(each)]
    try:
        return insert(again, profile)
    except PtoError:
        return None


def _orders(functions: Sequence[Operation]) -> list[Operation]:
    found = (op for function in functions for op in function.walk())
    return [op for op in found if op.row is not None and isinstance(op.row.order, Within)]


def _is_barrier(op: Operation) -> bool:
    order = None if op.row is None else op.row.order
    return isinstance(order, Barrier) and not isinstance(order, Fence | MemoryBarrier)
