"""Predicates in compiled code: generated, combined, rearranged, loaded and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.isa.meaning.vector import predicate
from pto.isa.meaning.vector.rearrange import deinterleave, interleave
from pto.run.jit.border.values import Mask, Native, Place, Word
from pto.run.jit.emit.table import Emit, Spot, emits
from pto.run.jit.emit.vector.load import access, wide
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.shuffles import NONE, shuffle, spread
from pto.run.jit.llvm.text import NotNative, Val, vector

_WIDTHS = (1, 2, 4)


def first_lanes(s: Spot, width: int, count: Val) -> Mask:
    """The first `count` lanes of `width` bytes; the count is not negative."""
    lanes = VREG_BYTES // width
    small = s.x.new(f"trunc i64 {s.x.smaller(count, lanes)} to i32")
    numbers = ", ".join(f"i32 {n}" for n in range(lanes))
    every = spread(s.x, "i32", lanes, small)
    return Mask((s.x.new(f"icmp ult {vector(lanes, 'i32')} <{numbers}>, {every}"),), width)


def _tail(s: Spot) -> Sequence[Native]:
    """The first `scalar` lanes, and how many are left for the next register."""
    count = s.need(Word, "scalar")
    kind, x = count.types[0], s.x
    width = next(w for w in _WIDTHS if predicate.tail(w) is s.body)
    positive = x.new(f"call i64 @llvm.smax.i64(i64 {wide(s, count)}, i64 0)")
    left = x.sub(positive, VREG_BYTES // width)
    rest = x.new(f"call i64 @llvm.smax.i64(i64 {left}, i64 0)")
    narrow = rest if kind == "i64" else x.new(f"trunc i64 {rest} to {kind}")
    return [first_lanes(s, width, positive), Word((narrow,), count.type)]


def _pattern(s: Spot) -> Sequence[Native]:
    width = next(w for w in _WIDTHS if predicate.pattern(w) is s.body)
    lanes = VREG_BYTES // width
    chosen = set(range(lanes)[predicate.pattern_lanes(s.case.word("pattern") or "", lanes)])
    if len(chosen) == lanes:
        return [Mask(("splat (i1 true)",), width)]
    bits = ", ".join(f"i1 {int(n in chosen)}" for n in range(lanes))
    return [Mask((f"<{bits}>",), width)]


emits(*(predicate.tail(w) for w in _WIDTHS))(_tail)
emits(*(predicate.pattern(w) for w in _WIDTHS))(_pattern)


# ---- combined


def _combined(s: Spot, write: Callable[[str, list[str]], str]) -> Sequence[Native]:
    """Bit by bit, at the finest width of the operands."""
    given = [m for m in s.all() if isinstance(m, Mask)]
    width, bits = masks.alike(s.x, *given)
    return [Mask((write(masks.type_of(width), bits),), width)]


def _binary(op: str) -> Callable[[Spot], Sequence[Native]]:
    def emit(s: Spot) -> Sequence[Native]:
        def write(type: str, bits: list[str]) -> str:
            found = s.x.new(f"{op} {type} {bits[0]}, {bits[1]}")
            return s.x.new(f"and {type} {found}, {bits[2]}")

        return _combined(s, write)

    return emit


for _body, _op in ((predicate.PAND, "and"), (predicate.POR, "or"), (predicate.PXOR, "xor")):
    emits(_body)(_binary(_op))


@emits(predicate.PNOT)
def _pnot(s: Spot) -> Sequence[Native]:
    def write(type: str, bits: list[str]) -> str:
        other = s.x.new(f"xor {type} {bits[0]}, splat (i1 true)")
        return s.x.new(f"and {type} {other}, {bits[1]}")

    return _combined(s, write)


@emits(predicate.PSEL)
def _psel(s: Spot) -> Sequence[Native]:
    def write(type: str, bits: list[str]) -> str:
        return s.x.new(f"select {type} {bits[2]}, {type} {bits[0]}, {type} {bits[1]}")

    return _combined(s, write)


@emits(predicate.PBITCAST)
def _pbitcast(s: Spot) -> Sequence[Native]:
    return s.all()


# ---- rearranged


def _slots(width: int, both: Callable[[Any, Any], tuple[Any, Any]]) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        slots = np.arange(2 * VREG_BYTES).reshape(2, -1, width)
        given = [s.need(Mask, name) for name in ("lhs", "rhs")]
        starts = both(slots[0, :, 0], slots[1, :, 0])
        return [
            masks.moved(s.x, given, (start[:, None] + np.arange(width)).reshape(-1))
            for start in starts
        ]

    return emit


for _width in _WIDTHS:
    emits(predicate.interleaved(_width))(_slots(_width, interleave))
    emits(predicate.deinterleaved(_width))(_slots(_width, deinterleave))


@emits(predicate.PPACK)
def _ppack(s: Spot) -> Sequence[Native]:
    places = np.full(VREG_BYTES, NONE)
    places[predicate.half_of(s.case)] = np.arange(0, VREG_BYTES, 2)
    return [masks.moved(s.x, [_only(s)], places)]


@emits(predicate.PUNPACK)
def _punpack(s: Spot) -> Sequence[Native]:
    places = np.full(VREG_BYTES, NONE)
    places[::2] = np.arange(VREG_BYTES)[predicate.half_of(s.case)]
    return [masks.moved(s.x, [_only(s)], places)]


def _only(s: Spot) -> Mask:
    return next(m for m in s.all() if isinstance(m, Mask))


# ---- images in UB


def _unit(s: Spot) -> int:
    if s.body in (predicate.LOAD_IMAGE_AT, predicate.STORE_IMAGE_AT):
        return predicate.unit_of(s.case, 0)
    words = (predicate.LOAD_IMAGE_WORDS, predicate.STORE_IMAGE_WORDS)
    return predicate.WORD if s.body in words else 1


def _image_at(s: Spot, name: str, nbytes: int) -> str:
    word = s.all()[-1]  # called offset, or areg in the older form
    if not isinstance(word, Word):
        raise NotNative("an offset that is no scalar")
    offset = s.x.mul(wide(s, word), _unit(s))
    return access(s, s.need(Place, name), offset, nbytes, predicate.WORD)


@emits(predicate.LOAD_IMAGE, predicate.LOAD_IMAGE_AT, predicate.LOAD_IMAGE_WORDS)
def _load(s: Spot) -> Sequence[Native]:
    nbytes, build = predicate.LOADS[s.case.word("dist") or "NORM"]
    count = 8 * nbytes
    raw = s.x.load(f"i{count}", _image_at(s, "source", nbytes))
    bits = s.x.new(f"bitcast i{count} {raw} to <{count} x i1>")
    return [Mask((shuffle(s.x, "i1", count, bits, build(np.arange(count))),), 1)]


@emits(predicate.STORE_IMAGE, predicate.STORE_IMAGE_AT, predicate.STORE_IMAGE_WORDS)
def _store(s: Spot) -> Sequence[Native]:
    step = 2 if s.case.word("dist") == "PK" else 1
    count = VREG_BYTES // step
    at = _image_at(s, "destination", count // 8)
    bits = masks.strided(s.x, s.need(Mask, "value"), 0, step)
    s.x.store(f"i{count}", s.x.new(f"bitcast <{count} x i1> {bits} to i{count}"), at)
    return []
