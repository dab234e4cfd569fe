"""Who orders the pipes of a program: its own flags, or a compiler that is yet to insert them."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Literal

from pto.ir.graph import Operation
from pto.isa.row.order import Barrier, Fence, MemoryBarrier, Within
from pto.isa.row.traits import Control

Mode = Literal["flags", "automatic"]
_TILES = ("tile", "comm")


def mode_of(functions: Sequence[Operation]) -> Mode:
    """A tile program without a single flag is written for a compiler that inserts them; also one
    that only hands tiles from rank to rank."""
    roots = _roots(functions)
    return "automatic" if first_order(roots) is None and _are_of_tiles(roots) else "flags"


def may_lack_order(functions: Sequence[Operation]) -> bool:
    """A tile program without ids: also one with barriers here and there may leave the rest to a
    compiler, as those of PyPTO do around what goes to other ranks."""
    roots = _roots(functions)
    return first_flag(roots) is None and _are_of_tiles(roots)


def first_order(functions: Sequence[Operation]) -> Operation | None:
    """The first flag, barrier, event or buffer id; None where there is none."""
    return _first(functions, MemoryBarrier | Fence)


def first_flag(functions: Sequence[Operation]) -> Operation | None:
    """The first flag, event or buffer id: what others could take for theirs."""
    return _first(functions, MemoryBarrier | Barrier)


def _first(functions: Sequence[Operation], but: UnionType) -> Operation | None:
    for op in (op for function in functions for op in function.walk()):
        order = op.row.order if op.row is not None else None
        if isinstance(order, Within) and not isinstance(order, but):
            return op
    return None


def _are_of_tiles(functions: Sequence[Operation]) -> bool:
    rows = (op.row for f in functions for op in f.walk())
    return any(row and row.family.section in _TILES for row in rows)


def _roots(functions: Sequence[Operation]) -> list[Operation]:
    """With calls the whole module counts: a callee may hold the flags."""
    if any(op.control is Control.CALL for f in functions for op in f.walk()):
        return [list(functions[0].ancestors())[-1]]
    return list(functions)
