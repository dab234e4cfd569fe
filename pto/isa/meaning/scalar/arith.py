"""What the scalar unit computes: arith and math on integers of exact width and on exact floats.

Integers are Python ints: signed for `i8`..`i64` and `index` (64 bits), unsigned for `ui8`..`ui64`,
0 or 1 for `i1`. Floats are NumPy scalars of their type.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core import convert
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Bool, Float, Int, Raw
from pto.isa.rules.rule import Case

INDEX_BITS = 64
Wrap = Callable[[int], int]


def bits_of(type: t.Type | None) -> int:
    if not isinstance(type, t.Scalar):
        raise fail("PTO-T190", "scalar arithmetic on vectors is not executed")
    return INDEX_BITS if type.dtype is None else type.dtype.bits


def is_unsigned(type: t.Type | None) -> bool:
    return isinstance(type, t.Scalar) and (type.name.startswith("u") or type.name == "i1")


def wrapper(type: t.Type | None) -> Wrap:
    """Brings an int into the range of a type, modulo its width."""
    bits = bits_of(type)
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    if is_unsigned(type):
        return lambda value: value & mask
    return lambda value: ((value + half) & mask) - half


def _first(case: Case) -> t.Type:
    return case.op.operands[0].type


def _masked(type: t.Type) -> Wrap:
    mask = (1 << bits_of(type)) - 1
    return lambda value: value & mask


def _signed(type: t.Type) -> Wrap:
    bits = bits_of(type)
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    return lambda value: ((value + half) & mask) - half


def _integer(fn: Callable[[int, int], int], view: Callable[[t.Type], Wrap] = wrapper) -> Do:
    """An operation on integers, read signed or unsigned, wrapped to the type."""

    def make(case: Case) -> Callable[..., int]:
        wrap, see = wrapper(_first(case)), view(_first(case))
        return lambda core, a, b: wrap(fn(see(a), see(b)))

    return Do(make)


def _divided(a: int, b: int, round_to: Callable[[int, int], int]) -> int:
    if b == 0:
        raise fail("PTO-S132", f"integer division of {a} by zero")
    return round_to(a, b)


def _toward_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _remainder(a: int, b: int) -> int:
    return a - b * _toward_zero(a, b)


def _division(round_to: Callable[[int, int], int], view: Callable[[t.Type], Wrap]) -> Do:
    return _integer(lambda a, b: _divided(a, b, round_to), view)


def _shift(fn: Callable[[int, int], int], view: Callable[[t.Type], Wrap]) -> Do:
    """Shifts by the width or more have no value in MLIR; here they shift everything out."""

    def make(case: Case) -> Callable[..., int]:
        wrap, see = wrapper(_first(case)), view(_first(case))
        count, bits = _masked(_first(case)), bits_of(_first(case))
        return lambda core, a, b: wrap(fn(see(a), min(count(b), bits)))

    return Do(make)


def _halves(of: Callable[[int, int], int], view: Callable[[t.Type], Wrap]) -> Do:
    """A result twice as wide, in two: the low bits, then the high ones as their own type."""

    def make(case: Case) -> Callable[..., tuple[int, int]]:
        see, bits = view(_first(case)), bits_of(_first(case))
        low, high = (wrapper(r.type) for r in case.op.results)

        def both(core: Machine, a: int, b: int) -> tuple[int, int]:
            whole = of(see(a), see(b))
            return low(whole), high(whole >> bits)

        return both

    return Do(make)


def _float(fn: Callable[[Any, Any], Any]) -> Do:
    def make(case: Case) -> Callable[..., Any]:
        kind = _dtype(_first(case)).numpy.type
        return lambda core, a, b: kind(fn(a, b))

    return Do(make)


def _dtype(type: t.Type | None) -> DType:
    if isinstance(type, t.Scalar) and type.dtype is not None:
        return type.dtype
    raise fail("PTO-T190", "scalar arithmetic on vectors is not executed")


def _number_wins(a: Any, b: Any, pick: Callable[[Any, Any], Any]) -> Any:
    if np.isnan(a) or np.isnan(b):
        return b if np.isnan(a) else a
    return pick(a, b)


def _unary(fn: Callable[[Any], Any]) -> Do:
    """A function of one float, computed as tiles compute it."""

    def make(case: Case) -> Callable[..., Any]:
        kind = _dtype(_first(case)).numpy
        return lambda core, a: fn(np.asarray([a], kind))[0]

    return Do(make)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _cmpi(case: Case) -> Callable[..., int]:
    word = case.word("predicate") or "eq"
    test = _COMPARE[word if word in ("eq", "ne") else word[1:]]
    see = (_masked if word.startswith("u") else _signed)(_first(case))
    return lambda core, a, b: int(test(see(a), see(b)))


def _cmpf(case: Case) -> Callable[..., int]:
    word = case.word("predicate") or "false"
    if word in ("true", "false"):
        return lambda core, a, b: int(word == "true")
    if word in ("ord", "uno"):
        return lambda core, a, b: int(bool(np.isnan(a) or np.isnan(b)) == (word == "uno"))
    unordered, test = word.startswith("u"), _COMPARE[word[1:]]

    def compare(core: Machine, a: Any, b: Any) -> int:
        return int(unordered) if np.isnan(a) or np.isnan(b) else int(bool(test(a, b)))

    return compare


def _select(core: Machine, condition: int, a: Any, b: Any) -> Any:
    return a if condition else b


def _resize(view: Callable[[t.Type], Wrap]) -> Do:
    """Integer width changes: read signed or unsigned, keep what fits."""

    def make(case: Case) -> Callable[..., int]:
        see, wrap = view(_first(case)), wrapper(case.op.results[0].type)
        return lambda core, a: wrap(see(a))

    return Do(make)


def _converted(case: Case) -> Callable[..., Any]:
    """Between floats: rounded to nearest even, infinities and NaN kept."""
    src, dst = _dtype(_first(case)), _dtype(case.op.results[0].type)
    return lambda core, a: convert.convert(
        np.asarray([a], src.numpy), src, dst, convert.Round.RINT, False
    )[0]


def _to_float(view: Callable[[t.Type], Wrap]) -> Do:
    def make(case: Case) -> Callable[..., Any]:
        see, dst = view(_first(case)), _dtype(case.op.results[0].type)
        wide = np.dtype(np.uint64 if view is _masked else np.int64)
        from pto.core.dtypes import I64, U64

        src = U64 if view is _masked else I64
        return lambda core, a: convert.convert(
            np.asarray([see(a)], wide), src, dst, convert.Round.RINT, False
        )[0]

    return Do(make)


def _to_integer(case: Case) -> Callable[..., int]:
    wrap = wrapper(case.op.results[0].type)
    return lambda core, a: wrap(math.trunc(float(a))) if math.isfinite(float(a)) else 0


def _absolute(case: Case) -> Callable[..., int]:
    """The lowest number has no positive counterpart and stays: MLIR's absi."""
    wrap = wrapper(_first(case))
    return lambda core, a: wrap(abs(a))


