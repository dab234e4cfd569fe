"""Lane functions of registers only, among them two results: sums with a carry, long products."""

from __future__ import annotations

import numpy as np

from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.lanes import Lanes, const

Two = tuple[Lanes, Lanes]


def same(a: Lanes) -> Lanes:
    return a


# Of the bits of floats too: or merges the two parts of a narrowing vcvt.
or_bits, and_bits, xor_bits = map(lanes.on_bits, (lanes.bit_or, lanes.bit_and, lanes.bit_xor))


def shift_left(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_left(a, _count(a, count))


def shift_right(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_right(a, _count(a, count))


def _count(a: Lanes, count: Lanes) -> Lanes:
    """A shift count. It may be signed if the shifted value is not; only the low bits count."""
    return lanes.width_modulo(lanes.from_raw(lanes.raw(count), a))


def leaky_relu(a: Lanes, slope: Lanes) -> Lanes:
    """Leaky relu. NaN >= 0 is false, so a NaN is multiplied."""
    return lanes.select(lanes.greater_equal(a, lanes.const(a, 0)), a, lanes.mul(slope, a))


def axpy(x: Lanes, y: Lanes, alpha: Lanes) -> Lanes:
    """a * x + y with two roundings: the text does not call it fused."""
    return lanes.add(lanes.mul(alpha, x), y)


def exp_difference(x: Lanes, top: Lanes) -> Lanes:
    """exp(x - top): f16 lanes are widened first, so the difference is in f32."""
    return mathlib.exp(x.astype(np.float32) - top.astype(np.float32))


def multiply_into(acc: Lanes, a: Lanes, b: Lanes) -> Lanes:
    return lanes.fma(a, acc, b)


def add_carry(a: Lanes, b: Lanes, carry: Lanes | None = None) -> Two:
    """The sum of two words, or of two words and a carry; and the carry out."""
    x = lanes.raw(a)
    total = x + lanes.raw(b)
    over = total < x
    if carry is not None:
        before, total = total, total + carry.astype(x.dtype)
        over = over | (total < before)
    return lanes.from_raw(total, a), over


def subtract_carry(a: Lanes, b: Lanes) -> Two:
    """Subtraction with carry out: the carry is 1 if there was no borrow."""
    return a - b, lanes.raw(a) >= lanes.raw(b)


def subtract_with_carry(a: Lanes, b: Lanes, carry: Lanes) -> Two:
    """Subtraction with carry in: a - b - 1 + c = a + ~b + c."""
    return add_carry(a, ~b, carry)


def long_product(a: Lanes, b: Lanes) -> Two:
    """The product of 32-bit words: the low and the high word."""
    wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
    product = a.astype(wide) * b.astype(wide)
    high = product >> const(product, 8 * a.dtype.itemsize)
    return product.astype(a.dtype), high.astype(a.dtype)
