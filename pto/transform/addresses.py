"""Write the addresses of a memory plan into a program."""

from __future__ import annotations

from collections.abc import Mapping

from pto.core.dtypes import I64
from pto.ir.graph import Module, Operation
from pto.isa.handle.tile import ALLOC_MULTI_TILE, ALLOC_TILE
from pto.isa.order.queue_setup import RESERVE_BUFFER
from pto.isa.row.attributes import Bool, Int
from pto.isa.row.types import Scalar
from pto.isa.scalar.arith import CONSTANT

_ADDRESS = Scalar("i64", I64)


def write_addresses(module: Module, addresses: Mapping[Operation, int]) -> None:
    """Give every allocation in `addresses` its address; those that have one keep it."""
    for op in list(module.walk()):
        start = addresses.get(op)
        if start is None:
            continue
        if op.row is RESERVE_BUFFER:
            op.attrs.update(autoAlloc=Bool(False), base=Int(start))
        elif op.row in (ALLOC_TILE, ALLOC_MULTI_TILE) and not op.group("addr"):
            number = Operation.of(CONSTANT, attrs={"value": Int(start, _ADDRESS)}, where=op.where)
            number.new_result(_ADDRESS, f"{op.results[0].name}_addr")
            op.home.insert(op.home.ops.index(op), number)
            op.set_group("addr", number.results)
