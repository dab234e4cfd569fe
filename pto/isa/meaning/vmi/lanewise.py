"""Lane by lane: arithmetic, comparisons, selection. Lanes whose mask is off become 0.

Where the order of signless integers matters they count as unsigned, as the compiler reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector import arithmetic
from pto.isa.meaning.vector.ub import Items, dtype_of
from pto.isa.meaning.vector.values import lane_maker
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

Function = Callable[..., Any]


def require_zeroing(case: Case) -> None:
    """A value has no earlier content that `merge` could keep, and no compiler lowers it."""
    if case.word("pmode") == "merge":
        raise fail(
            "PTO-X172",
            f"'{case.row.name}' op: no source says what pmode merge keeps in lanes that are off",
            help='write pmode = "zero", and pto.vmi.vsel with the value to keep',
        )


def seen_as(case: Case, name: str, unsigned: bool = True) -> np.dtype[Any]:
    """The NumPy type in which lanes are ordered: signless integers are unsigned, or signed."""
    elem = case.elem(name)
    kind = dtype_of(case, name).numpy
    if elem is None or not elem.name.startswith("i"):
        return kind
    return np.dtype(f"{'u' if unsigned else 'i'}{kind.itemsize}")


def lanewise(fn: Function, *, ordered: bool = False, masks: Function | None = None) -> Do:
    """result[i] = mask[i] ? fn(sources[i]) : 0. `masks` is what it does to masks themselves."""

    def make(case: Case) -> Function:
        require_zeroing(case)
        if isinstance(case.op.results[0].type, t.LogicalMask):
            return _on_masks(masks or fn)
        kind = dtype_of(case, "result")
        sources = [o.name for o in case.row.operands if o.name != "mask"]
        lane, zero = lane_maker(kind), np.zeros((), kind.numpy)
        scalars = {n for n, name in enumerate(sources) if isinstance(case.type(name), t.Scalar)}
        view = seen_as(case, "result") if ordered else kind.numpy

        def run(core: Machine, *operands: Any) -> Items:
            values = [
                (lane(v) if n in scalars else v).view(view)
                for n, v in enumerate(operands[: len(sources)])
            ]
            found = fn(*values).view(kind.numpy)
            mask = operands[len(sources)] if len(operands) > len(sources) else None
            return found if mask is None else np.where(mask, found, zero)

        return run

    return Do(make)


def _on_masks(fn: Function) -> Function:
    def run(core: Machine, *operands: Any) -> Items:
        *masks, governing = operands
        found = fn(*masks)
        return found if governing is None else found & governing

    return run


def multiply_add(acc: Items, a: Items, b: Items) -> Items:
    return lanes.fma(a, b, acc)


def axpy(x: Items, acc: Items, alpha: Items) -> Items:
    return arithmetic.axpy(x, acc, alpha)


# ---- functions of more than one type


def _expdif(case: Case) -> Function:
    require_zeroing(case)

    def run(core: Machine, x: Items, top: Items, mask: Items) -> Items:
        found = mathlib.exp(x.astype(np.float32) - top.astype(np.float32))
        return np.where(mask, found, np.float32(0))

    return run


def _mull(case: Case) -> Function:
    require_zeroing(case)
    kind = dtype_of(case, "low").numpy
    wide = np.dtype(np.int64 if kind.kind == "i" else np.uint64)

    def run(core: Machine, a: Items, b: Items, mask: Items) -> tuple[Items, Items]:
        words = np.where(mask, a.astype(wide) * b.astype(wide), wide.type(0)).view(kind)
        return words[::2].copy(), words[1::2].copy()

    return run


def _add_with_carry(case: Case) -> Function:
    kind = dtype_of(case, "result").numpy

    def run(core: Machine, lhs: Items, rhs: Items, *masks: Items) -> tuple[Items, Items]:
        *carries, mask = masks
        total = lhs.view(np.uint32).astype(np.uint64) + rhs.view(np.uint32)
        if carries:
            total = total + carries[0]
        carry = (total >> np.uint64(32) != 0) & mask
        return np.where(mask, total.astype(np.uint32), np.uint32(0)).view(kind), carry

    return run


EXPDIF = Do(_expdif)
MULL = Do(_mull)
ADD_WITH_CARRY = Do(_add_with_carry)

# ---- comparisons

_COMPARE: dict[str, Callable[[Items, Items], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare(case: Case) -> Function:
    """seed and (lhs cmp rhs)."""
    require_zeroing(case)
    first = case.row.operand_names[0]
    word = case.word("cmp") or "eq"
    lane, view = lane_maker(dtype_of(case, first)), seen_as(case, first, word[0] != "s")
    compare = _COMPARE[word[-2:]]
    is_scalar = isinstance(case.type(case.row.operand_names[1]), t.Scalar)

    def run(core: Machine, lhs: Items, rhs: Any, seed: Items) -> Items:
        other = lane(rhs) if is_scalar else rhs
        return compare(lhs.view(view), other.view(view)) & seed

    return run


def _compare_by_predicate(case: Case) -> Function:
    """MLIR's predicates: `slt` and `ult` of integers, `olt` and `ult` (or unordered) of floats."""
    word = case.word("predicate") or "eq"
    is_float = dtype_of(case, "lhs").is_float
    named = word[1:] if word[0] in "sou" and len(word) == 3 else word
    if named not in _COMPARE:
        raise fail("PTO-T036", f"`{word}` is no predicate of '{case.row.name}' op")
    compare, view = _COMPARE[named], seen_as(case, "lhs", unsigned=word[0] == "u")

    def run(core: Machine, lhs: Items, rhs: Items) -> Items:
        if not is_float:
            return compare(lhs.view(view), rhs.view(view))
        nan = np.isnan(lhs) | np.isnan(rhs)
        return compare(lhs, rhs) | nan if word[0] == "u" else compare(lhs, rhs) & ~nan

    return run


COMPARE = Do(_compare)
COMPARE_BY_PREDICATE = Do(_compare_by_predicate)
SELECT = do(lambda core, mask, a, b: np.where(mask, a, b))
SHIFT_SIGNED = Do(
    lambda case: (
        lambda core, a, b: arithmetic.shift_right(
            a.view(f"i{a.itemsize}"), b.view(f"i{a.itemsize}")
        ).view(a.dtype)
    )
)
SHIFT_UNSIGNED = Do(
    lambda case: (
        lambda core, a, b: arithmetic.shift_right(
            a.view(f"u{a.itemsize}"), b.view(f"u{a.itemsize}")
        ).view(a.dtype)
    )
)
