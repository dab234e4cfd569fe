"""Loop partition: which steps of a group share a pass over its rows, and which values one pass
leaves to another.

A pass works on all elements of some rows, or on one value a row (`is_column`). It ends where a step
needs a reduction of a whole row.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.run.jit.emit.tile.access import Access
from pto.run.jit.emit.tile.group import Step


def left_over(
    passes: Sequence[Sequence[Step]], of: Sequence[Step] | None = None
) -> dict[str, Access]:
    """Private refs that one pass leaves to another; with `of`, those that this pass leaves."""
    found: dict[str, Access] = {}
    made = set[str]()
    for steps in passes:
        own = set[str]()
        for step in steps:
            found |= {r.pointer: r for r in step.refs if r.owner and r.pointer in made - own}
            own.add(step.dst.pointer)
        made = made | own if of is None or steps is of else made - own
    return found


def is_column(step: Step) -> bool:
    return step.dst.shape == "column" and step.fold is None


def passes(steps: Sequence[Step]) -> list[list[Step]]:
    """Put each step into the first possible pass: not before steps that share its accesses, and
    after the fold that it needs."""
    found: list[list[Step]] = []
    for step in steps:
        first = 0
        for n, earlier in enumerate(found):
            if any(_shares(step, other) for other in earlier):
                first = n + any(other.fold is not None and _needs(step, other) for other in earlier)
        kind = is_column(step)
        fitting = (each for each in found[first:] if is_column(each[0]) == kind)
        into = next(fitting, None)
        if into is None:
            found.append([step])
        else:
            into.append(step)
    return found


def _needs(step: Step, other: Step) -> bool:
    return any(ref.place == other.dst.place for ref in step.refs)


def _shares(step: Step, other: Step) -> bool:
    """True if one writes an access of the other; views of global memory may always overlap."""
    pairs = [(step.dst, ref) for ref in (other.dst, *other.refs)]
    pairs += [(ref, other.dst) for ref in step.refs]
    return any(a.place == b.place or (is_view(a) and is_view(b)) for a, b in pairs)


def is_view(ref: Access) -> bool:
    return ref.memory < 0 and not ref.owner
