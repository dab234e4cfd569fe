"""Masks: generated, combined, rearranged, loaded and stored. `masks.py` defines an image."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pto.core.constants import VREG_BYTES
from pto.core.errors import fail
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.core.primitives import select
from pto.isa.meaning.kinds import ConstantResult, Do, Lane, Permute
from pto.isa.meaning.vector.masks import Mask, first, lanes_of
from pto.isa.meaning.vector.rearrange import deinterleave, half_of, interleave, is_higher, pack
from pto.isa.meaning.vector.ub import ItemAccess, Items, access
from pto.isa.meaning.vector.words import Gate, Registers, registers_do
from pto.isa.rules.rule import Case

IMAGE_BYTES = VREG_BYTES // 8
WORD = 8  # bytes: the alignment of an image in memory


def pattern_lanes(pattern: str, lanes: int) -> slice:
    """The lanes of a pattern; halves and quarters are the first ones."""
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


def pattern(width: int) -> ConstantResult:
    """A constant mask of lanes of `width` bytes."""

    def value(case: Case) -> Mask:
        lanes = pattern_lanes(case.word("pattern") or "", lanes_of(width))
        if lanes.step is None:
            return first(width, lanes.stop)
        image = np.zeros(VREG_BYTES, np.bool_)
        image[: lanes.stop * width : lanes.step * width] = True
        return image

    return ConstantResult(value)


@cache
def tail(width: int) -> Do:
    """The first `scalar` lanes, and the number left for the next register."""
    gate = Gate(width)
    return registers_do(lambda case: lambda x, scalar: x.tail(gate, scalar))


@cache
def tail_of_turn(width: int) -> Do:
    """The lanes of register `turn` of a loop that have an element number below `bound`."""
    gate = Gate(width)

    def run(x: Registers, iteration: Any, bound: Any) -> Mask:
        return x.first(gate, x.number(bound) - x.number(iteration) * gate.lanes)

    return registers_do(lambda case: run)


PAND = Lane(lambda a, b, mask: a & b & mask)
POR = Lane(lambda a, b, mask: (a | b) & mask)
PXOR = Lane(lambda a, b, mask: (a ^ b) & mask)
PNOT = Lane(lambda a, mask: mask & ~a)
PSEL = Lane(lambda a, b, mask: select(mask, a, b))
PBITCAST = Lane(lambda a: a)


def _slots(width: int, both: Callable[[Any, Any], tuple[Any, Any]]) -> Permute:
    """Whole lanes, with all their bits, in another order."""

    def move(lhs: Items, rhs: Items) -> tuple[Items, Items]:
        low, high = both(lhs.reshape(-1, width), rhs.reshape(-1, width))
        return low.reshape(-1), high.reshape(-1)

    return Permute(lambda case: move)


def interleaved(width: int) -> Permute:
    return _slots(width, interleave)


def deinterleaved(width: int) -> Permute:
    return _slots(width, deinterleave)


def _punpack(case: Case) -> Callable[[Items], Items]:
    higher = is_higher(case)

    def unpacked(mask: Items) -> Items:
        out = np.zeros_like(mask)
        out[::2] = half_of(mask, higher)
        return out

    return unpacked


# Distribution -> bytes read, and the image of their bits.
LOADS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "NORM": (IMAGE_BYTES, lambda bits: bits),
    "US": (IMAGE_BYTES // 2, lambda bits: bits.repeat(2)),
    "DS": (IMAGE_BYTES * 2, lambda bits: bits[::2].copy()),
}


def unit_of(case: Case, unit: int) -> int:
    """The unit of an offset in bytes: `unit`, or that of its distribution if 0 (April: one)."""
    if unit:
        return unit
    if case.profile.vector.predicate_immediate == "byte":
        return 1
    return IMAGE_BYTES // 2 if case.word("dist") in ("US", "PK") else IMAGE_BYTES


def _image(case: Case, nbytes: int) -> ItemAccess:
    def refused(memory: Memory, address: int) -> None:
        raise fail(
            "PTO-M080",
            f"'{case.row.name}' op: a mask must be stored at a multiple of {WORD} bytes, "
            f"not at {memory.space.value} address {address:#x}",
        )

    return access(case, np.dtype(np.uint8), nbytes, align=WORD, refused=refused)


def _load(unit: int) -> Do:
    """Load a mask. The offset counts bytes, words of 8 bytes in the older form, or images.

    The post-update form accesses the base itself, and returns the advanced base.
    """

    def make(case: Case) -> Callable[..., Any]:
        nbytes, build = LOADS[case.word("dist") or "NORM"]
        at = _image(case, nbytes)
        step = unit_of(case, unit)
        update = len(case.op.results) == 2

        def run(x: Registers, source: Pointer, offset: Any) -> Any:
            if not update:
                return x.from_bits(x.load(at, source, offset, step), build)
            return x.from_bits(x.load(at, source), build), x.moved(source, offset, step)

        return run

    return registers_do(make)


def _store(unit: int) -> Do:
    def make(case: Case) -> Callable[..., Any]:
        every = 2 if case.word("dist") == "PK" else 1
        at = _image(case, IMAGE_BYTES // every)
        step = unit_of(case, unit)
        update = bool(case.op.results)

        def run(x: Registers, value: Mask, to: Pointer, offset: Any) -> Pointer | None:
            bits = x.to_bits(value, every)
            if not update:
                return x.store(at, to, bits, None, offset, step)
            x.store(at, to, bits, None)
            return x.moved(to, offset, step)

        return run

    return registers_do(make)


PPACK = Permute(pack)
PUNPACK = Permute(_punpack)
LOAD_IMAGE_AT = _load(0)
STORE_IMAGE_AT = _store(0)
LOAD_IMAGE = _load(1)
STORE_IMAGE = _store(1)
LOAD_IMAGE_WORDS = _load(WORD)
STORE_IMAGE_WORDS = _store(WORD)
