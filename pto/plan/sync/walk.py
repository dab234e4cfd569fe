"""A walk through the items of a function with the fences placed so far: finds unordered work.

The same walk serves one iteration of a loop and the whole loop: its state holds on every path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pto.plan.sync.clocks import ClockState, Times, between, common, until
from pto.plan.sync.effects import PIPES, Phase, SyncFlag, SyncWork
from pto.plan.sync.footprint import Footprints
from pto.plan.sync.outside import Relation
from pto.plan.sync.tree import BarrierNode, BranchNode, CallNode, LoopNode, Node, WorkNode

ALL = len(PIPES)  # means every pipe


class Need(NamedTuple):
    """Work at `time` on `source` that must be done before work on `target`; ALL: of every pipe."""

    time: int
    source: int
    target: int


@dataclass(frozen=True, slots=True, eq=False)
class PlacedFence:
    """A flag: set after one item, waited for before another.

    Around `loop` it is set before the loop (`primed`), and waited for after it (`drained`).
    """

    source: int
    target: int
    after: Node
    before: Node
    loop: LoopNode | None = None
    primed: bool = False
    drained: bool = False
    needs: Node | None = None  # of a merged flag: the item of its earlier set


@dataclass(slots=True)
class FenceSet:
    """All fences placed so far, by location."""

    flags: list[PlacedFence] = field(default_factory=list[PlacedFence])
    sets: dict[Node, list[PlacedFence]] = field(default_factory=dict[Node, list[PlacedFence]])
    waits: dict[Node, list[PlacedFence]] = field(default_factory=dict[Node, list[PlacedFence]])
    around: dict[Node, list[PlacedFence]] = field(default_factory=dict[Node, list[PlacedFence]])
    barriers: dict[Node, list[int]] = field(default_factory=dict[Node, list[int]])

    def add(self, fence: PlacedFence) -> None:
        self.flags.append(fence)
        self.know(fence)

    def know(self, fence: PlacedFence) -> None:
        """Add order that already holds: like a flag that need not be inserted."""
        self.sets.setdefault(fence.after, []).append(fence)
        self.waits.setdefault(fence.before, []).append(fence)
        if fence.loop is not None:
            self.around.setdefault(fence.loop, []).append(fence)

    def replace(self, first: PlacedFence, second: PlacedFence) -> None:
        """Replace two flags by one that is set with the second and waited for with the first."""
        for fence in (first, second):
            self.flags.remove(fence)
            self.sets[fence.after].remove(fence)
            self.waits[fence.before].remove(fence)
        needs = first.needs or first.after
        self.add(PlacedFence(first.source, first.target, second.after, first.before, needs=needs))

    def add_barrier(self, pipe: int, before: Node) -> None:
        self.barriers.setdefault(before, []).append(pipe)


class Saved(NamedTuple):
    """A point to go back to."""

    state: ClockState
    now: int
    work: list[Times]
    calls: Times
    raised: dict[PlacedFence, Times]


class Walk:
    """Visits items in order; `needs` collects work that no fence orders."""

    def __init__(
        self, fences: FenceSet, shadow: Footprints, ordered: frozenset[int], relation: Relation
    ) -> None:
        shadow.clear()
        self.fences = fences
        self.shadow = shadow
        self.ordered = ordered  # memory-ordered pipes
        self.relation = relation
        self.until = 0  # in global memory, later accesses are ignored
        self.now = 0
        self.state = ClockState()
        self.before = self.state  # after the last item, before flags of a loop are waited for
        self.work = [0] * len(PIPES)  # times of the work of each pipe
        self.calls: Times = 0  # times of work inside called functions
        self.raised: dict[PlacedFence, Times] = {}  # flags that are set, with their clocks
        self.needs: list[Need] = []
        self.tries = False  # keep no trace of work with open needs

    def save(self) -> Saved:
        state = self.state.copy()
        work = self.work.copy()
        raised = self.raised.copy()
        return Saved(state, self.now, work, self.calls, raised)

    def restore(self, saved: Saved) -> None:
        self.state, self.now = saved.state.copy(), saved.now
        self.work, self.calls = saved.work.copy(), saved.calls
        self.raised = saved.raised.copy()

    # ---- items

    def run(self, items: Iterable[Node]) -> None:
        for item in items:
            self.step(item)

    def step(self, item: Node) -> None:
        for pipe in self.fences.barriers.get(item, ()):
            self._settle(pipe)
        for fence in self.fences.waits.get(item, ()):
            if fence in self.raised:
                self.state.clocks[fence.target] |= self.raised[fence]
        after: ClockState | None = None
        if isinstance(item, WorkNode):
            self._do(item.work)
        elif isinstance(item, BranchNode):
            self._branch(item)
        elif isinstance(item, LoopNode):
            after = self._loop(item)
        elif isinstance(item, CallNode):
            self._call(item.pipes)
        elif isinstance(item, BarrierNode):
            self._settle(ALL if len(item.pipes) > 1 else min(item.pipes))
        for fence in self.fences.sets.get(item, ()):
            self._set(fence)
        self.before = self.state
        self.state = self.state if after is None else after

    def _set(self, fence: PlacedFence) -> None:
        self.raised[fence] = self.state.published(fence.source, self.work)

    def _settle(self, pipe: int) -> None:
        """A barrier of one pipe, or of all."""
        clocks = self.state.clocks
        if pipe == ALL:
            clocks[:] = [until(self.now)] * len(PIPES)
        else:
            clocks[pipe] |= self.work[pipe]

    def _do(self, work: SyncWork) -> None:
        """Run the phases in order; the operation itself orders them among each other."""
        begin, saved = self.now, self.save() if self.tries and len(work.parts) > 1 else None
        for part in work.parts:
            if isinstance(part, SyncFlag):
                self.state.clocks[part.target] |= self.state.published(part.source, self.work)
                continue
            self._look(part, begin)
            if self.needs and self.tries:
                if saved is not None:
                    self.restore(saved)
                return
            self.now += 1
            self.shadow.mark(part, self.now)
            self._did(part.pipe, part.is_scalar)
            if part.is_handover:
                self.state.clocks[part.pipe] |= 1 << self.now

    def _look(self, phase: Phase, begin: int) -> None:
        """Add the needs of a phase on work before its operation, which began after `begin`."""
        pipe, state = phase.pipe, self.state
        state.hear_scalar(pipe, self.work)
        before = self.shadow.before(phase, begin, self.until, self.relation)
        done = state.clocks[pipe] | (self.work[pipe] if phase.is_handover else 0)
        self._needs((before | self.calls) & ~done, pipe)

    def _did(self, pipe: int, touches: bool) -> None:
        self.work[pipe] |= 1 << self.now
        if touches:
            self.state.touched |= 1 << self.now
        if pipe in self.ordered:
            self._settle(pipe)

    def _needs(self, missing: Times, target: int) -> None:
        """Add the latest of the missing work of each pipe."""
        for source, times in enumerate(self.work) if missing else ():
            if missing & times:
                self.needs.append(Need((missing & times).bit_length() - 1, source, target))

    def _call(self, pipes: Iterable[int]) -> None:
        """A called function may access anything on its pipes: each of them follows all earlier
        work, and later work follows all of them."""
        for pipe in pipes:
            self.state.hear_scalar(pipe, self.work)
            self._needs(until(self.now) & ~self.state.clocks[pipe], pipe)
        if self.needs and self.tries:
            return
        for pipe in pipes:
            self.now += 1
            self.calls |= 1 << self.now
            self._did(pipe, touches=PIPES[pipe] == "S")

    def _branch(self, item: BranchNode) -> None:
        start, ways = self.state, list[tuple[ClockState, Times]]()
        for arm in item.arms:
            begin, others = self.now, sum(times for _, times in ways)
            self.state = start.without(others)
            self.run(arm)
            ways.append((self.state, between(begin, self.now)))
        every = sum(times for _, times in ways)
        self.state = common([state.without(every & ~times) for state, times in ways])

    def _loop(self, item: LoopNode) -> ClockState:
        """Join the states after zero and after one iteration; further iterations only add ordering
        (monotone). Returns the state after the waits for flags that are still up."""
        around = self.fences.around.get(item, ())
        for fence in around:
            if fence.primed:
                self._set(fence)
        test, body = ([], item.parts[0]) if len(item.parts) == 1 else item.parts
        self.run(test)
        none = self.state.copy()
        begin = self.now
        raised_before = self.raised.copy()
        self.run(body)
        self.run(test)
        ends = [(self.state, self.raised)]
        if not item.surely_runs:
            ends.append((none.without(between(begin, self.now)), raised_before))
        self.state = common([state.copy() for state, _ in ends])
        for state, raised in ends:
            for fence in around:
                if fence.drained and fence in raised:
                    state.clocks[fence.target] |= raised[fence]
        return common([state for state, _ in ends])
