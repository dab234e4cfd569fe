"""Predicates in compiled code: counted, loaded and stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.isa.meaning.vector import predicate
from pto.run.jit.border.values import Mask, Native, Place, Word
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.vector.load import access, moved_on, wide
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.shuffles import shuffle
from pto.run.jit.llvm.text import NotNative

_WIDTHS = (1, 2, 4)


def _tail(s: Spot) -> Sequence[Native]:
    """The first `scalar` lanes, and how many are left for the next register."""
    count = s.need(Word, "scalar")
    kind, x = count.types[0], s.x
    width = next(w for w in _WIDTHS if predicate.tail(w) is s.body)
    positive = x.new(f"call i64 @llvm.smax.i64(i64 {wide(s, count)}, i64 0)")
    left = x.sub(positive, VREG_BYTES // width)
    rest = x.new(f"call i64 @llvm.smax.i64(i64 {left}, i64 0)")
    narrow = rest if kind == "i64" else x.new(f"trunc i64 {rest} to {kind}")
    return [masks.first(x, width, positive), Word((narrow,), count.type)]


def _tail_of_turn(s: Spot) -> Sequence[Native]:
    x, width = s.x, next(w for w in _WIDTHS if predicate.tail_of_turn(w) is s.body)
    before = x.mul(wide(s, s.need(Word, "loop")), VREG_BYTES // width)
    left = x.sub(wide(s, s.need(Word, "bound")), before)
    return [masks.first(x, width, x.new(f"call i64 @llvm.smax.i64(i64 {left}, i64 0)"))]


emits(*(predicate.tail(w) for w in _WIDTHS))(_tail)
emits(*(predicate.tail_of_turn(w) for w in _WIDTHS))(_tail_of_turn)


# ---- images in UB


def _unit(s: Spot) -> int:
    if s.body in (predicate.LOAD_IMAGE_AT, predicate.STORE_IMAGE_AT):
        return predicate.unit_of(s.case, 0)
    words = (predicate.LOAD_IMAGE_WORDS, predicate.STORE_IMAGE_WORDS)
    return predicate.WORD if s.body in words else 1


def _image_at(s: Spot, name: str, nbytes: int, update: bool) -> tuple[str, list[Native]]:
    """Where an image lies; and the base that has moved on, which is then where it lay."""
    word, place = s.all()[-1], s.need(Place, name)  # called offset, or areg in the older form
    if not isinstance(word, Word):
        raise NotNative("an offset that is no scalar")
    offset = s.x.mul(wide(s, word), _unit(s))
    at = access(s, place, 0 if update else offset, nbytes, predicate.WORD)
    return at, [moved_on(s, place, offset)] if update else []


@emits(predicate.LOAD_IMAGE, predicate.LOAD_IMAGE_AT, predicate.LOAD_IMAGE_WORDS)
def _load(s: Spot) -> Sequence[Native]:
    nbytes, build = predicate.LOADS[s.case.word("dist") or "NORM"]
    count = 8 * nbytes
    at, base = _image_at(s, "source", nbytes, len(s.op.results) == 2)
    raw = s.x.load(f"i{count}", at)
    bits = s.x.new(f"bitcast i{count} {raw} to <{count} x i1>")
    return [Mask((shuffle(s.x, "i1", count, bits, build(np.arange(count))),), 1), *base]


@emits(predicate.STORE_IMAGE, predicate.STORE_IMAGE_AT, predicate.STORE_IMAGE_WORDS)
def _store(s: Spot) -> Sequence[Native]:
    step = 2 if s.case.word("dist") == "PK" else 1
    count = VREG_BYTES // step
    at, base = _image_at(s, "destination", count // 8, bool(s.op.results))
    bits = masks.strided(s.x, s.need(Mask, "value"), 0, step)
    s.x.store(f"i{count}", s.x.new(f"bitcast <{count} x i1> {bits} to i{count}"), at)
    return base
