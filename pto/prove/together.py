"""Proof that the pipes of a kernel are ordered in all iterations, and that every wait has its set.

Agents with queues between them run together: each pop takes the push with its number, whatever the
speed of each agent. So one order of execution decides for all: if it ends, every one does, and what
is ordered in it is ordered in every one. The walk runs each agent until it has to wait. Loops of
all agents with the same number of iterations are walked as one loop, and branches with the same
condition as one branch; a loop of known length beside other code is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pto.ir.graph import Operation
from pto.isa.meaning.order.ring import TO_VECTOR, WHOLE
from pto.isa.row.order import Free, Pop, Push
from pto.isa.row.traits import Control
from pto.plan.calls import SUB_BLOCKS
from pto.plan.sync.effects import PIPES
from pto.plan.sync.tree import BranchNode, LoopNode, Node, inner, walk
from pto.prove.agents import Agents
from pto.prove.assume import Stated
from pto.prove.decide import always_negative, never_negative
from pto.prove.nodes import MeetNode, QueueNode, Ring, Undecided
from pto.prove.number import ZERO, Number, number, of, product, quotient
from pto.prove.order import (
    Asked,
    Channel,
    ChannelKey,
    OrderState,
    OrderWalk,
    Problem,
    line_of,
    merged,
    widened,
)
from pto.prove.values import guards
from pto.target.facts import Profile

_TURNS: Final = 64  # of a loop that is unrolled
_STEPS: Final = 10_000  # of agents, in one walk
_ROUNDS: Final = 100  # of a loop of all agents
_MEETING: Final = {"aic_only": "cube", "aiv_only": "vector"}  # sides in barriers of all cores
Numbers = dict[int, Number]


def problems(
    functions: Sequence[Operation],
    profile: Profile,
    stated: Stated,
    assumes: list[tuple[Asked, str]],
) -> list[Problem]:
    """The problems of functions that run together, with the addresses of their plan; adds what is
    assumed; raises Undecided."""
    agents = Agents(functions, profile, stated)
    walk = _Together(agents)
    walk.assumed |= {("order", text): None for text in agents.assumes}
    everything = (1 << len(agents.ops)) - 1
    start = OrderState([everything] * len(agents.of_pipe), everything)
    start.channels = dict(_channels(agents))
    places = [_Place(a.items, 0, agents.values[n].numbers) for n, a in enumerate(agents.all)]
    for end in walk.joint([(place,) for place in places], start):
        for key in end.flags:
            walk.tell("deadlock", agents.flags[key], f"flag {key[1]} may be left set at the end")
        for (ring, producer, _), channel in end.channels.items():
            if channel.full or channel.open:
                walk.tell(
                    "deadlock",
                    producer.function,
                    f"a tile of queue {ring.key[2]} may be left at the end",
                )
    assumes += walk.assumed
    for op, why in agents.doubts:
        walk.tell("order", op, why)
    return list(walk.problems.values())


def _channels(agents: Agents) -> Iterator[tuple[ChannelKey, Channel]]:
    """The empty channels of all queues; raises Undecided if their ends do not match."""
    known: dict[object, Ring] = {}
    for agent in agents.all:
        for item in walk(agent.items):
            if isinstance(item, QueueNode):
                if known.setdefault(item.ring.key, item.ring) != item.ring:
                    raise Undecided(item.op, "the ends of its queue differ")
                if item.ring.slots % item.ring.period:
                    raise Undecided(item.op, "its queue has an odd number of slots")
    for ring in known.values():
        count = agents.profile.sync.whole_tile_vectors if ring.split == WHOLE else SUB_BLOCKS
        sides = {side: [a for a in agents.all if a.side == side] for side in ("cube", "vector")}
        sides["vector"] = sides["vector"][:count]
        for cube in sides["cube"]:
            for vector in sides["vector"]:
                pair = (cube, vector) if ring.key[0] == TO_VECTOR else (vector, cube)
                yield (ring, *pair), Channel((), (), (0,) * ring.slots)


class _Place(NamedTuple):
    """Where an agent is in a sequence of operations, with the numbers that hold there."""

    items: Sequence[Node]
    at: int
    numbers: Numbers
    turns: tuple[Numbers, ...] = ()  # of iterations that follow

    @property
    def is_end(self) -> bool:
        return self.at == len(self.items)


Cursor = tuple[_Place, ...]  # the innermost sequence last; empty at the end
Known = dict[Number, bool]  # conditions that were decided on the way


class _Step(NamedTuple):
    """A state in the middle of a walk of all agents."""

    cursors: list[Cursor]
    state: OrderState
    known: Known


class _Together(OrderWalk):
    def __init__(self, agents: Agents) -> None:
        super().__init__(agents)
        self._agents = agents
        items = (item for agent in agents.all for item in walk(agent.items))
        self._queues = {item for item in items if _waits(item)}
        self._steps_left = _STEPS

    def joint(self, cursors: list[Cursor], state: OrderState) -> list[OrderState]:
        """Run all agents to the ends of their sequences; returns the states there."""
        todo, found = [_Step(cursors, state, {})], list[OrderState]()
        while todo:
            step = todo.pop()
            moved = self._move(step)
            if moved is None:
                found.append(step.state)
            else:
                todo += moved
        return merged(found)

    def _move(self, step: _Step) -> list[_Step] | None:
        """Run one agent as far as it can, or all of them through a loop or a branch; None at the
        end."""
        step = step._replace(cursors=[_settled(c) for c in step.cursors])
        left = [n for n, cursor in enumerate(step.cursors) if cursor]
        if not left:
            return None
        self._steps_left -= 1
        if self._steps_left < 0:
            raise Undecided(self._node(step, left[0]).op, "the kernel is too long")
        for n in left:
            found = self._alone(step, n)
            if found is not None:
                return found
        before, why = self.problems.copy(), None
        try:
            found = self._all(step, left)
        except Undecided as end:
            found, why, self.problems = [], end, before
        found = found or self._unrolled(step, left) or self._forked(step, left)
        if not found:
            nodes = [self._node(step, n) for n in left]
            first = next((item for item in nodes if isinstance(item, QueueNode)), nodes[0])
            raise why or Undecided(first.op, "it may wait forever for the other end of its queue")
        return found

    def _node(self, step: _Step, n: int) -> Node:
        place = step.cursors[n][-1]
        return place.items[place.at]

    def _enter(self, step: _Step, n: int) -> None:
        """Let an agent run."""
        self.agent, self.values = self._agents.all[n], self._agents.values[n]
        self.values.numbers = step.cursors[n][-1].numbers

    # ---- one agent

    def _alone(self, step: _Step, n: int) -> list[_Step] | None:
        """Run an agent up to its next operation on a queue, or that one; None if it has to wait."""
        self._enter(step, n)
        place = step.cursors[n][-1]
        end = place.at
        while end < len(place.items) and place.items[end] not in self._queues:
            end += 1
        if end > place.at:
            states = self.run(place.items[place.at : end], [step.state])
            return [_Step(_at(step, n, end), state, step.known) for state in states]
        item = self._node(step, n)
        if isinstance(item, QueueNode):
            done = self._queue(item, step.state)
            return [step._replace(cursors=_at(step, n, end + 1))] if done else None
        if isinstance(item, BranchNode):
            holds = self._holds(item, step.known)
            return None if holds is None else [self._arm(step, n, holds)]
        return None

    def _holds(self, item: BranchNode, known: Known) -> bool | None:
        condition = item.op.operands[0]
        if condition.maker is None:
            return None
        found = self.values.number(condition)
        if found in known or found.value is not None:
            return known.get(found, bool(found.value))
        for holds in (True, False):
            ours, others = (guards(self.values, condition, h) for h in (holds, not holds))
            if ours and all(never_negative(n, self._agents.given) for n in ours):
                return holds
            if any(always_negative(n, self._agents.given) for n in others):
                return holds
        return None

    def _arm(self, step: _Step, n: int, holds: bool) -> _Step:
        """The step with an agent at the beginning of an arm of its branch."""
        item, place = self._node(step, n), step.cursors[n][-1]
        assert isinstance(item, BranchNode)
        inside = _Place(item.arms[not holds], 0, dict(place.numbers))
        return step._replace(cursors=_at(step, n, place.at + 1, inside))

    # ---- queues

    def _queue(self, item: QueueNode, state: OrderState) -> bool:
        """Run an operation on a queue; False if it has to wait."""
        order, ring, pipe = item.op.order, item.ring, self.agent.first + item.pipe
        out = isinstance(order, Push)
        ends = {
            k: c
            for k, c in state.channels.items()
            if k[0] == ring and k[1 + (not out)] is self.agent
        }
        if not ends and not isinstance(order, Free):
            return False
        if out:
            need = [ring.period - c.phase for c in ends.values()]
            if any(len(c.free) < n for c, n in zip(ends.values(), need, strict=True)):
                return False
            for c, n in zip(ends.values(), need, strict=True):
                self.join(pipe, c.free[n - 1], state)
        elif isinstance(order, Pop):
            if not all(c.full for c in ends.values()):
                return False
            for c in ends.values():
                self.join(pipe, c.full[0], state)
        if item.work is not None:
            self.do(item.op, item.work, state)
        stamp = self.published(pipe, state)
        for key in ends:
            state.channels[key] = self._after(item, state.channels[key], stamp)
        return True

    def _after(self, item: QueueNode, channel: Channel, stamp: int) -> Channel:
        full, opened, free, phase = channel
        op, ring = item.op, item.ring
        if isinstance(op.order, Push):
            return Channel((*full, stamp), opened, free[1:], (phase + 1) % ring.period)
        if isinstance(op.order, Pop):
            if ring.copies:
                return Channel(full[1:], opened, (*free, stamp), phase)
            return Channel(full[1:], (*opened, op), free, phase)
        if ring.copies and not op.group("entry"):
            return channel
        if not opened:
            raise Undecided(op, "it may give back a slot that it has not taken")
        return Channel(full, opened[1:], (*free, stamp), phase)

    # ---- all agents

    def _all(self, step: _Step, left: list[int]) -> list[_Step]:
        """Run the loops, the branches or a barrier of all agents as one; empty if they differ."""
        items = [self._node(step, n) for n in left]
        met = self._met(step, left)
        if met:
            return met
        if all(isinstance(item, BranchNode) for item in items):
            return self._branches(step, left)
        if all(isinstance(item, LoopNode) for item in items):
            return self._loops(step, left)
        return []

    def _met(self, step: _Step, left: list[int]) -> list[_Step]:
        """Run a barrier of all cores, for the agents of this one."""
        first = next((i for n in left if isinstance(i := self._node(step, n), MeetNode)), None)
        if first is None:
            return []
        side = _MEETING.get(first.kind)
        own = [
            n for n, a in enumerate(self._agents.all) if side in (None, a.side) or a.side == "both"
        ]
        for n in own:
            item = self._node(step, n) if n in left else None
            if not isinstance(item, MeetNode) or item.kind != first.kind:
                return []
        state, stamp = step.state, 0
        for n in own:
            self._enter(step, n)
            self.settle(frozenset(range(len(PIPES))), state)
            stamp |= state.clocks[self.agent.first]
        for n in own:
            agent = self._agents.all[n]
            for pipe in range(agent.first, agent.first + len(PIPES)):
                state.clocks[pipe] |= stamp
            state.stale |= {(agent, None)}
        text = f"all blocks come to the barrier of {line_of(first.op)}"
        self.assumed["deadlock", text] = None
        return self._behind(step, own, [state])

    def _branches(self, step: _Step, left: list[int]) -> list[_Step]:
        conditions = set[Number]()
        for n in left:
            self._enter(step, n)
            conditions.add(self.values.number(self._node(step, n).op.operands[0]))
        if len(conditions) > 1:
            return []
        found = list[OrderState]()
        for holds in (True, False):
            inside = list[Cursor]([()] * len(step.cursors))
            for n in left:
                inside[n] = self._arm(step, n, holds).cursors[n][-1:]
            found += self.joint(inside, step.state.copy())
        return self._behind(step, left, found)

    def _behind(self, step: _Step, left: list[int], states: Sequence[OrderState]) -> list[_Step]:
        """The steps after a loop or branch of all agents."""
        cursors = step.cursors
        for n in left:
            cursors = _at(step._replace(cursors=cursors), n, step.cursors[n][-1].at + 1)
        return [_Step(list(cursors), state, step.known) for state in merged(states)]

    def _loops(self, step: _Step, left: list[int]) -> list[_Step]:
        turns, runs = set[Number | None](), False
        for n in left:
            self._enter(step, n)
            item = self._node(step, n)
            assert isinstance(item, LoopNode)
            turns.add(self._turns(item))
            runs = runs or self.surely_runs(item)
        if len(turns) > 1 or None in turns:
            return []
        counter = of(self.values.launch.symbol("iteration", "counter", ZERO))
        known = [step.state]
        for _ in range(_ROUNDS):
            after = list[OrderState]()
            for state in known:
                inside = list[Cursor]([()] * len(step.cursors))
                for n in left:
                    inside[n] = (self._inside(step, n, counter),)
                after += self.joint(inside, state.copy())
            joined = widened(known, after)
            if joined is None:
                return self._behind(step, left, merged(after) if runs else known)
            known = joined
        raise Undecided(self._node(step, left[0]).op, "the state of queues does not repeat")

    def _turns(self, item: LoopNode) -> Number | None:
        """The number of iterations less one."""
        if item.op.control is not Control.FOR:
            return None
        low, high, by = map(self.values.number, item.op.operands[:3])
        return quotient(high - low - 1, by) if never_negative(by - 1) else None

    def _inside(self, step: _Step, n: int, counter: Number) -> _Place:
        """The beginning of an iteration of a loop of an agent."""
        self._enter(step, n)
        item, numbers = self._node(step, n), dict(step.cursors[n][-1].numbers)
        low, _, by = map(self.values.number, item.op.operands[:3])
        numbers[id(item.op.regions[0].block.args[0])] = low + product(by, counter)
        return _Place(inner(item)[0], 0, numbers)

    # ---- agents that wait for each other

    def _unrolled(self, step: _Step, left: list[int]) -> list[_Step]:
        """Let an agent run into a loop of known length."""
        for n in left:
            self._enter(step, n)
            item = self._node(step, n)
            turns = self._turns(item) if isinstance(item, LoopNode) else None
            if turns is not None and turns.value is not None and turns.value < _TURNS:
                inside = [self._inside(step, n, number(k)) for k in range(turns.value + 1)]
                at = step.cursors[n][-1].at + 1
                if not inside:
                    return [step._replace(cursors=_at(step, n, at))]
                first = inside[0]._replace(turns=tuple(each.numbers for each in inside[1:]))
                return [step._replace(cursors=_at(step, n, at, first))]
        return []

    def _forked(self, step: _Step, left: list[int]) -> list[_Step]:
        """Follow both arms of a branch of an agent."""
        for n in left:
            self._enter(step, n)
            item = self._node(step, n)
            if isinstance(item, BranchNode) and item.op.operands[0].maker is not None:
                condition = self.values.number(item.op.operands[0])
                ways = (self._arm(step, n, holds) for holds in (True, False))
                return [
                    way._replace(state=step.state.copy(), known={**step.known, condition: holds})
                    for way, holds in zip(ways, (True, False), strict=True)
                ]
        return []


def _waits(item: Node) -> bool:
    """True if other agents decide when it can run."""
    return any(isinstance(each, QueueNode | MeetNode) for each in walk([item]))


def _settled(cursor: Cursor) -> Cursor:
    """A cursor that is at an operation: at the end of a sequence the next iteration begins, or the
    enclosing sequence goes on."""
    while cursor and cursor[-1].is_end:
        *around, place = cursor
        cursor = tuple(around)
        if place.turns:
            cursor += (_Place(place.items, 0, place.turns[0], place.turns[1:]),)
    return cursor


def _at(step: _Step, n: int, at: int, *inside: _Place) -> list[Cursor]:
    """The cursors with that of one agent at another position, or in a sequence inside."""
    found, cursor = list(step.cursors), step.cursors[n]
    found[n] = (*cursor[:-1], cursor[-1]._replace(at=at), *inside)
    return found
