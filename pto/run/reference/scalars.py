"""Lane functions on scalars: one lane of each, Python numbers in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.core.primitives import on_arrays
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.scalar.arith import kind_of, wrapper
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

Numbers = Callable[..., Any]


def lane(case: Case, body: Lane) -> Callable[..., Any]:
    """results = fn(sources)."""
    of = numbers(case, body)
    return lambda core, *given: of(*given)


def numbers(case: Case, body: Lane) -> Numbers:
    """fn(numbers of a program) -> numbers of a program.

    Uses the integer shortcut if there is one.
    """
    if body.quick is not None:
        return body.quick(case)
    fn = on_arrays(body.function(case))
    kinds = [kind_of(v.type) for v in case.op.operands]
    results = [kind_of(r.type) for r in case.op.results]
    is_integral = all(k.kind in "biu" for k in (*kinds, *results))
    # integers as NumPy scalars, which are fast; floats as arrays, for which all functions are exact
    ins = [_in(v.type, k, is_integral) for v, k in zip(case.op.operands, kinds, strict=True)]
    outs = [_out(case, n, k) for n, k in enumerate(results)]
    if len(outs) == 1:
        fn = _checked(fn, body)
        return _plain(fn, ins, outs[0])
    return lambda *given: tuple(
        out(v)
        for out, v in zip(outs, fn(*(a(v) for a, v in zip(ins, given, strict=True))), strict=True)
    )


def _plain(fn: Numbers, ins: Sequence[Numbers], out: Numbers) -> Numbers:
    if len(ins) == 2:
        first, second = ins
        return lambda a, b: out(fn(first(a), second(b)))
    return lambda *given: out(fn(*(a(v) for a, v in zip(ins, given, strict=True))))


def _checked(fn: Numbers, body: Lane) -> Numbers:
    needs, refused = body.needs, body.refused
    if needs is None or refused is None:
        return fn

    def checked(*sources: Any) -> Any:
        if not needs(*sources):
            raise refused(*sources)
        return fn(*sources)

    return checked


def _in(type: t.Type, kind: np.dtype[Any], is_integral: bool) -> Numbers:
    if kind.kind == "f" or not isinstance(type, t.Scalar) or type.is_float:
        return lambda value: np.asarray([value], kind)
    wrap, one = wrapper(type), kind.type

    def number(value: Any) -> Any:
        try:
            lane = one(value)
        except OverflowError:  # the same bits, interpreted differently
            lane = one(wrap(value))
        return lane if is_integral else np.asarray([lane])

    return number


def _out(case: Case, n: int, kind: np.dtype[Any]) -> Numbers:
    if kind.kind in "biu":
        wrap = wrapper(case.op.results[n].type)
        return lambda found: wrap(int(found if np.ndim(found) == 0 else found[0]))
    return lambda found: kind.type(found[0])
