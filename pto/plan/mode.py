"""Who orders the pipes of a program: its own flags, or a compiler that is yet to insert them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pto.ir.graph import Operation
from pto.isa.row.order import Fence, MemoryBarrier, Within
from pto.isa.row.traits import Control

Mode = Literal["flags", "automatic"]
_TILES = ("tile", "comm")


def mode_of(functions: Sequence[Operation]) -> Mode:
    """A tile program without a single flag is written for a compiler that inserts them; also one
    that only hands tiles from rank to rank."""
    roots = _roots(functions)
    if first_order(roots) is not None:
        return "flags"
    rows = (op.row for f in roots for op in f.walk())
    is_of_tiles = any(row and row.family.section in _TILES for row in rows)
    return "automatic" if is_of_tiles else "flags"


def first_order(functions: Sequence[Operation]) -> Operation | None:
    """The first flag, barrier, event or buffer id; None where there is none."""
    for function in functions:
        for op in function.walk():
            order = op.row.order if op.row is not None else None
            if isinstance(order, Within) and not isinstance(order, MemoryBarrier | Fence):
                return op
    return None


def _roots(functions: Sequence[Operation]) -> list[Operation]:
    """With calls the whole module counts: a callee may hold the flags."""
    if any(op.control is Control.CALL for f in functions for op in f.walk()):
        return [list(functions[0].ancestors())[-1]]
    return list(functions)
