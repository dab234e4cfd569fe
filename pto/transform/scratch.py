"""Adds operands that the header library needs: scratch tiles that a program leaves out, and views
of tiles with the element type that a call takes.
"""

from __future__ import annotations

from dataclasses import replace

from pto.core.dtypes import dtype
from pto.ir.builder import Builder, scalar_type
from pto.ir.graph import Module, Operation
from pto.isa.handle.tile import ALLOC_TILE, BITCAST
from pto.isa.row.instr import Instr, Operand
from pto.isa.row.types import TileBuf, Type
from pto.isa.rules.rule import Case
from pto.isa.rules.scratch import planned
from pto.target.facts import Profile
from pto.verify.functions import first_order

_NAME = "tmp"


def complete(module: Module, profile: Profile) -> Module:
    """Add a tile for each missing scratch operand; returns the same module.

    The tile is allocated before the operation, so that other tiles can share its bytes. In a
    function with flags no operand is added that would move the operation to another pipe.
    """
    for function in (f for f in module.functions() if f.has_body):
        builder, fixed = Builder(function), first_order([function]) is not None
        for op in list(function.walk()):
            for operand in op.row.operands:
                if fixed and _moves(op.row, operand, profile):
                    continue
                if operand.planned is not None or operand.element:
                    _complete(op, operand, profile, builder)
    return module


def _moves(row: Instr, operand: Operand, profile: Profile) -> bool:
    """True if the instruction has a form of its own without the operand."""
    forms = row.phases.get(profile.name, ())
    return any(f"-{operand.name}" in form.when for form in forms)


def _complete(op: Operation, operand: Operand, profile: Profile, builder: Builder) -> None:
    value = op.operand(operand.name)
    if operand.element and value is not None:
        type = _retyped(value.type, operand.element)
        parts = (BITCAST, {"src": value}, f"{value.name}_seen")
    else:
        type = planned(Case(op, profile), operand)
        parts = (ALLOC_TILE, None, _NAME)
    if type is not None:
        viewed = builder.make(*parts[:2], results=[type], names=[parts[2]], where=op.loc)
        op.home.insert(op.home.ops.index(op), viewed)
        op.set_group(operand.name, viewed.results)


def _retyped(type: Type, element: str) -> TileBuf | None:
    """The type of the same tile with elements of another type; None where it has them."""
    wanted = scalar_type(dtype(element))
    if not isinstance(type, TileBuf) or type.elem == wanted:
        return None
    return TileBuf(wanted, replace(type.tile, dtype=dtype(element)))
