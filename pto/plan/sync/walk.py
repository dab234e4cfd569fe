"""A walk through the items of a function with the fences placed so far: what is still unordered.

The same walk serves one turn of a loop and the whole of it: knowledge is stated for every way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pto.plan.sync.clocks import Clock, State, Times, between, common
from pto.plan.sync.effects import PIPES, Handoff, Phase, Work
from pto.plan.sync.footprint import Footprint
from pto.plan.sync.outside import Turns
from pto.plan.sync.tree import Branch, Call, Item, Leaf, Loop, Stop

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
    needs: Item | None = None  # of two that became one: what the earlier was set after


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
        self.know(fence)

    def know(self, fence: Fence) -> None:
        """Order that is there already: as of a flag, which nobody has to write."""
        self.sets.setdefault(fence.after, []).append(fence)
        self.waits.setdefault(fence.before, []).append(fence)
        if fence.loop is not None:
            self.around.setdefault(fence.loop, []).append(fence)

    def replace(self, first: Fence, second: Fence) -> None:
        """Two flags by one that is set with the second and waited for with the first."""
        for fence in (first, second):
            self.flags.remove(fence)
            self.sets[fence.after].remove(fence)
            self.waits[fence.before].remove(fence)
        needs = first.needs or first.after
        self.add(Fence(first.source, first.target, second.after, first.before, needs=needs))

    def add_barrier(self, pipe: int, before: Item) -> None:
        self.barriers.setdefault(before, []).append(pipe)


class Saved(NamedTuple):
    """A point to go back to."""

    state: State
    now: int
    work: Clock
    calls: Clock
    raised: dict[Fence, Clock]


class Walk:
    """Goes through items in order; `needs` collects what no fence orders."""

    def __init__(
        self, fences: Fences, shadow: Footprint, ordered: frozenset[int], turns: Turns
    ) -> None:
        shadow.clear()
        self.fences = fences
        self.shadow = shadow
        self.ordered = ordered  # memory-ordered pipes
        self.turns = turns
        self.until = 0  # of memory outside, what came later is not looked at
        self.now = 0
        self.state = State()
        self.before = self.state  # after the last item, before flags of a loop are taken down
        self.work: Clock = [0] * len(PIPES)  # when each pipe worked
        self.calls: Clock = [0] * len(PIPES)  # when it did so inside a function that was called
        self.raised: dict[Fence, Clock] = {}  # flags that are set, with what they tell
        self.needs: list[Need] = []
        self.tries = False  # leave no trace of work that needs more

    def save(self) -> Saved:
        state, work, calls = self.state.copy(), self.work.copy(), self.calls.copy()
        return Saved(state, self.now, work, calls, self.raised.copy())

    def restore(self, saved: Saved) -> None:
        self.state, self.now = saved.state.copy(), saved.now
        self.work, self.calls = saved.work.copy(), saved.calls.copy()
        self.raised = saved.raised.copy()

    # ---- items

    def run(self, items: Iterable[Item]) -> None:
        for item in items:
            self.step(item)

    def step(self, item: Item) -> None:
        for pipe in self.fences.barriers.get(item, ()):
            self._settle(pipe)
        for fence in self.fences.waits.get(item, ()):
            if fence in self.raised:
                self.state.hear(fence.target, self.raised[fence])
        after: State | None = None
        if isinstance(item, Leaf):
            self._do(item.work)
        elif isinstance(item, Branch):
            self._branch(item)
        elif isinstance(item, Loop):
            after = self._loop(item)
        elif isinstance(item, Call):
            self._call(item.pipes)
        elif isinstance(item, Stop):
            self._settle(ALL if len(item.pipes) > 1 else min(item.pipes))
        for fence in self.fences.sets.get(item, ()):
            self._set(fence)
        self.before = self.state
        self.state = self.state if after is None else after

    def _set(self, fence: Fence) -> None:
        self.raised[fence] = self.state.published(fence.source, self.now)

    def _settle(self, pipe: int) -> None:
        if pipe == ALL:
            self.state.settle_all(self.now)
        else:
            self.state.settle(pipe, self.now)

    def _do(self, work: Work) -> None:
        """Its phases one after the other; what they need of each other is the operation's own."""
        begin, saved = self.now, self.save() if self.tries and len(work.parts) > 1 else None
        for part in work.parts:
            if isinstance(part, Handoff):
                self.state.hear(part.target, self.state.published(part.source, self.now))
                continue
            self._look(part, begin)
            if self.needs and self.tries:
                if saved is not None:
                    self.restore(saved)
                return
            self.now += 1
            self.shadow.mark(part, self.now)
            self._did(part.pipe, part.is_scalar)

    def _look(self, phase: Phase, begin: int) -> None:
        """Add what a phase needs of the work before its operation, which began after `begin`."""
        pipe, state = phase.pipe, self.state
        state.hear_scalar(pipe, self.now)
        clock = state.clocks[pipe]
        before = self.shadow.before(phase, begin, self.until, self.turns)
        for source, times in enumerate(before):
            self._need((times | self.calls[source]) & ~clock[source], source, pipe)

    def _did(self, pipe: int, touches: bool) -> None:
        self.work[pipe] |= 1 << self.now
        if touches:
            self.state.touched |= 1 << self.now
        if pipe in self.ordered:
            self.state.settle(pipe, self.now)

    def _need(self, missing: Times, source: int, target: int) -> None:
        if missing:
            self.needs.append(Need(missing.bit_length() - 1, source, target))

    def _call(self, pipes: Iterable[int]) -> None:
        """A function may touch anything with the pipes it has work for: each of them comes after
        all before, and what follows after all of them."""
        for pipe in pipes:
            self.state.hear_scalar(pipe, self.now)
            for source, known in enumerate(self.state.clocks[pipe]):
                self._need(self.work[source] & ~known, source, pipe)
        if self.needs and self.tries:
            return
        self.now += 1
        for pipe in pipes:
            self.calls[pipe] |= 1 << self.now
            self._did(pipe, touches=PIPES[pipe] == "S")

    def _branch(self, item: Branch) -> None:
        start, ways = self.state, list[tuple[State, Times]]()
        for arm in item.arms:
            begin, others = self.now, sum(times for _, times in ways)
            self.state = start.without(others)
            self.run(arm)
            ways.append((self.state, between(begin, self.now)))
        every = sum(times for _, times in ways)
        self.state = common([state.without(every & ~times) for state, times in ways])

    def _loop(self, item: Loop) -> State:
        """No turn at all, and one turn: what is known after more turns is not less. The result is
        what is known when the flags that are left up have been taken down."""
        around = self.fences.around.get(item, ())
        for fence in around:
            if fence.primed:
                self._set(fence)
        test, body = ([], item.parts[0]) if len(item.parts) == 1 else item.parts
        self.run(test)
        none, begin, told = self.state.copy(), self.now, self.raised.copy()
        self.run(body)
        self.run(test)
        ends = [(self.state, self.raised)]
        if not item.surely_runs:
            ends.append((none.without(between(begin, self.now)), told))
        self.state = common([state.copy() for state, _ in ends])
        for state, raised in ends:
            for fence in around:
                if fence.drained and fence in raised:
                    state.hear(fence.target, raised[fence])
        return common([state for state, _ in ends])
