"""Lane functions on vector registers and logical vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning.kinds import Lane, Permute
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.run.jit.emit.operation import KINDS, OpContext
from pto.run.jit.emit.scalar.arith import emit_lane as emit_scalar_lane
from pto.run.jit.emit.tile.steps import emit_lane as emit_tile_lane
from pto.run.jit.emit.vector.values import result, spread, symbol
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import certain, symbol_type
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.lanes import items_of
from pto.run.jit.llvm.shuffles import NONE, shuffle
from pto.run.jit.llvm.text import scalar_type
from pto.run.jit.llvm.value import MaskedLanes, Value
from pto.run.jit.runtime.values import Lowered, Mask, ScalarValue, Vector
from pto.run.reference.vectors import VectorOperands


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """results[i] = mask[i] ? fn(sources[i]) : 0."""
    body: Lane = s.body
    shape = VectorOperands(s.case, body)
    if not shape.vectors and not shape.is_logical:
        return _on_masks(s, body)
    spot = lanes.Lanes(s.x, shape.count)
    found = body.function(s.case)(*(_source(s, spot, shape, n) for n in shape.sources))
    several = found if isinstance(found, tuple) else (found,)
    mask = None if shape.mask is None else _source(s, spot, shape, shape.mask)
    return [
        _result(s, spot, shape, v, n, mask) for v, n in zip(several, shape.results, strict=True)
    ]


def _on_masks(s: OpContext, body: Lane) -> Sequence[Lowered]:
    """Bit by bit, at the finest width of the operands."""
    width, bits = masks.alike(s.x, *(m for m in s.all() if isinstance(m, Mask)))
    spot = lanes.Lanes(s.x, VREG_BYTES // width)
    found = body.function(s.case)(*(spot.symbol(kinds.BOOL, b) for b in bits))
    return [Mask((found.name,), width)]


def _source(s: OpContext, spot: lanes.Lanes, shape: VectorOperands, name: str) -> lanes.Symbol:
    native, kind = s.operand(name), shape.kinds.get(name)
    if isinstance(native, Mask):
        bits = masks.strided(s.x, native, shape.bits.start, shape.bits.step)
        return spot.symbol(kinds.BOOL, bits)
    if not isinstance(native, Vector):
        return spread(spot, certain(native, ScalarValue), certain(shape.kind, DType))
    found = symbol(s.x, native)
    if kind is None:
        return found
    found = found.reinterpret(symbol_type(kind))
    return found.take(range(found.lanes.count)[shape.lanes(kind)])


def _result(
    s: OpContext,
    spot: lanes.Lanes,
    shape: VectorOperands,
    found: Any,
    name: str,
    mask: lanes.Symbol | None,
) -> Lowered:
    kind, type = shape.kinds.get(name), certain(s.case.type(name), t.Type)
    if kind is None:
        return result(found if mask is None else found & mask, type)
    reg = items_of(spot, found, kind)
    if mask is not None:
        whole, reg = reg, lanes.where(spot, mask, reg, reg.like(0))
        known = MaskedLanes(whole.name, mask.name)
        reg = spot.symbol(reg.dtype, Value(reg.name, masked=known))
    own = shape.lanes(kind)
    if own.step > 1:
        picks = np.full(kind.lanes, NONE)
        picks[own] = np.arange(spot.count)
        reg = reg.take(picks)
    return result(reg, type)


def emit_permute(s: OpContext) -> Sequence[Lowered]:
    """Where each item goes is learnt from what the function does to their numbers."""
    body: Permute = s.body
    given, type = s.all(), s.op.results[0].type
    kind = None if isinstance(type, t.Mask) else dtype_of(s.case, s.case.row.results[0].name)
    count = VREG_BYTES if kind is None else kind.lanes
    numbers = np.arange(1, len(given) * count + 1).reshape(-1, count)  # 0 is a hole
    found = body.make(s.case)(*numbers)
    orders = [order - 1 for order in (found if isinstance(found, tuple) else (found,))]
    if kind is None:
        images = [m for m in given if isinstance(m, Mask)]
        return [masks.moved(s.x, images, order) for order in orders]
    item = np.dtype(f"u{kind.itemsize}")
    names = [symbol(s.x, r).reinterpret(item).name for r in given if isinstance(r, Vector)]
    spot, other = lanes.Lanes(s.x, count), names[1] if len(names) > 1 else None
    moved = [shuffle(s.x, scalar_type(item), count, names[0], order, other) for order in orders]
    return [result(spot.symbol(item, name), type) for name in moved]


def _lane(s: OpContext) -> Sequence[Lowered]:
    """By what the operation works on."""
    vectors = t.VReg | t.Mask | t.LogicalVReg | t.LogicalMask
    if any(isinstance(r.type, vectors) for r in s.op.results):
        return emit_lane(s)
    return emit_scalar_lane(s) if s.op.results else emit_tile_lane(s)


KINDS[Lane] = _lane
KINDS[Permute] = emit_permute
