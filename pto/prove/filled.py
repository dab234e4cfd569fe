"""The part of a destination that an instruction is known to write: at most its valid region.

The trait `fills` of a row defines how that part follows from the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from pto.core.constants import MX_BLOCK_SIZE
from pto.ir.graph import Operation
from pto.isa.meaning.tile.gather import PICKED, form
from pto.isa.meaning.tile.transfer import SPLIT_AXES
from pto.isa.row.traits import Fills, RegionRule
from pto.isa.rules.rule import Case
from pto.prove.decide import never_negative
from pto.prove.number import Number, minimum, number, product, quotient
from pto.prove.parts import TilePart
from pto.prove.values import Guards


class Target(NamedTuple):
    """A destination, with its valid region and those of the sources."""

    op: Operation
    case: Case
    name: str
    part: TilePart
    sources: Mapping[str, TilePart]  # by the name of the operand
    given: Guards

    def common(self, rows: Number, cols: Number) -> TilePart:
        """The intersection of the valid region with the first rows and columns."""
        part = self.part
        return replace(part, rows=minimum(part.rows, rows), cols=minimum(part.cols, cols))

    def whole_if(self, *never: Number) -> TilePart | None:
        """The whole region if none of these numbers is ever negative."""
        return self.part if all(never_negative(n, self.given) for n in never) else None


def filled(target: Target) -> TilePart | None:
    """The part that is written; None if none is known."""
    traits = target.op.traits
    if traits.partial == "*" and target.case.profile.name not in traits.by_rows:
        return None
    if traits.partial != "*" and traits.partial and target.op.group(traits.partial):
        return None
    return _FILLED[traits.fills](target)


def _region(target: Target) -> TilePart | None:
    rule, part = target.op.traits.region, target.part
    if rule is RegionRule.WINDOW and (_is_split(target) or target.case.word("mode")):
        return None  # a mode packs the elements
    if rule is RegionRule.COLUMN:
        return _folded(target, replace(part, cols=number(1)), "cols")
    if rule is RegionRule.ROW:
        return _folded(target, replace(part, rows=number(1)), "rows")
    return part


def _folded(target: Target, line: TilePart, axis: str) -> TilePart | None:
    """The first row or column; none where a source has nothing to fold."""
    counts = (getattr(part, axis) for part in target.sources.values())
    return line if all(never_negative(n - 1, target.given) for n in counts) else None


def _is_split(target: Target) -> bool:
    """True for halves of a source that go to two sub-blocks, which are not followed."""
    return (target.case.word("accToVecMode") or "") in SPLIT_AXES


def _common(target: Target) -> TilePart | None:
    """Where source and destination are valid; exponents of MX groups change their order."""
    if _is_split(target) or target.case.role("fp") == "vec":
        return None
    src = target.sources["src"]
    return target.common(src.rows, src.cols)


def _swapped(target: Target) -> TilePart:
    src = target.sources["src"]
    return target.common(src.cols, src.rows)


def _beside(target: Target) -> TilePart:
    """Two sources side by side."""
    left, right = target.sources["src0"], target.sources["src1"]
    return target.common(left.rows, left.cols + right.cols)


def _picked(target: Target) -> TilePart | None:
    """A gather by pattern fills its region if a row of it takes what a row of the source gives."""
    if form(target.case) != "mask":
        return target.part
    first, step = PICKED[target.case.word("maskPattern") or "P1111"]
    src, part = target.sources["src"], target.part
    count = quotient(src.cols - first + step - 1, number(step))
    return target.whole_if(src.rows - part.rows, count - part.cols, part.cols - count)


def _groups(target: Target) -> TilePart | None:
    """A value for each element of the source, and one for each group of them."""
    src, part = target.sources["src"], target.part
    if part.tile.dtype.bits % 8 or target.case.word("grpAxis") == "axis0":
        return None
    groups = quotient(src.cols + MX_BLOCK_SIZE - 1, number(MX_BLOCK_SIZE))
    cols = src.cols if target.name == "dst" else groups
    if target.name in ("max", "scaling") and part.rows.value != 1:
        return None
    if part.rows.value == 1 and target.name != "dst":  # in memory order
        return target.whole_if(product(src.rows, groups) - part.cols)
    equal = (src.rows - part.rows, part.rows - src.rows, cols - part.cols, part.cols - cols)
    return target.whole_if(*equal)


_FILLED: Final[Mapping[Fills, Callable[[Target], TilePart | None]]] = {
    Fills.REGION: _region,
    Fills.COMMON: _common,
    Fills.SWAPPED: _swapped,
    Fills.BESIDE: _beside,
    Fills.PICKED: _picked,
    Fills.GROUPS: _groups,
}
