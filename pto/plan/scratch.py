"""Scratch tiles that a program leaves out: made where the calls of the header library need them."""

from __future__ import annotations

from pto.ir.builder import Builder
from pto.ir.graph import Module, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.instr import Instr
from pto.isa.rules.rule import Case
from pto.isa.rules.scratch import planned
from pto.target.facts import Profile
from pto.verify.functions import is_defined
from pto.verify.operation import constant

_NAME = "tmp"


def complete(module: Module, profile: Profile) -> Module:
    """The program itself, now with a tile for each scratch operand that is left out.

    The tile is allocated before the operation, so that others share its bytes around it.
    """
    for function in filter(is_defined, module.functions()):
        builder = Builder(function)
        for op in list(function.walk()):
            row = op.row
            if row is not None and any(o.planned is not None for o in row.operands):
                _complete(op, row, profile, builder)
    return module


def _complete(op: Operation, row: Instr, profile: Profile, builder: Builder) -> None:
    case, block = Case(op, row, profile, constant), op.parent
    assert block is not None
    for operand in row.operands:
        type = planned(case, operand)
        if type is None:
            continue
        made = builder.make(ALLOC_TILE, results=[type], names=[_NAME], where=op.loc)
        made.parent = block
        block.ops.insert(block.ops.index(op), made)
        _give(op, row, operand.name, made.results[0])


def _give(op: Operation, row: Instr, name: str, value: Value) -> None:
    """Put a value in the place of an operand that had none."""
    groups = [list(op.group(each)) for each in row.operand_names]
    groups[row.places[name]] = [value]
    op.operands[:] = [v for group in groups for v in group]
    op.segments = tuple(map(len, groups))
