"""Whether a program orders its pipes itself by flags, or leaves that to a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pto.ir.graph import Operation
from pto.isa.row.traits import Control
from pto.verify.functions import first_flag, first_order

Mode = Literal["flags", "automatic"]
_TILES = ("tile", "comm")


def mode_of(functions: Sequence[Operation]) -> Mode:
    """`automatic` for a tile program without flags, which a compiler is yet to insert."""
    roots = _roots(functions)
    return "automatic" if first_order(roots) is None and _has(roots, _TILES) else "flags"


def may_lack_order(functions: Sequence[Operation]) -> bool:
    """True for a tile program without ids. It may have barriers and leave the rest to a compiler,
    as programs of PyPTO do around accesses to other ranks."""
    roots = _roots(functions)
    return first_flag(roots) is None and _has(roots, _TILES)


def is_ordered_by_sync(functions: Sequence[Operation]) -> bool:
    """True for a program that is proved with the flags of `pto sync`: it has no flags, and barriers
    only if it accesses other ranks. Barriers of other programs are all the order they have."""
    if mode_of(functions) == "automatic":
        return True
    return may_lack_order(functions) and _has(_roots(functions), ("comm",))


def _has(functions: Sequence[Operation], sections: tuple[str, ...]) -> bool:
    rows = (op.row for f in functions for op in f.walk())
    return any(row and row.family.section in sections for row in rows)


def _roots(functions: Sequence[Operation]) -> list[Operation]:
    """The functions; with calls the whole module, since a callee may have flags."""
    if any(op.control is Control.CALL for f in functions for op in f.walk()):
        return [list(functions[0].ancestors())[-1]]
    return list(functions)
