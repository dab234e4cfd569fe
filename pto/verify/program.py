"""Verifies a whole program: first each operation separately, then rules between operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.core.collection import no_collection
from pto.core.errors import Diagnostic
from pto.ir.graph import Module
from pto.isa.meaning.handle.subview import SUBSET, SUBVIEW
from pto.isa.meaning.tile.compare import PACKING
from pto.isa.order.cross_core import SEMAPHORE
from pto.isa.row.instr import Instr
from pto.isa.row.order import Barrier, OfQueue, OpenQueue, QueueSlots, SetFlag, WaitFlag
from pto.isa.rules.vector import STORE_STATES
from pto.target.facts import Profile
from pto.verify import (
    buffers,
    flags,
    functions,
    masks,
    operation,
    pipes,
    queues,
    scopes,
    signals,
    simt,
    streams,
    windows,
)

Check = Callable[[Module, Profile], list[Diagnostic]]


@no_collection()
def verify(
    module: Module,
    profile: Profile,
    *,
    level: int | None = None,
    known: Sequence[Diagnostic] | None = None,
) -> list[Diagnostic]:
    """All findings: four stages per operation (type, shape, layout, profile), then rules between
    operations.

    At `level` 3 the program must place all of its memory, also scratch; at level 2 the compiler
    places it, and a program that places tiles is rejected, as by PTOAS; None accepts both. `known`
    are findings per operation that the caller (an editor) has computed already.
    """
    found = [
        *(operation.check(module, profile, level) if known is None else known),
        *functions.check(module),
        *scopes.check(module),
        *buffers.check(module, profile, level),
        *simt.check(module),
    ]
    present = {op.row for op in module.walk() if op.row is not None}
    for concerns, check in _SELDOM:
        if any(map(concerns, present)):
            found += check(module, profile)
    return sorted(found, key=_place)


def _has_queue(row: Instr) -> bool:
    return isinstance(row.order, OpenQueue | OfQueue | QueueSlots)


# Checks of operations that few programs have, each with the rows that it is about.
_SELDOM: tuple[tuple[Callable[[Instr], bool], Check], ...] = (
    (lambda row: id(row.body) in PACKING, masks.check),
    (lambda row: isinstance(row.order, SetFlag | WaitFlag | Barrier), flags.check),
    (_has_queue, pipes.check),
    (_has_queue, queues.check),
    (lambda row: row.family is SEMAPHORE, signals.check),
    (lambda row: row.name in STORE_STATES, streams.check),
    (lambda row: row.body in (SUBVIEW, SUBSET), windows.check),
)


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.loc.line, finding.loc.col) if finding.loc else (0, 0)
