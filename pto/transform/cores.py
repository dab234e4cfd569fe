"""The cores that run the instructions of a function: cube, vector or both."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.dtypes import I1, I64
from pto.core.memory import Space
from pto.ir.builder import Builder, Operands, new_block, scalar_type
from pto.ir.graph import Operation
from pto.isa.handle.tile import SET_VALIDSHAPE
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row.attributes import Enum
from pto.isa.row.types import Ptr, TileBuf, Type
from pto.isa.scalar.arith import CMPI
from pto.isa.scalar.structure import IF, YIELD
from pto.isa.scalar.unit import GET_SUBBLOCK_IDX

CUBE, VECTOR = "cube", "vector"
OTHER = {CUBE: VECTOR, VECTOR: CUBE}
_FLAG, _LONG = scalar_type(I1), scalar_type(I64)


def is_work(op: Operation) -> bool:
    described = op.traits.names_only or op.traits.pure or op.body is RESHAPE
    named = described or op.row is SET_VALIDSHAPE
    return op.control is None and not named


def sides_of(op: Operation) -> set[str]:
    """The cores that own the buffers of an instruction; empty for numbers, control and names."""
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
    """Set the kernel kind of a function if all its instructions run on one core.

    PTOAS requires it of a function with flags, which do not show their core.
    """
    used = cores(function)
    if len(used) == 1 and not _declares_side(function):
        function.attrs["pto.kernel_kind"] = Enum("kernel_kind", *used)


def on_first_sub_block(ops: Sequence[Operation], builder: Builder) -> None:
    """Let the first vector sub-block alone run these neighbours."""
    home, zero = ops[0].home, builder.constant(0, _LONG)
    index = builder.make(GET_SUBBLOCK_IDX, results=[_LONG])
    equal = {"predicate": Enum("cmpi_predicate", "eq")}
    compared: Operands = {"lhs": index.results[0], "rhs": zero}
    first = builder.make(CMPI, compared, attrs=equal, results=[_FLAG])
    test = builder.make(IF, {"condition": first.results[0]})
    home.insert(home.ops.index(ops[0]), index, first, test)
    end = builder.make(YIELD, {"results": []})
    new_block(test).append(end)
    test.new_region()
    for op in ops:
        op.move_before(end)


def vector_on_first_sub_block(function: Operation) -> None:
    """Let the first vector sub-block alone run the vector code of a function."""
    if function.side() == VECTOR:
        parts = [function]
    else:
        parts = [op for op in function.walk() if op.own_side() == VECTOR]
    builder = Builder(function)
    for part in parts:
        ops = [op for op in part.regions[0].block.ops if not op.is_terminator]
        if ops:
            on_first_sub_block(ops, builder)
