"""Lane functions on vector registers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning import Lane
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.run.jit.border.values import Mask, Native, Reg, Word
from pto.run.jit.emit.table import KINDS, Spot
from pto.run.jit.emit.tile.elementwise import emit_lane as emit_tile_lane
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import NotNative, Val, element, vector


def emit_lane(s: Spot) -> Sequence[Native]:
    """result[i] = mask[i] ? fn(sources[i]) : 0."""
    body, kind = s.body, dtype_of(s.case, "result")
    if not isinstance(body, Lane):
        raise NotNative("no lane function")
    if body.moves and not lanes.computes(kind.numpy):
        return _moved(s)
    *sources, mask = s.case.row.operands
    spot = lanes.Lanes(s.x, kind.lanes, s.e.unit.declare)
    given = [_source(s, spot, o.name, kind) for o in sources]
    found = body.function(s.case)(*given)
    return [masked(s, result(spot, found, kind), s.need(Mask, mask.name))]


def _moved(s: Spot) -> Sequence[Native]:
    """Elements that only move, of a type that is its bits."""
    source, mask = s.all()
    if not isinstance(source, Reg) or not isinstance(mask, Mask):
        raise NotNative("a move of more than one register")
    return [masked(s, source, mask)]


def _source(s: Spot, spot: lanes.Lanes, name: str, kind: DType) -> lanes.Symbol:
    if isinstance(s.case.type(name), t.Scalar):
        return spot.spread(kind.numpy, scalar_as(s, s.need(Word, name), kind))
    reg = s.need(Reg, name)
    if reg.dtype.lanes != kind.lanes:
        raise NotNative("registers of other lane counts")
    return spot.symbol(reg.dtype.numpy, reg.name)


def symbol(s: Spot, reg: Reg) -> lanes.Symbol:
    """A register as a value of lane functions."""
    spot = lanes.Lanes(s.x, reg.dtype.lanes, s.e.unit.declare)
    return spot.symbol(reg.dtype.numpy, reg.name)


def scalar_as(s: Spot, word: Word, kind: DType) -> Val:
    """A scalar as one lane: integers keep their low bits, floats are rounded to the type."""
    own = word.type.dtype
    if kind.is_float:
        if own is kind:
            return word.name
        one = lanes.Lanes(s.x, 1, s.e.unit.declare)
        if own is None or not own.is_float:
            raise NotNative("an integer beside floats")
        vec = s.x.new(
            f"insertelement {one.type(own.numpy)} poison, {element(own)} {word.name}, i64 0"
        )
        cast = lanes.cast(one.symbol(own.numpy, vec), kind.numpy)
        return s.x.new(f"extractelement {cast.type} {cast.name}, i64 0")
    have, want = 64 if own is None else own.bits, kind.bits
    if own is not None and own.is_float:
        raise NotNative("a float beside integers")
    if have == want:
        return word.name
    if have > want:
        return s.x.new(f"trunc i{have} {word.name} to i{want}")
    op = "zext" if have == 1 or word.type.name.startswith("u") else "sext"
    return s.x.new(f"{op} i{have} {word.name} to i{want}")


def result(spot: lanes.Lanes, found: object, kind: DType) -> Reg:
    """What a lane function returned, as a register of its result's type."""
    if isinstance(found, np.ndarray | np.generic):
        found = spot.constant(kind.numpy, found)
    if not isinstance(found, lanes.Symbol):
        raise NotNative("a result that is no lane")
    if found.dtype != kind.numpy:
        if found.dtype.itemsize != kind.itemsize:
            raise NotNative("a result of another width")
        found = found.view(kind.numpy)
    return Reg((found.name,), kind)


def masked(s: Spot, reg: Reg, mask: Mask) -> Reg:
    """Lanes whose mask is off become zero."""
    bits = masks.at_width(s.x, mask, reg.dtype.itemsize)
    type = vector(reg.dtype.lanes, element(reg.dtype))
    lanes_type = vector(reg.dtype.lanes, "i1")
    name = s.x.new(f"select {lanes_type} {bits}, {type} {reg.name}, {type} zeroinitializer")
    s.x.zeroed[name] = (reg.name, bits)
    return Reg((name,), reg.dtype)


def under(s: Spot, reg: Reg, bits: str) -> Reg:
    """A register of which only the lanes under these bits count: no need to zero the others."""
    whole, same = s.x.zeroed.get(reg.name, ("", ""))
    return Reg((whole,), reg.dtype) if same == bits else reg


def _lane(s: Spot) -> Sequence[Native]:
    return emit_lane(s) if s.case.row.family.section == "vector" else emit_tile_lane(s)


KINDS[Lane] = _lane
