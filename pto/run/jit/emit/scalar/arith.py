"""The scalar unit in compiled code: lane functions on one scalar each; constants; choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.isa.meaning import Known, Lane
from pto.isa.meaning.scalar.arith import SCALAR, from_bits, kind_of, to_bits
from pto.isa.row import types as t
from pto.run.jit.border.values import Native, Word, word_type
from pto.run.jit.emit.table import KINDS, Spot, emits
from pto.run.jit.emit.vmi import lanewise as logical
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import NotNative, Val, constant
from pto.run.reference import scalars


def emit_lane(s: Spot) -> Sequence[Native]:
    """results = fn(sources); numbers known while this is written are computed at once."""
    body, words = s.body, _words(s)
    if not isinstance(body, Lane):
        raise NotNative("no lane function")
    if all(isinstance(w.name, int) for w in words):
        return _computed(s, body, [w.name for w in words])
    spot = lanes.Lanes(s.x, 0, s.e.unit.declare)
    given = [spot.symbol(kind_of(w.type), w.name) for w in words]
    if body.needs is not None:
        s.fault_unless(str(body.needs(*given).name))
    found = body.function(s.case)(*given)
    several = found if isinstance(found, tuple) else (found,)
    return [_word(spot, v, r.type) for v, r in zip(several, s.op.results, strict=True)]


def _computed(s: Spot, body: Lane, given: Sequence[Val]) -> Sequence[Native]:
    with np.errstate(all="ignore"):
        found = scalars.numbers(s.case, body)(*given)
    several = found if isinstance(found, tuple) else (found,)
    return [_constant(v, r.type) for v, r in zip(several, s.op.results, strict=True)]


def _words(s: Spot) -> list[Word]:
    found = s.all()
    words = [w for w in found if isinstance(w, Word)]
    if len(words) != len(found):
        raise NotNative("an operand is no scalar")
    return words


def _word(spot: lanes.Lanes, found: Any, type: t.Type) -> Word:
    """What a lane function returned, as a scalar: its low bits, of an integer."""
    if not isinstance(type, t.Scalar):
        raise NotNative("a result that is no scalar")
    kind = kind_of(type)
    if not isinstance(found, lanes.Symbol):
        return _constant(found, type)
    if found.dtype.kind in "iu" and kind == lanes.BOOL:
        found = found.new(f"trunc {found.type} {found.name} to i1", lanes.BOOL)
    elif found.dtype == lanes.BOOL and kind != lanes.BOOL:
        found = lanes.cast(found, kind)
    have, want = found.type, word_type(type)
    name = found.name if have == want else spot.x.new(f"bitcast {have} {found.name} to {want}")
    return Word((name,), type)


def _constant(value: Any, type: t.Type) -> Word:
    if not isinstance(type, t.Scalar):
        raise NotNative("a constant that is no scalar")
    kind = kind_of(type)
    if not lanes.computes(kind):
        raise NotNative("a constant of a small float")
    return Word((int(value) if kind.kind in "iu" else constant(kind, value),), type)


def emit_known(s: Spot) -> Sequence[Native]:
    body = s.body
    if not isinstance(body, Known):
        raise NotNative("a value that is not known")
    value, type = body.value(s.case), s.op.results[0].type
    if isinstance(type, t.LogicalVReg | t.LogicalMask):
        return [logical.known(s, value, type)]
    return [masks.known(value)] if isinstance(type, t.Mask) else [_constant(value, type)]


@emits(SCALAR["arith.select"], cheap=True)
def _select(s: Spot) -> Sequence[Native]:
    condition, a, b = s.all()
    if not isinstance(condition, Word) or not a.is_like(b):
        raise NotNative("a choice between different forms")
    pairs = zip(a.types, a.names, b.names, strict=True)
    chosen = [s.x.new(f"select i1 {condition.name}, {k} {p}, {k} {q}") for k, p, q in pairs]
    return [a.renamed(chosen)]


@emits(SCALAR["builtin.unrealized_conversion_cast"], cheap=True)
def _cast(s: Spot) -> Sequence[Native]:
    """The same bits where both are scalars; any other value is itself."""
    (source,), target = s.all(), s.op.results[0].type
    if not isinstance(source, Word) or not isinstance(target, t.Scalar):
        return [source]
    have, want = source.types[0], word_type(target)
    if isinstance(source.name, int):
        return [_constant(from_bits(target, to_bits(source.type, source.name)), target)]
    if have == want:
        return [Word(source.names, target)]
    if width_of(have) != width_of(want):
        raise NotNative("a cast to another width")
    return [Word((s.x.new(f"bitcast {have} {source.name} to {want}"),), target)]


def width_of(type: str) -> int:
    """Bits of a scalar."""
    return {"half": 16, "float": 32, "double": 64}.get(type) or int(type[1:])


KINDS[Known] = emit_known
