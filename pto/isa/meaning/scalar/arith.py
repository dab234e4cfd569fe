"""Arithmetic of the scalar unit: arith and math as lane functions of one lane, and constants.

In a program integers are Python ints: signed for `i8`..`i64` and `index` (64 bits), unsigned for
`ui8`..`ui64`, 0 or 1 for `i1`; floats are NumPy scalars of their type. A lane function receives
them in the type given by `kind_of` and returns the low bits of the result.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import F64, I64, U64, DType
from pto.core.errors import PtoError, fail
from pto.core.floats import Round
from pto.core.primitives import absolute, ceil, const, floor, fmod, isfinite, isnan, select, trunc
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import ConstantResult, Do, Lane
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector.arithmetic import add_carry
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Bool, Float, Int, Raw
from pto.isa.rules.rule import Case

INDEX_BITS = 64
Wrap = Callable[[int], int]
View = Callable[[Lanes], Lanes]


def bits_of(type: t.Type | None) -> int:
    if not isinstance(type, t.Scalar):
        raise fail("PTO-T190", "scalar arithmetic on vectors is not supported")
    return INDEX_BITS if type.dtype is None else type.dtype.bits


def is_unsigned(type: t.Type | None) -> bool:
    return isinstance(type, t.Scalar) and (type.name.startswith("u") or type.name == "i1")


def wrapper(type: t.Type | None) -> Wrap:
    """A function that reduces an int to the range of a type, modulo its width."""
    bits = bits_of(type)
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    if is_unsigned(type):
        return lambda value: value & mask
    return lambda value: ((value + half) & mask) - half


def kind_of(type: t.Type | None) -> np.dtype[Any]:
    """The NumPy type of a scalar type in lane functions: index is int64, i1 is bool."""
    if bits_of(type) == 1:
        return np.dtype(np.bool_)
    dtype = type.dtype if isinstance(type, t.Scalar) else None
    return np.dtype(np.int64) if dtype is None else dtype.numpy


def _dtype(type: t.Type | None) -> DType:
    if isinstance(type, t.Scalar) and type.dtype is not None:
        return type.dtype
    raise fail("PTO-T190", "scalar arithmetic on vectors is not supported")


# ---- integers: how their bits are read


def _own(a: Lanes) -> Lanes:
    return a.astype(np.uint8) if a.dtype == np.bool_ else a


def _unsigned(a: Lanes) -> Lanes:
    return _own(a).view(f"u{a.dtype.itemsize}")


def _signed(a: Lanes) -> Lanes:
    return -a.astype(np.int8) if a.dtype == np.bool_ else a.view(f"i{a.dtype.itemsize}")


def _as_int(view: View, type: t.Type) -> Wrap:
    """The same reading of a Python integer."""
    bits = bits_of(type)
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    if view is _signed:
        return lambda value: ((value + half) & mask) - half
    return wrapper(type) if view is _own else lambda value: value & mask


def _quickly(fn: Callable[..., int], view: View) -> Callable[[Case], Callable[..., int]]:
    """An operation on Python integers that keeps the low bits of the result."""

    def make(case: Case) -> Callable[..., int]:
        see, wrap = _as_int(view, case.op.operands[0].type), wrapper(case.op.results[0].type)
        if len(case.op.operands) == 1:
            return lambda a: wrap(fn(see(a)))
        if view is _own:
            return lambda a, b: wrap(fn(a, b))
        return lambda a, b: wrap(fn(see(a), see(b)))

    return make


def _reading(view: View, fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *sources: fn(*(view(a) for a in sources))


def _integer(
    fn: Callable[..., Any], view: View = _own, quick: Callable[..., int] | None = None
) -> Lane:
    return Lane(_reading(view, fn), quick=_quickly(quick or fn, view))


def _shift(fn: Callable[..., Any], view: View = _own) -> Lane:
    """Shifts.

    MLIR defines no value for a count of the width or more; here the result is 0 or the sign.
    """

    def quick(case: Case) -> Callable[..., int]:
        type = case.op.operands[0].type
        see = _as_int(view, type)
        wrap = wrapper(type)
        bits = bits_of(type)
        mask = (1 << bits) - 1
        return lambda a, b: wrap(fn(see(a), min(b & mask, bits)))

    return Lane(_reading(view, fn), quick=quick)


def _division(fn: Callable[..., Any], view: View, rounded: Callable[[int, int], int]) -> Lane:
    def refused(a: Any, b: Any) -> PtoError:
        return fail("PTO-S132", f"integer division of {a} by zero")

    def divided(a: int, b: int) -> int:
        if b == 0:
            raise refused(a, b)
        return rounded(a, b)

    return Lane(
        _reading(view, fn),
        needs=lambda a, b: _own(b) != 0,
        refused=refused,
        quick=_quickly(divided, view),
    )


def _toward_zero(a: int, b: int) -> int:
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


def _floor_division(a: Lanes, b: Lanes) -> Lanes:
    truncated = lanes.div(a, b)
    return truncated - ((truncated * b != a) & ((a < 0) != (b < 0))).astype(a.dtype)


def _ceil_division(a: Lanes, b: Lanes) -> Lanes:
    truncated = lanes.div(a, b)
    return truncated + ((truncated * b != a) & ((a < 0) == (b < 0))).astype(a.dtype)


def product_halves(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The low and the high half of a product, computed from products of halves."""
    half = 4 * a.dtype.itemsize
    x = lanes.raw(a)
    y = lanes.raw(b)
    low = const(x, (1 << half) - 1)
    first = (x & low) * (y & low)
    second = (x >> half) * (y & low) + (first >> half)
    third = (x & low) * (y >> half) + (second & low)
    high = (x >> half) * (y >> half) + (second >> half) + (third >> half)
    if a.dtype.kind == "i":
        zero = const(x, 0)
        high = high - select(a < 0, y, zero) - select(b < 0, x, zero)
    return x * y, high


