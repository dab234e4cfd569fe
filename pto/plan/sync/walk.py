"""A walk through the items of a function with the fences placed so far: what is still unordered.

The same walk serves one turn of a loop and the whole of it: knowledge is stated for every way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pto.plan.sync.clocks import Clock, State, merged
from pto.plan.sync.effects import PIPES, Work
from pto.plan.sync.outside import Turns
from pto.plan.sync.shadow import Marks, Shadow
from pto.plan.sync.tree import Branch, Call, Item, Leaf, Loop

ALL = len(PIPES)  # stands for every pipe at once


class Need(NamedTuple):
    """Work at `time` on `source` that must be done before work on `target`; ALL: of every pipe."""

    time: int
    source: int
    target: int


@dataclass(frozen=True, slots=True, eq=False)
class Fence:
    """A flag: set after one item, waited for before another.

    Around `loop` it is set before the loop (`primed`), and waited for after it (`drained`).
    """

    source: int
    target: int
    after: Item
    before: Item
    loop: Loop | None = None
    primed: bool = False
    drained: bool = False


@dataclass(slots=True)
class Fences:
    """All fences placed so far, by where they stand."""

    flags: list[Fence] = field(default_factory=list[Fence])
    sets: dict[Item, list[Fence]] = field(default_factory=dict[Item, list[Fence]])
    waits: dict[Item, list[Fence]] = field(default_factory=dict[Item, list[Fence]])
    around: dict[Item, list[Fence]] = field(default_factory=dict[Item, list[Fence]])
    barriers: dict[Item, list[int]] = field(default_factory=dict[Item, list[int]])

    def add(self, fence: Fence) -> None:
        self.flags.append(fence)
        self.sets.setdefault(fence.after, []).append(fence)
        self.waits.setdefault(fence.before, []).append(fence)
        if fence.loop is not None:
            self.around.setdefault(fence.loop, []).append(fence)

    def add_barrier(self, pipe: int, before: Item) -> None:
        self.barriers.setdefault(before, []).append(pipe)


class Saved(NamedTuple):
    """A point to go back to."""

    state: State
    now: int
    called: int
    raised: dict[Fence, Clock]
    shadow: Marks


class Walk:
    """Goes through items in order; `needs` collects what no fence orders."""

    def __init__(
        self, fences: Fences, shadow: Shadow, ordered: frozenset[int], turns: Turns
    ) -> None:
        self.fences = fences
        self.shadow = shadow
        self.ordered = ordered  # memory-ordered pipes
        self.state = State()
        self.now = 0
        self.called = 0  # when a function was last called
        self.raised: dict[Fence, Clock] = {}  # flags that are set, with what they tell
        self.needs: list[Need] = []
        self.tries = False  # leave no trace of work that needs more
        self.until = 0  # of memory outside, what came later is not looked at
        self.turns = turns

    def save(self) -> Saved:
        raised, marks = self.raised.copy(), self.shadow.save()
        return Saved(self.state.copy(), self.now, self.called, raised, marks)

    def restore(self, saved: Saved) -> None:
        self.state, self.now, self.called = saved.state.copy(), saved.now, saved.called
        self.raised = saved.raised.copy()
        self.shadow.restore(saved.shadow)

    # ---- items

    def run(self, items: Iterable[Item]) -> None:
        for item in items:
            self.step(item)

    def step(self, item: Item) -> None:
        for pipe in self.fences.barriers.get(item, ()):
            self._settle(pipe)
        for fence in self.fences.waits.get(item, ()):
            self._wait(fence)
        if isinstance(item, Leaf):
            self._work(item.work)
        elif isinstance(item, Branch):
            self._branch(item)
        elif isinstance(item, Loop):
            self._loop(item)
        elif isinstance(item, Call):
            self._call()
        for fence in self.fences.sets.get(item, ()):
            self.set(fence)

    def set(self, fence: Fence) -> None:
        self.raised[fence] = self.state.published(fence.source, self.now)

    def _wait(self, fence: Fence) -> None:
        told = self.raised.get(fence)
        if told is not None:
            self.state.hear(fence.target, told)

    def _settle(self, pipe: int) -> None:
        if pipe == ALL:
            self.state.settle_all(self.now)
        else:
            self.state.settle(pipe, self.now)

    def _work(self, work: Work) -> None:
        pipe, state = work.pipe, self.state
        state.hear_scalar(pipe, self.now)
        clock = state.clocks[pipe]
        if self.called > min(clock):
            self.needs.append(Need(self.called, ALL, pipe))
        for source, time in enumerate(self.shadow.before(work, self.until, self.turns)):
            if time > clock[source]:
                self.needs.append(Need(time, source, pipe))
        if self.needs and self.tries:
            return
        self.now += 1
        self.shadow.mark(work, self.now)
        state.last[pipe] = self.now
        if pipe in self.ordered:
            state.settle(pipe, self.now)

    def _call(self) -> None:
        if not self.state.knows_all():
            self.needs.append(Need(max(self.state.last), ALL, ALL))
        if self.needs and self.tries:
            return
        self.now += 1
        self.called = self.now
        self.state.last = [self.now] * len(PIPES)

    def _branch(self, item: Branch) -> None:
        start, before, called = self.state, self.shadow.save(), self.called
        ways, marks, calls = list[State](), list[Marks](), list[int]()
        for arm in item.arms:
            self.state, self.called = start.copy(), called
            self.shadow.restore(before)
            self.run(arm)
            ways.append(self.state)
            marks.append(self.shadow.save())
            calls.append(self.called)
        for other in marks[:-1]:
            self.shadow.add(other)
        self.called = max(calls)
        self.state = merged(ways, self.now)

    def _loop(self, item: Loop) -> None:
        """No turn at all, and one turn: knowledge of later turns is not less."""
        around = self.fences.around.get(item, ())
        for fence in around:
            if fence.primed:
                self.set(fence)
        test, body = ([], item.parts[0]) if len(item.parts) == 1 else item.parts
        self.run(test)
        none = self.state.copy()
        start = self.raised.copy()
        self.run(body)
        self.run(test)
        ends = [(self.state, self.raised)]
        if not item.surely_runs:
            ends.append((none, start))
        for state, raised in ends:
            for fence in around:
                if fence.drained and fence in raised:
                    state.hear(fence.target, raised[fence])
        self.state = merged([state for state, _ in ends], self.now)
