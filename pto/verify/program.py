"""Verifies a whole program: first each operation separately, then rules between operations."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.collection import no_collection
from pto.core.errors import Diagnostic
from pto.ir.graph import Module
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
    for few in (
        masks,
        flags,
        pipes,
        queues,
        signals,
        streams,
        windows,
    ):  # checks of operations that few programs have
        if any(map(few.concerns, present)):
            found += few.check(module, profile)
    return sorted(found, key=_place)


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.loc.line, finding.loc.col) if finding.loc else (0, 0)
