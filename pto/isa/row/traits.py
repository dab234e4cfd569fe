"""Traits: properties of operations for other layers, besides operands, rules and meaning.

Verifier, planner, engines, observers and the Python API read these fields of a row; none of them
knows an operation by its name or by the title of its family.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Any, Literal


class Control(Enum):
    """The body of a row that decides what runs next; an engine has one case for each."""

    MODULE = auto()  # holds functions
    FUNCTION = auto()
    CALL = auto()
    FOR = auto()  # a counted loop: bounds, then carried values
    WHILE = auto()  # a loop with a region that tests and a region that is repeated
    IF = auto()
    REGION = auto()  # its body runs once and yields values
    SCOPE = auto()  # a vector scope: its body is one launch of the vector unit
    SECTION = auto()  # its body runs on one side of a core: the trait `side`
    RETURN = auto()  # ends a function
    YIELD = auto()  # ends a region: its operands become results of the enclosing operation
    CONDITION = auto()  # ends the test of a `WHILE`: whether to continue, and the values

    @property
    def is_terminator(self) -> bool:
        return self in (Control.RETURN, Control.YIELD, Control.CONDITION)


class RegionRule(Enum):
    """The valid region of a destination, if a kernel derives regions from the data."""

    LIKE = auto()  # that of the first source of its shape, else its own
    VIEW = auto()  # what there is of the view it is loaded from
    COLUMN = auto()  # the rows of src, one column
    ROW = auto()  # one row, the columns of src
    BITS = auto()  # the rows of the compared tiles, all columns: unused bits are 0
    PRODUCT = auto()  # the rows of the left factor, the columns of the right one
    SWAPPED = auto()  # the columns and rows of src
    WINDOW = auto()  # what there is of src from (indexRow, indexCol) on
    INDEXED = auto()  # a row, or an element, for each index
    GATHERED = auto()  # that of the indices, else as LIKE
    WHOLE = auto()  # all of it


class Fills(Enum):
    """The part of a destination's valid region that an instruction always writes."""

    REGION = auto()  # all of it; of folds the first row or column, of products that of the factors
    COMMON = auto()  # where src is valid too
    SWAPPED = auto()  # the columns and rows of src
    BESIDE = auto()  # src0, and src1 to the right of it
    PICKED = auto()  # by a pattern: as many elements as it selects
    GROUPS = auto()  # dst: as much as src; others: one element for each group of 32 columns


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts of a row, or of all rows of a family; those of a row are added to its family's."""

    side: Literal["", "cube", "vector"] = ""  # of a section: which side of a core runs it
    # storage
    allocates: str = ""  # it allocates a buffer; the name of the address operand
    names_only: bool = False  # names storage or describes it, and touches no byte of it
    # writes a part of its destination that data choose: "*" (where it is not `by_rows`), or beside
    # this operand
    partial: str = ""
    # profiles where row i of its destination depends only on row i of its sources, and all of it
    # is written (not visible in its body)
    by_rows: tuple[str, ...] = ()
    # C++: the headers are wrong for a region of constants in dst, so the export prints a dynamic
    # one: "part" if the region is smaller than the tile, "all" always
    region_of_run: Literal["", "part", "all"] = ""
    # order
    uncached: bool = False  # a scalar access that goes past the data cache
    # profiles with a library that ends it with a pipe barrier if every tile has one row
    fenced_row: tuple[str, ...] = ()
    # values
    constant: bool = False  # its attribute `value` is its result
    same_number: bool = False  # its result is the number its operand is, in another type
    pure: bool = False  # no effect but its results: removed if they are unused
    mask_bits: int = 0  # lane width of the masks it defines: 8, 16 or 32
    short: Literal["", "read", "printed"] = ""  # text may leave its dialect out, or does
    # printed in MLIR's generic form, the only one PTOAS reads: "*" always, else beside this operand
    # or attribute
    generic: str = ""
    # the Python API
    # of Python, or a word: min, max, cdiv, exp, sum, amax, spread, compare, select, cast, ..
    operator: str = ""
    signed: bool | None = None  # signedness of integers for this operator; None: both
    region: RegionRule = RegionRule.LIKE
    fills: Fills = Fills.REGION
    sized_by_tile: bool = False  # a view beside a tile takes the size of its valid region
    mask_selects: bool = False  # its mask selects results, so it has no default mask
    by_hand: bool = False  # Python has a separate function for it, such as `pto.tile`

    def joined(self, changes: Traits | None) -> Traits:
        """The traits of a family with those of a row added."""
        if changes is None:
            return self
        values = {f.name: getattr(changes, f.name) for f in fields(changes)}
        return replace(self, **{k: v for k, v in values.items() if v != getattr(NONE, k)})


NONE = Traits()


# Arithmetic of numbers by the operator of a row: Python's signs and functions, `cdiv` rounds up.
FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "min": min,
    "max": max,
    "cdiv": lambda a, b: -(-a // b),
}


def operators(text: str) -> dict[str, Traits]:
    """Traits by instruction from a text of names and Python operators: `vadd + vsub -`."""
    words = text.split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return {name: Traits(operator=sign) for name, sign in pairs}
