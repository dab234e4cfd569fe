"""Where an operation may be placed: vector scopes, cube and vector sections, nesting."""

from __future__ import annotations

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.isa.row.instr import Instr
from pto.isa.row.order import MemoryBarrier, WriteBack
from pto.isa.row.traits import Control

_OUTSIDE = ("outside vecscope", "simt entry")
SIDES = ("cube", "vector", "cube or vector")
# The unit each side of a core lacks: pipes of the other side (PTO manual, Target Profiles: Core).
_ONLY_CUBE = frozenset(("M", "MTE1", "FIX"))
_ONLY_VECTOR = frozenset(("V",))


def check(module: Module) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    _visit(module.op, None, None, found)
    return found


def _visit(op: Operation, scope: Operation | None, side: str | None, out: list[Diagnostic]) -> None:
    out += _placed(op, scope, side)
    inner_scope = op if op.control is Control.SCOPE else scope
    inner_side = op.own_side() or side
    if op.control is Control.FUNCTION:
        inner_scope = None
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                _visit(child, inner_scope, inner_side, out)


def _placed(op: Operation, scope: Operation | None, side: str | None) -> list[Diagnostic]:
    row = op.row
    if row is None:
        return []
    if op.control is Control.SCOPE and scope is not None:
        return [
            _finding("PTO-S110", op, f"'{op.name}' op cannot stand inside another vector scope")
        ]
    around = next(op.around(Control.SECTION), None) if op.control is Control.SECTION else None
    if around is not None:
        return [_finding("PTO-S111", op, f"'{op.name}' op cannot stand inside {around.name}")]
    if row.scope == "vecscope" and scope is None and not _in_scope_function(op):
        message = f"'{op.name}' op must be inside pto.vecscope or pto.strict_vecscope"
        help = "put pto.vecscope around it; newer compilers insert the scope themselves"
        return [Diagnostic("PTO-S112", message, op.loc, severity="warning", help=help)]
    if scope is not None and (row.scope in _OUTSIDE or _orders_pipes(row)):
        return [_finding("PTO-S113", op, f"'{op.name}' op must be outside {scope.name}")]
    return _on_side(op, row, side)


def _orders_pipes(row: Instr) -> bool:
    """True for flags and barriers between pipes: a vector scope is a single task of the vector
    pipe, so they cannot be inside."""
    order = row.order
    return isinstance(order, WriteBack) or (
        order is not None and order.is_fence and not isinstance(order, MemoryBarrier)
    )


def _in_scope_function(op: Operation) -> bool:
    """Functions that a compiler inlines into a vector scope may hold its instructions."""
    function = next(op.around(Control.FUNCTION), None)
    return function is not None and any(
        key.startswith("pto.tilelang") or key == "pto.simt_entry" for key in function.attrs
    )


def _on_side(op: Operation, row: Instr, side: str | None) -> list[Diagnostic]:
    if row.scope in SIDES and side not in row.scope.split():
        where = f"which is the {side} side" if side else "and its side is not declared"
        message = f"'{op.name}' op must be in a {row.scope} kernel or section, {where}"
        return [_finding("PTO-S114", op, message)]
    pipe = row.pipe if isinstance(row.pipe, str) else ""
    foreign = _ONLY_CUBE if side == "vector" else _ONLY_VECTOR if side == "cube" else frozenset()
    if pipe not in foreign:
        return []
    message = f"'{op.name}' op runs on pipe {pipe}, which the {side} side of a core does not have"
    return [_finding("PTO-S114", op, message)]


def _finding(code: str, op: Operation, message: str) -> Diagnostic:
    return Diagnostic(code, message, op.loc)
