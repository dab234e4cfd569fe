"""Registers, logical vectors and their masks as symbols of lane functions, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.row import types as t
from pto.run.jit.emit.handle.view import wide
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import certain, symbol_type, unsupported_if
from pto.run.jit.llvm.lanes import Lanes, Symbol, items_of
from pto.run.jit.llvm.text import Text
from pto.run.jit.runtime.values import Mask, ScalarValue, Vector


def symbol(x: Text, value: Vector) -> Symbol:
    """A vector as an operand of lane functions; types without arithmetic as bits."""
    kind = kinds.BOOL if value.dtype is None else symbol_type(value.dtype)
    return Lanes(x, value.lanes).symbol(kind, value.name)


def spread(spot: Lanes, word: ScalarValue, kind: DType) -> Symbol:
    """A scalar in every lane: integers keep their low bits, floats are rounded to the type."""
    own = word.type.dtype
    is_float = own is not None and own.is_float
    unsupported_if(is_float != kind.is_float, "a scalar of another kind")
    if own is kind:
        one = word.name
    elif own is not None and is_float:
        one = spot.of(0).symbol(own.numpy, word.name).astype(kind.numpy).name
    else:
        one = spot.x.narrow(wide(spot.x, word), 8 * kind.itemsize)
    return spot.spread(symbol_type(kind), one)


def result(found: Symbol, type: t.Type) -> Vector | Mask:
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
    return Vector((items_of(found.lanes, found, kind).name,), kind, count)


def known(x: Text, value: Any, type: t.LogicalVReg | t.LogicalMask) -> Vector | Mask:
    """A constant."""
    kind: DType | None = type.elem.dtype if isinstance(type, t.LogicalVReg) else None
    item = kinds.BOOL if kind is None else symbol_type(kind)
    return result(Lanes(x, type.lanes).constant(item, np.asarray(value).view(item)), type)
