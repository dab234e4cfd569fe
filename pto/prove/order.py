"""Order of the pipes of agents, and flags that are up: the state of a walk in program order.

The state is, for each pipe, the set of operations that are done whenever the pipe starts something
now, and for each flag that is up the operations before its set. A queue is two flags for each pair
of its ends: a push sets `full` and waits for `free`. An operation that was not begun on this path
counts as done. A join keeps what holds on both paths; a loop is walked until its state repeats,
which covers zero, one, and any number of iterations. States that differ in the flags that are up
are followed separately. `together.py` walks through the control flow of all agents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Final, Literal, NamedTuple

from pto.ir.graph import Operation
from pto.isa.row.flag import Flag, key_of
from pto.isa.row.order import Free, Notify, OfSignal, Push, TestSignal, WaitUntil
from pto.plan.sync.effects import NUMBER, PIPES, Phase, SyncFlag, SyncWork
from pto.plan.sync.tree import BarrierNode, Node, WorkNode
from pto.prove.agents import Agent, Agents, Done, GlobalUse
from pto.prove.nodes import CacheNode, QueueNode, Ring, SignalNode, Undecided
from pto.prove.values import Values

_UP: Final = 3  # times that a flag may be up before it counts as unknown
_S: Final = NUMBER["S"]
Asked = Literal["order", "deadlock", "reads"]
LINES: Final = "no block writes to a cache line of 64 bytes that another block stores scalars to"


@dataclass(frozen=True, slots=True)
class Problem:
    """A location at which a property is not proved."""

    question: Asked
    op: Operation
    text: str
    other: Operation | None = None


class Channel(NamedTuple):
    """One direction of a queue between two agents."""

    ring: Ring
    producer: Agent
    consumer: Agent


# A flag with the first pipe of its agent; the slots of a queue that are full, free, or given back
# and not yet reported free.
FlagKey = tuple[int, Flag] | tuple[Literal["full", "free", "given back"], Channel]
Lines = frozenset[tuple[Agent, str | None]]  # arrays in the caches of scalar units; None: all


@dataclass(slots=True)
class OrderState:
    clocks: list[Done]  # of each pipe of each agent
    fenced: Done  # operations of scalar units before all pipes of their agent
    flags: dict[FlagKey, tuple[Done, ...]] = field(default_factory=dict[FlagKey, tuple[Done, ...]])
    # pops of each queue with a slot that was not released
    taken: dict[Channel, tuple[Operation, ...]] = field(
        default_factory=dict[Channel, tuple[Operation, ...]]
    )
    stale: Lines = frozenset()  # changed by others since the cache was dropped
    dirty: Lines = frozenset()  # stored to through the cache

    @property
    def up(self) -> tuple[object, ...]:
        """The key of a state: the flags that are up, and the slots that are taken."""
        flags = frozenset((key, len(sets)) for key, sets in self.flags.items())
        return flags, frozenset(self.taken.items())

    def copy(self) -> OrderState:
        copies = self.clocks.copy(), self.flags.copy(), self.taken.copy()
        return replace(self, clocks=copies[0], flags=copies[1], taken=copies[2])

    def meet(self, other: OrderState) -> OrderState:
        flags = {key: _common(sets, other.flags[key]) for key, sets in self.flags.items()}
        clocks = list(_common(self.clocks, other.clocks))
        stale, dirty = self.stale | other.stale, self.dirty | other.dirty
        return OrderState(clocks, self.fenced & other.fenced, flags, self.taken, stale, dirty)

    def begin(self, t: int) -> None:
        """Mark work that begins now as not done, whatever earlier iterations did."""
        keep = ~(1 << t)
        self.clocks = [clock & keep for clock in self.clocks]
        self.flags = {key: tuple(s & keep for s in sets) for key, sets in self.flags.items()}

    def set(self, key: FlagKey, *stamps: Done) -> None:
        self.flags[key] = (*self.flags.get(key, ()), *stamps)

    def take(self, key: FlagKey) -> Done:
        """Take a flag that is up: returns the operations before its first set."""
        first, *others = self.flags.pop(key)
        if others:
            self.flags[key] = tuple(others)
        return first


def _common(a: Iterable[Done], b: Iterable[Done]) -> tuple[Done, ...]:
    return tuple(x & y for x, y in zip(a, b, strict=True))


def merged(states: Iterable[OrderState]) -> list[OrderState]:
    by_counters: dict[tuple[object, ...], OrderState] = {}
    for state in states:
        old = by_counters.get(state.up)
        by_counters[state.up] = state if old is None else old.meet(state)
    return list(by_counters.values())


class OrderWalk:
    """The steps of one agent at a time."""

    def __init__(self, agents: Agents, channels: list[Channel]) -> None:
        sync = agents.profile.sync
        self._agents = agents
        self._channels = channels
        self._ordered = [name in sync.memory_ordered for name in PIPES]
        self._identity = sync.flag_identity
        self.agent: Agent = agents.all[0]  # the one that runs now
        self.values: Values = agents.values[0]  # of this agent
        self.assumed: dict[tuple[Asked, str], None] = {}
        self.problems: dict[tuple[str, Operation, Operation | None], Problem] = {}

    def tell(
        self, question: Asked, op: Operation, text: str, other: Operation | None = None
    ) -> None:
        self.problems.setdefault((question, op, other), Problem(question, op, text, other))

    def step(self, item: Node, state: OrderState) -> None:
        """Run an operation that waits for no other agent."""
        if isinstance(item, WorkNode):
            self._look_at_slots(item.op, state)
            self._look_at_signal(item.op, state)
            self._do(item.op, item.work, state)
        elif isinstance(item, BarrierNode):
            self.settle(item.pipes, state)
        elif isinstance(item, SignalNode):
            (self._set if item.is_set else self._wait)(item, state)
        elif isinstance(item, CacheNode):
            self._drop_lines(state)

    # ---- flags and barriers; pipes are those of the agent

    def _hear_scalar(self, pipe: int, state: OrderState) -> None:
        """Order a pipe after all waits of the scalar unit; its own accesses need a flag."""
        scalar = self.agent.first + _S
        published = self._agents.of_pipe[scalar]
        if pipe != scalar:
            state.clocks[pipe] |= (state.clocks[scalar] & ~published) | (state.fenced & published)

    def _published(self, pipe: int, state: OrderState) -> Done:
        self._hear_scalar(pipe, state)
        return state.clocks[pipe] | self._agents.of_pipe[pipe]

    def settle(self, pipes: frozenset[int], state: OrderState) -> None:
        pipes_here = [self.agent.first + pipe for pipe in pipes]
        joined = reduce(or_, [self._published(pipe, state) for pipe in pipes_here])
        for pipe in pipes_here:
            state.clocks[pipe] = joined
        if len(pipes_here) > 1:
            state.fenced |= self._agents.of_pipe[self.agent.first + _S]

    def _set(self, item: SignalNode, state: OrderState) -> None:
        key = self.agent.first, item.key
        if key in state.flags:
            self.tell("deadlock", item.op, f"flag {item.key} may be set before its last was taken")
            if len(state.flags[key]) >= _UP:
                raise Undecided(item.op, "a flag is set more often than it is waited for")
        state.set(key, self._published(self.agent.first + item.pipe, state))

    def _wait(self, item: SignalNode, state: OrderState) -> None:
        key = self.agent.first, item.key
        if key in state.flags:
            self._take(key, self.agent.first + item.pipe, state)
        else:
            self.tell("deadlock", item.op, f"flag {item.key} may not be set before this wait")

    def _take(self, key: FlagKey, pipe: int, state: OrderState) -> None:
        """Order a pipe after the operations before a set."""
        self._hear_scalar(pipe, state)
        state.clocks[pipe] |= state.take(key)

    # ---- queues

    def queue(self, item: QueueNode, state: OrderState) -> bool:
        """Run an operation on a queue; False if it has to wait."""
        op = item.op
        order = item.op.order
        pipe = self.agent.first + item.pipe
        out, frees = isinstance(order, Push), isinstance(order, Free)
        channels = [c for c in self._channels if c.ring == item.ring]
        channels = [c for c in channels if self.agent is (c.producer if out else c.consumer)]
        needed: list[FlagKey] = [] if frees else [("free" if out else "full", c) for c in channels]
        if not frees and not (channels and all(key in state.flags for key in needed)):
            return False
        for key in needed:
            self._take(key, pipe, state)
        if item.work is not None:
            self._do(op, item.work, state)
        stamp = self._published(pipe, state)
        for channel in channels:
            if out:
                state.set(("full", channel), stamp)
                continue
            if not frees:
                state.taken[channel] = (*state.taken.get(channel, ()), op)
            if item.ring.copies is not frees or (frees and op.group("entry")):
                self._give_back(op, channel, stamp, state)
        return True

    def _give_back(self, op: Operation, channel: Channel, stamp: Done, state: OrderState) -> None:
        """Give back the slot of the oldest pop. Slots are reported free `period` at a time."""
        oldest, *others = state.taken.pop(channel, None) or (None,)
        if oldest is None:
            raise Undecided(op, "it may give back a slot that it has not taken")
        if others:
            state.taken[channel] = tuple(others)
        state.set(("given back", channel), stamp)
        if len(state.flags["given back", channel]) == channel.ring.period:
            del state.flags["given back", channel]
            state.set(("free", channel), *[stamp] * channel.ring.period)

    def _look_at_slots(self, op: Operation, state: OrderState) -> None:
        """Report the use of a tile of a queue after its slot was given back."""
        taken = {pop for c, pops in state.taken.items() if c.consumer is self.agent for pop in pops}
        for pop in self.agent.takes(op):
            if pop not in taken:
                self.tell("order", op, "it uses a tile after its slot was given back", pop)

    # ---- work

    def _do(self, op: Operation, work: SyncWork, state: OrderState) -> None:
        """Run the phases in order; the operation itself orders them among each other."""
        first, at = self.agent.first, self.agent.at
        for source, target, number in work.inner:
            key = key_of(Flag(source, target, number), self._identity)
            if (first, key) in state.flags:
                self.tell("deadlock", op, f"it uses flag {key} itself, which is up")
        phases_done = sum(1 << at[phase] for phase in work.phases)
        before = state.clocks.copy()
        for part in work.parts:
            if isinstance(part, SyncFlag):
                state.clocks[first + part.target] |= self._published(first + part.source, state)
            else:
                self._phase(op, part, phases_done & before[first + part.pipe], state)

    def _phase(self, op: Operation, phase: Phase, phases_done: Done, state: OrderState) -> None:
        agents, pipe = self._agents, self.agent.first + phase.pipe
        t = self.agent.at[phase]
        self._hear_scalar(pipe, state)
        done = state.clocks[pipe] | phases_done
        if phase.is_handover:
            done |= agents.of_pipe[pipe]
        missing = agents.clashes[t] & ~done
        if missing:
            other = agents.ops[missing.bit_length() - 1]
            self.tell("order", op, f"nothing orders it behind '{other.name}' op", other)
        for use in agents.uses.get(t, ()):
            self._look_at_cache(op, use, phase.is_scalar and not op.traits.uncached, state)
        state.begin(t)
        if self._ordered[phase.pipe]:
            state.clocks[pipe] |= agents.of_pipe[pipe]
        if phase.is_handover:
            state.clocks[pipe] |= 1 << t
        if phase.is_scalar:
            state.fenced &= ~(1 << t)

    # ---- caches of scalar units, which flags do not order

    def _look_at_cache(
        self, op: Operation, use: GlobalUse, cached: bool, state: OrderState
    ) -> None:
        """Report an access to what a cache hides: lines that others changed, stores of others."""
        if isinstance(op.order, OfSignal):
            return
        if cached and _meets(use, state.stale, self.agent):
            self.tell("order", op, "the scalar unit's cache holds what others change")
        others = [a for a in self._agents.all if not (cached and a is self.agent)]
        if any(_meets(use, state.dirty, agent) for agent in others):
            self.tell("order", op, "a scalar store to it may still be in a cache")
        if use.writes:
            state.stale |= {(agent, use.root) for agent in others}
            if cached:
                state.dirty |= {(self.agent, use.root)}
                self.assumed["order", LINES] = None

    def _look_at_signal(self, op: Operation, state: OrderState) -> None:
        """A signal to another rank does not write the cache back; one of another rank does not
        drop what it has changed."""
        if isinstance(op.order, Notify) and any(agent is self.agent for agent, _ in state.dirty):
            self.tell("order", op, "a scalar store before it may still be in a cache")
        elif isinstance(op.order, WaitUntil | TestSignal):
            state.stale |= {(self.agent, None)}
        if isinstance(op.order, WaitUntil):
            text = f"another rank sends the signal that {line_of(op)} waits for"
            self.assumed["deadlock", text] = None

    def _drop_lines(self, state: OrderState) -> None:
        """Drop all lines of a cache: of arrays that are not being written now."""
        done, written = state.clocks[self.agent.first + _S], self._agents.written
        late = {root for root, bits in written.items() if bits & ~done}
        state.stale = frozenset(e for e in state.stale if e[0] is not self.agent or e[1] in late)


def _meets(use: GlobalUse, lines: Lines, agent: Agent) -> bool:
    roots = {root for other, root in lines if other is agent}
    return bool(roots) if use.root is None else not roots.isdisjoint((use.root, None))


def line_of(op: Operation) -> str:
    return "an operation" if op.loc is None else f"line {op.loc.line}"
