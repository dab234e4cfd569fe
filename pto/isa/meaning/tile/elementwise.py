"""Lane functions that do more than one operation; each operation rounds to the element type."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.convert import Round
from pto.core.dtypes import F16, F32, I32, DType
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.regions import element
from pto.isa.rules.rule import Case


def same(a: Lanes) -> Lanes:
    """The element itself, bit for bit."""
    return a


def prelu(a: Lanes, slope: Lanes) -> Lanes:
    return lanes.select(lanes.greater(a, lanes.const(a, 0)), a, lanes.mul(a, slope))


def lrelu(a: Lanes, slope: Lanes) -> Lanes:
    """A slope of f32 multiplies f16 in f32, rounded once (PTO-Gym, tlrelu)."""
    product = lanes.mul(lanes.cast(a, slope), slope)
    return lanes.select(lanes.greater(a, lanes.const(a, 0)), a, lanes.cast(product, a))


def exp_difference(a: Lanes, b: Lanes) -> Lanes:
    return mathlib.exp(lanes.sub(a, b))


def shift_left(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_left(a, _bounded(count))


def shift_right(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_right(a, _bounded(count))


def _bounded(count: Lanes) -> Lanes:
    """64-bit elements, which a5 makes of two registers, are shifted by the count modulo 64."""
    return lanes.width_modulo(count) if count.dtype.itemsize == 8 else count


def shift_left_by(a: Lanes, count: Lanes) -> Lanes:
    return shift_left(a, _amount(count, a))


def shift_right_by(a: Lanes, count: Lanes) -> Lanes:
    return shift_right(a, _amount(count, a))


def _amount(count: Lanes, like: Lanes) -> Lanes:
    """A scalar as a count; what is too large stays too large where it is not taken modulo 64."""
    wide = like.dtype.itemsize == 8
    return count.astype(like.dtype) if wide else lanes.shift_amount(count, like)


def add_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return lanes.add(lanes.add(a, b), c)


def sub_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return lanes.add(lanes.sub(a, b), c)


def axpy(a: Lanes, factor: Lanes, into: Lanes) -> Lanes:
    """into + a * factor; f16 into f32 is multiplied in f32."""
    return lanes.add(into, lanes.mul(lanes.cast(a, into), lanes.cast(factor, into)))


def mul_add(a: Lanes, b: Lanes, into: Lanes) -> Lanes:
    """a * into + b."""
    return lanes.add(lanes.mul(a, into), b)


def mul_add_relu(a: Lanes, b: Lanes, into: Lanes) -> Lanes:
    return lanes.relu(mul_add(a, b, into))


def mul_add_into(a: Lanes, b: Lanes, into: Lanes) -> Lanes:
    """a * b + into."""
    return lanes.add(lanes.mul(a, b), into)


def sub_relu(a: Lanes, b: Lanes) -> Lanes:
    return lanes.relu(lanes.sub(a, b))


def add_relu(a: Lanes, b: Lanes) -> Lanes:
    return lanes.relu(lanes.add(a, b))


def narrowed(fn: Callable[..., Lanes]) -> Callable[[Case], Callable[..., Lanes]]:
    """fn, its result converted to dst's type: to nearest even, saturating."""

    def make(case: Case) -> Callable[..., Lanes]:
        src, dst = element(case, "src0"), element(case, "dst")
        return lambda *sources: lanes.convert(fn(*sources), src, dst, Round.RINT, True)

    return make


def add_dequantised_relu(a: Lanes, b: Lanes, scale: Lanes) -> Lanes:
    """max(0, f16(scale * f32(a + b))), as the C++ simulator rounds it."""
    wide = _plain(lanes.add(a, b), I32, F32)
    return lanes.relu(_plain(lanes.mul(wide, scale), F32, F16))


def _plain(a: Lanes, src: DType, dst: DType) -> Lanes:
    return lanes.convert(a, src, dst, Round.RINT, False)
