"""Event ids for flags: two flags between the same pipes that may be up at once need two ids.

Of the free ids the least recently waited one is taken, so that a pipe that runs ahead finds its
flag down. If a profile warns of it, an id that another flag of the same source has up comes last.
If no id is left, two flags are merged: set at the later set, waited for at the earlier wait. The
pair with the least additional delay is merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pto.ir.graph import Operation
from pto.isa.row.flag import Flag, key_of
from pto.plan.sync.effects import PIPES
from pto.plan.sync.tree import CallNode, Node, WorkNode, inner
from pto.plan.sync.walk import FenceSet, PlacedFence
from pto.target.facts import SHARED_SOURCE, Sync

Span = tuple[int, int]  # positions in the text, both included


class TextSpans:
    """The text positions of each item, and the flags used there."""

    def __init__(
        self, items: Sequence[Node], sync: Sync, used: Mapping[Operation, AbstractSet[Flag]]
    ) -> None:
        """`used` has the flags of functions that may be called, by function."""
        self._identity = sync.flag_identity
        self.parts_sources = SHARED_SOURCE in sync.flag_warnings
        self._used = used
        self.at: dict[Node, Span] = {}
        self.taken: dict[Flag, list[Span]] = {}
        self._number(items, 0)

    def _number(self, items: Sequence[Node], at: int) -> int:
        for item in items:
            start, at = at, at + 1
            for flag in self._inside(item):
                self.taken.setdefault(flag, []).append((at, at))
            for part in inner(item):
                at = self._number(part, at)
            self.at[item] = start, at + 1
            at += 2
        return at

    def _inside(self, item: Node) -> Iterable[Flag]:
        """The flags that an instruction or a function uses internally."""
        if isinstance(item, CallNode):
            return self._used.get(item.callee, ())
        if not isinstance(item, WorkNode):
            return ()
        return (key_of(Flag(*flag), self._identity) for flag in item.work.inner)

    def flag(self, fence: PlacedFence, number: int) -> Flag:
        """The key of the flag of a fence with an id."""
        return key_of(Flag(PIPES[fence.source], PIPES[fence.target], number), self._identity)

    def spans(self, fence: PlacedFence) -> list[Span]:
        """The positions at which the flag may be up."""
        begin, end = self.at[fence.after][1], self.at[fence.before][0]
        if fence.loop is None:
            return [(begin, end)]
        first, last = self.at[fence.loop]
        # After its set it is up to the end of the iteration or of the loop, and maybe beyond.
        return [(first if fence.primed else begin, end), (begin, last)]


def allocate(
    fences: Iterable[PlacedFence], places: TextSpans, count: int
) -> tuple[dict[PlacedFence, int], list[PlacedFence]]:
    """An id for each fence, and the fences without an id."""
    id_of: dict[PlacedFence, int] = {}
    without: list[PlacedFence] = []
    beside: dict[tuple[int, int], list[Span]] = {}  # where ids of a source are up
    alike: dict[Flag, list[PlacedFence]] = {}
    for fence in fences:
        alike.setdefault(places.flag(fence, 0), []).append(fence)
    for first, fences_alike in alike.items():
        used = [list(places.taken.get(first._replace(id=n), ())) for n in range(count)]
        last = [-1] * count
        for fence in sorted(fences_alike, key=lambda f: min(places.spans(f))):
            mine = places.spans(fence)
            free = [n for n in range(count) if not _meet(mine, used[n])]
            if not free:
                without.append(fence)
                continue
            taken = [beside.setdefault((fence.source, n), []) for n in range(count)]
            chosen = min(free, key=lambda n: (_meet(mine, taken[n]), last[n], n))
            used[chosen] += mine
            if places.parts_sources:
                taken[chosen] += mine
            last[chosen] = max(end for _, end in mine)
            id_of[fence] = chosen
    return id_of, without


def join_two(fences: FenceSet, lacking: PlacedFence, places: TextSpans) -> bool:
    """Merge two adjacent flags between the pipes of a fence without an id; False if none."""
    alike = [f for f in fences.flags if (f.source, f.target) == (lacking.source, lacking.target)]
    candidates: list[tuple[int, int, PlacedFence, PlacedFence]] = []
    for first in alike:
        for second in alike:
            if _are_side_by_side(first, second, places):
                begin = places.at[first.needs or first.after][0]
                length = places.at[second.after][0] - begin
                candidates.append((length, begin, first, second))
    if not candidates:
        return False
    _, _, first, second = min(candidates, key=lambda each: each[:2])
    fences.replace(first, second)
    return True


def _are_side_by_side(first: PlacedFence, second: PlacedFence, places: TextSpans) -> bool:
    """True if both are set in one block before the first is waited for."""
    items = (first.after, second.after, first.before, second.before)
    if first.loop is not None or second.loop is not None:
        return False
    if any(item.op.parent is not first.after.op.parent for item in items):
        return False
    starts = [places.at[item][0] for item in items]
    return starts[0] < starts[1] < starts[2] < starts[3]


def _meet(mine: Sequence[Span], theirs: Sequence[Span]) -> bool:
    return any(a <= d and c <= b for a, b in mine for c, d in theirs)
