"""Logical vectors: lane functions, and meanings on the interface of whole vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.core.primitives import on_arrays
from pto.isa.meaning import Lane, Vectors
from pto.isa.meaning.vector.masks import image, mask_width
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.meaning.vmi.words import VectorWords
from pto.isa.row import types as t
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core

Step = Callable[..., Any]


class LogicalOperands:
    """The kinds of operands of a lane function on logical vectors."""

    def __init__(self, case: Case, body: Lane) -> None:
        sees = body.sees or dtype_of
        given = [o.name for o in case.row.operands if case.type(o.name) is not None]
        names = [*given, *(r.name for r in case.row.results)]
        self.kinds = {n: sees(case, n) for n in names if isinstance(case.type(n), t.LogicalVReg)}
        governed = not body.chooses and bool(given) and given[-1] == "mask"
        self.mask = given[-1] if governed else None
        self.sources = [name for name in given if name != self.mask]
        self.results = [r.name for r in case.row.results]
        # the lane type of scalars: that of the first source
        self.kind = next((self.kinds[n] for n in self.sources if n in self.kinds), None)


def lane(case: Case, body: Lane) -> Step:
    """result[i] = mask[i] ? fn(sources[i]) : 0."""
    fn, shape = on_arrays(body.function(case)), LogicalOperands(case, body)
    ins = [_source(case, shape, name) for name in shape.sources]
    outs = [_result(case, shape, name) for name in shape.results]
    governed, alone = shape.mask is not None, len(outs) == 1

    def step(core: Core, *given: Any) -> Any:
        mask = given[len(ins)] if governed else None
        found = fn(*(read(v) for read, v in zip(ins, given, strict=False)))
        several = (found,) if alone else found
        results = tuple(out(v, mask) for out, v in zip(outs, several, strict=True))
        return results[0] if alone else results

    return step


def _source(case: Case, shape: LogicalOperands, name: str) -> Step:
    if name in shape.kinds:
        numpy = shape.kinds[name].numpy
        return lambda value: value.view(numpy)
    if isinstance(case.type(name), t.Scalar) and shape.kind is not None:
        return lane_maker(shape.kind)
    return lambda mask: mask


def _result(case: Case, shape: LogicalOperands, name: str) -> Step:
    if name not in shape.kinds:
        return lambda found, mask: found if mask is None else found & mask
    numpy = dtype_of(case, name).numpy

    def lanes(found: Items, mask: Items | None) -> Items:
        if mask is not None:
            found = np.where(mask, found, np.zeros((), found.dtype))
        return found.view(numpy)

    return lanes


def vectors(case: Case, body: Vectors) -> Step:
    """The meaning itself, on the NumPy implementation of the interface."""
    fn, words = body.make(case), VectorWords(case)
    kinds = [_shown(case, n) for n in range(len(case.op.results))]
    types = [case.type(o.name) for o in case.row.operands]
    lanes = next((k.itemsize for k in map(_element, types) if k is not None), 1)
    masks = {n: mask_width(m, lanes) for n, m in enumerate(types) if isinstance(m, t.Mask)}
    images = [mask_width(r.type, lanes) for r in case.op.results]

    def step(core: Core, *given: Any) -> Any:
        if masks:
            given = tuple(
                v[:: masks[n]] if n in masks and v is not None else v for n, v in enumerate(given)
            )
        found = fn(words, *given)
        if isinstance(found, tuple):
            shown = zip(found, kinds, images, strict=True)
            return tuple(_as(v, kind, image) for v, kind, image in shown)
        return _as(found, kinds[0], images[0]) if kinds else None

    return step


def _shown(case: Case, n: int) -> np.dtype[Any] | None:
    """The element type of a result; None if it is not a vector."""
    dtype = _element(case.op.results[n].type)
    return None if dtype is None else dtype.numpy


def _element(type: t.Type | None) -> DType | None:
    return type.elem.dtype if isinstance(type, t.VReg | t.LogicalVReg) else None


def _as(value: Any, kind: np.dtype[Any] | None, width: int) -> Any:
    if width:
        return image(value, width)
    return value if kind is None else value.view(kind)
