"""The assumption of a sanitized run about the order of a program's pipes, as text."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation
from pto.isa.scalar.unit import GET_BLOCK_IDX
from pto.plan.mode import Mode, mode_of

__all__ = ["ASSUMED", "Mode", "looked_at", "mode_of", "placed_by_hand"]

ASSUMED = {
    "flags": "the program orders its pipes itself",
    "automatic": "no flag, barrier or event anywhere: assumed that a compiler inserts"
    " synchronisation; order between pipes is not checked",
}


def looked_at(mode: Mode, functions: Sequence[Operation], blocks: int) -> str:
    """The scope of a run, as text."""
    watched = f"{ASSUMED[mode]}; {blocks} block{'s' * (blocks != 1)} watched"
    asks = any(op.name == GET_BLOCK_IDX.name for f in functions for op in f.walk())
    return f"{watched}, the program uses its block number" if asks and blocks == 1 else watched


def placed_by_hand(functions: Sequence[Operation]) -> list[Diagnostic]:
    """A finding if a program sets addresses, so that no compiler follows, but has no flags."""
    for op in (op for f in functions for op in f.walk()):
        if op.group(op.traits.allocates):
            message = (
                "tiles are placed by hand, and no flag, barrier or event orders the pipes: race"
                " checking was skipped"
            )
            help = (
                "write the flags (pto sync does), or declare that a compiler will insert them:"
                " automatic=True, --automatic"
            )
            return [Diagnostic("PTO-R037", message, op.loc, help=help)]
    return []
