"""States of unaligned stores: each is taken once, by the next store of its stream."""

from __future__ import annotations

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module, Operation
from pto.isa.row import types as t
from pto.isa.row.instr import Instr
from pto.isa.rules.vector import STORE_STATES
from pto.target.facts import Profile


def concerns(row: Instr) -> bool:
    return row.name in STORE_STATES


def check(module: Module, profile: Profile) -> list[Diagnostic]:
    """Two operations of one block: what lies in branches that exclude each other is not judged."""
    found: list[Diagnostic] = []
    taken: dict[tuple[int, int], Operation] = {}
    for op in module.walk():
        for value in op.operands:
            if not isinstance(value.type, t.Align) or _is_load(value.maker):
                continue
            first = taken.setdefault((id(value), id(op.parent)), op)
            if first is not op:
                message = f"'{op.name}' op takes the state %{value.name}, which is taken already"
                note = Note(f"by this '{first.name}' op", first.loc)
                found.append(Diagnostic("PTO-M081", message, op.loc, notes=(note,)))
    return found


def _is_load(maker: Operation | None) -> bool:
    return maker is not None and maker.name not in STORE_STATES
