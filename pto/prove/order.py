"""Order of the pipes of agents, and flags that are up: the state of a walk in program order.

The state is, for each pipe, the set of operations that are done whenever the pipe starts something
now, and for each flag that is up the operations before its set. An operation that was not begun on
this path counts as done. A join keeps what holds on both paths; a loop is walked until its state
repeats, which covers zero, one, and any number of iterations. States that differ in the flags that
are up are followed separately. `together.py` walks through agents with queues between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Final, Literal, NamedTuple

from pto.ir.graph import Operation
from pto.isa.row.flag import Flag, key_of
from pto.isa.row.order import Notify, OfSignal, TestSignal, WaitUntil
from pto.isa.row.traits import Control
from pto.plan.sync.effects import NUMBER, PIPES, Phase, SyncFlag, SyncWork
from pto.plan.sync.tree import BarrierNode, BranchNode, LoopNode, Node, WorkNode
from pto.prove.agents import Agent, Agents, Done, GlobalUse
from pto.prove.decide import never_negative
from pto.prove.nodes import CacheNode, Ring, SignalNode, Undecided
from pto.prove.values import Values

_STATES: Final = 16  # that differ in the flags that are up
_ROUNDS: Final = 200  # of one loop
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
    """A queue between one producer and one consumer: operations before each push that was not
    popped, pops whose slot was not freed, operations before each free slot."""

    full: tuple[Done, ...]
    open: tuple[Operation, ...]
    free: tuple[Done, ...]
    phase: int = 0  # pushes, modulo the slots that are reported free together

    def masked(self, keep: Done) -> Channel:
        full, free = (tuple(s & keep for s in stamps) for stamps in (self.full, self.free))
        return self._replace(full=full, free=free)

    def meet(self, other: Channel) -> Channel:
        return self._replace(
            full=_common(self.full, other.full), free=_common(self.free, other.free)
        )


def _common(a: tuple[Done, ...], b: tuple[Done, ...]) -> tuple[Done, ...]:
    return tuple(x & y for x, y in zip(a, b, strict=True))


ChannelKey = tuple[Ring, Agent, Agent]  # producer, consumer
FlagKey = tuple[int, Flag]  # the first pipe of the agent
Lines = frozenset[tuple[Agent, str | None]]  # arrays in the caches of scalar units; None: all


@dataclass(slots=True)
class OrderState:
    clocks: list[Done]  # of each pipe of each agent
    fenced: Done  # operations of scalar units before all pipes of their agent
    flags: dict[FlagKey, tuple[Done, ...]] = field(default_factory=dict[FlagKey, tuple[Done, ...]])
    channels: dict[ChannelKey, Channel] = field(default_factory=dict[ChannelKey, Channel])
    stale: Lines = frozenset()  # changed by others since the cache was dropped
    dirty: Lines = frozenset()  # stored to through the cache

    @property
    def up(self) -> tuple[object, ...]:
        """What tells states apart: the flags that are up, and how full queues are."""
        channels = (
            (key, len(c.full), c.open, len(c.free), c.phase) for key, c in self.channels.items()
        )
        flags = frozenset((key, len(sets)) for key, sets in self.flags.items())
        return flags, tuple(channels)

    def copy(self) -> OrderState:
        return replace(
            self, clocks=self.clocks.copy(), flags=self.flags.copy(), channels=self.channels.copy()
        )

    def meet(self, other: OrderState) -> OrderState:
        flags = {key: _common(sets, other.flags[key]) for key, sets in self.flags.items()}
        channels = {key: c.meet(other.channels[key]) for key, c in self.channels.items()}
        clocks = [a & b for a, b in zip(self.clocks, other.clocks, strict=True)]
        stale, dirty = self.stale | other.stale, self.dirty | other.dirty
        return OrderState(clocks, self.fenced & other.fenced, flags, channels, stale, dirty)

    def begin(self, t: int) -> None:
        """Mark work that begins now as not done, whatever earlier iterations did."""
        keep = ~(1 << t)
        self.clocks = [clock & keep for clock in self.clocks]
        self.flags = {key: tuple(s & keep for s in sets) for key, sets in self.flags.items()}
        self.channels = {key: c.masked(keep) for key, c in self.channels.items()}


def merged(states: Iterable[OrderState]) -> list[OrderState]:
    found: dict[tuple[object, ...], OrderState] = {}
    for state in states:
        old = found.get(state.up)
        found[state.up] = state if old is None else old.meet(state)
    return list(found.values())


def widened(known: list[OrderState], after: Iterable[OrderState]) -> list[OrderState] | None:
    """The states at the head of a loop after one more iteration; None if they are the same."""
    joined = merged([*known, *(s.copy() for s in after)])
    return None if {s.up: s for s in joined} == {s.up: s for s in known} else joined


class OrderWalk:
    """A walk through the operations of one agent at a time."""

    def __init__(self, agents: Agents) -> None:
        sync = agents.profile.sync
        self._steps = agents
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

    def run(self, items: Iterable[Node], states: list[OrderState]) -> list[OrderState]:
        for item in items:
            if isinstance(item, LoopNode):
                states = self._loop(item, states)
            elif isinstance(item, BranchNode):
                ways = (self.run(arm, [s.copy() for s in states]) for arm in item.arms)
                states = merged(state for way in ways for state in way)
            else:
                for state in states:
                    self._step(item, state)
                states = merged(states) if isinstance(item, SignalNode) else states
            if len(states) > _STATES:
                raise Undecided(item.op, "too many ways differ in the flags that are up")
        return states

    def _loop(self, item: LoopNode, states: list[OrderState]) -> list[OrderState]:
        test, body = ([], item.parts[0]) if len(item.parts) == 1 else item.parts
        known = self.run(test, states)
        for _ in range(_ROUNDS):
            after = self.run(test, self.run(body, [s.copy() for s in known]))
            joined = widened(known, after)
            if joined is None:
                return after if self.surely_runs(item) else known
            known = joined
        raise Undecided(item.op, "the state of flags does not repeat")

    def surely_runs(self, item: LoopNode) -> bool:
        if item.surely_runs or item.op.control is not Control.FOR:
            return item.surely_runs
        low, high = map(self.values.number, item.op.operands[:2])
        return never_negative(high - low - 1, self._steps.given)

    def _step(self, item: Node, state: OrderState) -> None:
        if isinstance(item, WorkNode):
            self._look_at_slots(item.op, state)
            self._look_at_signal(item.op, state)
            self.do(item.op, item.work, state)
        elif isinstance(item, BarrierNode):
            self.settle(item.pipes, state)
        elif isinstance(item, SignalNode):
            (self._set if item.is_set else self._wait)(item, state)
        elif isinstance(item, CacheNode) and item.whole:
            self._drop_lines(state)

    def _look_at_slots(self, op: Operation, state: OrderState) -> None:
        """Report the use of a tile of a queue after its slot was given back."""
        taken = {pop for key, c in state.channels.items() if key[2] == self.agent for pop in c.open}
        for pop in self.agent.takes(op):
            if pop not in taken:
                self.tell("order", op, "it uses a tile after its slot was given back", pop)

    # ---- flags and barriers; pipes are those of the agent

    def _hear_scalar(self, pipe: int, state: OrderState) -> None:
        """Order a pipe after all waits of the scalar unit; its own accesses need a flag."""
        scalar = self.agent.first + _S
        own = self._steps.of_pipe[scalar]
        if pipe != scalar:
            state.clocks[pipe] |= (state.clocks[scalar] & ~own) | (state.fenced & own)

    def published(self, pipe: int, state: OrderState) -> Done:
        self._hear_scalar(pipe, state)
        return state.clocks[pipe] | self._steps.of_pipe[pipe]

    def join(self, pipe: int, stamp: Done, state: OrderState) -> None:
        """Order a pipe after the operations of a stamp."""
        self._hear_scalar(pipe, state)
        state.clocks[pipe] |= stamp

    def settle(self, pipes: frozenset[int], state: OrderState) -> None:
        own = [self.agent.first + pipe for pipe in pipes]
        whole = reduce(or_, [self.published(pipe, state) for pipe in own])
        for pipe in own:
            state.clocks[pipe] = whole
        if len(own) > 1:
            state.fenced |= self._steps.of_pipe[self.agent.first + _S]

    def _set(self, item: SignalNode, state: OrderState) -> None:
        key = self.agent.first, item.key
        up = state.flags.get(key, ())
        if up:
            self.tell("deadlock", item.op, f"flag {item.key} may be set before its last was taken")
        if len(up) >= _UP:
            raise Undecided(item.op, "a flag is set more often than it is waited for")
        state.flags[key] = (*up, self.published(self.agent.first + item.pipe, state))

    def _wait(self, item: SignalNode, state: OrderState) -> None:
        key = self.agent.first, item.key
        up = state.flags.pop(key, ())
        if not up:
            self.tell("deadlock", item.op, f"flag {item.key} may not be set before this wait")
            return
        self.join(self.agent.first + item.pipe, up[0], state)
        if len(up) > 1:
            state.flags[key] = up[1:]

    # ---- work

    def do(self, op: Operation, work: SyncWork, state: OrderState) -> None:
        """Run the phases in order; the operation itself orders them among each other."""
        first, at = self.agent.first, self.agent.at
        for source, target, number in work.inner:
            key = key_of(Flag(source, target, number), self._identity)
            if (first, key) in state.flags:
                self.tell("deadlock", op, f"it uses flag {key} itself, which is up")
        own = sum(1 << at[phase] for phase in work.phases)
        before = state.clocks.copy()
        for part in work.parts:
            if isinstance(part, SyncFlag):
                state.clocks[first + part.target] |= self.published(first + part.source, state)
            else:
                self._phase(op, part, own & before[first + part.pipe], state)

    def _phase(self, op: Operation, phase: Phase, own: Done, state: OrderState) -> None:
        steps, pipe = self._steps, self.agent.first + phase.pipe
        t = self.agent.at[phase]
        self._hear_scalar(pipe, state)
        missing = steps.clashes[t] & ~state.clocks[pipe] & ~own
        if missing:
            other = steps.ops[missing.bit_length() - 1]
            self.tell("order", op, f"nothing orders it behind '{other.name}' op", other)
        for use in steps.uses.get(t, ()):
            self._look_at_cache(op, use, phase.is_scalar and not op.traits.uncached, state)
        state.begin(t)
        if self._ordered[phase.pipe]:
            state.clocks[pipe] |= steps.of_pipe[pipe]
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
        others = [a for a in self._steps.all if not (cached and a is self.agent)]
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
        done, written = state.clocks[self.agent.first + _S], self._steps.written
        late = {root for root, bits in written.items() if bits & ~done}
        state.stale = frozenset(e for e in state.stale if e[0] is not self.agent or e[1] in late)


def _meets(use: GlobalUse, lines: Lines, agent: Agent) -> bool:
    own = {root for other, root in lines if other is agent}
    return bool(own) if use.root is None else not own.isdisjoint((use.root, None))


def line_of(op: Operation) -> str:
    return "an operation" if op.loc is None else f"line {op.loc.line}"
