"""Folds of the active lanes in compiled code, in the order their meaning gives."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning import Neighbours
from pto.isa.meaning import lanes as primitives
from pto.isa.meaning.vector import reduce
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.registry import KINDS, emits
from pto.run.jit.emit.vector.arithmetic import picked, symbol
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.shuffles import NONE
from pto.run.jit.llvm.text import Val, constant, element, vector
from pto.run.jit.runtime.values import Lowered, Mask, Reg
from pto.run.reference.vectors import accumulator


def halves(a: Symbol) -> tuple[Symbol, Symbol]:
    """The even and the odd lanes."""
    count = a.lanes.count
    return picked(a, range(0, count, 2)), picked(a, range(1, count, 2))


def tree(a: Symbol, fn: Any, left: int) -> Symbol:
    """Neighbours folded until so many lanes are left."""
    while a.lanes.count > left:
        a = fn(*halves(a))
    return a


def _active(s: OpContext, neutral: Any) -> Symbol:
    """The input, with the neutral element in lanes that are off."""
    reg = s.need(Reg, "input")
    bits = masks.at_width(s.x, s.need(Mask, "mask"), reg.dtype.itemsize)
    a = symbol(s, reg)
    on = a.lanes.symbol(lanes.BOOL, bits)
    return lanes.where(a.lanes, on, a, a.lanes.constant(a.dtype, neutral))


def _placed(found: Symbol, kind: DType, slots: Sequence[int]) -> Reg:
    """Lanes of a result at these places of a register, zeros elsewhere."""
    found = lanes.cast(found, kind.numpy)
    picks = np.full(kind.lanes, NONE)
    picks[list(slots)] = np.arange(len(slots))
    return Reg((picked(found, picks).name,), kind)


def emit_neighbours(s: OpContext) -> Sequence[Lowered]:
    body: Neighbours = s.body
    kind, result = dtype_of(s.case, "input"), dtype_of(s.case, "result")
    lanes_on = _active(s, primitives.neutral(body.fn, kind.numpy))
    total = tree(lanes.cast(lanes_on, accumulator(body, kind, result)), body.fn, body.left(s.case))
    return [_placed(total, result, range(result.lanes)[body.places(s.case)])]


KINDS[Neighbours] = emit_neighbours


# ---- extremes and their indices


def _extreme(s: OpContext, neutral: Any, better: Any) -> Sequence[Lowered]:
    """The value in lane 0, its first index in lane 1; the first NaN wins."""
    reg, x = s.need(Reg, "input"), s.x
    kind, count = reg.dtype, reg.dtype.lanes
    bits = masks.at_width(x, s.need(Mask, "mask"), kind.itemsize)
    a = _active(s, neutral)
    if a.dtype in (lanes.F16, lanes.BF16):
        a = lanes.cast(a, lanes.F32)
    best = tree(a, lambda p, q: lanes.where(p.lanes, better(q, p), q, p), 1)
    one = x.new(f"extractelement {best.type} {best.name}, i64 0")
    equal = a.primitive("eq", (a, a.lanes.spread(a.dtype, one)))
    type = vector(count, "i1")
    whole = f"i{count}"
    found = _bits(x, count, x.new(f"and {type} {equal.name}, {bits}"))
    if a.dtype.kind == "f":
        unknown = a.primitive("ne", (a, a))
        nans = _bits(x, count, x.new(f"and {type} {unknown.name}, {bits}"))
        some = x.compare("ne", nans, 0, whole)
        found = x.new(f"select i1 {some}, {whole} {nans}, {whole} {found}")
    some = x.compare("ne", found, 0, whole)
    s.e.unit.declare(f"declare {whole} @llvm.cttz.{whole}({whole}, i1)")
    at = x.new(f"call {whole} @llvm.cttz.{whole}({whole} {found}, i1 false)")
    index = x.new(f"select i1 {some}, {whole} {at}, {whole} 0")
    return [_value_and_index(s, reg, index, some, neutral)]


def _bits(x: Any, count: int, bits: str) -> str:
    return shuffles.bits_of(x, count, bits)


def _value_and_index(s: OpContext, reg: Reg, index: Val, some: str, neutral: Any) -> Reg:
    """`index` is an integer of as many bits as lanes."""
    kind, x = reg.dtype, s.x
    item, type = element(kind), vector(kind.lanes, element(kind))
    have, width = kind.lanes, 8 * kind.itemsize
    room = x.stack(type)
    x.store(type, reg.name, room, 64)
    far = index if have == 64 else x.new(f"{_resize(have, 64)} i{have} {index} to i64")
    value = x.load(item, x.new(f"getelementptr {item}, ptr {room}, i64 {far}"))
    none = constant(kind.numpy, neutral)
    value = x.new(f"select i1 {some}, {item} {value}, {item} {none}")
    number = far if width == 64 else x.new(f"trunc i64 {far} to i{width}")
    if item != f"i{width}":
        number = x.new(f"bitcast i{width} {number} to {item}")
    first = x.new(f"insertelement {type} zeroinitializer, {item} {value}, i64 0")
    return Reg((x.new(f"insertelement {type} {first}, {item} {number}, i64 1"),), kind)


def _resize(have: int, want: int) -> str:
    return "trunc" if have > want else "zext"


@emits(reduce.VCMAX)
def _vcmax(s: OpContext) -> Sequence[Lowered]:
    return _extreme(s, reduce.lowest(dtype_of(s.case, "input")), operator.gt)


@emits(reduce.VCMIN)
def _vcmin(s: OpContext) -> Sequence[Lowered]:
    return _extreme(s, reduce.highest(dtype_of(s.case, "input")), operator.lt)
