"""Lane functions only registers have, and arithmetic with two results: sums with a carry mask,
products in two words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.rules.rule import Case

_WORD = 4
Two = tuple[Items, masks.Mask]


def same(a: Lanes) -> Lanes:
    return a


def or_bits(a: Lanes, b: Lanes) -> Lanes:
    """Of floats too: the two parts of a narrowing vcvt are merged by it."""
    return lanes.from_raw(lanes.bit_or(lanes.raw(a), lanes.raw(b)), a)


def and_bits(a: Lanes, b: Lanes) -> Lanes:
    return lanes.from_raw(lanes.bit_and(lanes.raw(a), lanes.raw(b)), a)


def xor_bits(a: Lanes, b: Lanes) -> Lanes:
    return lanes.from_raw(lanes.bit_xor(lanes.raw(a), lanes.raw(b)), a)


def shift_left(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_left(a, _count(a, count))


def shift_right(a: Lanes, count: Lanes) -> Lanes:
    return lanes.shift_right(a, _count(a, count))


def _count(a: Lanes, count: Lanes) -> Lanes:
    """Counts may be signed where what is shifted is not; only the low bits matter."""
    return lanes.width_modulo(lanes.from_raw(lanes.raw(count), a))


def leaky_relu(a: Lanes, slope: Lanes) -> Lanes:
    """A NaN is not at least 0 and takes the product."""
    return lanes.select(lanes.greater_equal(a, lanes.const(a, 0)), a, lanes.mul(slope, a))


def add_relu(a: Lanes, b: Lanes) -> Lanes:
    return lanes.relu(lanes.add(a, b))


def sub_relu(a: Lanes, b: Lanes) -> Lanes:
    return lanes.relu(lanes.sub(a, b))


def axpy(x: Lanes, y: Lanes, alpha: Lanes) -> Lanes:
    """Two roundings: the text does not call it fused."""
    return lanes.add(lanes.mul(alpha, x), y)


def multiply_add(acc: Lanes, a: Lanes, b: Lanes) -> Lanes:
    return lanes.fma(a, b, acc)


def _masked(value: Items, carry: Items, mask: masks.Mask, kind: np.dtype[Any]) -> Two:
    """Lanes whose mask is off: result and carry 0."""
    active = mask[::_WORD]
    result = np.where(active, value, np.uint32(0)).view(kind)
    return result, masks.image(carry & active, _WORD)


def _vaddc(case: Case) -> Callable[..., Two]:
    kind = dtype_of(case, "result").numpy

    def add(core: Machine, lhs: Items, rhs: Items, mask: masks.Mask) -> Two:
        a = lhs.view(np.uint32)
        total = a + rhs.view(np.uint32)
        return _masked(total, total < a, mask, kind)

    return add


def _vsubc(case: Case) -> Callable[..., Two]:
    """The carry of a subtraction is 1 where nothing was borrowed."""
    kind = dtype_of(case, "result").numpy

    def subtract(core: Machine, lhs: Items, rhs: Items, mask: masks.Mask) -> Two:
        a, b = lhs.view(np.uint32), rhs.view(np.uint32)
        return _masked(a - b, a >= b, mask, kind)

    return subtract


def _with_carry(case: Case, negate: bool) -> Callable[..., Two]:
    """lhs + rhs + carry_in; a difference adds the complement: a - b - 1 + c = a + ~b + c."""
    kind = dtype_of(case, "result").numpy

    def add(core: Machine, lhs: Items, rhs: Items, carry: masks.Mask, mask: masks.Mask) -> Two:
        b = rhs.view(np.uint32)
        total = lhs.view(np.uint32).astype(np.uint64) + (~b if negate else b) + carry[::_WORD]
        return _masked(total.astype(np.uint32), total >> np.uint64(32) != 0, mask, kind)

    return add


def _vmull(case: Case) -> Callable[..., tuple[Items, Items]]:
    kind = dtype_of(case, "low").numpy
    wide = np.dtype(np.int64 if kind.kind == "i" else np.uint64)
    all_lanes = masks.full(_WORD)

    def multiply(core: Machine, lhs: Items, rhs: Items, mask: masks.Mask) -> tuple[Items, Items]:
        product = lhs.astype(wide) * rhs
        if mask is not all_lanes:
            product = np.where(mask[::_WORD], product, wide.type(0))
        words = product.view(kind)
        return words[::2].copy(), words[1::2].copy()

    return multiply


VADDC = Do(_vaddc)
VSUBC = Do(_vsubc)
VADDCS = Do(lambda case: _with_carry(case, negate=False))
VSUBCS = Do(lambda case: _with_carry(case, negate=True))
VMULL = Do(_vmull)
