"""Proof that the pipes of a kernel are ordered in all iterations, and that every wait has its set.

Agents with queues between them run together: each pop takes the push with its number, whatever the
speed of each agent. So one order of execution decides for all: if it ends, every one does, and what
is ordered in it is ordered in every one. The walk runs each agent until it has to wait. Loops of
all agents with the same number of iterations are walked as one loop, and branches with the same
condition as one branch; a loop of known length beside other code is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pto.ir.graph import Operation
from pto.isa.meaning.order.ring import TO_VECTOR, WHOLE
from pto.isa.row.traits import Control
from pto.plan.calls import SUB_BLOCKS
from pto.plan.sync.effects import PIPES
from pto.plan.sync.tree import BranchNode, LoopNode, Node, walk
from pto.prove.agents import Agents
from pto.prove.assume import Stated
from pto.prove.decide import never_negative
from pto.prove.nodes import MeetNode, QueueNode, Ring, Undecided
from pto.prove.number import ZERO, Number, number, of, product, quotient
from pto.prove.order import Asked, Channel, OrderState, OrderWalk, Problem, line_of, merged
from pto.prove.values import decided
from pto.target.facts import Profile

_STATES: Final = 16  # that differ in the flags that are up
_TURNS: Final = 64  # of a loop that is unrolled
_STEPS: Final = 10_000  # of agents, in one walk
_ROUNDS: Final = 200  # of one loop
_MEETING: Final = {"aic_only": "cube", "aiv_only": "vector"}  # sides in barriers of all cores


def problems(
    functions: Sequence[Operation],
    profile: Profile,
    stated: Stated,
    assumes: list[tuple[Asked, str]],
) -> list[Problem]:
    """The problems of functions that run together, with the addresses of their plan; adds what is
    assumed; raises Undecided."""
    agents = Agents(functions, profile, stated)
    channels = list(_channels(agents))
    walk = _Together(agents, channels)
    walk.assumed |= {("order", text): None for text in agents.assumes}
    everything = (1 << len(agents.ops)) - 1
    start = OrderState([everything] * len(agents.of_pipe), everything)
    for channel in channels:
        start.set(("free", channel), *[0] * channel.ring.slots)
    places = [_Place(a.items, 0, agents.values[n].numbers) for n, a in enumerate(agents.all)]
    for end in walk.joint([(start_place,) for start_place in places], [start], {}):
        for key in end.flags:
            op = agents.flags.get(key)
            if op is not None:
                walk.tell("deadlock", op, f"flag {key[1]} may be left set at the end")
        for channel in channels:
            if ("full", channel) in end.flags or channel in end.taken:
                text = f"a tile of queue {channel.ring.key[2]} may be left at the end"
                walk.tell("deadlock", channel.producer.function, text)
    assumes += walk.assumed
    for op, why in agents.doubts:
        walk.tell("order", op, why)
    return list(walk.problems.values())


def _channels(agents: Agents) -> Iterator[Channel]:
    """The channels of all queues; raises Undecided if their ends do not match."""
    rings: dict[object, Ring] = {}
    for agent in agents.all:
        for item in walk(agent.items):
            if isinstance(item, QueueNode):
                if rings.setdefault(item.ring.key, item.ring) != item.ring:
                    raise Undecided(item.op, "the ends of its queue differ")
                if item.ring.slots % item.ring.period:
                    raise Undecided(item.op, "its queue has an odd number of slots")
    for ring in rings.values():
        count = agents.profile.sync.whole_tile_vectors if ring.split == WHOLE else SUB_BLOCKS
        cubes, vectors = ([a for a in agents.all if a.side == s] for s in ("cube", "vector"))
        for cube in cubes:
            for vector in vectors[:count]:
                pair = (cube, vector) if ring.key[0] == TO_VECTOR else (vector, cube)
                yield Channel(ring, *pair)


class _Place(NamedTuple):
    """Where an agent is in a sequence of operations, with the numbers that hold there."""

    items: Sequence[Node]
    at: int
    numbers: dict[int, Number]


Cursor = tuple[_Place, ...]  # the innermost sequence last, or the next one; empty at the end


class _Step(NamedTuple):
    """States in the middle of a walk of all agents."""

    cursors: Sequence[Cursor]
    states: list[OrderState]
    known: Mapping[Number, bool]  # conditions that were decided on the way

    def node(self, n: int) -> Node:
        """The operation that an agent is at."""
        cursor = self.cursors[n][-1]
        return cursor.items[cursor.at]

    def is_inside(self, n: int) -> bool:
        """True if an agent is not at the end of a sequence."""
        cursor = self.cursors[n][-1]
        return cursor.at < len(cursor.items)

    def moved(self, n: int, *inside: _Place) -> _Step:
        """The step with an agent behind its operation, or in sequences inside of it."""
        cursors, (*around, cursor) = list(self.cursors), self.cursors[n]
        cursors[n] = (*around, cursor._replace(at=cursor.at + 1), *inside)
        return self._replace(cursors=cursors)


class _Together(OrderWalk):
    def __init__(self, agents: Agents, channels: list[Channel]) -> None:
        super().__init__(agents, channels)
        items = (item for agent in agents.all for item in walk(agent.items))
        self._waiting = {item for item in items if _waits(item)}
        self._steps_left = _STEPS

    def joint(
        self, cursors: Sequence[Cursor], states: list[OrderState], conditions: Mapping[Number, bool]
    ) -> list[OrderState]:
        """Run agents to the ends of their sequences; returns the states there."""
        todo, ended = [_Step(cursors, states, conditions)], list[OrderState]()
        while todo:
            step = todo.pop()
            step = step._replace(cursors=[_settled(c) for c in step.cursors])
            left = [n for n, cursor in enumerate(step.cursors) if cursor]
            if left:
                todo += self._move(step, left)
            else:
                ended += step.states
        return merged(ended)

    def _move(self, step: _Step, left: list[int]) -> list[_Step]:
        """Run one agent as far as it can, or all of them through a loop, a branch or a barrier."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise Undecided(step.node(left[0]).op, "the kernel is too long")
        for n in left:
            steps = self._alone(step, n)
            if steps:
                return steps
        before, why = self.problems.copy(), None
        try:
            steps = self._met(step, left) or self._all(step, left)
        except Undecided as end:
            steps = []
            why = end
            self.problems = before
        steps = steps or self._unrolled(step, left) or self._forked(step, left)
        if not steps:
            nodes = [step.node(n) for n in left]
            first = next((item for item in nodes if isinstance(item, QueueNode)), nodes[0])
            raise why or Undecided(first.op, "it may wait forever for the other end of its queue")
        return steps

    def _enter(self, step: _Step, n: int) -> Node:
        """Let an agent run; returns its operation."""
        self.agent, self.values = self._agents.all[n], self._agents.values[n]
        self.values.numbers = step.cursors[n][-1].numbers
        return step.node(n)

    # ---- one agent

    def _alone(self, step: _Step, n: int) -> list[_Step]:
        """Run an agent up to its next operation that may wait, or that one; empty if it has to."""
        item = self._enter(step, n)
        if item not in self._waiting:
            return [self._plain(step, n)]
        if isinstance(item, QueueNode):
            ready, waiting = list[OrderState](), list[OrderState]()
            for state in step.states:
                (ready if self.queue(item, state) else waiting).append(state)
            ways = (_behind(step, [n], ready), step._replace(states=waiting))
            return [way for way in ways if way.states] if ready else []
        holds = self._holds(item, step.known) if isinstance(item, BranchNode) else None
        return [] if holds is None else [step.moved(n, _arm(step, n, holds))]

    def _plain(self, step: _Step, n: int) -> _Step:
        """Run an agent up to its next operation that may wait."""
        while step.is_inside(n) and (item := self._enter(step, n)) not in self._waiting:
            if isinstance(item, LoopNode | BranchNode):
                (step,) = self._all(step, [n])
            else:
                for state in step.states:
                    self.step(item, state)
                step = _behind(step, [n], step.states)
        return step

    def _holds(self, item: BranchNode, conditions: Mapping[Number, bool]) -> bool | None:
        """Whether a condition holds; None if that is not known."""
        condition = item.op.operands[0]
        if condition.maker is None:
            return None
        condition_number = self.values.number(condition)
        if condition_number in conditions or condition_number.value is not None:
            return conditions.get(condition_number, bool(condition_number.value))
        return decided(self.values, condition, self._agents.given)

    # ---- all agents

    def _all(self, step: _Step, left: list[int]) -> list[_Step]:
        """Run the loops or the branches of agents as one; empty if they differ."""
        items = [step.node(n) for n in left]
        states = list[OrderState]()
        if all(isinstance(item, BranchNode) for item in items):
            states = self._branches(step, left)
        elif all(isinstance(item, LoopNode) for item in items):
            states = self._loops(step, left)
        return [_behind(step, left, states)] if states else []

    def _inside(
        self, step: _Step, places: Mapping[int, _Place], states: list[OrderState]
    ) -> list[OrderState]:
        """Run sequences inside of the operations of agents."""
        cursors = [(places[n],) if n in places else () for n in range(len(step.cursors))]
        return self.joint(cursors, [state.copy() for state in states], step.known)

    def _branches(self, step: _Step, left: list[int]) -> list[OrderState]:
        conditions = set[Number]()
        for n in left:
            condition = self._enter(step, n).op.operands[0]
            conditions.add(self.values.number(condition))
        if len(conditions) > 1:
            return []
        arms = ({n: _arm(step, n, holds) for n in left} for holds in (True, False))
        return [state for arm in arms for state in self._inside(step, arm, step.states)]

    def _loops(self, step: _Step, left: list[int]) -> list[OrderState]:
        """Walk loops until the state repeats: after zero, one, and any number of iterations."""
        turns, runs = set[Number | None](), False
        for n in left:
            item = self._enter(step, n)
            turns.add(self._turns(item))
            runs = runs or (isinstance(item, LoopNode) and item.surely_runs)
        if len(left) > 1 and (len(turns) > 1 or None in turns):
            return []
        counter = of(self.values.launch.symbol("iteration", "counter", ZERO))
        tests = {n: self._iteration(step, n, counter, is_test=True) for n in left}
        entry = self._inside(step, tests, step.states)
        for _ in range(_ROUNDS):
            after = self._inside(step, {n: self._iteration(step, n, counter) for n in left}, entry)
            joined = merged([*entry, *(state.copy() for state in after)])
            if {s.up: s for s in joined} == {s.up: s for s in entry}:
                return after if runs else entry
            entry = joined
        raise Undecided(step.node(left[0]).op, "the state of flags does not repeat")

    def _turns(self, item: Node) -> Number | None:
        """The number of iterations of a loop less one."""
        if item.op.control is not Control.FOR:
            return None
        low, high, by = map(self.values.number, item.op.operands[:3])
        return quotient(high - low - 1, by) if never_negative(by - 1) else None

    def _iteration(self, step: _Step, n: int, counter: Number, *, is_test: bool = False) -> _Place:
        """The beginning of an iteration of a loop of an agent, or of its first test."""
        item, numbers = self._enter(step, n), dict(step.cursors[n][-1].numbers)
        assert isinstance(item, LoopNode)
        if item.op.control is Control.FOR:
            low, _, by = map(self.values.number, item.op.operands[:3])
            numbers[id(item.op.regions[0].block.args[0])] = low + product(by, counter)
        *tests, body = item.parts
        return _Place([*([] if is_test else body), *(tests[0] if tests else ())], 0, numbers)

    def _met(self, step: _Step, left: list[int]) -> list[_Step]:
        """Run a barrier of all cores, for the agents of this one; empty if not all are at it."""
        first = next((i for n in left if isinstance(i := step.node(n), MeetNode)), None)
        if first is None:
            return []
        side, agents = _MEETING.get(first.kind), self._agents.all
        involved = [n for n, a in enumerate(agents) if side in (None, a.side) or a.side == "both"]
        for n in involved:
            item = step.node(n) if n in left else None
            if not isinstance(item, MeetNode) or item.kind != first.kind:
                return []
        for state in step.states:
            stamp = 0
            for n in involved:
                self._enter(step, n)
                self.settle(frozenset(range(len(PIPES))), state)
                stamp |= state.clocks[self.agent.first]
            for n in involved:
                for pipe in range(agents[n].first, agents[n].first + len(PIPES)):
                    state.clocks[pipe] |= stamp
                state.stale |= {(agents[n], None)}
        text = f"all blocks come to the barrier of {line_of(first.op)}"
        self.assumed["deadlock", text] = None
        return [_behind(step, involved, step.states)]

    # ---- agents that wait for each other

    def _unrolled(self, step: _Step, left: list[int]) -> list[_Step]:
        """Let an agent run into a loop of known length."""
        for n in left:
            item = self._enter(step, n)
            turns = self._turns(item) if isinstance(item, LoopNode) else None
            if turns is not None and turns.value is not None and turns.value < _TURNS:
                iterations = [self._iteration(step, n, number(k)) for k in range(turns.value + 1)]
                return [step.moved(n, *reversed(iterations))]
        return []

    def _forked(self, step: _Step, left: list[int]) -> list[_Step]:
        """Follow both arms of a branch of an agent."""
        for n in left:
            item = self._enter(step, n)
            if isinstance(item, BranchNode) and item.op.operands[0].maker is not None:
                condition = self.values.number(item.op.operands[0])
                return [
                    step.moved(n, _arm(step, n, holds))._replace(
                        states=[state.copy() for state in step.states],
                        known={**step.known, condition: holds},
                    )
                    for holds in (True, False)
                ]
        return []


def _waits(item: Node) -> bool:
    """True if other agents decide when it can run."""
    return any(isinstance(inner, QueueNode | MeetNode) for inner in walk([item]))


def _settled(cursor: Cursor) -> Cursor:
    """The cursor without sequences that have ended: the one around them is next."""
    while cursor and cursor[-1].at == len(cursor[-1].items):
        cursor = cursor[:-1]
    return cursor


def _arm(step: _Step, n: int, holds: bool) -> _Place:
    """The beginning of an arm of the branch of an agent."""
    item = step.node(n)
    assert isinstance(item, BranchNode)
    return _Place(item.arms[not holds], 0, dict(step.cursors[n][-1].numbers))


def _behind(step: _Step, left: list[int], states: list[OrderState]) -> _Step:
    """The step after an operation of agents."""
    merged_states = merged(states) if len(states) > 1 else states
    if len(merged_states) > _STATES:
        raise Undecided(step.node(left[0]).op, "too many ways differ in the flags that are up")
    for n in left:
        step = step.moved(n)
    return step._replace(states=merged_states)
