"""Meanings on the interface of whole vectors, registers or logical ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning.kinds import Vectors
from pto.isa.meaning.vector.masks import image, mask_width
from pto.isa.meaning.vmi.words import VectorWords
from pto.isa.row import types as t
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core

Step = Callable[..., Any]


def vectors(case: Case, body: Vectors) -> Step:
    """The meaning itself, on the NumPy implementation of the interface."""
    fn, words = body.make(case), VectorWords(case)
    kinds = [_shown(case, n) for n in range(len(case.op.results))]
    types = [case.type(o.name) for o in case.row.operands]
    lanes = next((k.itemsize for k in map(_element, types) if k is not None), 1)
    masks = {n: mask_width(m, lanes) for n, m in enumerate(types) if isinstance(m, t.Mask)}
    images = [mask_width(r.type, lanes) for r in case.op.results]

    def step(core: Core, *values: Any) -> Any:
        if masks:
            values = tuple(
                v[:: masks[n]] if n in masks and v is not None else v for n, v in enumerate(values)
            )
        result = fn(words, *values)
        if isinstance(result, tuple):
            parts = zip(result, kinds, images, strict=True)
            return tuple(_as(v, kind, image) for v, kind, image in parts)
        return _as(result, kinds[0], images[0]) if kinds else None

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
