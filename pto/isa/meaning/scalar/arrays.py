"""Small arrays of the scalar unit: a word of 64 bits for each element, or event id."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from pto.core.errors import PtoError, fail
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.tile.mover import Mover
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

_ID = t.Scalar("index", None)


def _form(type: t.Type | None) -> tuple[tuple[int, ...], t.Scalar]:
    """The shape of an array, and its element type."""
    if isinstance(type, t.LocalArray):
        return type.shape, type.elem
    return ((type.size,) if isinstance(type, t.EventIdArray) else ()), _ID


def _declare(case: Case) -> Callable[..., Any]:
    shape, _ = _form(case.op.results[0].type)
    return lambda x: x.array(prod(shape))


def _number(x: Mover, shape: tuple[int, ...], indices: Any) -> Any:
    """The index of a word: local arrays have one index per dimension, other arrays have one."""
    numbers = [x.number(n) for n in (indices if isinstance(indices, list) else [indices])]
    position = x.number(0)

    def error() -> PtoError:
        if not isinstance(indices, list):
            return fail("PTO-S133", f"index {indices} is outside the array of {shape[0]} event ids")
        extents = "x".join(map(str, shape))
        return fail("PTO-S133", f"index {numbers} is outside the local array of {extents}")

    for index, size in zip(numbers, shape, strict=True):
        x.require((index >= 0) & (index < size), error)
        position = position * size + index
    return position


def _get(case: Case) -> Callable[..., Any]:
    shape, elem = _form(case.type("array"))

    def get(x: Mover, array: Any, indices: Any) -> Any:
        return x.scalar(x.slot(array, _number(x, shape, indices)), elem)

    return get


def _set(case: Case) -> Callable[..., None]:
    shape, elem = _form(case.type("array"))

    def put(x: Mover, array: Any, indices: Any, value: Any) -> None:
        x.set_slot(array, _number(x, shape, indices), x.bits(value, elem))

    return put


DECLARE = Move(_declare)
GET = Move(_get)
SET = Move(_set)
