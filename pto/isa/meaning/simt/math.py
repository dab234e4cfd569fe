"""Arithmetic of one work item: lane functions, on one number or on both of a pair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.dtypes import DType, dtype
from pto.core.errors import fail
from pto.core.floats import round_mode
from pto.core.primitives import absolute, ceil, const, cosine, floor, rint, select, sine, trunc
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Cooperative, Lane
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.scalar.arith import product_halves
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def _whole(fn: Callable[[Lanes], Lanes]) -> Lane:
    """Rounding to an integral value: exact in any float type, so computed in f32."""

    def of(a: Lanes) -> Lanes:
        return lanes.cast(fn(a.astype(np.float32)), a)

    return Lane(of)


def _away(a: Lanes) -> Lanes:
    """The nearest integer; ties away from zero."""
    truncated = trunc(a)
    up = absolute(a - truncated) >= const(a, 0.5)
    step = select(a < const(a, 0), const(a, -1), const(a, 1))
    return select(up, truncated + step, truncated)


UNARY: dict[str, Lane] = {
    "absf": Lane(absolute),
    "sqrt": Lane(mathlib.sqrt),
    "exp": Lane(mathlib.exp),
    "log": Lane(mathlib.log),
    "ceil": _whole(ceil),
    "floor": _whole(floor),
    "rint": _whole(rint),
    "round": _whole(_away),
}
BINARY: dict[str, Lane] = {
    "fmin": Lane(lanes.minimum),
    "fmax": Lane(lanes.maximum),
    "pow": Lane(mathlib.power),
}
FMA = Lane(lanes.fma)


def _bytes(lhs: Lanes, rhs: Lanes, selector: Lanes) -> Lanes:
    """Byte n of the result is the byte that nibble n of selector selects, modulo 8.

    0 to 3 are bytes of rhs, 4 to 7 of lhs.
    """
    a, b, by = (v.view("u4") for v in (lhs, rhs, selector))
    result = const(a, 0) & a
    for n in range(4):
        wanted = (by >> const(by, 4 * n)) & const(by, 7)
        source = select(wanted >= const(by, 4), a, b)
        shift = (wanted & const(by, 3)) * const(by, 8)
        result = result | (((source >> shift) & const(a, 255)) << const(a, 8 * n))
    return result.view("i4")


PRMT = Lane(_bytes)


def _product(of: Callable[[Lanes, Lanes], Lanes]) -> Lane:
    """A product of signed or unsigned numbers, selected by an attribute."""

    def make(case: Case) -> Callable[[Lanes, Lanes], Lanes]:
        kind = "u" if case.word("signedness") == "unsigned" else "i"
        return lambda a, b: of(*(v.view(f"{kind}{v.dtype.itemsize}") for v in (a, b)))

    return Lane(make=make)


def _widened(a: Lanes, b: Lanes) -> Lanes:
    x, y = (v.astype(f"{v.dtype.kind}8") for v in (a, b))
    return (x * y).view("i8")


WIDE_PRODUCT = _product(_widened)
HIGH_HALF = _product(lambda a, b: product_halves(a, b)[1].view(f"i{a.dtype.itemsize}"))

# ---- conversions


def _element(type: t.Type | None, unsigned: bool) -> DType:
    elem = type.elem if isinstance(type, t.Vector) else type
    if not isinstance(elem, t.Scalar) or elem.dtype is None:
        raise fail("PTO-T193", "a conversion needs element types")
    kind = elem.dtype
    return dtype(f"u{kind.bits}") if unsigned and not kind.is_float else kind


def _convert(case: Case) -> Callable[[Lanes], Lanes]:
    unsigned = case.word("signedness") == "unsigned"
    src, dst = (_element(case.type(n), unsigned) for n in ("src", "dst"))
    mode = case.word("rounding") or "r"
    if mode == "h":
        raise fail("PTO-X020", "round(h) is a mode that no document defines")
    rounding = round_mode(mode)
    saturate = case.word("saturation") == "sat"

    def of(a: Lanes) -> Lanes:
        viewed = a.view(src.numpy) if not src.is_float else a
        return lanes.convert(viewed, src, dst, rounding, saturate)

    return of


CONVERT = Lane(make=_convert)


BITS = Cooperative(
    lambda case: lambda items, value: items.reinterpret(value, case.op.results[0].type)
)
PICK = Cooperative(lambda case: lambda items, packed, index: items.element(packed, index))


def _angle(fn: Callable[[Lanes], Lanes]) -> Lane:
    """Computed in f64 and rounded once: the document requires no particular bits."""
    return Lane(lambda a: fn(a.astype(np.float64)).astype(np.float32))


ANGLES: dict[str, Lane] = {"sin": _angle(sine), "cos": _angle(cosine)}
