"""Conditions of compiled code: joined by operators; known ones leave no instruction."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from pto.run.jit.llvm.lanes import Lanes, Symbol
    from pto.run.jit.llvm.text import Text


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
