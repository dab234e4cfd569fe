"""Lane by lane: arithmetic, comparisons, selection. Lanes with mask bit 0 become 0.

If the order of signless integers matters, they are unsigned, as in the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.dtypes import I64, U64, DType, dtype
from pto.core.errors import fail
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Lane
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.vector import arithmetic
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.rules.rule import Case

Function = Callable[..., Any]


def require_zeroing(case: Case) -> None:
    """Refuse `merge`: a value has no earlier content to keep, and no compiler lowers it."""
    if case.word("pmode") == "merge":
        raise fail(
            "PTO-X172",
            f"'{case.row.name}' op: the ISA does not define pmode merge for inactive lanes",
            help='write pmode = "zero", and pto.vmi.vsel with the value to keep',
        )


def seen_as(case: Case, name: str, *, signed: bool = False) -> DType:
    """The type in which lanes are ordered: signless integers become unsigned, or signed."""
    elem, kind = case.elem(name), dtype_of(case, name)
    if elem is None or not elem.name.startswith("i") or kind in (I64, U64):
        return kind
    return dtype(f"{'i' if signed else 'u'}{kind.bits}")


def _signed(case: Case, name: str) -> DType:
    return seen_as(case, name, signed=True)


def lanewise(fn: Function, *, ordered: bool = False) -> Lane:
    """result[i] = mask[i] ? fn(sources[i]) : 0."""

    def make(case: Case) -> Function:
        require_zeroing(case)
        return fn

    return Lane(make=make, sees=seen_as if ordered else None)


EXPDIF = lanewise(arithmetic.exp_difference)
MULL = lanewise(arithmetic.long_product)
ADD_WITH_CARRY = lanewise(arithmetic.add_carry)

# ---- comparisons


def _compare(case: Case) -> Function:
    """The comparison lhs cmp rhs, and-ed with seed."""
    require_zeroing(case)
    compare = lanes.MODES[(case.word("cmp") or "eq")[-2:]]
    return lambda lhs, rhs, seed: compare(lhs, rhs) & seed


def _compared(case: Case, name: str) -> DType:
    return seen_as(case, name, signed=(case.word("cmp") or "eq")[0] == "s")


def _compare_by_predicate(case: Case) -> Function:
    """MLIR's predicates: `slt` and `ult` of integers, `olt` and `ult` (or unordered) of floats."""
    word = case.word("predicate") or "eq"
    named = word[1:] if word[0] in "sou" and len(word) == 3 else word
    if named not in lanes.MODES:
        raise fail("PTO-T036", f"`{word}` is not a predicate of '{case.row.name}' op")
    compare = lanes.MODES[named]
    if not dtype_of(case, "lhs").is_float:
        return compare

    def of_floats(lhs: Lanes, rhs: Lanes) -> Lanes:
        nan = (lhs != lhs) | (rhs != rhs)
        return compare(lhs, rhs) | nan if word[0] == "u" else compare(lhs, rhs) & ~nan

    return of_floats


def _by_predicate(case: Case, name: str) -> DType:
    return seen_as(case, name, signed=(case.word("predicate") or "eq")[0] != "u")


COMPARE = Lane(make=_compare, sees=_compared)
COMPARE_BY_PREDICATE = Lane(make=_compare_by_predicate, sees=_by_predicate)
SELECT = Lane(lanes.select, chooses=True, moves=True)
SHIFT_SIGNED = Lane(arithmetic.shift_right, sees=_signed)
SHIFT_UNSIGNED = Lane(arithmetic.shift_right, sees=seen_as)
