"""Event ids for flags: two flags between the same pipes that may be up at once need two ids.

Of the ids that are free the one that was waited for longest ago is taken, so that a pipe that runs
ahead finds a flag down that it sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pto.plan.sync.tree import Item, inner
from pto.plan.sync.walk import Fence

Span = tuple[int, int]  # positions in the text, both included
Places = dict[Item, Span]


def places(items: Sequence[Item]) -> Places:
    """Where each item begins and ends in the text."""
    found: Places = {}
    _number(items, 0, found)
    return found


def _number(items: Sequence[Item], at: int, found: Places) -> int:
    for item in items:
        start, at = at, at + 1
        for part in inner(item):
            at = _number(part, at, found)
        found[item] = start, at
        at += 1
    return at


def spans(fence: Fence, at: Places) -> list[Span]:
    """Where the flag may be up."""
    set_, wait = at[fence.after][1], at[fence.before][0]
    if fence.loop is None:
        return [(set_, wait)]
    start, end = at[fence.loop]
    up = [(start, wait)] if fence.primed else [(set_, wait)]
    # After the last turn it is up until it is drained; on the way to the next turn anyway.
    return [*up, (set_, end)]


def allocate(
    fences: Iterable[Fence], at: Places, count: int
) -> tuple[dict[Fence, int], list[Fence]]:
    """An id for each fence, and the fences for which none was left."""
    given: dict[Fence, int] = {}
    without: list[Fence] = []
    pairs: dict[tuple[int, int], list[Fence]] = {}
    for fence in fences:
        pairs.setdefault((fence.source, fence.target), []).append(fence)
    for found in pairs.values():
        used: list[list[Span]] = [[] for _ in range(count)]
        for fence in sorted(found, key=lambda f: min(spans(f, at))):
            mine = spans(fence, at)
            free = [n for n in range(count) if not _meet(mine, used[n])]
            if not free:
                without.append(fence)
                continue
            chosen = min(free, key=lambda n: (max((e for _, e in used[n]), default=-1), n))
            used[chosen] += mine
            given[fence] = chosen
    return given, without


def _meet(mine: Sequence[Span], theirs: Sequence[Span]) -> bool:
    return any(a <= d and c <= b for a, b in mine for c, d in theirs)
