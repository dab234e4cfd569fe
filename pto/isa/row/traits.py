"""Traits: what the layers above ask of an operation besides its operands, rules and meaning.

Verifier, planner, engines, observers and the Python API read these fields of a row; none of them
knows an operation by its name or by the title of its family.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal


class Control(Enum):
    """The body of a row that decides what runs next; an engine has one case for each."""

    MODULE = auto()  # holds functions
    FUNCTION = auto()
    CALL = auto()
    FOR = auto()  # a counted loop: bounds, then carried values
    WHILE = auto()  # a loop with a region that tests and a region that is repeated
    IF = auto()
    SCOPE = auto()  # a vector scope: its body is one launch of the vector unit
    SECTION = auto()  # its body runs on one side of a core: the trait `side`
    RETURN = auto()  # ends a function
    YIELD = auto()  # ends a region: hands values to the operation around
    CONDITION = auto()  # ends the test of a `WHILE`: whether to go on, and the values handed on

    @property
    def is_loop(self) -> bool:
        return self in (Control.FOR, Control.WHILE)

    @property
    def is_terminator(self) -> bool:
        return self in (Control.RETURN, Control.YIELD, Control.CONDITION)


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts of a row, or of all rows of a family; a row that gives its own replaces them."""

    side: Literal["", "cube", "vector"] = ""  # of a section: which side of a core runs it
    # It names storage or describes it, and touches no byte of it.
    names_only: bool = False
    # The operand its result is another name of: the same storage, or the same number.
    alias_of: str = ""


NONE = Traits()
