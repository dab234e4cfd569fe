"""The agents that run a kernel on one core: their operations, and which of them must not overlap.

Positions number the operations of all agents together. A function that two vector sub-blocks run
has positions for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from pto.ir.graph import Operation, Value
from pto.ir.liveness import aliases
from pto.isa.meaning.vector.sort import GET_VMS4_SR
from pto.isa.row.flag import Flag
from pto.isa.row.traits import Control
from pto.plan.buffers import FunctionPlan
from pto.plan.calls import SUBBLOCK, FunctionNames, SideFunction, names_of, sides, taken
from pto.plan.memory import plan_memory
from pto.plan.stores import is_global
from pto.plan.sync.effects import PIPES, Effects, Phase
from pto.plan.sync.footprint import Footprints
from pto.plan.sync.outside import GlobalViews, MemWindow, Relation
from pto.plan.sync.storage import Storage, Stretch, popped
from pto.plan.sync.tree import CallNode, LoopNode, Node, WorkNode, inner, walk
from pto.prove.assume import Stated
from pto.prove.blocks import conflicts
from pto.prove.facts import facts
from pto.prove.nodes import OrderReader, QueueNode, SignalNode, Undecided
from pto.prove.number import ZERO, number
from pto.prove.values import Guards, LaunchSymbols, Values, ViewPart
from pto.target.facts import Profile

INSIDE = "every window of global memory stays inside its view"
_Pairs = set[frozenset[Operation]]
Done = int  # bit t: the operation at position t is done


class GlobalUse(NamedTuple):
    """An access to global memory: its position, the enclosing loops, the window."""

    at: int
    loops: tuple[Operation, ...]
    writes: bool
    place: MemWindow
    root: str | None  # the parameter, the first of equal arrays; None: any


class _Called(GlobalViews):
    """The windows of a called function: whole arrays of its caller."""

    def __init__(self, call: CallNode, caller: GlobalViews) -> None:
        super().__init__(call.callee)
        pairs = zip(call.callee.regions[0].block.args, call.op.operands, strict=True)
        self._given = {arg: caller.of(value) for arg, value in pairs}

    def of(self, value: Value) -> MemWindow | None:
        window = super().of(value)
        outer = None if window is None or window.root is None else self._given[window.root]
        return None if window is None else MemWindow(None if outer is None else outer.root)


class Agent:
    """One agent and its part of the program."""

    def __init__(
        self, n: int, run: SideFunction, sub: int, plans: Sequence[FunctionPlan], profile: Profile
    ) -> None:
        self.first = n * len(PIPES)  # its first pipe
        self.function = run.function
        self.side = run.name
        self.sub = sub
        self._plans, self._profile = plans, profile
        self.outside = GlobalViews(self.function)
        self.at: dict[Phase, int] = {}
        self.uses: list[GlobalUse] = []
        self.calls: list[CallNode] = []
        self._ends: dict[Hashable, Operation] = {}  # of queues
        self._takes: dict[Operation, set[Operation]] = {}

        self.items: list[Node] = self._read(self.function, self.outside)
        gm = (self.outside.of(v) for end in self._ends.values() for v in end.operands)
        self.slots = [window for window in gm if window is not None]  # of queues in global memory

    def _read(self, function: Operation, outside: GlobalViews) -> list[Node]:
        """The operations of a function, and of those that it calls."""

        def called(call: CallNode) -> list[Node]:
            if call.op.control is not Control.CALL:
                raise Undecided(call.op, "it launches work items")
            self.calls.append(call)
            return self._read(call.callee, _Called(call, outside))

        plan = next(plan for plan in self._plans if plan.function is function)
        storage = Storage(plan, [], self._profile)
        effects = Effects(function, storage, self._profile, outside)
        side = None if function.side() is not None or self.side == "both" else self.side
        reader = OrderReader(effects, FunctionNames(), side, called=called, ends=self._ends)
        items = reader.block(function.regions[0].block)
        self._look_at_tiles(function, items, storage)
        return items

    def _look_at_tiles(self, function: Operation, items: list[Node], storage: Storage) -> None:
        """Find the operations that use tiles of queues, and check that no other tile overlaps."""
        tiles = [(op, v) for op in function.walk() for v in popped(op)]
        names = aliases(function, [v for _, v in tiles])
        slots = {slot_or_use for _, v in tiles for slot_or_use in storage.of(v)}
        nodes = (item for item in walk(items) if isinstance(item, QueueNode))
        copied = {item.op for item in nodes if item.ring.copies}
        for op in function.walk() if tiles else ():
            used = {tiles[n][0] for v in op.operands for n in names.get(v, ())}
            if used and (op.is_loop or op.is_terminator or op.control is Control.CALL):
                raise Undecided(op, "it hands on a tile of a queue")
            others = (
                slot_or_use for v in op.operands if v not in names for slot_or_use in storage.of(v)
            )
            if any(_overlap(slot_or_use, slot) for slot_or_use in others for slot in slots):
                raise Undecided(op, "its tile may share bytes with a queue")
            self._takes[op] = used - copied - {op}

    def takes(self, op: Operation) -> set[Operation]:
        """The pops that provide the tiles, slots of a queue, used by an operation."""
        return {pop for inner in op.walk() if self._takes for pop in self._takes.get(inner, ())}


def _overlap(a: Stretch, b: Stretch) -> bool:
    return a.space is b.space and a.start < b.end and b.start < a.end


class Agents:
    """The agents of functions that run together."""

    def __init__(self, functions: Sequence[Operation], profile: Profile, stated: Stated) -> None:
        self.profile = profile
        plans = plan_memory(functions, profile).functions
        self.ops: list[Operation] = []  # by position
        self.flags: dict[Hashable, Operation] = {}  # a set of each, by agent
        self._pipes: dict[tuple[int, Flag, bool], int] = {}  # that set it, and that wait for it
        self._phases: list[tuple[Phase, tuple[Operation, ...]]] = []  # with the enclosing loops
        self.doubts: list[tuple[Operation, str]] = []
        self.assumes: dict[str, None] = {}
        self._stated = stated
        self._meeting: dict[Operation, tuple[set[Operation], _Pairs, _Pairs]] = {}
        self.all: list[Agent] = []
        for run in sides(functions, profile):
            for sub in range(run.agents):
                self.all.append(Agent(len(self.all), run, sub, plans, profile))
        for agent in self.all:
            self._number(agent, agent.items, ())
            for function in (agent.function, *(call.callee for call in agent.calls)):
                self.doubts += _doubts(function)
        self.of_pipe: list[Done] = [0] * (len(PIPES) * len(self.all))
        for agent in self.all:
            for phase, t in agent.at.items():
                self.of_pipe[agent.first + phase.pipe] |= 1 << t
        self.uses: dict[int, list[GlobalUse]] = {}  # by position
        self.written: dict[str | None, Done] = {}  # positions that write an array
        self.clashes: list[Done] = [0] * len(self.ops)
        self._names = [name for name, _ in taken(functions)]
        self._first = {self._names[n]: self._names[first] for n, first in stated.same.items()}
        for agent in self.all:
            self._local(agent)
            self._find_uses(agent)
        self._global()
        self.values, self.given = self._values(stated)

    def _number(self, agent: Agent, items: Iterable[Node], loops: tuple[Operation, ...]) -> None:
        for item in items:
            if isinstance(item, WorkNode | QueueNode) and item.work is not None:
                for phase in item.work.phases:
                    agent.at[phase] = len(self.ops)
                    self.ops.append(item.op)
                    self._phases.append((phase, loops))
            elif isinstance(item, SignalNode):
                self._know(agent, item)
            for part in inner(item):
                around = (*loops, item.op) if isinstance(item, LoopNode) else loops
                self._number(agent, part, around)

    def _know(self, agent: Agent, item: SignalNode) -> None:
        if item.is_set:
            self.flags[agent.first, item.key] = item.op
        key = agent.first, item.key, item.is_set
        if self._pipes.setdefault(key, item.pipe) != item.pipe:
            raise Undecided(item.op, "several pipes use one flag")

    def _local(self, agent: Agent) -> None:
        """Find the positions that access the same bytes of a local buffer."""
        footprint = Footprints(agent.at, agent.outside, self.profile.sync)
        for phase, t in agent.at.items():
            footprint.mark(phase, t)
        for phase, t in agent.at.items():
            self.clashes[t] = footprint.before(phase, len(self.ops), -1, Relation())

    # ---- global memory

    def _find_uses(self, agent: Agent) -> None:
        roots: dict[Value | None, str] = dict(self._named(agent.function))
        slots = {roots.get(slot.root) for slot in agent.slots}
        for phase, t in agent.at.items():
            for access in phase.accesses:
                accessed = access.place
                if isinstance(accessed, MemWindow):
                    root = roots.get(accessed.root)
                    if slots and (root is None or {root, None} & slots):
                        raise Undecided(self.ops[t], "it may access slots of a queue")
                    loops = self._phases[t][1]
                    use = GlobalUse(t, loops, access.writes, accessed, root)
                    agent.uses.append(use)
                    self.uses.setdefault(t, []).append(use)
                    if access.writes:
                        self.written[root] = self.written.get(root, 0) | 1 << t

    def _named(self, function: Operation) -> Iterator[tuple[Value, str]]:
        """The arguments of a function with the names of their parameters, equal arrays with one."""
        args = function.regions[0].block.args
        for arg, name in zip(args, names_of(args, self._names), strict=True):
            yield arg, self._first.get(name, name)

    def _global(self) -> None:
        """Add positions that may access the same bytes of global memory."""
        for agent in self.all:
            for later in agent.uses:
                for other in self.all:
                    is_own = other is agent
                    for use in other.uses if is_own else self._shared(agent, other, later):
                        if not is_own or _may_meet(agent.outside, use, later):
                            self.clashes[later.at] |= 1 << use.at

    def _shared(self, agent: Agent, other: Agent, later: GlobalUse) -> Iterator[GlobalUse]:
        """Uses by another agent that may overlap a use."""
        for use in other.uses:
            same = None in (use.root, later.root) or use.root == later.root
            if same and (use.writes or later.writes):
                pair = frozenset((self.ops[use.at], self.ops[later.at]))
                if agent.function is not other.function or not self._are_apart(agent, pair):
                    yield use

    def _are_apart(self, agent: Agent, pair: frozenset[Operation]) -> bool:
        """True if two operations access different bytes in two sub-blocks; if need be, as long as
        windows stay inside of their views."""
        if agent.function not in self._meeting:
            uses = facts(agent.function, self._stated)
            every = {use.op for use in uses.uses} - {op for op, _ in uses.unknown}
            ways = [conflicts(uses, inside=i, of_subs=True) for i in (False, True)]
            meet = [{frozenset((p.write.op, p.other.op)) for p in way} for way in ways]
            self._meeting[agent.function] = every, meet[0], meet[1]
        every, surely, maybe = self._meeting[agent.function]
        if not pair <= every or pair in maybe:
            return False
        if pair in surely:
            self.assumes[INSIDE] = None
        return True

    # ---- values

    def _values(self, stated: Stated) -> tuple[list[Values], Guards]:
        """The formulas of each agent, and what is stated about the arguments."""
        launch = LaunchSymbols(self.all[0].function)
        written = {use.root for agent in self.all for use in agent.uses if use.writes}
        values_of_agents, guards = list[Values](), list[Guards]()
        for agent in self.all:
            agent_launch = copy(launch)
            agent_launch.sub = number(agent.sub)
            values = Values(agent_launch, checks=False)
            guards.append(stated.of(agent.function, values)[1])
            for arg, name in self._named(agent.function):
                if id(arg) in values.numbers:
                    shared_number = launch.shared.setdefault(
                        ("argument", name), values.numbers[id(arg)]
                    )
                    values.numbers[id(arg)] = (
                        agent_launch.sub if name == SUBBLOCK else shared_number
                    )
                if is_global(arg.type):
                    values.windows[id(arg)] = ViewPart(arg, ZERO, 1)
                    if None not in written and name not in written:
                        values.constant[arg] = name
            values_of_agents.append(values)
        return values_of_agents, guards[0]


def _doubts(function: Operation) -> Iterator[tuple[Operation, str]]:
    one = (None, Control.SCOPE)  # a region that runs as one operation of a pipe
    for op in function.walk():
        if op.regions and op.control in one:
            yield op, "the order inside of a vector scope is not known"
        if op.body is GET_VMS4_SR:
            yield op, "it reads a register that the vector pipe writes"


def _may_meet(outside: GlobalViews, use: GlobalUse, later: GlobalUse) -> bool:
    """True if a use and a later one of one agent, at least one of them a write, may overlap in any
    iterations."""
    if not (use.writes or later.writes):
        return False
    if use.root == later.root and use.place.root is not later.place.root:
        return True  # one array for two parameters
    common = [a for a, b in zip(use.loops, later.loops, strict=False) if a is b]
    ways = [Relation(frozenset(common[:n]), loop) for n, loop in enumerate(common)]
    if use.at < later.at:
        ways.append(Relation(frozenset(common)))
    return not all(outside.are_apart(use.place, later.place, way) for way in ways)
