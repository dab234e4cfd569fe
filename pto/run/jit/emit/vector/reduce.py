"""Folds of the active lanes in compiled code, in the order their meaning gives."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.isa.meaning import lanes as primitives
from pto.isa.meaning.kinds import TreeFold
from pto.isa.meaning.vector import reduce
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.emit.operation import KINDS, OpContext, emits
from pto.run.jit.emit.vector.values import result as vector_of
from pto.run.jit.emit.vector.values import symbol
from pto.run.jit.ir import kinds
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.shuffles import NONE
from pto.run.jit.llvm.text import constant, scalar_type
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime.values import Lowered, Mask, Vector
from pto.run.reference.vectors import accumulator


def halves(a: Symbol) -> tuple[Symbol, Symbol]:
    """The even and the odd lanes."""
    count = a.lanes.count
    return a.take(range(0, count, 2)), a.take(range(1, count, 2))


def tree(a: Symbol, fn: Any, left: int) -> Symbol:
    """Neighbours folded until so many lanes are left."""
    while a.lanes.count > left:
        a = fn(*halves(a))
    return a


def _active(s: OpContext, neutral: Any) -> Symbol:
    """The input, with the neutral element in lanes that are off."""
    a = symbol(s.x, s.need(Vector, "input"))
    return lanes.where(a.lanes, _on(s, a), a, a.like(neutral))


def _on(s: OpContext, a: Symbol) -> Symbol:
    """The lanes that are on."""
    bits = masks.at_width(s.x, s.need(Mask, "mask"), a.dtype.itemsize)
    return a.lanes.symbol(kinds.BOOL, bits)


def emit_neighbours(s: OpContext) -> Sequence[Lowered]:
    body: TreeFold = s.body
    kind, result = dtype_of(s.case, "input"), dtype_of(s.case, "result")
    lanes_on = _active(s, primitives.neutral(body.fn, kind.numpy))
    total = tree(lanes.cast(lanes_on, accumulator(body, kind, result)), body.fn, body.left(s.case))
    picks, slots = np.full(result.lanes, NONE), range(result.lanes)[body.places(s.case)]
    picks[list(slots)] = np.arange(len(slots))
    return [vector_of(lanes.cast(total, result.numpy).take(picks), s.op.results[0].type)]


KINDS[TreeFold] = emit_neighbours


# ---- extremes and their indices


def _extreme(s: OpContext, fn: Any, better: Any) -> Sequence[Lowered]:
    """The value in lane 0, its first index in lane 1; the first NaN wins."""
    x, source = s.x, symbol(s.x, s.need(Vector, "input"))
    neutral = primitives.neutral(fn, dtype_of(s.case, "input").numpy)
    on, a = _on(s, source), _active(s, neutral)
    if a.dtype in kinds.SMALL:
        a = lanes.cast(a, kinds.F32)
    best = tree(a, lambda p, q: lanes.where(p.lanes, better(q, p), q, p), 1)
    everywhere = a.lanes.spread(a.dtype, best.lane(0))
    found, whole = ((a == everywhere) & on).bits, f"i{a.lanes.count}"
    if a.dtype.kind == "f":
        unknown: Any = a != a
        nans = unknown & on
        found = x.new(f"select i1 {nans.some}, {whole} {nans.bits}, {whole} {found}")
    s.e.unit.declare(f"declare {whole} @llvm.cttz.{whole}({whole}, i1)")
    at = x.new(f"call {whole} @llvm.cttz.{whole}({whole} {found}, i1 false)")
    some = x.compare("ne", found, 0, whole)
    return [_value_and_index(s, source, at, some, neutral)]


def _value_and_index(
    s: OpContext, of: Symbol, at: Val, some: Condition, neutral: Any
) -> Vector | Mask:
    """`at` is an integer of as many bits as lanes; without an active lane the index is 0."""
    x, count = s.x, of.lanes.count
    room = x.stack(of.type)
    item = scalar_type(of.dtype)
    width = 8 * of.dtype.itemsize
    x.store(of.type, of.name, room, 64)
    at = x.new(f"select i1 {some}, i{count} {at}, i{count} 0")
    far = at if count == 64 else x.new(f"{'trunc' if count > 64 else 'zext'} i{count} {at} to i64")
    value = x.load(item, x.new(f"getelementptr {item}, ptr {room}, i64 {far}"))
    value = x.new(f"select i1 {some}, {item} {value}, {item} {constant(of.dtype, neutral)}")
    number = x.bitcast(x.narrow(far, width), f"i{width}", item)
    first = x.new(f"insertelement {of.type} zeroinitializer, {item} {value}, i64 0")
    both = x.new(f"insertelement {of.type} {first}, {item} {number}, i64 1")
    return vector_of(of.lanes.symbol(of.dtype, both), s.op.results[0].type)


@emits(reduce.VCMAX)
def _vcmax(s: OpContext) -> Sequence[Lowered]:
    return _extreme(s, primitives.maximum, operator.gt)


@emits(reduce.VCMIN)
def _vcmin(s: OpContext) -> Sequence[Lowered]:
    return _extreme(s, primitives.minimum, operator.lt)
