"""e**x of f32 in compiled code: every float, beside the definition in f64."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from pto.core.primitives import Symbolic
from pto.isa.meaning import mathlib
from pto.run.jit.emit import instructions
from pto.run.jit.emit.unit import Unit
from pto.run.jit.llvm import lanes, native
from pto.run.jit.llvm.shuffles import bits_of
from pto.run.jit.llvm.text import Text

LANES = 32
BITS = np.dtype(np.uint32)
TINY, LARGE, SIGN = 0x32000000, 0x42D40000, 1 << 31  # the bits of 2^-27 and 106, and of -0
EDGES = (0, 1 << 23, 0x7F800000)  # of what else there is: 0 and subnormals, normal, infinite, NaN


def counting(unit: Unit, name: str) -> str:
    """int f(long *range, long *count): of floats of these bits, how many have other bits than by
    the definition."""
    x = Text(unit.declare)
    spot = lanes.Lanes(x, LANES)
    first, end = (x.load("i64", x.at("%range", at)) for at in (0, 8))
    x.store("i64", 0, "%count")

    def strip(i: str) -> None:
        start = spot.spread(BITS, x.new(f"trunc i64 {i} to i32"))
        given = (start + spot.constant(BITS, np.arange(LANES))).view(np.float32)
        quick = mathlib.exp(given)
        defined = Symbolic.shortcut(given, mathlib.exp.__wrapped__, (given,))  # type: ignore[attr-defined]
        wrong = bits_of(x, LANES, str((quick.view(BITS) != defined.view(BITS)).name))
        unit.declare("declare i32 @llvm.ctpop.i32(i32)")
        more = x.new(f"call i32 @llvm.ctpop.i32(i32 {wrong})")
        total = x.add(x.load("i64", "%count"), x.new(f"zext i32 {more} to i64"))
        x.store("i64", total, "%count")

    x.loop(end, LANES, strip, start=first)
    x.do("ret i32 0")
    return x.function(f"define i32 @{name}(ptr %range, ptr %count)")


@pytest.mark.skipif(not native.target().has_masks, reason="the definition is all there is")
def test_every_float() -> None:
    instructions.load()
    unit = Unit()
    name = unit.new_name()
    unit.add(name, counting(unit, name))
    assert "avx512.vpermi2var" in unit.text  # the quick way
    code = unit.function(name)

    def wrong(first: int, end: int) -> int:
        given, found = np.array([first, end], np.int64), np.zeros(1, np.int64)
        code(*(ctypes.c_void_p(a.ctypes.data) for a in (given, found)))
        return int(found[0])

    for sign in (0, SIGN):
        assert wrong(sign + TINY, sign + LARGE) == 0
        assert [wrong(sign + at, sign + at + (1 << 16)) for at in EDGES] == [0, 0, 0]
    assert wrong((1 << 32) - (1 << 16), 1 << 32) == 0
