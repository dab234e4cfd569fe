"""Kernels with blocks that depend on each other while they run, found from the rows they use.

Independent blocks may run on any machine. Blocks that use a common barrier, signal each other or
poll memory that another one changes must run together.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Do
from pto.isa.row.attributes import Int
from pto.isa.row.order import CoreBarrier, Gather, OfSignal, Signal
from pto.plan.calls import FunctionNames, with_peers
from pto.plan.polling import polls
from pto.plan.stores import is_global

_ALL_CORES = 0  # the mode in which a semaphore counts the cores of a launch


def need_each_other(functions: Iterable[Operation]) -> bool:
    """True if a block may have to wait for another block, launch or rank."""
    return any(
        _reaches_others(op) for f in with_peers(functions, FunctionNames()) for op in f.walk()
    )


def wait_in_global(functions: Iterable[Operation]) -> bool:
    """True if a wait or queue involves global memory: Python makes these accesses without a log."""
    return any(
        _may_stand(op) and any(is_global(v.type) for v in op.operands)
        for f in with_peers(functions, FunctionNames())
        for op in f.walk()
    )


def _may_stand(op: Operation) -> bool:
    body = op.body
    stands = isinstance(body, Do) and (body.blocks or bool(body.defines) or body.polls)
    return stands or op.order is not None


def _reaches_others(op: Operation) -> bool:
    order = op.order
    if isinstance(order, CoreBarrier | OfSignal | Gather):
        return True
    if isinstance(order, Signal):
        return _mode(op) == _ALL_CORES
    return (isinstance(op.body, Do) and op.body.polls) or polls(op)


def _mode(op: Operation) -> int | None:
    mode = op.attrs.get("ffts_mode")
    if isinstance(mode, Int):
        return mode.value
    attr = op.row.attr("ffts_mode")
    return attr.default if attr is not None and isinstance(attr.default, int) else None
