"""NumPy's functions on symbols: arithmetic, comparisons, bits, rounding; they fill the tables.

f16 and bf16 are computed in f32 and rounded once, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.run.jit.llvm.lanes import (
    BF16,
    BOOL,
    FUNCTIONS,
    SMALL,
    UFUNCS,
    Lanes,
    Symbol,
    cast,
    common,
    to_f32,
    where,
)
from pto.run.jit.llvm.text import NotNative


def _arithmetic(integer: str, floating: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        kind = a.dtype
        if kind in SMALL:
            return cast(emit(to_f32(a), to_f32(b)), kind)
        op = floating if kind.kind == "f" else integer
        if not op or kind == BOOL:
            raise NotNative("an operation that is not defined for the type")
        return a.new(f"{op} {a.type} {a.name}, {b.name}", kind)

    return emit


def _compare(ordered: str, signed: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype in SMALL:
            a, b = to_f32(a), to_f32(b)
        if a.dtype.kind == "f":
            return a.new(f"fcmp {ordered} {a.type} {a.name}, {b.name}", BOOL)
        word = signed
        if a.dtype.kind in "ub" and signed not in ("eq", "ne"):
            word = "u" + signed[1:]
        return a.new(f"icmp {word} {a.type} {a.name}, {b.name}", BOOL)

    return emit


def _bits(op: str) -> Callable[..., Symbol]:
    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype.kind == "f" or a.dtype == BF16:
            raise NotNative("bits of floats")
        return a.new(f"{op} {a.type} {a.name}, {b.name}", a.dtype)

    return emit


def _not(a: Symbol) -> Symbol:
    ones = a.lanes.constant(
        a.dtype, True if a.dtype == BOOL else -1 if a.dtype.kind == "i" else _all(a)
    )
    return _bits("xor")(a, ones)


def _all(a: Symbol) -> int:
    return (1 << (8 * a.dtype.itemsize)) - 1


def _shift(left: bool) -> Callable[..., Symbol]:
    """By the width or more, or by a negative number, everything is shifted out."""

    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        bits, signed = 8 * a.dtype.itemsize, a.dtype.kind == "i"
        op = "shl" if left else "ashr" if signed else "lshr"
        count = b.name
        if count.startswith("splat"):
            number = int(count.rstrip(")").split()[-1])
            if 0 <= number < bits:
                return a.new(f"{op} {a.type} {a.name}, {count}", a.dtype)
        most = a.lanes.constant(a.dtype, bits - 1).name
        far = a.new(f"icmp ugt {a.type} {count}, {most}", BOOL)
        safe = a.new(f"select {far.type} {far.name}, {a.type} {most}, {a.type} {count}", a.dtype)
        moved = a.new(f"{op} {a.type} {a.name}, {safe.name}", a.dtype)
        if not left and signed:
            return moved
        return where(a.lanes, far, a.lanes.constant(a.dtype, 0), moved)

    return emit


def _extreme(greater: bool) -> Callable[..., Symbol]:
    """NaN wins; of equal operands the first."""

    def emit(a: Symbol, b: Symbol) -> Symbol:
        a, b = common(a, b)
        if a.dtype in SMALL:
            return cast(emit(to_f32(a), to_f32(b)), a.dtype)
        first = np.greater_equal(a, b) if greater else np.less_equal(a, b)
        if a.dtype.kind == "f":
            first = first | (a != a)
        return where(a.lanes, first, a, b)

    return emit


def _floor_divide(a: Symbol, b: Symbol) -> Symbol:
    """Of integers; by zero 0, and the lowest by -1 wraps: neither traps."""
    a, b = common(a, b)
    if a.dtype.kind not in "iu":
        raise NotNative("floor division of floats")
    zero, one = a.lanes.constant(a.dtype, 0), a.lanes.constant(a.dtype, 1)
    none = b == zero
    if a.dtype.kind == "u":
        safe = where(a.lanes, none, one, b)
        found = a.new(f"udiv {a.type} {a.name}, {safe.name}", a.dtype)
        return where(a.lanes, none, zero, found)
    minus = b == a.lanes.constant(a.dtype, -1)
    safe = where(a.lanes, none | minus, one, b)
    found = a.new(f"sdiv {a.type} {a.name}, {safe.name}", a.dtype)
    product = found * safe
    below = (product != a) & ((a ^ safe) < zero)
    found = where(a.lanes, below, found - one, found)
    found = where(a.lanes, minus, zero - a, found)
    return where(a.lanes, none, zero, found)


def _fmod(a: Symbol, b: Symbol) -> Symbol:
    """The exact rest of a truncated division; by zero NaN, of integers 0."""
    a, b = common(a, b)
    if a.dtype in SMALL:
        return cast(_fmod(to_f32(a), to_f32(b)), a.dtype)
    if a.dtype.kind == "f":
        return a.new(f"frem {a.type} {a.name}, {b.name}", a.dtype)
    signed, one = a.dtype.kind == "i", a.lanes.constant(a.dtype, 1)
    odd = (b == 0) | (b == a.lanes.constant(a.dtype, -1)) if signed else b == 0
    safe = where(a.lanes, odd, one, b)  # by 1 and -1 nothing is left
    return a.new(f"{'srem' if signed else 'urem'} {a.type} {a.name}, {safe.name}", a.dtype)


def _remainder(a: Symbol, b: Symbol) -> Symbol:
    """With the sign of b, as Python has it."""
    a, b = common(a, b)
    if a.dtype in SMALL:
        return cast(_remainder(to_f32(a), to_f32(b)), a.dtype)
    rest = _fmod(a, b)
    if a.dtype.kind == "u":
        return rest
    other = (rest != 0) & ((b < 0) != (rest < 0)) & (b != 0)
    found = where(a.lanes, other, rest + b, rest)
    if a.dtype.kind == "i":
        return found
    return where(a.lanes, (rest == 0) & (b != 0), _copysign(rest, b), found)


def _through_f32(fn: Callable[[Symbol], Symbol]) -> Callable[[Symbol], Symbol]:
    def emit(a: Symbol) -> Symbol:
        if a.dtype in SMALL:
            return cast(fn(to_f32(a)), a.dtype)
        return fn(a)

    return emit


def _intrinsic(name: str) -> Callable[[Symbol], Symbol]:
    def emit(a: Symbol) -> Symbol:
        if a.dtype.kind != "f":
            raise NotNative(f"{name} of integers")
        return Symbol(a.lanes, a.dtype, a.lanes.intrinsic(name, a.dtype, a.name))

    return _through_f32(emit)


def _absolute(a: Symbol) -> Symbol:
    if a.dtype.kind == "u":
        return a
    if a.dtype.kind == "i":
        return where(a.lanes, a < 0, _negative(a), a)
    bits = a.view(f"u{a.dtype.itemsize}")
    return (bits & (_all(a) >> 1)).view(a.dtype)


def _negative(a: Symbol) -> Symbol:
    if a.dtype.kind in "iu":
        return a.lanes.constant(a.dtype, 0) - a
    bits = a.view(f"u{a.dtype.itemsize}")
    return (bits ^ ((_all(a) >> 1) + 1)).view(a.dtype)


def _signbit(a: Symbol) -> Symbol:
    return a.view(f"i{a.dtype.itemsize}") < 0


def _copysign(a: Symbol, b: Symbol) -> Symbol:
    a, b = common(a, b)
    high = (_all(a) >> 1) + 1
    bits = f"u{a.dtype.itemsize}"
    return ((a.view(bits) & (high - 1)) | (b.view(bits) & high)).view(a.dtype)


def _isnan(a: Symbol) -> Symbol:
    return a != a


def _isinf(a: Symbol) -> Symbol:
    return _absolute(a) == a.lanes.constant(a.dtype, np.inf)


def _isfinite(a: Symbol) -> Symbol:
    return _absolute(a) < a.lanes.constant(a.dtype, np.inf)


def _full_like(lanes: Lanes, like: Symbol, value: Any) -> Symbol:
    return lanes.constant(like.dtype, value)


UFUNCS.update(
    {
        np.add: _arithmetic("add", "fadd"),
        np.subtract: _arithmetic("sub", "fsub"),
        np.multiply: _arithmetic("mul", "fmul"),
        np.true_divide: _arithmetic("", "fdiv"),
        np.floor_divide: _floor_divide,
        np.fmod: _fmod,
        np.remainder: _remainder,
        np.equal: _compare("oeq", "eq"),
        np.not_equal: _compare("une", "ne"),
        np.less: _compare("olt", "slt"),
        np.less_equal: _compare("ole", "sle"),
        np.greater: _compare("ogt", "sgt"),
        np.greater_equal: _compare("oge", "sge"),
        np.bitwise_and: _bits("and"),
        np.bitwise_or: _bits("or"),
        np.bitwise_xor: _bits("xor"),
        np.bitwise_not: _not,
        np.left_shift: _shift(True),
        np.right_shift: _shift(False),
        np.maximum: _extreme(True),
        np.minimum: _extreme(False),
        np.absolute: _absolute,
        np.negative: _negative,
        np.sqrt: _intrinsic("sqrt"),
        np.rint: _intrinsic("rint"),
        np.floor: _intrinsic("floor"),
        np.ceil: _intrinsic("ceil"),
        np.trunc: _intrinsic("trunc"),
        np.signbit: _signbit,
        np.copysign: _copysign,
        np.isnan: _isnan,
        np.isinf: _isinf,
        np.isfinite: _isfinite,
    }
)
FUNCTIONS.update(
    {
        np.where: where,
        np.full_like: _full_like,
        np.broadcast_arrays: lambda lanes, *arrays: arrays,
        np.count_nonzero: lambda lanes, a: True,
        np.isfinite: lambda lanes, a: _isfinite(a),
    }
)
