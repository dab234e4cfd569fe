"""The scalar unit in compiled code: lane functions on scalars, constants, selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.isa.meaning.kinds import ConstantResult, Lane
from pto.isa.meaning.scalar.arith import SCALAR, from_bits, kind_of, to_bits
from pto.isa.row import types as t
from pto.run.jit.emit.operation import KINDS, OpContext, emits
from pto.run.jit.emit.vector import values as vectors
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import certain, unsupported_if
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import constant, width_of
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.values import Lowered, ScalarValue, word_type
from pto.run.reference import scalars


def emit_lane(s: OpContext) -> Sequence[Lowered]:
    """results = fn(sources); numbers known while this is written are computed at once."""
    body: Lane = s.body
    words = _words(s)
    if all(isinstance(w.name, int) for w in words):
        return _computed(s, body, [w.name for w in words])
    spot = lanes.Lanes(s.x, 0)
    given = [spot.symbol(kind_of(w.type), w.name) for w in words]
    if body.needs is not None:
        s.fault_unless(s.x.bit(body.needs(*given).name))
    found = body.function(s.case)(*given)
    several = found if isinstance(found, tuple) else (found,)
    return [_word(spot, v, r.type) for v, r in zip(several, s.op.results, strict=True)]


def _computed(s: OpContext, body: Lane, given: Sequence[Val]) -> Sequence[Lowered]:
    with np.errstate(all="ignore"):
        found = scalars.numbers(s.case, body)(*given)
    several = found if isinstance(found, tuple) else (found,)
    return [_constant(v, r.type) for v, r in zip(several, s.op.results, strict=True)]


def _words(s: OpContext) -> list[ScalarValue]:
    return [certain(word, ScalarValue) for word in s.all()]


def _word(spot: lanes.Lanes, found: Any, type: t.Type) -> ScalarValue:
    """The result of a lane function as a scalar; an integer keeps its low bits."""
    scalar = certain(type, t.Scalar)
    kind = kind_of(scalar)
    if not isinstance(found, lanes.Symbol):
        return _constant(found, type)
    if found.dtype.kind in "iu" and kind == kinds.BOOL:
        found = found.new(f"trunc {found.type} {found.name} to i1", kinds.BOOL)
    elif found.dtype == kinds.BOOL and kind != kinds.BOOL:
        found = lanes.cast(found, kind)
    return ScalarValue((spot.x.bitcast(found.name, found.type, word_type(scalar)),), scalar)


def _constant(value: Any, type: t.Type) -> ScalarValue:
    scalar = certain(type, t.Scalar)
    kind = kind_of(scalar)
    return ScalarValue((int(value) if kind.kind in "iu" else constant(kind, value),), scalar)


def emit_known(s: OpContext) -> Sequence[Lowered]:
    body: ConstantResult = s.body
    value, type = body.value(s.case), s.op.results[0].type
    if isinstance(type, t.LogicalVReg | t.LogicalMask):
        return [vectors.known(s.x, value, type)]
    return [masks.known(value)] if isinstance(type, t.Mask) else [_constant(value, type)]


@emits(SCALAR["arith.select"], cheap=True)
def _select(s: OpContext) -> Sequence[Lowered]:
    condition, a, b = s.all()
    pairs = zip(a.types, a.names, b.names_like(a), strict=True)
    chosen = [s.x.new(f"select i1 {condition.names[0]}, {k} {p}, {k} {q}") for k, p, q in pairs]
    return [a.renamed(chosen)]


@emits(SCALAR["builtin.unrealized_conversion_cast"], cheap=True)
def _cast(s: OpContext) -> Sequence[Lowered]:
    """The same bits where both are scalars; any other value is itself."""
    (source,), target = s.all(), s.op.results[0].type
    if not isinstance(source, ScalarValue) or not isinstance(target, t.Scalar):
        return [source]
    have, want = source.types[0], word_type(target)
    if isinstance(source.name, int):
        return [_constant(from_bits(target, to_bits(source.type, source.name)), target)]
    unsupported_if(width_of(have) != width_of(want), "a cast to another width")
    return [ScalarValue((s.x.bitcast(source.name, have, want),), target)]


KINDS[ConstantResult] = emit_known
