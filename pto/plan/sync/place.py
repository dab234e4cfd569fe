"""Where fences go: inner code first, then what each sequence of items still needs.

Each need is met by a flag set right after the item that holds the earlier work and waited for right
before the item that holds the later. The latest work comes first: it may imply the rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pto.plan.sync.clocks import State
from pto.plan.sync.effects import PIPES
from pto.plan.sync.footprint import Footprint
from pto.plan.sync.outside import Loops, Turns
from pto.plan.sync.tree import Branch, Item, Loop, inner
from pto.plan.sync.walk import ALL, Fence, Fences, Need, Walk

_TRIES = len(PIPES) ** 2 + 2  # each need that is met is of another pair of pipes


class Placer:
    """Places the fences of one function, as one side runs it."""

    def __init__(
        self,
        shadow: Footprint,
        ordered: frozenset[int],
        stops: Sequence[Item],
        known: Iterable[Fence] = (),
    ) -> None:
        """`stops`: a barrier of all before each; `known`: order that is there already."""
        self.shadow = shadow
        self.ordered = ordered
        self.fences = Fences()
        for fence in known:
            self.fences.know(fence)
        for item in stops:
            self.fences.add_barrier(ALL, item)

    def place(self, items: Sequence[Item], around: Loops = frozenset()) -> None:
        """Everything between these items and inside them."""
        for item in items:
            within = around | {id(item.op)} if isinstance(item, Loop) else around
            for part in inner(item):
                self.place(part, within)
            if isinstance(item, Loop):
                self._carry(item, around)
        turn = _Turn(self._walk(Turns(around)))
        for item in items:
            turn.step(item, 0, turn.walk.now)

    def _walk(self, turns: Turns) -> Walk:
        return Walk(self.fences, self.shadow, self.ordered, turns)

    def _carry(self, loop: Loop, around: Loops) -> None:
        """What a turn needs of the turns before it, and the body of a while of its test."""
        first = _Turn(self._walk(Turns(around)), loop)
        for n, part in enumerate(loop.parts):
            until = first.walk.now  # what a part needs of itself in one turn has been placed
            for item in part:
                first.step(item, n, until)
        end = first.walk.now
        first.walk.turns = Turns(around, loop.op)
        second = _Turn(first.walk, loop, first)
        for n, part in enumerate(loop.parts):
            for item in part:
                second.step(item, n, end)


@dataclass(slots=True)
class _Turn:
    """One walk over the items of a sequence, or of a loop after another turn of it."""

    walk: Walk
    loop: Loop | None = None
    before: _Turn | None = None
    items: list[tuple[Item, int]] = field(default_factory=list[tuple[Item, int]])  # with its part
    ends: list[int] = field(default_factory=list[int])
    states: list[State] = field(default_factory=list[State])  # where flags are set behind it

    def step(self, item: Item, part: int, until: int) -> None:
        """Go on to `item`, and place what it needs first."""
        walk = self.walk
        walk.until = until
        walk.tries = not isinstance(item, (Branch, Loop))
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

    def _meet(self, need: Need, item: Item, part: int) -> None:
        fences = self.walk.fences
        if ALL in (need.source, need.target):
            fences.add_barrier(ALL, item)
        elif need.source == need.target:
            fences.add_barrier(need.source, item)
        else:
            self._flag(need, item, part)

    def _flag(self, need: Need, item: Item, part: int) -> None:
        here = len(self.items) - 1
        turn = self if self.before is None or need.time > self.before.ends[-1] else self.before
        there = bisect_left(turn.ends, need.time)
        earlier, its_part = turn.items[there]
        is_back = turn is not self and (its_part, there) >= (part, here)
        if not is_back:
            turn = self  # the same item of this turn: it is behind that of the turn before
        crosses = its_part != part
        loop = self.loop if is_back or crosses else None
        fence = Fence(
            need.source,
            need.target,
            earlier,
            item,
            loop,
            primed=is_back,
            drained=loop is not None and is_back is not crosses,
        )
        self.walk.fences.add(fence)
        state, now = turn.states[there].copy(), turn.ends[there]
        self.walk.raised[fence] = state.published(fence.source, now)
