"""The kinds of meaning a row can have. An engine has one case for each kind, not one a row.

Lane functions are written once on the primitives of `lanes.py`; the reference engine evaluates
them on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pto.isa.rules import Case

Make = Callable[[Case], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Lane:
    """dst = fn(sources), element by element.

    On tiles: over the destination's valid region; scalar operands become the destination's element
    type, and a source of one row or one column is spread. On registers: lanes whose mask is off
    become zero. `make` chooses the function where attributes or types decide.
    """

    fn: Callable[..., Any] | None = None
    make: Make | None = None

    def function(self, case: Case) -> Callable[..., Any]:
        if self.make is not None:
            return self.make(case)
        if self.fn is None:
            raise RuntimeError("a Lane needs fn or make")
        return self.fn


@dataclass(frozen=True, slots=True)
class Do:
    """Anything else: `make(case)` reads types and attributes once and returns fn(core, *operands).

    fn is called with the values of the row's operands in order (None for an absent optional one, a
    list for a variadic one) and returns the results. With `blocks`, fn may return BLOCKED without
    having changed anything: the agent waits and tries again.
    """

    make: Make
    blocks: bool = False


class _Blocked:
    def __repr__(self) -> str:
        return "BLOCKED"


BLOCKED: Final = _Blocked()


def do(fn: Callable[..., Any], *, blocks: bool = False) -> Do:
    """A Do whose function needs nothing from the types: fn(core, *operands)."""
    return Do(lambda case: fn, blocks)
