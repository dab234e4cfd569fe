"""A program with its plan written down: every tile and reserved buffer says where it lies."""

from __future__ import annotations

from pto.core.dtypes import I64
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation, Value
from pto.isa.handle.tile import ALLOC_MULTI_TILE, ALLOC_TILE
from pto.isa.order.queue_setup import RESERVE_BUFFER
from pto.isa.row.attributes import Bool, Int
from pto.isa.row.types import Scalar
from pto.isa.scalar.arith import CONSTANT
from pto.plan.memory import plan_memory
from pto.target.facts import Profile

_ADDRESS = Scalar("i64", I64)


def addressed(module: Module, profile: Profile, *, reuse: bool | None = None) -> Module:
    """The same program, placed as `plan_memory` places it; `module` stays as it is.

    A compiler that takes the addresses as they are cannot place the program otherwise: what was
    proven of this one holds there too.
    """
    result = copied(module)
    placement = plan_memory(result, profile, reuse=reuse)
    for op in list(result.walk()):
        start = placement.addresses.get(id(op))
        if start is None:
            continue
        if op.row is RESERVE_BUFFER:
            op.attrs.update(autoAlloc=Bool(False), base=Int(start))
        elif op.row in (ALLOC_TILE, ALLOC_MULTI_TILE) and not op.group("addr"):
            _place(op, start)
    return result


def _place(op: Operation, start: int) -> None:
    block = op.parent
    if block is None or op.row is None:
        return
    number = Operation.of(CONSTANT, attrs={"value": Int(start, _ADDRESS)}, where=op.where)
    value = Value(_ADDRESS, f"{op.results[0].name}_addr", number)
    number.results, number.parent = [value], block
    block.ops.insert(block.ops.index(op), number)
    op.operands.insert(0, value)
    op.segments = (1, *(op.segments or (0,) * len(op.row.operands))[1:])
