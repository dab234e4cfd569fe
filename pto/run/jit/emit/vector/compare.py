"""Comparisons, selections and registers from one value in compiled code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning.vector import compare, convert, materialize, rearrange
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.run.jit.border.values import Mask, Native, Reg, Word, register_type
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.arithmetic import masked, result, scalar_as, symbol
from pto.run.jit.emit.vector.load import as_items, as_register, gathered
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.text import NotNative, element, vector


def _holds(s: Spot, kind: DType, a: lanes.Symbol, b: lanes.Symbol) -> Sequence[Native]:
    if kind.is_float and kind.numpy == kind.storage:
        raise NotNative("elements without an order")
    found = compare.TESTS[s.case.word("cmp_mode") or ""](a, b)
    bits = masks.at_width(s.x, s.need(Mask, "mask"), kind.itemsize)
    both = s.x.new(f"and {masks.type_of(kind.itemsize)} {found.name}, {bits}")
    return [Mask((both,), kind.itemsize)]


@emits(compare.VCMP)
def _vcmp(s: Spot) -> Sequence[Native]:
    kind = dtype_of(s.case, "src0")
    return _holds(s, kind, *(symbol(s, s.need(Reg, name)) for name in ("src0", "src1")))


@emits(compare.VCMPS)
def _vcmps(s: Spot) -> Sequence[Native]:
    kind = dtype_of(s.case, "src")
    a = symbol(s, s.need(Reg, "src"))
    return _holds(
        s, kind, a, a.lanes.spread(kind.numpy, scalar_as(s, s.need(Word, "scalar"), kind))
    )


@emits(compare.VSEL)
def _vsel(s: Spot) -> Sequence[Native]:
    a, b = s.need(Reg, "src0"), s.need(Reg, "src1")
    if a.dtype is not b.dtype:
        raise NotNative("registers of two types")
    width, type = a.dtype.itemsize, register_type(a.dtype)
    bits = masks.at_width(s.x, s.need(Mask, "mask"), width)
    found = s.x.new(f"select {masks.type_of(width)} {bits}, {type} {a.name}, {type} {b.name}")
    return [Reg((found,), a.dtype)]


@emits(compare.VSELR, compare.VSELRV2, rearrange.VPERM)
def _by_index(s: Spot) -> Sequence[Native]:
    """source[index mod N], through memory."""
    source, index = s.all()
    if not isinstance(source, Reg) or not isinstance(index, Reg) or index.dtype.is_float:
        raise NotNative("a selection that is not by an index register")
    width, count = 8 * source.dtype.itemsize, source.dtype.lanes
    if index.dtype.itemsize != source.dtype.itemsize:
        raise NotNative("indices of another width")
    x, type = s.x, vector(count, f"i{width}")
    low = x.new(f"and {type} {as_items(s, index, width)}, splat (i{width} {count - 1})")
    room = x.stack(type)
    x.store(type, as_items(s, source, width), room, 64)
    wide = vector(count, "i64")
    places = low if width == 64 else x.new(f"zext {type} {low} to {wide}")
    places = x.new(f"mul {wide} {places}, splat (i64 {width // 8})")
    found = gathered(s, width, room, places, count)
    return [as_register(s, dtype_of(s.case, "result"), f"i{width}", found)]


@emits(convert.VBITCAST)
def _vbitcast(s: Spot) -> Sequence[Native]:
    reg, kind = s.need(Reg, "input"), dtype_of(s.case, "result")
    have, want = register_type(reg.dtype), register_type(kind)
    name = reg.name if have == want else s.x.new(f"bitcast {have} {reg.name} to {want}")
    return [Reg((name,), kind)]


# ---- registers from one value


def _filled(s: Spot, kind: DType, name: str) -> Reg:
    one = scalar_as(s, s.need(Word, name), kind)
    return Reg((shuffles.spread(s.x, element(kind), kind.lanes, one),), kind)


@emits(materialize.VBR)
def _vbr(s: Spot) -> Sequence[Native]:
    return [_filled(s, dtype_of(s.case, "result"), "value")]


@emits(materialize.VDUP)
def _vdup(s: Spot) -> Sequence[Native]:
    kind, mask = dtype_of(s.case, "result"), s.need(Mask, "mask")
    if not isinstance(s.case.type("input"), t.VReg):
        return [masked(s, _filled(s, kind, "input"), mask)]
    lane = kind.lanes - 1 if s.case.word("position") == "HIGHEST" else 0
    reg = s.need(Reg, "input")
    name = shuffles.shuffle(s.x, element(kind), kind.lanes, reg.name, [lane] * kind.lanes)
    return [masked(s, Reg((name,), kind), mask)]


@emits(materialize.VCI)
def _vci(s: Spot) -> Sequence[Native]:
    kind = dtype_of(s.case, "result")
    count = lanes.Lanes(s.x, kind.lanes, s.e.unit.declare)
    base = count.spread(kind.numpy, scalar_as(s, s.need(Word, "index"), kind))
    numbers = shuffles.constants(f"i{8 * kind.itemsize}", range(kind.lanes))
    if kind.itemsize == 1:  # lane 128 and on, as signed numbers
        numbers = shuffles.constants("i8", [n - 256 * (n > 127) for n in range(kind.lanes)])
    whole = count.symbol(np.dtype(f"u{kind.itemsize}"), numbers)
    steps = lanes.cast(whole, kind.numpy)
    down = s.case.word("order") == "DESC"
    return [result(count, base - steps if down else base + steps, kind)]
