"""Values of LLVM text: the spelling of one, and what is known of it beside its type."""

from __future__ import annotations

from typing import Any, NamedTuple, Self


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