def _halves(fn: Callable[..., tuple[Lanes, Lanes]], view: View) -> Lane:
    def of(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
        if a.dtype != np.bool_:
            return fn(view(a), view(b))
        full = view(a) * view(b) if fn is product_halves else view(a) + view(b)  # of one bit
        return full, full >> 1

    return Lane(of)


# ---- comparisons


def _compared(case: Case) -> tuple[Callable[[Any, Any], Any], View]:
    """The comparison of integers, and how their bits are read."""
    word = case.word("predicate") or "eq"
    test = lanes.MODES[word if word in lanes.MODES else word[1:]]
    return test, _unsigned if word.startswith("u") else _signed


def _cmpi(case: Case) -> Callable[..., Lanes]:
    test, view = _compared(case)
    return _reading(view, test)


def _cmpf(case: Case) -> Callable[..., Lanes]:
    """Ordered predicates fail on NaN, unordered ones hold."""
    word = case.word("predicate") or "false"
    if word in ("true", "false"):
        return lambda a, b: const(a == b, word == "true")
    if word in ("ord", "uno"):
        return lambda a, b: (isnan(a) | isnan(b)) == (word == "uno")
    test = lanes.MODES[word[1:]]
    if word.startswith("u"):
        return lambda a, b: test(a, b) | isnan(a) | isnan(b)
    return lambda a, b: test(a, b) & ~(isnan(a) | isnan(b))


# ---- from type to type


def _sized(a: Lanes, kind: np.dtype[Any]) -> Lanes:
    """The low bits of an integer, or an extension by zeros or by its sign."""
    return (a & const(a, 1)) != 0 if kind == np.bool_ else a.astype(kind)


def _resized(view: View) -> Lane:
    def make(case: Case) -> Callable[[Lanes], Lanes]:
        kind = kind_of(case.op.results[0].type)
        return lambda a: a if a.dtype == kind == np.bool_ else _sized(view(a), kind)

    def quick(case: Case) -> Callable[[int], int]:
        see, wrap = (
            _as_int(view, case.op.operands[0].type),
            wrapper(case.op.results[0].type),
        )
        return lambda a: wrap(see(a))

    return Lane(make=make, quick=quick)


def _converted(case: Case) -> Callable[[Lanes], Lanes]:
    """Between floats: rounded to nearest even, infinities and NaN kept."""
    src, dst = _dtype(case.op.operands[0].type), _dtype(case.op.results[0].type)
    return lambda a: lanes.convert(a, src, dst, Round.RINT, False)


def _to_float(view: View, wide: DType) -> Lane:
    def make(case: Case) -> Callable[[Lanes], Lanes]:
        dst = _dtype(case.op.results[0].type)
        return lambda a: lanes.convert(view(a).astype(wide.numpy), wide, dst, Round.RINT, False)

    return Lane(make=make)


def _to_integer(case: Case) -> Callable[[Lanes], Lanes]:
    """Toward zero, modulo 2^64, then the low bits; 0 for infinity and NaN."""
    kind = kind_of(case.op.results[0].type)

    def whole(a: Lanes) -> Lanes:
        wide = trunc(lanes.widen(a))
        rest = fmod(wide, const(wide, 2.0**64))
        rest = select(rest < -(2.0**63), rest + 2.0**64, rest)
        integers = lanes.convert(rest, F64, I64, Round.TRUNC, False)
        return _sized(select(isfinite(a), integers, const(integers, 0)), kind)

    return whole


def _same_bits(case: Case) -> Callable[[Lanes], Lanes]:
    kind = kind_of(case.op.results[0].type)
    return lambda a: a.view(kind)


def _select(core: Machine, condition: int, a: Any, b: Any) -> Any:
    return a if condition else b


def _cast(case: Case) -> Callable[..., Any]:
    """The same bits if both types are scalars; any other value is returned unchanged."""
    source, target = case.op.operands[0].type, case.op.results[0].type
    if source == target or not isinstance(source, t.Scalar) or not isinstance(target, t.Scalar):
        return lambda core, inputs: inputs[0]
    return lambda core, inputs: from_bits(target, to_bits(source, inputs[0]))


# ---- bits and constants


def to_bits(type: t.Scalar, value: Any) -> int:
    """The bit pattern of a scalar."""
    if not type.is_float:
        return int(value) & ((1 << bits_of(type)) - 1)
    kind = _dtype(type)
    return int(np.asarray([value], kind.numpy).view(kind.storage)[0])


def from_bits(type: t.Scalar, bits: int) -> Any:
    """The scalar with a bit pattern."""
    if not type.is_float:
        return wrapper(type)(bits)
    kind = _dtype(type)
    return np.asarray([bits], kind.storage).view(kind.numpy)[0]


def number(value: Attribute | None, type: t.Type) -> Any:
    """The value of a constant."""
    if isinstance(value, Bool):
        return int(value.value)
    if isinstance(value, Int):
        return value.value if _is_float(type) is None else _is_float(type).numpy.type(value.value)
    if isinstance(value, Float) and isinstance(type, t.Scalar):
        kind = _dtype(type)
        if value.text.lower().lstrip("-").startswith("0x"):
            return from_bits(type, int(value.text, 16))
        with np.errstate(over="ignore"):  # a decimal beyond the type is infinite
            return kind.numpy.type(float(value.text))
    raise fail("PTO-T190", "this constant must be a single number")


_DENSE = re.compile(r"dense<\s*(\[[-+.\w\s,]*\]|[-+.\w]+)\s*>(\s*:.*)?")
# a number with more digits is split in two, so the count of numbers does not match
_WORDS = re.compile(r"-?\d{1,20}")


def _vector(value: Attribute | None, type: t.Vector) -> Any:
    """A constant vector: one number per element, or one number for all.

    An integer too large for a signed element is taken as its bits.
    """
    match, kind = _DENSE.fullmatch(value.text) if isinstance(value, Raw) else None, type.elem.dtype
    if match is None or kind is None:
        raise fail(
            "PTO-T180",
            "a vector constant is written as `dense<..>` with one number or a list of numbers",
        )
    if kind.is_float:
        words = [word for word in re.split(r"[\[\],\s]+", match[1]) if word]
        items = [number(Float(word), type.elem) for word in words]
        numbers = np.array(items, kind.numpy)
    else:
        bits = [int(n) & ((1 << kind.bits) - 1) for n in _WORDS.findall(match[1])]
        numbers = np.array(bits, kind.storage).view(kind.numpy)
    size = math.prod(type.shape)
    if len(numbers) != (size if match[1].startswith("[") else 1):
        raise fail("PTO-T180", f"{len(numbers)} numbers do not fill a vector of {size}")
    return np.broadcast_to(numbers, size).reshape(type.shape)


def _is_float(type: t.Type) -> Any:
    return type.dtype if isinstance(type, t.Scalar) and type.is_float else None


def _constant(case: Case) -> Any:
    type = case.op.results[0].type
    if isinstance(type, t.Vector):
        return _vector(case.op.attrs.get("value"), type)
    value = number(case.op.attrs.get("value"), type)
    return wrapper(type)(value) if isinstance(value, int) else value


def _number_wins(better: Callable[[Any, Any], Any]) -> Callable[[Lanes, Lanes], Lanes]:
    return lambda a, b: select(isnan(a) | better(b, a), b, a)


SCALAR: dict[str, Do | Lane | ConstantResult] = {
    "arith.constant": ConstantResult(_constant),
    "arith.addi": _integer(operator.add),
    "arith.subi": _integer(operator.sub),
    "arith.muli": _integer(operator.mul),
    "arith.divsi": _division(lanes.div, _signed, _toward_zero),
    "arith.divui": _division(lanes.div, _unsigned, operator.floordiv),
    "arith.ceildivsi": _division(_ceil_division, _signed, lambda a, b: -(-a // b)),
    "arith.ceildivui": _division(_ceil_division, _unsigned, lambda a, b: -(-a // b)),
    "arith.floordivsi": _division(_floor_division, _signed, operator.floordiv),
    "arith.remsi": _division(fmod, _signed, lambda a, b: a - b * _toward_zero(a, b)),
    "arith.remui": _division(fmod, _unsigned, operator.mod),
    "arith.andi": Lane(operator.and_, quick=_quickly(operator.and_, _own)),
    "arith.ori": Lane(operator.or_, quick=_quickly(operator.or_, _own)),
    "arith.xori": Lane(operator.xor, quick=_quickly(operator.xor, _own)),
    "arith.shli": _shift(operator.lshift),
    "arith.shrsi": _shift(operator.rshift, _signed),
    "arith.shrui": _shift(operator.rshift, _unsigned),
    "arith.maxsi": _integer(lanes.maximum, _signed, max),
    "arith.maxui": _integer(lanes.maximum, _unsigned, max),
    "arith.minsi": _integer(lanes.minimum, _signed, min),
    "arith.minui": _integer(lanes.minimum, _unsigned, min),
    "arith.addui_extended": _halves(add_carry, _unsigned),
    "arith.mulsi_extended": _halves(product_halves, _signed),
    "arith.mului_extended": _halves(product_halves, _unsigned),
    "arith.addf": Lane(lanes.add),
    "arith.subf": Lane(lanes.sub),
    "arith.mulf": Lane(lanes.mul),
    "arith.divf": Lane(operator.truediv),
    "arith.remf": Lane(fmod),
    "arith.maximumf": Lane(lanes.maximum),
    "arith.minimumf": Lane(lanes.minimum),
    "arith.maxnumf": Lane(_number_wins(operator.gt)),
    "arith.minnumf": Lane(_number_wins(operator.lt)),
    "arith.negf": Lane(lanes.negative),
    "arith.cmpi": Lane(make=_cmpi, quick=lambda case: _quickly(*_compared(case))(case)),
    "arith.cmpf": Lane(make=_cmpf),
    "arith.select": Do(lambda case: _select),
    "arith.index_cast": _resized(_signed),
    "arith.index_castui": _resized(_unsigned),
    "arith.extsi": _resized(_signed),
    "arith.extui": _resized(_unsigned),
    "arith.trunci": _resized(_unsigned),
    "arith.extf": Lane(make=_converted),
    "arith.truncf": Lane(make=_converted),
    "arith.sitofp": _to_float(_signed, I64),
    "arith.uitofp": _to_float(_unsigned, U64),
    "arith.fptosi": Lane(make=_to_integer),
    "arith.fptoui": Lane(make=_to_integer),
    "arith.bitcast": Lane(make=_same_bits),
    "builtin.unrealized_conversion_cast": Do(_cast),
    "math.absi": _integer(absolute, quick=lambda a: abs(a)),
    "math.exp": Lane(mathlib.exp),
    "math.log": Lane(mathlib.log),
    "math.sqrt": Lane(mathlib.sqrt),
    "math.rsqrt": Lane(mathlib.rsqrt),
    "math.absf": Lane(absolute),
    "math.floor": Lane(floor),
    "math.ceil": Lane(ceil),
    "math.tanh": Lane(mathlib.tanh),
}
