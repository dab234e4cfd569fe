"""Lane functions on logical vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning import Lane
from pto.isa.row import types as t
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.vector.items import scalar_as
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.lanes import items_of, symbol_type
from pto.run.jit.llvm.text import certain
from pto.run.jit.runtime.values import Lowered, Mask, Reg, ScalarValue, Vector
from pto.run.reference.logical import LogicalOperands


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """results[i] = mask[i] ? fn(sources[i]) : 0."""
    body: Lane = s.body
    shape = LogicalOperands(s.case, body)
    given = [_source(s, shape, name) for name in shape.sources]
    count = next(symbol.lanes.count for symbol in given if isinstance(symbol, lanes.Symbol))
    found = body.function(s.case)(
        *(v if isinstance(v, lanes.Symbol) else _spread(s, shape, v, count) for v in given)
    )
    several = found if isinstance(found, tuple) else (found,)
    if shape.mask is not None:
        mask = symbol(s, s.need(Vector, shape.mask))
        several = tuple(_under(v, mask) for v in several)
    return [result(v, r.type) for v, r in zip(several, s.op.results, strict=True)]


def _source(s: OpContext, shape: LogicalOperands, name: str) -> Any:
    found = s.operand(name)
    if not isinstance(found, Vector):
        return found
    kind = shape.kinds.get(name)
    return symbol(s, found) if kind is None else symbol(s, found).view(symbol_type(kind))


def _spread(s: OpContext, shape: LogicalOperands, word: Any, count: int) -> lanes.Symbol:
    spot, beside = lanes.Lanes(s.x, count), certain(shape.kind, DType)
    return spot.spread(symbol_type(beside), scalar_as(s, certain(word, ScalarValue), beside))


def _under(found: Any, mask: lanes.Symbol) -> Any:
    """0, or false, in lanes that are off."""
    if found.dtype == lanes.BOOL:
        return found & mask
    return lanes.where(found.lanes, mask, found, found.like(0))


def symbol(s: OpContext, value: Vector) -> lanes.Symbol:
    """A vector as an operand of lane functions; types without arithmetic as bits."""
    spot = lanes.Lanes(s.x, value.count)
    kind = lanes.BOOL if value.dtype is None else symbol_type(value.dtype)
    return spot.symbol(kind, value.name)


def result(found: lanes.Symbol, type: t.Type) -> Vector | Reg | Mask:
    """The result of a function as a register, a logical vector or a mask of either."""
    if isinstance(type, t.Mask):
        return Mask((found.name,), VREG_BYTES // found.lanes.count)
    if isinstance(type, t.LogicalMask):
        return Vector((found.name,), None, type.lanes)
    dtype = type.elem.dtype if isinstance(type, t.VReg | t.LogicalVReg) else None
    kind = certain(dtype, DType)
    count = type.lanes if isinstance(type, t.LogicalVReg) else kind.lanes
    if found.lanes.count != count:
        raise TypeError(f"{found.lanes.count} lanes are no {type}")
    name = items_of(found.lanes, found, kind).name
    return Vector((name,), kind, count) if isinstance(type, t.LogicalVReg) else Reg((name,), kind)


def known(s: OpContext, value: Any, type: t.LogicalVReg | t.LogicalMask) -> Vector | Reg | Mask:
    """A constant."""
    spot = lanes.Lanes(s.x, type.lanes)
    kind: DType | None = type.elem.dtype if isinstance(type, t.LogicalVReg) else None
    item = lanes.BOOL if kind is None else symbol_type(kind)
    return result(spot.constant(item, np.asarray(value).view(item)), type)
