"""Placement of fences: inner code first, then the remaining needs of each sequence of items.

Each need is met by a flag that is set right after the item with the earlier work and waited for
right before the item with the later work. The latest work comes first: it may imply the rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pto.plan.sync.clocks import ClockState, until
from pto.plan.sync.effects import PIPES
from pto.plan.sync.footprint import Footprints
from pto.plan.sync.outside import Loops, Relation
from pto.plan.sync.tree import BranchNode, LoopNode, Node, inner
from pto.plan.sync.walk import ALL, FenceSet, Need, PlacedFence, Walk

_TRIES = len(PIPES) ** 2 + 2  # each need that is met belongs to another pair of pipes


class Placer:
    """Places the fences of one function, as one side runs it."""

    def __init__(
        self,
        shadow: Footprints,
        ordered: frozenset[int],
        stops: Sequence[Node],
        existing: Iterable[PlacedFence] = (),
    ) -> None:
        """`stops`: a barrier of all before each; `existing`: order that already holds."""
        self.shadow = shadow
        self.ordered = ordered
        self.fences = FenceSet()
        for fence in existing:
            self.fences.know(fence)
        for item in stops:
            self.fences.add_barrier(ALL, item)

    def place(self, items: Sequence[Node], around: Loops = frozenset()) -> None:
        """Place all fences between these items and inside them."""
        for item in items:
            within = around | {item.op} if isinstance(item, LoopNode) else around
            for part in inner(item):
                self.place(part, within)
            if isinstance(item, LoopNode):
                self._carry(item, around)
        walk = _NodeWalk(self._walk(Relation(around)))
        for item in items:
            walk.step(item, 0, walk.walk.now)

    def _walk(self, relation: Relation) -> Walk:
        return Walk(self.fences, self.shadow, self.ordered, relation)

    def _carry(self, loop: LoopNode, around: Loops) -> None:
        """Place the needs of an iteration on earlier ones, and of a while body on its test."""
        first = _NodeWalk(self._walk(Relation(around)), loop)
        for n, part in enumerate(loop.parts):
            until = first.walk.now  # needs of a part on itself in one iteration are placed already
            for item in part:
                first.step(item, n, until)
        end = first.walk.now
        first.walk.relation = Relation(around, loop.op)
        second = _NodeWalk(first.walk, loop, first)
        for n, part in enumerate(loop.parts):
            for item in part:
                second.step(item, n, end)


@dataclass(slots=True)
class _NodeWalk:
    """One walk over the items of a sequence, or of a loop after another iteration of it."""

    walk: Walk
    loop: LoopNode | None = None
    before: _NodeWalk | None = None
    items: list[tuple[Node, int]] = field(default_factory=list[tuple[Node, int]])  # with its part
    ends: list[int] = field(default_factory=list[int])
    states: list[ClockState] = field(
        default_factory=list[ClockState]
    )  # for flags set after the item

    def step(self, item: Node, part: int, until: int) -> None:
        """Advance to `item`, and first place its needs."""
        walk = self.walk
        walk.until = until
        walk.tries = not isinstance(item, (BranchNode, LoopNode))
        saved = None if walk.tries else walk.save()
        self.items.append((item, part))
        for _ in range(_TRIES):
            walk.needs = []
            walk.step(item)
            if not walk.needs:
                break
            if saved is not None:
                walk.restore(saved)
            self._meet(max(walk.needs), item, part)
            if saved is not None:
                saved = saved._replace(raised=walk.raised.copy())
        else:
            raise RuntimeError(f"fences before {item.op!r} do not order it")
        self.ends.append(walk.now)
        self.states.append(walk.before.copy())

    def _meet(self, need: Need, item: Node, part: int) -> None:
        fences = self.walk.fences
        if ALL in (need.source, need.target):
            fences.add_barrier(ALL, item)
        elif need.source == need.target:
            fences.add_barrier(need.source, item)
        else:
            self._flag(need, item, part)

    def _flag(self, need: Need, item: Node, part: int) -> None:
        here = len(self.items) - 1
        iteration = self if self.before is None or need.time > self.before.ends[-1] else self.before
        there = bisect_left(iteration.ends, need.time)
        earlier, its_part = iteration.items[there]
        is_back = iteration is not self and (its_part, there) >= (part, here)
        if not is_back:
            iteration = self  # the same item of this iteration is after that of the one before
        crosses = its_part != part
        loop = self.loop if is_back or crosses else None
        fence = PlacedFence(
            need.source,
            need.target,
            earlier,
            item,
            loop,
            primed=is_back,
            drained=loop is not None and is_back is not crosses,
        )
        self.walk.fences.add(fence)
        then = [times & until(iteration.ends[there]) for times in self.walk.work]
        self.walk.raised[fence] = iteration.states[there].copy().published(fence.source, then)
