"""The kinds of meaning a row can have. An engine has one case for each kind, not one for each row.

Lane functions are written once on the primitives of `lanes.py`; the reference engine evaluates them
on NumPy arrays. The kinds of control flow are in `row/traits.py`.
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

    On tiles: over the destination's valid region. An integer scalar of the same width as the
    destination's elements is converted to their type; other scalars keep theirs. On registers:
    lanes with mask bit 0 become zero; a mask that is a result or a second source has one bool per
    lane; scalars are broadcast. On logical vectors: as on registers, for any number of lanes. On
    masks only: bit by bit. On scalars: one lane of each. A function with several results returns a
    tuple. `make` selects the function if attributes or types decide.
    """

    fn: Callable[..., Any] | None = None
    make: Make | None = None
    # How a source is broadcast over the domain. "row": its column 0, for every j; of two
    # sources, the narrower one, else the second (its valid columns repeat, except on a5).
    # "column": row 0 of the last source, for every i.
    spread: Axis | None = None
    moves: bool = False  # only moves elements, so it accepts any element type
    # For registers of two widths: the narrow lane of each wide one that is used; the rest are 0.
    part: Callable[[Case], int] | None = None
    sees: Callable[[Case, str], DType] | None = None  # element type of registers, if not their own
    chooses: bool = False  # no mask governs the operation: all operands are sources
    # For scalars: a precondition on the sources, and the finding if it does not hold.
    needs: Callable[..., Any] | None = None
    refused: Callable[..., PtoError] | None = None
    # For integer scalars: the same function on Python integers, which is faster than on arrays.
    quick: Callable[[Case], Callable[..., int]] | None = None

    def function(self, case: Case) -> Callable[..., Any]:
        if self.make is not None:
            return self.make(case)
        if self.fn is None:
            raise RuntimeError("a Lane needs fn or make")
        return self.fn


@dataclass(frozen=True, slots=True)
class ConstantResult:
    """A result that depends only on attributes and types."""

    value: Callable[[Case], Any]


@dataclass(frozen=True, slots=True)
class Permute:
    """Moves items of registers or bits of masks: `make(case)` gives fn(arrays) -> array or arrays.

    fn moves items of any type and fills with zeros. Registers are read as items of the first
    result's type.
    """

    make: Make


@dataclass(frozen=True, slots=True)
class TreeFold:
    """A reduction tree over neighbouring lanes of a register: 0 with 1, 2 with 3, and so on.

    The tree stops when `left(case)` values remain. They are written to the lanes `places(case)` of
    the result; the remaining lanes are 0. A lane with mask bit 0 counts as the neutral element of
    fn. `wide`: f16 and bf16 are folded in f32 and rounded once, integers in the type of the result.
    """

    fn: Callable[[Any, Any], Any]
    left: Callable[[Case], int]
    places: Callable[[Case], slice]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """dst = fn over the elements of src along an axis, over src's valid region.

    Axis "column": dst[0,j] over i in order: acc = fn(acc, next), starting from the neutral element
    of fn, every step rounded to dst's type. Axis "row": dst[i,0] over j, with 16 partial
    accumulators: accumulator n takes columns n, n+16, .. in order; then accumulators n and n+8 are
    combined, n and n+4, n and n+2, n and n+1. `wide`: f16 and bf16 are folded in f32 and rounded
    once, at the end. If `pairs(case)` holds, neighbours are combined first, then neighbouring
    results; the last of an odd number joins the last pair.
    """

    fn: Callable[[Any, Any], Any]
    axis: Axis
    wide: bool = False
    pairs: Callable[[Case], bool] | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Moves elements: `make(case)` reads types and attributes once and returns fn(mover,
    *operands).

    fn uses the interface of `tile/mover.py`, which every engine implements.
    """

    make: Make


@dataclass(frozen=True, slots=True)
class Vectors:
    """Operates on whole registers or logical vectors: `make(case)` returns fn(words, *operands).

    `make` reads types and attributes once. fn uses the interface of `vmi/words.py`, which every
    engine implements. A mask has a bool for each lane; for registers, for each lane of the first
    one.
    """

    make: Make


@dataclass(frozen=True, slots=True)
class Repeats:
    """dst = fn(sources) on elements at pointers into UB, in repeats of eight 32-byte blocks.

    The mask register selects elements (`vector/raw.py`). `scalar` gives the role of a last scalar
    source: the low bits of an element, or a shift count.
    """

    fn: Callable[..., Any]
    scalar: Literal["", "element", "shift"] = ""


@dataclass(frozen=True, slots=True)
class Do:
    """Any other meaning: `make(case)` reads types and attributes once and returns fn(core,
    *operands).

    With `words`, it returns fn(words, *operands): each engine implements `words` and runs the same
    fn. fn receives the values of the row's operands in order (None for an absent optional one, a
    list for a variadic one) and returns the results. With `blocks`, fn may return Blocked if it has
    changed nothing: the agent waits and tries again.
    """

    make: Make
    blocks: bool = False
    polls: bool = False  # reads state that other agents change: a loop must yield to them
    defines: str = ""  # the operand that receives the result of fn: a handle that was only declared
    host_only: str = ""  # the reason for a host fallback, if there is no other
    # makes the words of the reference engine from a core and the case
    words: Callable[[Any, Case], Any] | None = None


@dataclass(frozen=True, slots=True)
class Cooperative:
    """A cooperative operation of all active work items: `make(case)` gives fn(items, *operands).

    fn uses `simt/items.py`. Values are arrays with an entry for each active item, and pointers are
    `Pointers`. A lane function needs none of this.
    """

    make: Make


@dataclass(frozen=True, slots=True)
class ItemLaunch:
    """Starts work items that run the function named by `callee`, or the operation's own body.

    Their number comes from the first three operands, from attributes, or from a number stored
    earlier.
    """

    sizes: Literal["operands", "attributes", "stored"]


class Blocked:
    """Why an agent cannot continue yet: completes "waits for ..."; formatted only on demand.

    `code` is the finding if no agent can ever unblock it.
    """

    __slots__ = ("_reason", "code")

    def __init__(self, reason: Callable[[], str] | str, code: str = "PTO-D110") -> None:
        self._reason = reason
        self.code = code

    def __str__(self) -> str:
        return self._reason if isinstance(self._reason, str) else self._reason()
