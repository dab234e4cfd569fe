"""The primitives of lane functions, defined on NumPy arrays; a compiling engine has its own forms.

A lane value is a NumPy array or a symbolic value of a compiling engine (`Symbolic`). Both have
`dtype`, `astype`, `view` and Python's operators; every other operation is a primitive of this file.
The compiling engine has a table of the same names. A definition never branches on values. A faster
way for arrays that does branch on them is a `shortcut` beside it, and a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[Any]
NAMES: Final[list[str]] = []  # of the primitives: what an engine must have


class Symbolic:
    """Values that an engine writes code for; the engine knows how to write each primitive."""

    __slots__ = ()
    __array_ufunc__ = None  # an array beside it leaves operators to it

    def primitive(self, name: str, args: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    def shortcut(self, definition: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """The result of `definition`; an engine may compute the same bits in a faster way."""
        return definition(*args)


class LaneFunction(Protocol):
    """A lane function; `on_arrays` is its implementation on NumPy arrays."""

    on_arrays: Callable[..., Any]

    def __call__(self, *args: Any) -> Any: ...


def primitive(on_arrays: Callable[..., Any]) -> LaneFunction:
    """A function that every engine has a form of its own for."""
    name = on_arrays.__name__
    NAMES.append(name)

    @wraps(on_arrays)
    def call(*args: Any) -> Any:
        for value in args:
            if isinstance(value, Symbolic):
                return value.primitive(name, args)
        return on_arrays(*args)

    return _function(call, on_arrays)


def shortcut(on_arrays: Callable[..., Any]) -> Callable[[Callable[..., Any]], LaneFunction]:
    """Give a definition a faster implementation on arrays, with the same bits."""

    def beside(definition: Callable[..., Any]) -> LaneFunction:
        @wraps(definition)
        def call(*args: Any) -> Any:
            for value in args:
                if isinstance(value, Symbolic):
                    return value.shortcut(definition, args)
            return on_arrays(*args)

        return _function(call, on_arrays)

    return beside


def _function(call: Any, on_arrays: Callable[..., Any]) -> LaneFunction:
    call.on_arrays = on_arrays
    return call


def on_arrays(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation of a lane function for arrays only."""
    return getattr(fn, "on_arrays", fn)


def const(like: Any, value: Any) -> Lanes:
    """`value` as a lane of the type of `like`."""
    return np.asarray(value, dtype=like.dtype)


@primitive
def select(condition: Any, a: Any, b: Any) -> Lanes:
    """a where the condition holds, else b."""
    return np.where(condition, a, b)


@primitive
def greater_of(a: Any, b: Any) -> Lanes:
    """NaN wins; of two zeros it may be either."""
    return np.maximum(a, b)


@primitive
def less_of(a: Any, b: Any) -> Lanes:
    """NaN wins; of two zeros it may be either."""
    return np.minimum(a, b)


@primitive
def absolute(a: Any) -> Lanes:
    """|a|; the lowest signed integer wraps to itself."""
    return np.abs(a)


copysign, signbit = primitive(np.copysign), primitive(np.signbit)
isnan = primitive(np.isnan)
isinf = primitive(np.isinf)
isfinite = primitive(np.isfinite)
sqrt, rint = primitive(np.sqrt), primitive(np.rint)
floor = primitive(np.floor)
ceil = primitive(np.ceil)
trunc = primitive(np.trunc)


@primitive
def quotient(a: Any, b: Any) -> Lanes:
    """Of integers, toward zero; x / 0 is 0, and the lowest by -1 wraps."""
    none = b == 0
    if np.ndim(a) == 0 and np.ndim(b) == 0:  # a scalar: Python divides it sooner
        magnitude = 0 if none else abs(int(a)) // abs(int(b))
        kind, below = np.result_type(a, b), bool(a < 0) != bool(b < 0)
        return _wrapped(-magnitude if below else magnitude, kind)
    floored = np.floor_divide(
        np.where(none, a.dtype.type(0), a), np.where(none, b.dtype.type(1), b)
    )
    inexact = (floored * b != a) & ~none
    return floored + (inexact & ((a < 0) != (b < 0))).astype(a.dtype)


