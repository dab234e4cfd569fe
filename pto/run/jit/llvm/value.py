"""Values of LLVM text: the spelling of one, and what is known of it beside its type. Conditions are
joined by operators; known ones leave no instruction."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from pto.run.jit.llvm.lanes import Lanes, Symbol
    from pto.run.jit.llvm.text import Text


class StoredNumbers(NamedTuple):
    """Unsigned numbers of `bits` bits that follow each other in memory, in units of bytes."""

    place: str
    bits: int
    unit: int = 1


class MaskedLanes(NamedTuple):
    """Lanes that are zero where a predicate is off: the lanes without it, and the predicate."""

    lanes: Val
    mask: Val


class Value(str):
    """The name of an SSA value or the spelling of a constant, with facts about it. A fact is a
    field; None: not known. Text that is made of a value has no facts."""

    __slots__ = ("constant", "masked", "numbers", "prefix", "uniform")

    constant: Any  # the number of a constant, in every lane if it is a vector
    uniform: Val | None  # of integers: the scalar that is in all lanes
    prefix: Val | None  # of a predicate: how many lanes are on, from the first
    numbers: StoredNumbers | None  # of unsigned integers: where they were loaded from
    masked: MaskedLanes | None

    def __new__(
        cls,
        text: Val,
        *,
        constant: Any = None,
        uniform: Val | None = None,
        prefix: Val | None = None,
        numbers: StoredNumbers | None = None,
        masked: MaskedLanes | None = None,
    ) -> Self:
        value = super().__new__(cls, text)
        value.constant = constant
        value.uniform = uniform
        value.prefix = prefix
        value.numbers = numbers
        value.masked = masked
        return value

    def __str__(self) -> Self:  # `str(value)` keeps the facts
        return self


# A value: a number known at compile time, or its text.
Val = int | str
_NOTHING_KNOWN = Value("")


def facts(value: Val | None) -> Value:
    """What is known of a value; only the fields have a meaning."""
    return value if isinstance(value, Value) else _NOTHING_KNOWN


def prefix_of(mask: Val) -> Val:
    """How many lanes are on in a predicate of the first lanes."""
    count = facts(mask).prefix
    if count is None:
        raise TypeError(f"{mask!r} is no predicate of the first lanes")
    return count


# ---- conditions


class Condition:
    """One bit: known now, or the name of an SSA value."""

    __slots__ = ("name", "text")

    def __init__(self, text: Text | None, name: str) -> None:
        self.text = text  # None if the bit is known
        self.name = name

    def __str__(self) -> str:
        return self.name

    @property
    def is_true(self) -> bool:
        return self.name == _TRUE

    @property
    def is_false(self) -> bool:
        return self.name == _FALSE

    @property
    def is_known(self) -> bool:
        return self.text is None

    def __and__(self, other: Condition) -> Condition:
        if self.text is None or other.text is None:
            return other if self.is_true or other.is_false else self
        return Condition(self.text, self.text.new(f"and i1 {self}, {other}"))

    def __or__(self, other: Condition) -> Condition:
        if self.text is None or other.text is None:
            return other if self.is_false or other.is_true else self
        return Condition(self.text, self.text.new(f"or i1 {self}, {other}"))

    def __invert__(self) -> Condition:
        if self.text is None:
            return FALSE if self.is_true else TRUE
        return Condition(self.text, self.text.new(f"xor i1 {self}, true"))

    def in_lanes(self, lanes: Lanes) -> Symbol:
        """The same bit in every lane."""
        kind = np.dtype(np.bool_)
        return (
            lanes.constant(kind, self.is_true) if self.is_known else lanes.spread(kind, self.name)
        )

    def __bool__(self) -> bool:
        raise TypeError("a meaning branches on a number; `when`, `choose` or `require` can")


_TRUE: Final = "true"
_FALSE: Final = "false"
TRUE: Final = Condition(None, _TRUE)
FALSE: Final = Condition(None, _FALSE)


def known_condition(holds: object) -> Condition:
    return TRUE if holds else FALSE


def all_of(*conditions: Condition) -> Condition:
    """True if all conditions hold."""
    return reduce(operator.and_, conditions, TRUE)
