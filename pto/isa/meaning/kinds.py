"""The kinds of meaning a row can have. An engine has one case for each kind, not one a row.

Lane functions are written once on the primitives of `lanes.py`; the reference engine evaluates
them on NumPy arrays. The kinds of control flow are in `row/traits.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.isa.rules.rule import Case

Make = Callable[[Case], Callable[..., Any]]


Axis = Literal["row", "column"]


@dataclass(frozen=True, slots=True)
class Lane:
    """dst = fn(sources), element by element.

    On logical vectors: as on registers, whatever the number of lanes.
    On tiles: over the destination's valid region; an integer scalar as wide as the destination's
    elements becomes one of them, other scalars keep their type. On registers: lanes whose mask is
    off become zero; a mask that is a result, or a source beside the governing one, has a bool a
    lane; scalars become lanes. On masks alone: bit by bit. On scalars: one lane of each. A function
    of several results returns a tuple. `make` chooses it where attributes or types decide.
    """

    fn: Callable[..., Any] | None = None
    make: Make | None = None
    # A source spread over the domain. "row": its column 0, for every j; of two sources, the one
    # narrower than the domain, else the second (its valid columns again and again, but on a5).
    # "column": row 0 of the last source, for every i.
    spread: Axis | None = None
    moves: bool = False  # only moves elements, so any element type will do
    # Registers of two widths: which of the narrow lanes beside a wide one takes part, others are 0.
    part: Callable[[Case], int] | None = None
    sees: Callable[[Case, str], DType] | None = None  # items of registers, if not their elements
    chooses: bool = False  # no mask governs: all are sources
    # Of scalars: what must hold of the sources, and what is wrong where it does not.
    needs: Callable[..., Any] | None = None
    refused: Callable[..., PtoError] | None = None
    # Of integer scalars: fn(Python's numbers), the same sooner than on arrays.
    quick: Callable[[Case], Callable[..., int]] | None = None

    def function(self, case: Case) -> Callable[..., Any]:
        if self.make is not None:
            return self.make(case)
        if self.fn is None:
            raise RuntimeError("a Lane needs fn or make")
        return self.fn


@dataclass(frozen=True, slots=True)
class Known:
    """A result that attributes and types alone decide."""

    value: Callable[[Case], Any]


@dataclass(frozen=True, slots=True)
class Permute:
    """Items of registers, or bits of masks, at other places: `make(case)` gives fn(arrays) -> array
    or arrays, which moves items and fills with zeros, whatever they are. Registers are seen as
    items of the first result's type."""

    make: Make


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Lanes of a register folded by neighbours, 0 with 1, 2 with 3, .., then those again, until
    `left(case)` remain; they go to the lanes `places(case)` of the result, the others are 0.

    Lanes whose mask is off count as the neutral element of fn. `wide`: f16 and bf16 are folded in
    f32 and rounded once, integers in the type of the result.
    """

    fn: Callable[[Any, Any], Any]
    left: Callable[[Case], int]
    places: Callable[[Case], slice]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """dst = fn over the elements of src along an axis, over src's valid region.

    Axis "column": dst[0,j] over i, one row after the other: acc = fn(acc, next), from the neutral
    element of fn, every step rounded to dst's type. Axis "row": dst[i,0] over j, in 16 strands:
    strand n takes columns n, n+16, .. in the same way; then strands n and n+8 are combined, n and
    n+4, n and n+2, n and n+1. `wide`: f16 and bf16 are folded in f32 and rounded once, at the end.
    Where `pairs(case)` holds: neighbours first, then neighbouring results; an odd last one joins
    the last pair.
    """

    fn: Callable[[Any, Any], Any]
    axis: Axis
    wide: bool = False
    pairs: Callable[[Case], bool] | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Elements from place to place: `make(case)` reads types and attributes once and returns
    fn(mover, *operands), written in the words of `tile/mover.py`, which every engine has."""

    make: Make


@dataclass(frozen=True, slots=True)
class Vectors:
    """Registers and logical vectors as wholes: `make(case)` reads types and attributes once and
    returns fn(words, *operands), written in the words of `vmi/words.py`, which every engine has. A
    mask has a bool for each lane, of registers for each lane of the first one."""

    make: Make


@dataclass(frozen=True, slots=True)
class Repeats:
    """dst = fn(sources) of elements behind pointers of UB, in repeats of eight blocks that the mask
    register governs (`vector/raw.py`). The last source is a scalar where `scalar` says what it is:
    the low bits of an element, or how far to shift one."""

    fn: Callable[..., Any]
    scalar: Literal["", "element", "shift"] = ""


@dataclass(frozen=True, slots=True)
class Do:
    """Anything else: `make(case)` reads types and attributes once and returns fn(core, *operands);
    with `words`, fn(words, *operands): each engine has such words of its own, and runs the same fn.

    fn is called with the values of the row's operands in order (None for an absent optional one, a
    list for a variadic one) and returns the results. With `blocks`, fn may return Blocked without
    having changed anything: the agent waits and tries again.
    """

    make: Make
    blocks: bool = False
    looks: bool = False  # reads what other agents change: a loop over it lets them go on
    binds: str = ""  # the operand that gets what fn returns: a handle that was only declared
    stays: str = ""  # why compiled code leaves it to Python, where nothing else says it
    words: Callable[[Any], Any] | None = None  # of the reference engine, made of a core


@dataclass(frozen=True, slots=True)
class Together:
    """What work items do at once: `make(case)` gives fn(items, *operands), written against
    `simt/items.py`. Values are arrays with an entry for each item that is active, pointers are
    `Pointers`; a lane function beside it needs none of this."""

    make: Make


@dataclass(frozen=True, slots=True)
class Launch:
    """Work items run the function that `callee` names, or the body of the operation. How many:
    the first three operands say it, attributes, or numbers that were stored before."""

    sizes: Literal["operands", "attributes", "stored"]


class Blocked:
    """Why an agent cannot go on yet: completes "waits for ..."; made into words when asked.

    `code` names the mistake where nobody ever lets it go on.
    """

    __slots__ = ("_reason", "code")

    def __init__(self, reason: Callable[[], str] | str, code: str = "PTO-D110") -> None:
        self._reason = reason
        self.code = code

    def __str__(self) -> str:
        return self._reason if isinstance(self._reason, str) else self._reason()


def do(fn: Callable[..., Any], *, blocks: bool = False) -> Do:
    """A Do whose function needs nothing from the types: fn(core, *operands)."""
    return Do(lambda case: fn, blocks)
