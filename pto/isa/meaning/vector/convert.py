"""Conversions between element types, where the lanes of a narrower type sit, rounding in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.convert import round_integral, round_mode
from pto.core.dtypes import BF16, BF16X2, DType
from pto.core.rounding import Round
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do, Lane
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import masks
from pto.isa.meaning.vector.shortcut import converter
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.rules.rule import Case

# Older spellings of attribute words, and the words they stand for.
OLDER_WORDS = {
    **{f"ROUND_{w}": w for w in ("R", "A", "F", "C", "Z", "O")},
    "RS_ENABLE": "SAT",
    "RS_DISABLE": "NOSAT",
    **{f"PART_{w}": w for w in ("EVEN", "ODD", "P0", "P1", "P2", "P3")},
}
PARTS = {"EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}


def plain_word(case: Case, name: str) -> str | None:
    """An attribute's word in the spelling we use."""
    word = case.word(name)
    return None if word is None else OLDER_WORDS.get(word, word)


def _vcvt(case: Case) -> Callable[..., Items]:
    src, dst = dtype_of(case, "input"), dtype_of(case, "result")
    if src.is_packed or dst.is_packed:  # a pair of float4 goes with a pair of bf16
        src, dst = (BF16X2 if kind is BF16 else kind for kind in (src, dst))
    word = plain_word(case, "rnd") or plain_word(case, "round_mode")
    change = converter(
        src, dst, round_mode(word) if word else Round.RINT, plain_word(case, "sat") != "NOSAT"
    )
    part = PARTS[plain_word(case, "part") or "EVEN"]
    if dst is BF16X2:
        widen = _widening(change, src, dst, part)
        return lambda core, x, mask: widen(core, x, mask).view(BF16.numpy)
    if src is BF16X2:
        narrow = _narrowing(change, src, dst, part)
        return lambda core, x, mask: narrow(core, x.view(src.numpy), mask)
    if dst.itemsize > src.itemsize:
        return _widening(change, src, dst, part)
    return _narrowing(change, src, dst, part)


def _widening(
    change: Callable[[Items], Items], src: DType, dst: DType, part: int
) -> Callable[..., Items]:
    """Each group of narrow lanes gives one wide lane: that of `part`, under that lane's mask."""
    step = dst.itemsize // src.itemsize
    bit, width, all_lanes = part * src.itemsize, dst.itemsize, masks.full(src.itemsize)
    zero = np.zeros((), dst.numpy)

    def widen(core: Machine, x: Items, mask: masks.Mask) -> Items:
        wide = change(x[part::step])
        return wide if mask is all_lanes else np.where(mask[bit::width], wide, zero)

    return widen


def _narrowing(
    change: Callable[[Items], Items], src: DType, dst: DType, part: int
) -> Callable[..., Items]:
    """Each lane goes to the narrow lane `part` of its place; the others are 0, so `vor` merges."""
    step = src.itemsize // dst.itemsize
    width, all_lanes = src.itemsize, masks.full(src.itemsize)
    zero = np.zeros((), dst.numpy)

    def narrow(core: Machine, x: Items, mask: masks.Mask) -> Items:
        items = change(x)
        if mask is not all_lanes:
            items = np.where(mask[::width], items, zero)
        if step == 1:
            return items
        out = np.zeros(dst.lanes, dst.numpy)
        out[part::step] = items
        return out

    return narrow


def _rounded(case: Case) -> Callable[[Items], Items]:
    """Integral values of a float type are exact in it: nothing is rounded twice."""
    mode = round_mode(plain_word(case, "round_mode") or "R")
    return lambda x: lanes.narrow(round_integral(lanes.widen(x), mode), x)


def _vbitcast(case: Case) -> Callable[..., Items]:
    kind = dtype_of(case, "result").numpy
    return lambda core, x: x.view(kind)


VCVT = Do(_vcvt)
VTRC = Lane(make=_rounded)
VBITCAST = Do(_vbitcast)
