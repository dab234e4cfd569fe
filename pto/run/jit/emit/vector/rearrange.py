"""Lanes in another order, in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.constants import VREG_BYTES
from pto.isa.meaning.vector import rearrange
from pto.isa.meaning.vector.ub import dtype_of
from pto.run.jit.border.values import Native, Reg, Word, register_type
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.load import as_items, as_register, wide
from pto.run.jit.llvm import shuffles
from pto.run.jit.llvm.text import Val, vector


def _unpack(op: str) -> Callable[[Spot], Sequence[Native]]:
    def emit(s: Spot) -> Sequence[Native]:
        reg, kind = s.need(Reg, "src"), dtype_of(s.case, "result")
        part = wide(s, s.need(Word, "part"))
        s.fault_unless(s.x.compare("ult", part, 2))
        bits, half = 8 * reg.dtype.itemsize, reg.dtype.lanes // 2
        items = as_items(s, reg, bits)
        low, high = (
            shuffles.shuffle(s.x, f"i{bits}", 2 * half, items, range(n * half, (n + 1) * half))
            for n in range(2)
        )
        type, second = vector(half, f"i{bits}"), s.x.compare("eq", part, 1)
        if second in ("true", "false"):
            chosen = high if second == "true" else low
        else:
            chosen = s.x.new(f"select i1 {second}, {type} {high}, {type} {low}")
        item = f"i{8 * kind.itemsize}"
        widened = s.x.new(f"{op} {type} {chosen} to {vector(half, item)}")
        return [as_register(s, kind, item, widened)]

    return emit


emits(rearrange.VSUNPACK)(_unpack("sext"))
emits(rearrange.VZUNPACK)(_unpack("zext"))


def _window(s: Spot, first: Val, second: Val, kind: Any, lane: Val) -> Sequence[Native]:
    """A register's worth of two that lie one behind the other, from a lane on."""
    x, type = s.x, register_type(kind)
    room = x.stack(f"[{2 * VREG_BYTES} x i8]")
    x.store(type, first, room, 64)
    x.store(type, second, x.at(room, VREG_BYTES), 64)
    at = x.at(room, x.mul(lane, kind.itemsize))
    return [Reg((x.load(type, at),), kind)]


@emits(rearrange.VSLIDE)
def _vslide(s: Spot) -> Sequence[Native]:
    kind, amount = dtype_of(s.case, "result"), wide(s, s.need(Word, "amt"))
    s.fault_unless(s.x.compare("ule", amount, kind.lanes))
    return _window(s, s.need(Reg, "src1").name, s.need(Reg, "src0").name, kind, amount)


@emits(rearrange.VSHIFT)
def _vshift(s: Spot) -> Sequence[Native]:
    kind, amount = dtype_of(s.case, "result"), wide(s, s.need(Word, "amt"))
    s.fault_unless(s.x.compare("ule", amount, kind.lanes))
    start = s.x.sub(kind.lanes, amount)
    return _window(s, "zeroinitializer", s.need(Reg, "src").name, kind, start)
