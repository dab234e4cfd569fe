"""Lane functions on logical vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning import Lane
from pto.isa.row import types as t
from pto.run.jit.border.values import Mask, Native, Reg, Vector, Word
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.vector.items import items_of, scalar_as, seen
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import NotNative
from pto.run.reference.logical import LogicalOperands


def emit_lane(s: Spot) -> Sequence[Native]:
    """results[i] = mask[i] ? fn(sources[i]) : 0."""
    body = s.body
    if not isinstance(body, Lane):
        raise NotNative("no lane function")
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


def _source(s: Spot, shape: LogicalOperands, name: str) -> Any:
    found = s.operand(name)
    if not isinstance(found, Vector):
        return found
    kind = shape.kinds.get(name)
    return symbol(s, found) if kind is None else symbol(s, found).view(seen(kind))


def _spread(s: Spot, shape: LogicalOperands, word: Any, count: int) -> lanes.Symbol:
    if not isinstance(word, Word) or shape.kind is None:
        raise NotNative("a scalar beside no vector")
    spot = lanes.Lanes(s.x, count, s.e.unit.declare)
    return spot.spread(seen(shape.kind), scalar_as(s, word, shape.kind))


def _under(found: Any, mask: lanes.Symbol) -> Any:
    """0, or false, in lanes that are off."""
    if found.dtype == lanes.BOOL:
        return found & mask
    return lanes.where(found.lanes, mask, found, found.like(0))


def symbol(s: Spot, value: Vector) -> lanes.Symbol:
    """A vector as a value of lane functions; what NumPy does not compute with as its bits."""
    spot = lanes.Lanes(s.x, value.count, s.e.unit.declare)
    kind = lanes.BOOL if value.dtype is None else seen(value.dtype)
    return spot.symbol(kind, value.name)


def result(found: Any, type: t.Type) -> Vector | Reg | Mask:
    """What a function returned, as a register, a logical vector or a mask of either."""
    if not isinstance(found, lanes.Symbol):
        raise NotNative("a result that is no lane")
    if isinstance(type, t.Mask):
        return Mask((found.name,), VREG_BYTES // found.lanes.count)
    if isinstance(type, t.LogicalMask):
        return Vector((found.name,), None, type.lanes)
    kind = type.elem.dtype if isinstance(type, t.VReg | t.LogicalVReg) else None
    if kind is None:
        raise NotNative("a result that is no vector")
    count = type.lanes if isinstance(type, t.LogicalVReg) else kind.lanes
    if found.lanes.count != count:
        raise NotNative("a result of another number of lanes")
    name = items_of(found.lanes, found, kind).name
    return Vector((name,), kind, count) if isinstance(type, t.LogicalVReg) else Reg((name,), kind)


def known(s: Spot, value: Any, type: t.Type) -> Vector | Reg | Mask:
    """A constant."""
    if not isinstance(type, t.LogicalVReg | t.LogicalMask):
        raise NotNative("a constant that is no vector")
    spot = lanes.Lanes(s.x, type.lanes, s.e.unit.declare)
    kind: DType | None = type.elem.dtype if isinstance(type, t.LogicalVReg) else None
    item = lanes.BOOL if kind is None else seen(kind)
    return result(spot.constant(item, np.asarray(value).view(item)), type)