def _cast(case: Case) -> Callable[..., Any]:
    """The same bits where both are scalars; any other value is itself."""
    cast = same_bits(case)
    return lambda core, inputs: cast(core, inputs[0])


def same_bits(case: Case) -> Callable[..., Any]:
    """One scalar type as another of the same width."""
    source, target = _first(case), case.op.results[0].type
    if source == target or not isinstance(source, t.Scalar) or not isinstance(target, t.Scalar):
        return lambda core, a: a
    return lambda core, a: from_bits(target, to_bits(source, a))


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
    raise fail("PTO-T190", "this constant is not a single number")


_DENSE = re.compile(r"dense<\s*(\[[-\d\s,]*\]|-?\d+)\s*>(\s*:.*)?")


def _vector(value: Attribute | None, type: t.Vector) -> Callable[..., Any]:
    """Integers side by side, or one for all; an array made anew each time, since tmrgsort fills it.

    One too large for a signed element means its bits.
    """
    found = _DENSE.fullmatch(value.text) if isinstance(value, Raw) else None
    kind = None if type.elem.is_float else type.elem.dtype
    if found is None or kind is None:
        raise fail("PTO-T180", "a vector constant is `dense<..>` of one integer or a list of them")
    # a number too long to mean anything falls apart into several, and so into the wrong count
    numbers = [int(n) & ((1 << kind.bits) - 1) for n in re.findall(r"-?\d{1,20}", found[1])]
    size = math.prod(type.shape)
    if len(numbers) != (size if found[1].startswith("[") else 1):
        raise fail("PTO-T180", f"{len(numbers)} numbers make no vector of {size}")
    whole = np.array(numbers, kind.storage).view(kind.numpy)
    return lambda core: np.broadcast_to(whole, size).reshape(type.shape).copy()


