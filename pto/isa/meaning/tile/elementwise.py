"""Lane functions that do more than one operation; each operation rounds to the element type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.convert import Round
from pto.core.dtypes import F16, F32, I32, DType
from pto.core.primitives import floor
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.regions import element, taken
from pto.isa.meaning.vector.arithmetic import same
from pto.isa.rules.rule import Case


def prelu(a: Lanes, slope: Lanes) -> Lanes:
    return lanes.select(lanes.greater(a, lanes.const(a, 0)), a, lanes.mul(a, slope))


def lrelu(a: Lanes, slope: Lanes) -> Lanes:
    """Leaky relu. An f32 slope multiplies f16 in f32, rounded once (PTO-Gym, tlrelu)."""
    product = lanes.mul(lanes.cast(a, slope), slope)
    return lanes.select(lanes.greater(a, lanes.const(a, 0)), a, lanes.cast(product, a))


def with_scalar(fn: Callable[[Lanes, Lanes], Lanes]) -> Lane:
    """fn of a tile and a scalar, in either order; the scalar takes the elements' type first."""

    def make(case: Case) -> Callable[[Lanes, Lanes], Lanes]:
        dst = element(case, "dst")
        changes = [taken(case, name, dst) for name in ("src", "scalar")]
        if not any(changes):
            return fn
        first, second = (change or same for change in changes)
        return lambda a, b: fn(first(a), second(b))

    return Lane(fn, make=make)


def exp_difference(a: Lanes, b: Lanes) -> Lanes:
    return mathlib.exp(lanes.sub(a, b))


def with_integers(
    fn: Callable[..., Lanes], of_integers: Callable[..., Lanes]
) -> Callable[[Case], Callable[..., Lanes]]:
    """A function of floats, combined with its replacement for integer elements (on cpu)."""
    return lambda case: of_integers if element(case, "dst").is_integer else fn


def of_bits(fn: Callable[..., Lanes]) -> Lane:
    """fn of integers, or of the bits of floats."""
    return Lane(fn, make=with_integers(lanes.on_bits(fn), fn))


def integer_log(a: Lanes) -> Lanes:
    """The logarithm truncated to an integer; 0 if it is undefined."""
    fine = lanes.greater(a, lanes.const(a, 0))
    safe = lanes.widen(lanes.select(fine, a, lanes.const(a, 1)))
    return floor(mathlib.log(safe)).astype(a.dtype)


def integer_recip(a: Lanes) -> Lanes:
    """1 / a truncated to an integer, as integer division does."""
    return lanes.div(lanes.const(a, 1), a)


def shift_left(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_left(a, _bounded(count))


def shift_right(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_right(a, _bounded(count))


def _bounded(count: Lanes) -> Lanes:
    """A shift. 64-bit elements, which a5 computes in two registers, take the count modulo 64."""
    return lanes.width_modulo(count) if count.dtype.itemsize == 8 else count


def shift_left_by(a: Lanes, count: Lanes) -> Lanes:
    return shift_left(a, _amount(count, a))


def shift_right_by(a: Lanes, count: Lanes) -> Lanes:
    return shift_right(a, _amount(count, a))


def _amount(count: Lanes, like: Lanes) -> Lanes:
    """A scalar as a shift count; a count out of range stays out of range unless it is modulo 64."""
    wide = like.dtype.itemsize == 8
    return count.astype(like.dtype) if wide else lanes.shift_amount(count, like)


def add_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return lanes.add(lanes.add(a, b), c)


def sub_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return lanes.add(lanes.sub(a, b), c)


def axpy(a: Lanes, factor: Lanes, into: Lanes) -> Lanes:
    """into + a * factor; f16 accumulated into f32 is multiplied in f32."""
    return lanes.add(into, lanes.mul(lanes.cast(a, into), lanes.cast(factor, into)))


def rounded_once(fn: Callable[..., Lanes]) -> Callable[[Case], Callable[..., Lanes]]:
    """fn with one rounding at the end: on cpu f16 is computed in f32, as in C++.

    Elsewhere each operation rounds.
    """

    def single(*sources: Lanes) -> Lanes:
        return fn(*(a.astype(np.float32) for a in sources)).astype(sources[0].dtype)

    def choose(case: Case) -> Callable[..., Lanes]:
        once = case.profile.f16_roundings == "one" and element(case, "dst") is F16
        return single if once else fn

    return choose


def mul_add(a: Lanes, b: Lanes, into: Lanes) -> Lanes:
    """a * into + b."""
    return lanes.add(lanes.mul(a, into), b)


def mul_add_relu(a: Lanes, b: Lanes, into: Lanes) -> Lanes:
    return lanes.relu(mul_add(a, b, into))


def mul_add_into(a: Lanes, b: Lanes, into: Lanes) -> Lanes:
    """a * b + into."""
    return lanes.add(lanes.mul(a, b), into)


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
