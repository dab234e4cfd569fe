"""Conversions between element types, the positions of narrower lanes, and rounding."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.convert import round_integral, round_mode
from pto.core.dtypes import BF16, BF16X2, DType
from pto.core.floats import Round
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane, Permute
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector.shortcut import converter
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.rules.rule import Case

# Older spellings of attribute values, and the current ones.
OLDER_WORDS = {
    **{f"ROUND_{w}": w for w in ("R", "A", "F", "C", "Z", "O")},
    "RS_ENABLE": "SAT",
    "RS_DISABLE": "NOSAT",
    **{f"PART_{w}": w for w in ("EVEN", "ODD", "P0", "P1", "P2", "P3")},
}
PARTS = {"EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}


def plain_word(case: Case, name: str) -> str | None:
    """An attribute's value in its current spelling."""
    word = case.word(name)
    return None if word is None else OLDER_WORDS.get(word, word)


def _vcvt(case: Case) -> Callable[[Lanes], Lanes]:
    src, dst = _seen(case, "input"), _seen(case, "result")
    word = plain_word(case, "rnd") or plain_word(case, "round_mode")
    mode = round_mode(word) if word else Round.RINT
    return converter(src, dst, mode, plain_word(case, "sat") != "NOSAT")


def _seen(case: Case, name: str) -> DType:
    """The element type of a register; a pair of float4 converts to a pair of bf16."""
    kind, pairs = dtype_of(case, name), (dtype_of(case, n) for n in ("input", "result"))
    return BF16X2 if kind is BF16 and any(k.is_packed for k in pairs) else kind


def part_of(case: Case) -> int:
    """The lanes of a part.

    Narrowing fills every 2nd or 4th lane, so `vor` merges parts; widening reads them.
    """
    return PARTS[plain_word(case, "part") or "EVEN"]


def _rounded(case: Case) -> Callable[[Items], Items]:
    """Rounding to integral values.

    They are exact in the float type, so nothing is rounded twice.
    """
    mode = round_mode(plain_word(case, "round_mode") or "R")
    return lambda x: lanes.narrow(round_integral(lanes.widen(x), mode), x)


VCVT = Lane(make=_vcvt, part=part_of, sees=_seen, moves=True)
VTRC = Lane(make=_rounded)
VBITCAST = Permute(lambda case: lambda x: x)
