"""Lane functions on vector registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.isa.meaning import Lane, Permute
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.registry import KINDS
from pto.run.jit.emit.scalar.arith import emit_lane as emit_scalar_lane
from pto.run.jit.emit.tile.steps import emit_lane as emit_tile_lane
from pto.run.jit.emit.vector.items import scalar_as
from pto.run.jit.emit.vmi import lanewise as logical
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.lanes import items_of, symbol_type
from pto.run.jit.llvm.shuffles import NONE, Picks, shuffle
from pto.run.jit.llvm.text import certain, scalar_type, vector, width_of
from pto.run.jit.runtime.values import Lowered, Mask, Reg, ScalarValue, register_type
from pto.run.reference.vectors import RegisterOperands


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """results[i] = mask[i] ? fn(sources[i]) : 0."""
    body: Lane = s.body
    shape = RegisterOperands(s.case, body)
    if not shape.registers:
        return _on_masks(s, body)
    count = VREG_BYTES // shape.widest
    spot = lanes.Lanes(s.x, count)
    found = body.function(s.case)(*(_source(s, spot, shape, n) for n in shape.sources))
    several = found if isinstance(found, tuple) else (found,)
    mask = s.need(Mask, shape.mask) if shape.mask is not None else None
    bits = None if mask is None else _bits(s, mask, shape)
    return [
        _result(s, spot, shape, v, n, bits) for v, n in zip(several, shape.results, strict=True)
    ]


def _on_masks(s: OpContext, body: Lane) -> Sequence[Lowered]:
    """Bit by bit, at the finest width of the operands."""
    width, bits = masks.alike(s.x, *(m for m in s.all() if isinstance(m, Mask)))
    spot = lanes.Lanes(s.x, VREG_BYTES // width)
    found = body.function(s.case)(*(spot.symbol(lanes.BOOL, b) for b in bits))
    return [Mask((found.name,), width)]


def _bits(s: OpContext, mask: Mask, shape: RegisterOperands) -> str:
    return masks.strided(s.x, mask, shape.bits.start, shape.bits.step)


def _source(s: OpContext, spot: lanes.Lanes, shape: RegisterOperands, name: str) -> lanes.Symbol:
    kind = shape.kinds.get(name)
    if kind is not None:
        return picked(symbol(s, s.need(Reg, name)), range(kind.lanes)[shape.lanes(kind)])
    if isinstance(s.case.type(name), t.Mask):
        return spot.symbol(lanes.BOOL, _bits(s, s.need(Mask, name), shape))
    beside = certain(shape.kind, DType)
    return spot.spread(symbol_type(beside), scalar_as(s, s.need(ScalarValue, name), beside))


def _result(
    s: OpContext,
    spot: lanes.Lanes,
    shape: RegisterOperands,
    found: Any,
    name: str,
    bits: str | None,
) -> Lowered:
    kind = shape.kinds.get(name)
    if kind is None:
        if bits is not None:
            found = found & spot.symbol(lanes.BOOL, bits)
        return Mask((found.name,), shape.kind.itemsize if shape.kind else 1)
    reg = items_of(spot, found, kind)
    if bits is not None:
        off = reg.like(0).name
        chosen = s.x.new(
            f"select {spot.typed('i1')} {bits}, {reg.type} {reg.name}, {reg.type} {off}"
        )
        s.x.zeroed[chosen] = (str(reg.name), bits)
        reg = spot.symbol(reg.dtype, chosen)
    own = shape.lanes(kind)
    if own.step > 1:
        picks = np.full(kind.lanes, NONE)
        picks[own] = np.arange(spot.count)
        reg = picked(reg, picks)
    return Reg((reg.name,), kind)


def emit_permute(s: OpContext) -> Sequence[Lowered]:
    """Where each item goes is learnt from what the function does to their numbers."""
    body: Permute = s.body
    given = s.all()
    result = s.op.results[0].type
    on_masks = isinstance(result, t.Mask)
    kind = None if on_masks else dtype_of(s.case, s.case.row.results[0].name)
    count = VREG_BYTES if kind is None else kind.lanes
    numbers = np.arange(1, len(given) * count + 1).reshape(-1, count)  # 0 is a hole
    found = body.make(s.case)(*numbers)
    orders = [order - 1 for order in (found if isinstance(found, tuple) else (found,))]
    if kind is None:
        images = [m for m in given if isinstance(m, Mask)]
        return [masks.moved(s.x, images, order) for order in orders]
    item = f"i{8 * kind.itemsize}"
    names = [as_items(s, r, 8 * kind.itemsize) for r in given if isinstance(r, Reg)]
    other = names[1] if len(names) > 1 else None
    return [
        as_register(s, kind, item, shuffle(s.x, item, count, names[0], order, other))
        for order in orders
    ]


def symbol(s: OpContext, reg: Reg) -> lanes.Symbol:
    """A register as a value of lane functions; what NumPy does not compute with as its bits."""
    spot = lanes.Lanes(s.x, reg.dtype.lanes)
    return spot.symbol(symbol_type(reg.dtype), reg.name)


def picked(a: lanes.Symbol, picks: Picks) -> lanes.Symbol:
    """Some lanes of a value, in another order; none (-1) is zero."""
    spot, item = a.lanes.of(len(picks)), scalar_type(a.dtype)
    return spot.symbol(a.dtype, shuffle(a.lanes.x, item, a.lanes.count, a.name, picks))


def as_register(s: OpContext, kind: DType, item: str, name: str) -> Reg:
    """256 bytes held as lanes of `item`, as a register."""
    lanes = 8 * VREG_BYTES // width_of(item)
    have, want = vector(lanes, item), register_type(kind)
    return Reg((name if have == want else s.x.new(f"bitcast {have} {name} to {want}"),), kind)


def as_items(s: OpContext, reg: Reg, bits: int) -> str:
    """A register as lanes of so many bits."""
    have, want = register_type(reg.dtype), vector(8 * VREG_BYTES // bits, f"i{bits}")
    return reg.name if have == want else s.x.new(f"bitcast {have} {reg.name} to {want}")


def _lane(s: OpContext) -> Sequence[Lowered]:
    """By what the operation works on."""
    if any(isinstance(r.type, t.VReg | t.Mask) for r in s.op.results):
        return emit_lane(s)
    if any(isinstance(r.type, t.LogicalVReg | t.LogicalMask) for r in s.op.results):
        return logical.emit_lane(s)
    return emit_scalar_lane(s) if s.op.results else emit_tile_lane(s)


KINDS[Lane] = _lane
KINDS[Permute] = emit_permute
