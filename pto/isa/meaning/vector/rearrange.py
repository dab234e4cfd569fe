"""Permutations of lanes. SQZN, the bytes kept by the last squeeze, is a register of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.isa.meaning.kinds import Permute, Vectors
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.memory.registers import SQZN
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.compare import by_index
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.words import Registers, registers_do
from pto.isa.meaning.vmi.words import VectorWords
from pto.isa.rules.rule import Case

Pair = tuple[Items, Items]


def interleave(lhs: Items, rhs: Items) -> Pair:
    out = np.empty((2 * len(lhs), *lhs.shape[1:]), lhs.dtype)
    out[::2], out[1::2] = lhs, rhs
    return out[: len(lhs)], out[len(lhs) :]


def deinterleave(lhs: Items, rhs: Items) -> Pair:
    stream = np.concatenate((lhs, rhs))
    return stream[::2].copy(), stream[1::2].copy()


def _half(both: Callable[[Items, Items], Pair]) -> Permute:
    def make(case: Case) -> Callable[[Items, Items], Items]:
        part = is_higher(case)
        return lambda lhs, rhs: both(lhs, rhs)[part]

    return Permute(make)


def _vsqz(case: Case) -> Callable[..., Items]:
    size = dtype_of(case, "input").itemsize

    def squeeze(x: Registers, value: Items, mask: masks.Mask) -> Items:
        squeezed, count = x.squeezed(value, mask, size)
        x.put(SQZN, count * size)
        return squeezed

    return squeeze


def _vusqz(case: Case) -> Callable[..., Items]:
    """The number of active lanes before each lane.

    It wraps in the type, which 8-bit lanes may need.
    """
    kind = dtype_of(case, "result")

    def count(x: Registers, src: Items, mask: masks.Mask) -> Items:
        counts, total = x.before(kind.numpy, mask, kind.itemsize)
        x.put(SQZN, total * kind.itemsize)
        return counts

    return count


def is_higher(case: Case) -> bool:
    """The half of the lanes that an attribute names."""
    return case.word("part") == "HIGHER"


def half_of(items: Items, higher: bool) -> Items:
    """A live view of one half."""
    return items[len(items) // 2 :] if higher else items[: len(items) // 2]


def pack(case: Case) -> Callable[[Items], Items]:
    """Every second item in one half, zeros in the other."""
    higher = is_higher(case)

    def packed(src: Items) -> Items:
        out = np.zeros_like(src)
        half_of(out, higher)[:] = src[::2]
        return out

    return packed


def _unpack(case: Case, signed: bool) -> Callable[..., Lanes]:
    source, kind = dtype_of(case, "src"), dtype_of(case, "result")
    narrow = np.dtype(f"{'i' if signed else 'u'}{source.itemsize}")
    half = source.lanes // 2

    def unpack(x: VectorWords, src: Lanes, part: Any) -> Lanes:
        number = x.number(part)
        x.require(
            (number >= 0) & (number < 2),
            lambda: fail("PTO-S140", f"'{case.row.name}' op takes part 0 or 1, got {part}"),
        )
        return x.window([src.view(narrow)], number * half, half).astype(kind.storage)

    return unpack


def _window(case: Case, parts: Callable[..., list[Any]], begin: Callable[[Any, int], Any]) -> Any:
    """A register-sized window of two concatenated registers."""
    most = dtype_of(case, "result").lanes

    def run(x: VectorWords, *operands: Any) -> Lanes:
        *sources, shift = operands
        amount = x.number(shift)
        x.require(
            (amount >= 0) & (amount <= most),
            lambda: fail(
                "PTO-S140", f"'{case.row.name}' op takes an amount from 0 to {most}, got {shift}"
            ),
        )
        return x.window(parts(*sources), begin(amount, most), most)

    return run


VINTLV = Permute(lambda case: interleave)
VDINTLV = Permute(lambda case: deinterleave)
VINTLVV2 = _half(interleave)
VDINTLVV2 = _half(deinterleave)
VSQZ = registers_do(_vsqz)
VUSQZ = registers_do(_vusqz)
VPACK = Permute(pack)
VSUNPACK = Vectors(lambda case: _unpack(case, signed=True))
VZUNPACK = Vectors(lambda case: _unpack(case, signed=False))
VSLIDE = Vectors(lambda case: _window(case, lambda a, b: [b, a], lambda amount, _: amount))
VSHIFT = Vectors(
    lambda case: _window(case, lambda a: [None, a], lambda amount, most: most - amount)
)
VPERM = Vectors(lambda case: by_index(case, "index"))
