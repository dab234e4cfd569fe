"""The cores that run the instructions of a function: cube, vector or both."""

from __future__ import annotations

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.handle.tile import SET_VALIDSHAPE
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row.attributes import Enum
from pto.isa.row.types import Ptr, TileBuf, Type

CUBE, VECTOR = "cube", "vector"
OTHER = {CUBE: VECTOR, VECTOR: CUBE}


def is_work(op: Operation) -> bool:
    described = op.traits.names_only or op.traits.pure or op.body is RESHAPE
    named = described or op.row is SET_VALIDSHAPE
    return op.control is None and not named


def sides_of(op: Operation) -> set[str]:
    """The cores whose buffers an instruction uses; empty for numbers, control and names."""
    if not is_work(op):
        return set()
    if op.row.scope in OTHER:
        return {op.row.scope}
    spaces = {_space(v.type) for v in (*op.operands, *op.results)}
    return {VECTOR if space is Space.UB else CUBE for space in spaces if space is not Space.GM}


def _space(type: Type) -> Space:
    """The buffer of a tile or pointer; numbers and views are of global memory."""
    if isinstance(type, TileBuf):
        return type.tile.space
    return type.space if isinstance(type, Ptr) else Space.GM


def cores(function: Operation) -> set[str]:
    """The cores that run instructions of a function."""
    return {side for op in function.walk() for side in sides_of(op)}


def _declares_side(function: Operation) -> bool:
    return bool(function.side() or any(op.own_side() for op in function.walk()))


def uses_both(function: Operation) -> bool:
    """True if a function that declares no side has instructions of both cores."""
    return not _declares_side(function) and cores(function) == {CUBE, VECTOR}


def state_core(function: Operation) -> None:
    """Set the kernel kind of a function whose instructions all run on one core.

    PTOAS requires it of a function with flags, which do not show their core.
    """
    used = cores(function)
    if len(used) == 1 and not _declares_side(function):
        function.attrs["pto.kernel_kind"] = Enum("kernel_kind", *used)
