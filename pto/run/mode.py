"""Who orders the pipes of a program: its own flags, or a compiler that is yet to insert them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pto.ir.graph import Operation
from pto.isa.meaning import sync

Mode = Literal["flags", "automatic"]
_ORDERING = (
    sync.SET_FLAG,
    sync.WAIT_FLAG,
    sync.RECORD_EVENT,
    sync.WAIT_EVENT,
    sync.BARRIER,
    sync.DRAIN,
    sync.GET_BUFFER,
    sync.RELEASE_BUFFER,
)
ASSUMED = {
    "flags": "the program orders its pipes itself",
    "automatic": "no flag, barrier or event anywhere: assumed that a compiler inserts"
    " synchronisation; order between pipes is not checked",
}


def mode_of(functions: Sequence[Operation]) -> Mode:
    """A tile program without a single flag is written for a compiler that inserts them."""
    rows = [op.row for f in _roots(functions) for op in f.walk() if op.row is not None]
    if any(row.body is each for row in rows for each in _ORDERING):
        return "flags"
    return "automatic" if any(row.family.section == "tile" for row in rows) else "flags"


def _roots(functions: Sequence[Operation]) -> list[Operation]:
    """With calls the whole module counts: a callee may hold the flags."""
    if any(op.name == "func.call" for f in functions for op in f.walk()):
        return [list(functions[0].ancestors())[-1]]
    return list(functions)