def _is_float(type: t.Type) -> Any:
    return type.dtype if isinstance(type, t.Scalar) and type.is_float else None


def _constant(case: Case) -> Callable[..., Any]:
    type = case.op.results[0].type
    if isinstance(type, t.Vector):
        return _vector(case.op.attrs.get("value"), type)
    value = number(case.op.attrs.get("value"), type)
    if isinstance(value, int):
        value = wrapper(type)(value)
    return lambda core: value


# Functions of one float, as tiles compute them.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "math.exp": mathlib.exp,
    "math.log": mathlib.log,
    "math.sqrt": mathlib.sqrt,
    "math.rsqrt": mathlib.rsqrt,
    "math.absf": np.abs,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.tanh": mathlib.tanh,
}
SCALAR: dict[str, Do] = {
    "arith.constant": Do(_constant),
    "arith.addi": _integer(operator.add),
    "arith.subi": _integer(operator.sub),
    "arith.muli": _integer(operator.mul),
    "arith.divsi": _division(_toward_zero, _signed),
    "arith.divui": _division(operator.floordiv, _masked),
    "arith.ceildivsi": _division(_ceil, _signed),
    "arith.ceildivui": _division(_ceil, _masked),
    "arith.floordivsi": _division(operator.floordiv, _signed),
    "arith.remsi": _division(_remainder, _signed),
    "arith.remui": _division(operator.mod, _masked),
    "arith.andi": _integer(operator.and_),
    "arith.ori": _integer(operator.or_),
    "arith.xori": _integer(operator.xor),
    "arith.shli": _shift(operator.lshift, _masked),
    "arith.shrsi": _shift(operator.rshift, _signed),
    "arith.shrui": _shift(operator.rshift, _masked),
    "arith.maxsi": _integer(max, _signed),
    "arith.maxui": _integer(max, _masked),
    "arith.minsi": _integer(min, _signed),
    "arith.minui": _integer(min, _masked),
    "arith.addui_extended": _halves(operator.add, _masked),
    "arith.mulsi_extended": _halves(operator.mul, _signed),
    "arith.mului_extended": _halves(operator.mul, _masked),
    "arith.addf": _float(operator.add),
    "arith.subf": _float(operator.sub),
    "arith.mulf": _float(operator.mul),
    "arith.divf": _float(operator.truediv),
    "arith.remf": _float(np.fmod),
    "arith.maximumf": _float(lanes.maximum),
    "arith.minimumf": _float(lanes.minimum),
    "arith.maxnumf": _float(lambda a, b: _number_wins(a, b, max)),
    "arith.minnumf": _float(lambda a, b: _number_wins(a, b, min)),
    "arith.negf": Do(lambda case: lambda core, a: -a),
    "arith.cmpi": Do(_cmpi),
    "arith.cmpf": Do(_cmpf),
    "arith.select": Do(lambda case: _select),
    "arith.index_cast": _resize(_signed),
    "arith.index_castui": _resize(_masked),
    "arith.extsi": _resize(_signed),
    "arith.extui": _resize(_masked),
    "arith.trunci": _resize(_masked),
    "arith.extf": Do(_converted),
    "arith.truncf": Do(_converted),
    "arith.sitofp": _to_float(_signed),
    "arith.uitofp": _to_float(_masked),
    "arith.fptosi": Do(_to_integer),
    "arith.fptoui": Do(_to_integer),
    "arith.bitcast": Do(same_bits),
    "builtin.unrealized_conversion_cast": Do(_cast),
    "math.absi": Do(_absolute),
    **{name: _unary(fn) for name, fn in FUNCTIONS.items()},
}
