"""Which kernels have blocks that need each other while they run: told by the rows they use.

Blocks that only work beside each other may run anywhere, in any company. Those that meet, signal
each other or look at what another one changes belong together.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.ir.graph import Operation
from pto.isa.meaning import Do
from pto.isa.row.attributes import Int
from pto.isa.row.order import Gather, Meet, OfSignal, Signal
from pto.plan.calls import Names, with_peers
from pto.plan.polling import polls
from pto.plan.written import is_global

_ALL_CORES = 0  # the mode in which a semaphore counts the cores of a launch


def need_each_other(functions: Iterable[Operation]) -> bool:
    """Whether a block may have to wait for another one, or for another launch or rank."""
    return any(_reaches_others(op) for f in with_peers(functions, Names()) for op in f.walk())


def wait_in_global(functions: Iterable[Operation]) -> bool:
    """Whether an operation at which an agent may stand still, or a queue, has to do with global
    memory: what these do there is done by Python, and nobody writes it down."""
    return any(
        _may_stand(op) and any(is_global(v.type) for v in op.operands)
        for f in with_peers(functions, Names())
        for op in f.walk()
    )


def _may_stand(op: Operation) -> bool:
    body = op.body
    stands = isinstance(body, Do) and (body.blocks or bool(body.binds) or body.looks)
    return stands or (op.row is not None and op.row.order is not None)


def _reaches_others(op: Operation) -> bool:
    order = op.row.order if op.row is not None else None
    if isinstance(order, Meet | OfSignal | Gather):
        return True
    if isinstance(order, Signal):
        return _mode(op) == _ALL_CORES
    return (isinstance(op.body, Do) and op.body.looks) or polls(op)


def _mode(op: Operation) -> int | None:
    given = op.attrs.get("ffts_mode")
    if isinstance(given, Int):
        return given.value
    attr = op.row.attr("ffts_mode") if op.row is not None else None
    return attr.default if attr is not None and isinstance(attr.default, int) else None
