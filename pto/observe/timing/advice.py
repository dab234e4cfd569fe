"""Remedies: changes of the program that were timed before they are reported."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.errors import PtoError
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.isa.row.order import Barrier, FullFence, MemoryBarrier, Within
from pto.plan.sync import insert
from pto.target.facts import Profile


def with_flags(module: Module, functions: Sequence[Operation], profile: Profile) -> Module | None:
    """The program with flags instead of barriers, as by `pto sync`; None if it has flags."""
    if not _orders(functions) or not all(_is_barrier(op) for op in _orders(functions)):
        return None
    again = copied(module)
    for op in filter(_is_barrier, list(again.walk())):
        op.erase()
    try:
        return insert(again, profile)
    except PtoError:
        return None


def _orders(functions: Sequence[Operation]) -> list[Operation]:
    operations = (op for function in functions for op in function.walk())
    return [op for op in operations if isinstance(op.order, Within)]


def _is_barrier(op: Operation) -> bool:
    order = op.order
    return isinstance(order, Barrier) and not isinstance(order, FullFence | MemoryBarrier)
