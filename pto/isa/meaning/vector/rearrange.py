"""Lanes in another order. SQZN, the bytes of the last squeeze, is a register of the core."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.errors import fail
from pto.isa.meaning.kinds import Do, Permute
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory.registers import SQZN, put
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.compare import by_index
from pto.isa.meaning.vector.ub import Items, dtype_of
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
        part = 1 if case.word("part") == "HIGHER" else 0
        return lambda lhs, rhs: both(lhs, rhs)[part]

    return Permute(make)


def _vsqz(case: Case) -> Callable[..., Items]:
    kind = dtype_of(case, "input")

    def squeeze(core: Machine, x: Items, mask: masks.Mask) -> Items:
        kept = x[mask[:: kind.itemsize]]
        put(core, SQZN, kept.size * kind.itemsize)
        out = np.zeros(kind.lanes, kind.numpy)
        out[: kept.size] = kept
        return out

    return squeeze


def _vusqz(case: Case) -> Callable[..., Items]:
    """How many lanes before this one are active; counts wrap in the type, as 8-bit ones may."""
    kind = dtype_of(case, "result")

    def count(core: Machine, src: Items, mask: masks.Mask) -> Items:
        active = mask[:: kind.itemsize]
        up_to = np.cumsum(active)
        put(core, SQZN, int(up_to[-1]) * kind.itemsize)
        return (up_to - active).astype(kind.numpy)

    return count


def _vpack(case: Case) -> Callable[[Items], Items]:
    lanes = dtype_of(case, "result").lanes
    start = lanes // 2 if case.word("part") == "HIGHER" else 0
    place = slice(start, start + lanes // 2)

    def pack(src: Items) -> Items:
        out = np.zeros_like(src)
        out[place] = src[::2]
        return out

    return pack


def _unpack(case: Case, signed: bool) -> Callable[..., Items]:
    source, kind = dtype_of(case, "src"), dtype_of(case, "result")
    narrow = np.dtype(f"{'i' if signed else 'u'}{source.itemsize}")
    half = source.lanes // 2

    def unpack(core: Machine, src: Items, part: int) -> Items:
        if part not in (0, 1):
            raise fail("PTO-S140", f"'{case.row.name}' op takes part 0 or 1, got {part}")
        return src.view(narrow)[part * half : part * half + half].astype(kind.numpy)

    return unpack


def _within(case: Case, amount: int, most: int) -> None:
    if not 0 <= amount <= most:
        raise fail(
            "PTO-S140", f"'{case.row.name}' op takes an amount from 0 to {most}, got {amount}"
        )


def _vslide(case: Case) -> Callable[..., Items]:
    lanes = dtype_of(case, "result").lanes

    def slide(core: Machine, src0: Items, src1: Items, amount: int) -> Items:
        _within(case, amount, lanes)
        return np.concatenate((src1[amount:], src0[:amount]))

    return slide


def _vshift(case: Case) -> Callable[..., Items]:
    kind = dtype_of(case, "result")

    def shift(core: Machine, src: Items, amount: int) -> Items:
        _within(case, amount, kind.lanes)
        out = np.zeros(kind.lanes, kind.numpy)
        out[amount:] = src[: kind.lanes - amount]
        return out

    return shift


VINTLV = Permute(lambda case: interleave)
VDINTLV = Permute(lambda case: deinterleave)
VINTLVV2 = _half(interleave)
VDINTLVV2 = _half(deinterleave)
VSQZ = Do(_vsqz)
VUSQZ = Do(_vusqz)
VPACK = Permute(_vpack)
VSUNPACK = Do(lambda case: _unpack(case, signed=True))
VZUNPACK = Do(lambda case: _unpack(case, signed=False))
VSLIDE = Do(_vslide)
VSHIFT = Do(_vshift)
VPERM = Do(lambda case: by_index(case, "index"))
