"""Proof that the pipes of a core are ordered in all iterations, and that every wait has its set.

A walk through a function in program order. Its state is, for each pipe, the set of operations that
are done whenever the pipe starts something now, and for each flag that is up the operations before
its set. An operation that was not begun on this path counts as done. A join keeps what holds on
both paths; a loop is walked until its state repeats, which covers zero, one, and any number of
iterations. States that differ in the flags that are up are followed separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final, Literal, NamedTuple

from pto.ir.graph import Operation
from pto.isa.row.flag import Flag, flag_of, key_of
from pto.isa.row.order import Acquire, FullFence, OfFlag, Release, SetFlag, Within
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.plan.buffers import FunctionPlan
from pto.plan.calls import FunctionNames
from pto.plan.sync.effects import NUMBER, PIPES, Effects, Phase, SyncFlag, SyncWork
from pto.plan.sync.footprint import Footprints
from pto.plan.sync.outside import GlobalViews, MemWindow, Relation
from pto.plan.sync.storage import Storage
from pto.plan.sync.tree import (
    BarrierNode,
    BranchNode,
    CallNode,
    LoopNode,
    Node,
    TreeReader,
    WorkNode,
    inner,
)
from pto.prove.assume import ANY, Stated
from pto.prove.decide import never_negative
from pto.prove.values import Guards, LaunchSymbols, Values
from pto.target.facts import Profile
from pto.verify.operation import constant

_STATES: Final = 16  # that differ in the flags that are up
_ROUNDS: Final = 200  # of one loop
_UP: Final = 3  # times that a flag may be up before it counts as unknown
_S: Final = NUMBER["S"]
Asked = Literal["order", "deadlock", "reads"]
Done = int  # bit t: the operation at position t is done


class Undecided(Exception):
    """A property that was not decided: the operation, and the reason."""

    def __init__(self, op: Operation, why: str) -> None:
        super().__init__(why)
        self.op = op
        self.why = why


@dataclass(frozen=True, slots=True)
class Problem:
    """A location at which a property is not proved."""

    question: Asked
    op: Operation
    text: str
    other: Operation | None = None


def problems(plan: FunctionPlan, profile: Profile, stated: Stated = ANY) -> list[Problem]:
    """The problems of a function that one agent runs, with the addresses of its plan; raises
    Undecided."""
    steps = _Phases(plan, profile)
    walk = _OrderWalk(steps, profile)
    walk.given = stated.of(plan.function, walk.values)[1]
    start = _OrderState([steps.all] * len(PIPES), steps.all, {})
    for end in walk.run(steps.items, [start]):
        for key in end.flags:
            walk.tell("deadlock", steps.flags[key], f"flag {key} may be left set at the end")
    for op, why in steps.doubts:
        walk.tell("order", op, why)
    return list(walk.problems.values())


# ---- the operations of a function, by position


@dataclass(slots=True, eq=False)
class _Signal(Node):
    """A set of a flag or a wait for it."""

    key: Flag
    is_set: bool
    pipe: int


class _FlagReader(TreeReader):
    """Nodes including the flags of the program itself."""

    def read(self, op: Operation) -> Iterator[Node]:
        order = op.row.order if op.row is not None else None
        if op.row is not None and isinstance(order, OfFlag):
            yield self._flag(op, order)
            return
        if isinstance(order, Acquire | Release):
            raise Undecided(op, "buffer ids are not followed")
        if order is not None and not isinstance(order, Within | FullFence):
            raise Undecided(op, "it synchronises with others")
        for item in TreeReader.read(self, op):
            if isinstance(item, CallNode):
                raise Undecided(op, "it calls a function")
            yield item

    def _flag(self, op: Operation, order: OfFlag) -> _Signal:
        assert op.row is not None
        profile = self.effects.profile
        number = constant(op.operands[0]) if op.operands else None
        if op.operands and number is None:
            raise Undecided(op, "its event id is not a constant")
        flag = flag_of(Case(op, op.row, profile, constant), number)
        is_set = isinstance(order, SetFlag)
        pipe = NUMBER.get(flag.src if is_set else flag.dst)
        if pipe is None:
            raise Undecided(op, "its pipe is not followed")
        return _Signal(op, key_of(flag, profile.sync.flag_identity), is_set, pipe)


class _Phases:
    """The phases of all operations by position, and which of them must not overlap."""

    def __init__(self, plan: FunctionPlan, profile: Profile) -> None:
        self.function = function = plan.function
        starts = [[p.start for p in plan.placed]]
        self._outside = GlobalViews(function)
        effects = Effects(function, Storage(plan, starts, profile), profile, self._outside)
        if len({side for op in function.walk() if (side := op.own_side())}) > 1:
            raise Undecided(function, "both sides of a core run it")
        reader = _FlagReader(effects, FunctionNames(), None)
        self.items = reader.block(function.regions[0].block)
        one = (None, Control.SCOPE)  # a region that runs as one operation of a pipe
        scopes = (op for op in function.walk() if op.regions and op.control in one)
        self.doubts = [(op, "the order inside of a vector scope is not known") for op in scopes]
        self.ops: list[Operation] = []  # by position
        self.at: dict[Phase, int] = {}
        self.flags: dict[Flag, Operation] = {}  # a set of each
        self._pipes: dict[tuple[Flag, bool], int] = {}  # that set it, and that wait for it
        self._phases: list[tuple[Phase, tuple[Operation, ...]]] = []  # with the enclosing loops
        self._number(self.items, ())
        self.all: Done = (1 << len(self.ops)) - 1
        self.of_pipe: list[Done] = [0] * len(PIPES)
        for phase, t in self.at.items():
            self.of_pipe[phase.pipe] |= 1 << t
        self.clashes = self._local(profile)
        self._global()

    def _number(self, items: Iterable[Node], loops: tuple[Operation, ...]) -> None:
        for item in items:
            if isinstance(item, WorkNode):
                for phase in item.work.phases:
                    self.at[phase] = len(self.ops)
                    self.ops.append(item.op)
                    self._phases.append((phase, loops))
            elif isinstance(item, _Signal):
                self._know(item)
            for part in inner(item):
                self._number(part, (*loops, item.op) if isinstance(item, LoopNode) else loops)

    def _know(self, item: _Signal) -> None:
        if item.is_set:
            self.flags[item.key] = item.op
        if self._pipes.setdefault((item.key, item.is_set), item.pipe) != item.pipe:
            raise Undecided(item.op, "several pipes use one flag")

    def _local(self, profile: Profile) -> list[Done]:
        """For each position all positions that access the same bytes of a local buffer."""
        footprint = Footprints(self.at, self._outside, profile.sync)
        for phase, t in self.at.items():
            footprint.mark(phase, t)
        before = (footprint.before(phase, len(self.ops), -1, Relation()) for phase in self.at)
        return [reduce(or_, times, 0) for times in before]

    def _global(self) -> None:
        """Add positions that may access the same bytes of global memory."""
        touching = [
            _GlobalUse(t, loops, access.writes, access.place)
            for t, (phase, loops) in enumerate(self._phases)
            for access in phase.accesses
            if isinstance(access.place, MemWindow)
        ]
        for later in touching:
            for use in touching:
                if (use.writes or later.writes) and self._may_meet(use, later):
                    self.clashes[later.at] |= 1 << use.at
        self._look_at_cache(touching)

    def _may_meet(self, use: _GlobalUse, later: _GlobalUse) -> bool:
        """True if a use and a later one may overlap, in any iterations."""
        common = [a for a, b in zip(use.loops, later.loops, strict=False) if a is b]
        ways = [Relation(frozenset(common[:n]), loop) for n, loop in enumerate(common)]
        if use.at < later.at:
            ways.append(Relation(frozenset(common)))
        return not all(self._outside.are_apart(use.place, later.place, way) for way in ways)

    def _look_at_cache(self, touching: Sequence[_GlobalUse]) -> None:
        """Find scalar accesses to global memory through the cache, which flags do not order."""
        written = {use.place.root for use in touching if use.writes}
        for use in touching:
            root = use.place.root
            shared = use.writes or root is None or {root, None} & written
            if shared and self._phases[use.at][0].is_scalar:
                why = "the scalar unit's cache holds what others change"
                self.doubts.append((self.ops[use.at], why))


class _GlobalUse(NamedTuple):
    """An access to global memory: its position, the enclosing loops, the window."""

    at: int
    loops: tuple[Operation, ...]
    writes: bool
    place: MemWindow


# ---- the walk


@dataclass(slots=True)
class _OrderState:
    clocks: list[Done]  # of each pipe
    fenced: Done  # operations of the scalar unit before all pipes
    flags: dict[Flag, tuple[Done, ...]]  # that are up, the earliest set first

    @property
    def up(self) -> frozenset[tuple[Flag, int]]:
        return frozenset((key, len(sets)) for key, sets in self.flags.items())

    def copy(self) -> _OrderState:
        return _OrderState(self.clocks.copy(), self.fenced, self.flags.copy())

    def meet(self, other: _OrderState) -> _OrderState:
        flags = {
            key: tuple(a & b for a, b in zip(sets, other.flags[key], strict=True))
            for key, sets in self.flags.items()
        }
        clocks = [a & b for a, b in zip(self.clocks, other.clocks, strict=True)]
        return _OrderState(clocks, self.fenced & other.fenced, flags)


def _merged(states: Iterable[_OrderState]) -> list[_OrderState]:
    found: dict[frozenset[tuple[Flag, int]], _OrderState] = {}
    for state in states:
        old = found.get(state.up)
        found[state.up] = state if old is None else old.meet(state)
    return list(found.values())


class _OrderWalk:
    def __init__(self, steps: _Phases, profile: Profile) -> None:
        self._steps = steps
        self._ordered = [name in profile.sync.memory_ordered for name in PIPES]
        self._identity = profile.sync.flag_identity
        self.values = Values(LaunchSymbols(steps.function), checks=False)
        self.given: Guards = ()
        self.problems: dict[tuple[str, Operation, Operation | None], Problem] = {}

    def tell(
        self, question: Asked, op: Operation, text: str, other: Operation | None = None
    ) -> None:
        self.problems.setdefault((question, op, other), Problem(question, op, text, other))

    def run(self, items: Iterable[Node], states: list[_OrderState]) -> list[_OrderState]:
        for item in items:
            if isinstance(item, LoopNode):
                states = self._loop(item, states)
            elif isinstance(item, BranchNode):
                ways = (self.run(arm, [s.copy() for s in states]) for arm in item.arms)
                states = _merged(state for way in ways for state in way)
            else:
                for state in states:
                    self._step(item, state)
                states = _merged(states) if isinstance(item, _Signal) else states
            if len(states) > _STATES:
                raise Undecided(item.op, "too many ways differ in the flags that are up")
        return states

    def _loop(self, item: LoopNode, states: list[_OrderState]) -> list[_OrderState]:
        test, body = ([], item.parts[0]) if len(item.parts) == 1 else item.parts
        known = self.run(test, states)
        for _ in range(_ROUNDS):
            after = self.run(test, self.run(body, [s.copy() for s in known]))
            joined = _merged([*known, *(s.copy() for s in after)])
            if {s.up: s for s in joined} == {s.up: s for s in known}:
                return after if self._surely_runs(item) else known
            known = joined
        raise Undecided(item.op, "the state of flags does not repeat")

    def _surely_runs(self, item: LoopNode) -> bool:
        if item.surely_runs or item.op.control is not Control.FOR:
            return item.surely_runs
        low, high = map(self.values.number, item.op.operands[:2])
        return never_negative(high - low - 1, self.given)

    def _step(self, item: Node, state: _OrderState) -> None:
        if isinstance(item, WorkNode):
            self._do(item.op, item.work, state)
        elif isinstance(item, BarrierNode):
            self._settle(item.pipes, state)
        elif isinstance(item, _Signal):
            (self._set if item.is_set else self._wait)(item, state)

    # ---- flags and barriers

    def _hear_scalar(self, pipe: int, state: _OrderState) -> None:
        """Order a pipe after all waits of the scalar unit; its own accesses need a flag."""
        own = self._steps.of_pipe[_S]
        if pipe != _S:
            state.clocks[pipe] |= (state.clocks[_S] & ~own) | (state.fenced & own)

    def _published(self, pipe: int, state: _OrderState) -> Done:
        self._hear_scalar(pipe, state)
        return state.clocks[pipe] | self._steps.of_pipe[pipe]

    def _settle(self, pipes: frozenset[int], state: _OrderState) -> None:
        if len(pipes) > 1:
            state.clocks = [self._steps.all] * len(PIPES)
            state.fenced = self._steps.all
            return
        (pipe,) = pipes
        state.clocks[pipe] = self._published(pipe, state)

    def _set(self, item: _Signal, state: _OrderState) -> None:
        up = state.flags.get(item.key, ())
        if up:
            self.tell("deadlock", item.op, f"flag {item.key} may be set before its last was taken")
        if len(up) >= _UP:
            raise Undecided(item.op, "a flag is set more often than it is waited for")
        state.flags[item.key] = (*up, self._published(item.pipe, state))

    def _wait(self, item: _Signal, state: _OrderState) -> None:
        self._hear_scalar(item.pipe, state)
        up = state.flags.pop(item.key, ())
        if not up:
            self.tell("deadlock", item.op, f"flag {item.key} may not be set before this wait")
            return
        state.clocks[item.pipe] |= up[0]
        if len(up) > 1:
            state.flags[item.key] = up[1:]

    # ---- work

    def _do(self, op: Operation, work: SyncWork, state: _OrderState) -> None:
        """Run the phases in order; the operation itself orders them among each other."""
        for source, target, number in work.inner:
            key = key_of(Flag(source, target, number), self._identity)
            if key in state.flags:
                self.tell("deadlock", op, f"it uses flag {key} itself, which is up")
        own = sum(1 << self._steps.at[phase] for phase in work.phases)
        before = state.clocks.copy()
        for part in work.parts:
            if isinstance(part, SyncFlag):
                state.clocks[part.target] |= self._published(part.source, state)
            else:
                self._phase(op, part, own & before[part.pipe], state)

    def _phase(self, op: Operation, phase: Phase, own: Done, state: _OrderState) -> None:
        steps, pipe = self._steps, phase.pipe
        t = steps.at[phase]
        self._hear_scalar(pipe, state)
        missing = steps.clashes[t] & ~state.clocks[pipe] & ~own
        if missing:
            other = steps.ops[missing.bit_length() - 1]
            self.tell("order", op, f"nothing orders it behind '{other.name}' op", other)
        self._begin(t, state)
        if self._ordered[pipe]:
            state.clocks[pipe] |= steps.of_pipe[pipe]
        if phase.is_scalar:
            state.fenced &= ~(1 << t)

    def _begin(self, t: int, state: _OrderState) -> None:
        """Mark work that begins now as not done, whatever earlier iterations did."""
        keep = ~(1 << t)
        state.clocks = [clock & keep for clock in state.clocks]
        state.flags = {key: tuple(s & keep for s in sets) for key, sets in state.flags.items()}
