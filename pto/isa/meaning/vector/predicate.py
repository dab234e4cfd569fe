"""Masks: generated, combined, rearranged, loaded and stored. `masks.py` says what an image is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector.masks import Mask, first, lanes_of
from pto.isa.meaning.vector.rearrange import deinterleave, interleave
from pto.isa.meaning.vector.ub import post_update
from pto.isa.rules.rule import Case

IMAGE_BYTES = VREG_BYTES // 8
WORD = 8  # bytes: what the address of an image is a multiple of


def pattern_lanes(pattern: str, lanes: int) -> slice:
    """The lanes a pattern names; the halves and quarters are the first ones."""
    word = pattern.removeprefix("PAT_")
    named: dict[str, slice] = {
        "ALL": slice(0, lanes),
        "ALLF": slice(0, 0),
        "H": slice(0, lanes // 2),
        "Q": slice(0, lanes // 4),
        "M3": slice(0, lanes, 3),
        "M4": slice(0, lanes, 4),
    }
    if word.startswith("VL"):
        return slice(0, min(int(word.removeprefix("VL")), lanes))
    return named[word]


@cache
def pattern(width: int) -> Do:
    """A constant mask of lanes of `width` bytes."""

    def make(case: Case) -> Callable[..., Mask]:
        lanes = pattern_lanes(case.word("pattern") or "", lanes_of(width))
        if lanes.step is None:
            image = first(width, lanes.stop)
        else:
            image = np.zeros(VREG_BYTES, np.bool_)
            image[: lanes.stop * width : lanes.step * width] = True
        return lambda core: image

    return Do(make)


@cache
def tail(width: int) -> Do:
    """The first `scalar` lanes, and how many are left for the next register."""
    lanes = lanes_of(width)
    every = first(width, lanes)

    def count(core: Machine, scalar: int) -> tuple[Mask, int]:
        if scalar >= lanes:
            return every, scalar - lanes
        return first(width, max(scalar, 0)), 0

    return do(count)


PAND = do(lambda core, a, b, mask: a & b & mask)
POR = do(lambda core, a, b, mask: (a | b) & mask)
PXOR = do(lambda core, a, b, mask: (a ^ b) & mask)
PNOT = do(lambda core, a, mask: mask & ~a)
PSEL = do(lambda core, a, b, mask: np.where(mask, a, b))
PBITCAST = do(lambda core, a: a)


def _slots(width: int, both: Callable[[Any, Any], tuple[Any, Any]]) -> Do:
    """Lanes with all their bits as one item each, in another order."""
    slot = np.dtype(f"u{width}")

    def move(core: Machine, lhs: Mask, rhs: Mask) -> tuple[Mask, Mask]:
        low, high = both(lhs.view(slot), rhs.view(slot))
        return low.view(np.bool_), high.view(np.bool_)

    return do(move)


@cache
def interleaved(width: int) -> Do:
    return _slots(width, interleave)


@cache
def deinterleaved(width: int) -> Do:
    return _slots(width, deinterleave)


def half_of(case: Case) -> slice:
    start = VREG_BYTES // 2 if case.word("part") == "HIGHER" else 0
    return slice(start, start + VREG_BYTES // 2)


def _ppack(case: Case) -> Callable[..., Mask]:
    half = half_of(case)

    def pack(core: Machine, mask: Mask) -> Mask:
        out = np.zeros(VREG_BYTES, np.bool_)
        out[half] = mask[::2]
        return out

    return pack


def _punpack(case: Case) -> Callable[..., Mask]:
    half = half_of(case)

    def unpack(core: Machine, mask: Mask) -> Mask:
        out = np.zeros(VREG_BYTES, np.bool_)
        out[::2] = mask[half]
        return out

    return unpack


# Distribution -> bytes read, and the image of their bits.
LOADS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "NORM": (IMAGE_BYTES, lambda bits: bits),
    "US": (IMAGE_BYTES // 2, lambda bits: bits.repeat(2)),
    "DS": (IMAGE_BYTES * 2, lambda bits: bits[::2].copy()),
}


def _check_aligned(case: Case, pointer: Pointer, offset: int) -> None:
    if (pointer.address + offset) % WORD:
        raise fail(
            "PTO-M080",
            f"'{case.row.name}' op: the image of a mask lies at a multiple of {WORD} bytes, "
            f"not at {pointer.memory.space.value} address {pointer.address + offset:#x}",
        )


def unit_of(case: Case, unit: int) -> int:
    """Bytes an offset counts: `unit`, or with 0 those of its distribution (April: one)."""
    if unit:
        return unit
    if case.profile.vector.predicate_immediate == "byte":
        return 1
    return IMAGE_BYTES // 2 if case.word("dist") in ("US", "PK") else IMAGE_BYTES


def _bytes_on(pointer: Pointer, nbytes: int) -> Pointer:
    return Pointer(pointer.memory, pointer.address + nbytes, pointer.dtype)


def _load(unit: int) -> Do:
    """The offset counts bytes, words of 8 in the older form, or images."""

    def make(case: Case) -> Callable[..., Any]:
        nbytes, build = LOADS[case.word("dist") or "NORM"]
        step = unit_of(case, unit)

        def load(core: Machine, source: Pointer, offset: int) -> Mask:
            _check_aligned(case, source, offset * step)
            raw = source.bytes(offset * step, nbytes)
            return build(np.unpackbits(raw, bitorder="little")).view(np.bool_)

        if len(case.op.results) < 2:
            return load
        return post_update(
            lambda core, source, offset: load(core, source, 0),
            lambda source, offset: _bytes_on(source, offset * step),
        )

    return Do(make)


def _store(unit: int) -> Do:
    def make(case: Case) -> Callable[..., Any]:
        every = 2 if case.word("dist") == "PK" else 1
        nbytes, step = IMAGE_BYTES // every, unit_of(case, unit)

        def store(core: Machine, value: Mask, destination: Pointer, offset: int) -> None:
            _check_aligned(case, destination, offset * step)
            target = destination.bytes(offset * step, nbytes)
            target[:] = np.packbits(value[::every], bitorder="little")

        if not case.op.results:
            return store
        return post_update(
            lambda core, value, destination, offset: store(core, value, destination, 0),
            lambda value, destination, offset: _bytes_on(destination, offset * step),
        )

    return Do(make)


PPACK = Do(_ppack)
PUNPACK = Do(_punpack)
LOAD_IMAGE_AT = _load(0)
STORE_IMAGE_AT = _store(0)
LOAD_IMAGE = _load(1)
STORE_IMAGE = _store(1)
LOAD_IMAGE_WORDS = _load(WORD)
STORE_IMAGE_WORDS = _store(WORD)
