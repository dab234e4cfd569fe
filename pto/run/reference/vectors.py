"""Lane functions on registers and logical vectors: every lane is computed, lanes with mask bit 0
become zero.

The shapes of operands are distinguished once, in advance: this is the most frequent step of a
register program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.dtypes import DType
from pto.core.primitives import on_arrays
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane, Permute, TreeFold
from pto.isa.meaning.vector.masks import Mask, full, image
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import filler, lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core

Step = Callable[..., Items]


def lane(case: Case, body: Lane) -> Step:
    """result[i] = mask[i] ? fn(sources[i]) : 0; the mask is the last operand."""
    fn, shape = on_arrays(body.function(case)), VectorOperands(case, body)
    if not shape.vectors and not shape.is_logical:  # all operands are masks
        return lambda core, *images: fn(*images)
    if not shape.is_plain:
        return _general(case, fn, shape)
    kind = dtype_of(case, "result")
    sources = case.row.operands[:-1]
    scalars = [i for i, o in enumerate(sources) if isinstance(case.type(o.name), t.Scalar)]
    zero = np.zeros((), kind.numpy)
    every = full(kind.itemsize)
    width = kind.itemsize

    def keep(value: Items, mask: Mask) -> Items:
        return np.where(mask[::width], value, zero)

    if scalars:
        return _with_scalar(fn, keep, every, scalars[0], lane_maker(kind))
    make = {1: _unary, 2: _binary}.get(len(sources), _any)
    return make(fn, keep, every)


class VectorOperands:
    """The kinds of operands and results of a lane function on vectors.

    Registers have 256 bytes: of narrower ones a lane for each of the widest type is used. Logical
    vectors have the same number of lanes, whatever their types are.
    """

    def __init__(self, case: Case, body: Lane) -> None:
        operands, results = case.row.operands, case.row.results
        types = {o.name: case.type(o.name) for o in (*results, *operands)}
        counts = [k.lanes for k in types.values() if isinstance(k, t.LogicalVReg | t.LogicalMask)]
        self.is_logical = bool(counts)
        self.vectors = [n for n, k in types.items() if isinstance(k, t.VReg | t.LogicalVReg)]
        sees = body.sees or dtype_of
        self.kinds = {n: sees(case, n) for n in self.vectors}
        operands = [o for o in operands if types[o.name] is not None]
        governs = not body.chooses and bool(operands) and operands[-1].name == "mask"
        self.mask = operands[-1].name if governs and (self.vectors or counts) else None
        self.sources = [o.name for o in operands if o.name != self.mask]
        self.results = [r.name for r in results]
        self.widest = max((k.itemsize for k in self.kinds.values()), default=1)
        self.count = counts[0] if counts else VREG_BYTES // self.widest
        sizes = {k.itemsize for k in self.kinds.values()}
        self.part = body.part(case) if body.part is not None and len(sizes) > 1 else 0
        # the lane type of masks and scalars: that of the first source, else of the result
        first = [n for n in self.sources if n in self.kinds]
        self.kind = self.kinds[(first or self.vectors)[0]] if self.vectors else None
        self.is_plain = (
            self.mask is not None
            and len(sizes) == 1
            and [type(case.type(r)) for r in self.results] == [t.VReg]
            and bool(first)
            and not any(isinstance(case.type(n), t.Mask) for n in self.sources)
        )

    def lanes(self, kind: DType) -> slice:
        """The lanes of a vector that are used."""
        step = 1 if self.is_logical else self.widest // kind.itemsize
        return slice(self.part if step > 1 else 0, None, step)

    @property
    def bits(self) -> slice:
        """The bits of a mask's image that govern the lanes of the sources."""
        if self.is_logical:
            return slice(None)
        kind = self.kind
        narrow = kind is not None and kind.itemsize < self.widest
        return slice(self.part * kind.itemsize if kind and narrow else 0, None, self.widest)


def _general(case: Case, fn: Step, shape: VectorOperands) -> Step:
    """The general case: registers of two widths, masks as sources and results, several results."""
    ins = [_source(case, shape, name) for name in shape.sources]
    outs = [_result(case, shape, name) for name in shape.results]
    governed = shape.mask is not None

    def step(core: Core, *values: Any) -> Any:
        mask = values[len(ins)] if governed else None
        result = fn(*(read(v) for read, v in zip(ins, values, strict=False)))
        if len(outs) == 1:
            return outs[0](result, mask)
        return tuple(out(v, mask) for out, v in zip(outs, result, strict=True))

    return step


def _source(case: Case, shape: VectorOperands, name: str) -> Step:
    kind, bits = shape.kind, shape.bits
    if name in shape.kinds:
        lanes, numpy = shape.lanes(shape.kinds[name]), shape.kinds[name].numpy
        if lanes.step == 1 and numpy == dtype_of(case, name).numpy:
            return lambda value: value
        return lambda value: value.view(numpy)[lanes]
    if isinstance(case.type(name), t.Mask | t.LogicalMask) or kind is None:
        return lambda mask: mask[bits]
    return lane_maker(kind) if any(n in shape.kinds for n in shape.sources) else filler(kind)


def _result(case: Case, shape: VectorOperands, name: str) -> Step:
    """fn(result of the lane function, the governing mask or None)."""
    size, bits = shape.kind.itemsize if shape.kind else 1, shape.bits
    every = full(size)
    kind = shape.kinds.get(name)
    if kind is None:

        def bools(values: Items, mask: Mask | None) -> Items:
            on = values if mask is None or mask is every else values & mask[bits]
            return on if shape.is_logical else image(on, size)

        return bools
    zero = np.zeros((), kind.numpy)
    lanes = shape.lanes(kind)
    count = kind.lanes
    numpy = kind.numpy

    stored_type = dtype_of(case, name).numpy

    def whole(values: Items, mask: Mask | None) -> Items:
        if mask is not None and (mask is not every or values.ndim == 0):
            off = zero if values.dtype == numpy else np.zeros((), values.dtype)
            values = np.where(mask[bits], values, off)
        if lanes.step == 1:
            return values if values.dtype == stored_type else values.view(stored_type)
        out = np.zeros(count, numpy)
        out[lanes] = values
        return out

    return whole


def permute(case: Case, body: Permute) -> Step:
    fn = body.make(case)
    kind = case.op.results[0].type
    if not isinstance(kind, t.VReg):
        return lambda core, *images: fn(*images)
    numpy = dtype_of(case, case.row.results[0].name).numpy
    return lambda core, *given: fn(*(v.view(numpy) for v in given))


def neighbours(case: Case, body: TreeFold) -> Step:
    """A reduction tree of neighbouring lanes; lanes with mask bit 0 are neutral."""
    kind, result = dtype_of(case, "input"), dtype_of(case, "result")
    every = full(kind.itemsize)
    width = kind.itemsize
    fn = on_arrays(body.fn)
    left = body.left(case)
    places = body.places(case)
    into = accumulator(body, kind, result)
    other = np.asarray(lanes.neutral(body.fn, kind.numpy), kind.numpy)

    def step(core: Core, x: Items, mask: Mask) -> Items:
        x = x if mask is every else np.where(mask[::width], x, other)
        x = x.astype(into, copy=False)
        while x.size > left:
            x = fn(x[::2], x[1::2])
        out = np.zeros(result.lanes, result.numpy)
        out[places] = x
        return out

    return step


def accumulator(body: TreeFold, kind: DType, result: DType) -> np.dtype[Any]:
    """The type in which lanes are folded."""
    wide = np.dtype(np.float32) if kind.is_float else result.numpy
    return wide if body.wide else kind.numpy


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