def _wrapped(value: int, kind: np.dtype[Any]) -> Any:
    bits = np.dtype(f"u{kind.itemsize}")
    return bits.type(value & ((1 << 8 * kind.itemsize) - 1)).view(kind)


@primitive
def remainder(a: Any, b: Any) -> Lanes:
    """a - floor(a / b) * b with an exact quotient: the sign of b. By 0: NaN, of integers 0."""
    return np.remainder(a, b)


@primitive
def fmod(a: Any, b: Any) -> Lanes:
    """a - trunc(a / b) * b with an exact quotient: the sign of a. By 0: NaN, of integers 0."""
    return np.fmod(a, b)


@primitive
def every(a: Any) -> Lanes:
    """True where all elements of a packed value (along the last axis) are true."""
    return np.all(np.asarray(a), -1, keepdims=True)


@primitive
def repeated(step: Callable[..., tuple[Any, ...]], *state: Any) -> tuple[Any, ...]:
    """Repeat state = step(*state) until state[0] is 0 in every lane. In lanes where it is 0
    earlier, further steps must not change the result."""
    while np.any(state[0]):
        state = step(*state)
    return state


def _library(name: str) -> Callable[[Any], Any]:
    """A function of the C library, which every engine calls; NaN where it has no value."""
    one = np.frompyfunc(lambda x: getattr(math, name)(x) if math.isfinite(x) else math.nan, 1, 1)
    return lambda a: np.asarray(one(a), np.float64)


_SINE, _COSINE = _library("sin"), _library("cos")


@primitive
def sine(a: Any) -> Lanes:
    """Of f64, in radians."""
    return _SINE(a)


@primitive
def cosine(a: Any) -> Lanes:
    """Of f64, in radians."""
    return _COSINE(a)


@primitive
def fused(a: Any, b: Any, c: Any) -> Lanes:
    """a * b + c of f64 or f32, rounded once. An array does it with the errors of a product and of
    sums, which are exact far from overflow, the last but one rounded to odd (Boldo, Melquiond
    2008); of f32 in f64, where the product is exact."""
    if np.result_type(a, b, c) == np.float32:
        wide = np.asarray(a, np.float64) * b
        return np.asarray(_to_odd(*_exact_sum(wide, np.asarray(c, np.float64))), np.float32)
    product, low = _exact_product(a, b)
    near, left = _exact_sum(c, low)
    total, right = _exact_sum(product, near)
    odd = _to_odd(*_exact_sum(left, right))
    return np.where(np.isfinite(total), total + odd, product + c)


def _to_odd(total: Lanes, lost: Lanes) -> Lanes:
    """Round to odd: an inexact sum (`lost` is its rounding error) gets an odd last bit."""
    bits = total.view(np.int64)
    toward = np.where((lost > 0) == (total > 0), 1, -1)
    even = (lost != 0) & np.isfinite(total) & (bits & 1 == 0)
    return np.where(even, bits + toward, bits).view(np.float64)


def _exact_product(a: Any, b: Any) -> tuple[Lanes, Lanes]:
    """The rounded product and its rounding error."""
    product = np.asarray(a * b, np.float64)
    (high, low), (top, rest) = _halves(a), _halves(b)
    return product, ((high * top - product) + high * rest + low * top) + low * rest


def _halves(a: Any) -> tuple[Any, Any]:
    """The upper 26 bits of a mantissa, and the remaining bits."""
    far = a * 134217729.0
    high = far - (far - a)
    return high, a - high


def _exact_sum(a: Any, b: Any) -> tuple[Lanes, Lanes]:
    """The rounded sum and its rounding error."""
    total = np.asarray(a + b, np.float64)
    part = total - a
    return total, (a - (total - part)) + (b - part)
