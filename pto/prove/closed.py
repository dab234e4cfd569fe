"""Whether the control flow and addresses of a program depend on nothing but its text.

Then every run takes the same path and accesses the same bytes, with any arguments and data, so that
one run represents all.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.ir.graph import Operation
from pto.isa.meaning.kinds import ItemLaunch, Lane
from pto.isa.meaning.scalar.unit import BLOCK_COUNT, BLOCK_INDEX
from pto.isa.row import types as t
from pto.isa.row.instr import Operand
from pto.isa.row.traits import Control
from pto.isa.row.types import Type
from pto.prove.values import OF_LAUNCH, is_integer

# PyPTO's names for arguments that are the number of the block, and of blocks: its runtime, not a
# launch, gives each block its own.
BLOCK, BLOCKS = "__pypto_spmd_block_idx", "__pypto_spmd_block_num"
_MASKS = (t.Mask, t.LogicalMask)
_ASKS = (BLOCK_INDEX, BLOCK_COUNT)


def asks_for_block(functions: Sequence[Operation]) -> bool:
    """True if blocks of a launch may do different work."""
    names = (arg.name for f in functions for arg in f.regions[0].block.args)
    return BLOCK in names or any(op.body in _ASKS for f in functions for op in f.walk())


def takes_one_way(functions: Sequence[Operation]) -> bool:
    """True if no control flow and no address depends on input."""
    return all(map(_is_closed, functions))


def _is_closed(function: Operation) -> bool:
    open_values = {id(arg) for arg in function.regions[0].block.args if not _is_place(arg.type)}
    before = -1
    while before != len(open_values):  # loops carry values
        before = len(open_values)
        for op in function.walk():
            if _gives_open(op, open_values):
                blocks = (b for r in op.regions for b in r.blocks if op.is_loop)
                defined = (*op.results, *(arg for block in blocks for arg in block.args))
                open_values.update(id(v) for v in defined if not _is_place(v.type))
    return not any(_depends(op, open_values) for op in function.walk())


def _is_place(type: Type) -> bool:
    return isinstance(type, t.PLACES)


def _gives_open(op: Operation, open_values: set[int]) -> bool:
    """True if results are not constant: they come from memory, data registers or open values."""
    if id(op.body) in OF_LAUNCH:
        return True
    ends = [v for r in op.regions for b in r.blocks if b.ops for v in b.ops[-1].operands]
    if any(id(v) in open_values for v in (*op.operands, *ends)):
        return True
    names_only = op.traits.names_only
    return not names_only and op.control is None and any(_is_place(v.type) for v in op.operands)


def _depends(op: Operation, open_values: set[int]) -> bool:
    """True if its control flow or an address is not known from the text of the program."""
    if op.control in (Control.FOR, Control.IF, Control.CONDITION):
        controls = op.operands[: 3 if op.control is Control.FOR else 1]
        return any(id(v) in open_values for v in controls)
    if op.control is Control.CALL or "callee" in op.attrs or isinstance(op.body, ItemLaunch):
        return True
    if op.is_terminator:
        return False
    if op.row.family.section == "comm":
        return True
    return op.control is None and _chooses(op, op.row.operands, open_values)


def _chooses(op: Operation, operands: Sequence[Operand], open_values: set[int]) -> bool:
    """True if data, arguments or the block choose places, lanes or a number of elements."""
    touches = any(_is_place(v.type) for v in (*op.operands, *op.results))
    is_plain = isinstance(op.body, Lane)
    for operand in operands:
        for value in op.group(operand.name):
            type = value.type
            if touches and operand.chooses:
                return True
            if is_plain or id(value) not in open_values:
                continue
            if isinstance(type, _MASKS) or (touches and is_integer(value)):
                return True
    return "exhausted" in op.attrs
