"""A whole program: each operation by itself, then how they stand together."""

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
    """Four stages per operation (type, shape, layout, profile), then how operations stand together.

    At `level` 3 a program places all of its memory, scratch too; at level 2 a compiler does, and a
    program that places tiles itself is refused, as PTOAS does; None takes both. An editor that has
    judged each operation by itself already tells what is `known` of them.
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
    ):  # that look at operations few programs have
        if any(map(few.concerns, present)):
            found += few.check(module, profile)
    return sorted(found, key=_place)


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.loc.line, finding.loc.col) if finding.loc else (0, 0)
