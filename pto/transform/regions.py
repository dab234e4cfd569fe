"""Writes constant extents of valid regions into the types of tiles."""

from __future__ import annotations

from dataclasses import replace

from pto.ir.graph import Operation
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.row.types import TileBuf

_NAMES = ("valid_row", "valid_col")


def state_constants(function: Operation) -> None:
    """Write `valid=?x64` where an operand of the allocation is the constant 64 and nothing sets
    the region later. A tile that control flow or a function takes keeps its type.

    The library of the chip has calls that are for static sizes alone: MGATHER, TROWEXPAND.
    """
    for op in function.walk():
        if op.row is ALLOC_TILE and not any(map(_keeps_type, op.results[0].uses)):
            _state(op)


def _keeps_type(use: Operation) -> bool:
    return use.row is SET_VALIDSHAPE or use.control is not None


def _state(op: Operation) -> None:
    result = op.results[0]
    type = result.type
    operands = [op.operand(name) for name in _NAMES]
    numbers = [None if v is None else v.number for v in operands]
    if not isinstance(type, TileBuf) or numbers == [None, None]:
        return
    rows, cols = (
        static if static is not None else n
        for static, n in zip(type.tile.valid, numbers, strict=True)
    )
    result.type = TileBuf(type.elem, replace(type.tile, valid=(rows, cols)))
    for name, number in zip(_NAMES, (rows, cols), strict=True):
        if number is not None:
            op.set_group(name, [])
