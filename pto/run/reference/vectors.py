"""Lane functions on registers: every lane computed, lanes whose mask is off become zero.

Shapes of operands are told apart once; a register program executes nothing more often than this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.isa.meaning import Lane
from pto.isa.meaning.vector.masks import Mask, full
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core

Step = Callable[..., Items]


def lane(case: Case, body: Lane) -> Step:
    """result[i] = mask[i] ? fn(sources[i]) : 0; the mask is the last operand."""
    fn, kind = body.function(case), dtype_of(case, "result")
    sources = case.row.operands[:-1]
    scalars = [i for i, o in enumerate(sources) if isinstance(case.type(o.name), t.Scalar)]
    zero, every, width = np.zeros((), kind.numpy), full(kind.itemsize), kind.itemsize

    def keep(value: Items, mask: Mask) -> Items:
        return np.where(mask[::width], value, zero)

    if scalars:
        return _with_scalar(fn, keep, every, scalars[0], lane_maker(kind))
    make = {1: _unary, 2: _binary}.get(len(sources), _any)
    return make(fn, keep, every)


def _unary(fn: Step, keep: Step, every: Mask) -> Step:
    def step(core: Core, a: Items, mask: Mask) -> Items:
        return fn(a) if mask is every else keep(fn(a), mask)

    return step


def _binary(fn: Step, keep: Step, every: Mask) -> Step:
    def step(core: Core, a: Items, b: Items, mask: Mask) -> Items:
        return fn(a, b) if mask is every else keep(fn(a, b), mask)

    return step


def _any(fn: Step, keep: Step, every: Mask) -> Step:
    def step(core: Core, *operands: Any) -> Items:
        *sources, mask = operands
        return fn(*sources) if mask is every else keep(fn(*sources), mask)

    return step


def _with_scalar(fn: Step, keep: Step, every: Mask, at: int, one: Callable[[Any], Items]) -> Step:
    """One scalar among the sources, as a lane of the result's type."""

    def pair(core: Core, a: Items, scalar: Any, mask: Mask) -> Items:
        value = fn(a, one(scalar))
        return value if mask is every else keep(value, mask)

    def some(core: Core, *operands: Any) -> Items:
        *sources, mask = operands
        sources[at] = one(sources[at])
        value = fn(*sources)
        return value if mask is every else keep(value, mask)

    return pair if at == 1 else some
