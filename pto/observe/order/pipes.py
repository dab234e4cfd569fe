"""The order of a watched run: the model of pipes and queues with vector clocks.

The engine reports events in program order of each agent; the model parks blocked ones. Events that
remain in the queues at the end can never run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from pto.core.memory import Space
from pto.isa.meaning.kinds import Blocked
from pto.isa.row.flag import Flag
from pto.isa.row.types import TileBuf
from pto.observe.order.clocks import Clock, ClockAgent, Clocks, Thread, joined
from pto.observe.order.fences import FenceUses
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.order.model import Model
from pto.run.order.state import Issuer
from pto.run.watch.events import InstructionEvent
from pto.run.watch.memory import Access
from pto.target.facts import Sync

Work = Callable[[Thread, InstructionEvent], None]


def around_barrier(
    event: InstructionEvent, profile: str
) -> tuple[list[Access], list[Access]] | None:
    """The accesses of an operation before and after a barrier inside it: the library has one after
    the first row that it pads. None if there is none, or if it is unknown."""
    op, accesses = event.op, event.accesses
    if profile not in op.traits.fenced_row or event.pipe != "V":
        return None
    tiles = (value.type for value in op.operands)
    if all(type.tile.rows == 1 for type in tiles if isinstance(type, TileBuf)):
        return accesses, []
    if not all(access.writes for access in accesses):
        return None
    before, behind = list[Access](), list[Access]()
    for access in accesses:
        lines = access.array
        if lines is None or lines.ndim != 2 or lines.strides[0] <= lines.shape[1] * access.width:
            behind.append(access)  # whole rows
            continue
        before.append(access._replace(array=lines[:1]))
        rest = access._replace(array=lines[1:], start=access.start + lines.strides[0])
        behind += [rest] if rest.nbytes else []
    return before, behind


class RunOrder(Model[Clock, Thread, InstructionEvent]):
    """Orders all events. `work` is called for every event when it starts."""

    def __init__(self, sync: Sync, work: Work, automatic: bool) -> None:
        super().__init__(sync)
        self.clocks = Clocks()
        self.fences = FenceUses(sync)
        self.agents: dict[int, ClockAgent] = {}  # running agents, by core
        self.all: list[ClockAgent] = []
        self._clusters: dict[int, int] = {}
        self._work = work
        self._automatic = automatic
        # repeated sets of a flag: (agent, flag, the earlier set, the later), by operation
        self.set_twice: dict[int, tuple[ClockAgent, Flag, InstructionEvent, InstructionEvent]] = {}
        self._launch = 0  # of agents that begin now
        self._bases: dict[int, Clock | None] = {}  # by launch

    # ---- agents

    def begin(self, core: Core) -> ClockAgent:
        number = self._clusters.setdefault(id(core.cluster), len(self.all))
        agent = ClockAgent(
            f"{core.name} of launch {self._launch}" if self._launch else core.name,
            number,
            self._automatic,
            core.device.rank,
            self._bases.get(self._launch),
            block=core.block,
            launch=self._launch,
        )
        agent.core = core
        self.agents[id(core)] = agent
        self.all.append(agent)
        return agent

    def launch(self, number: int, after: Collection[int], automatic: bool) -> None:
        """Set the launch of agents that begin from now on; it began after those in `after`."""
        self._launch, self._automatic = number, automatic
        if number in self._bases:
            return
        self.pump_all()
        base: Clock | None = None
        for launch_number in after:
            before = self._bases.get(launch_number)
            base = base if before is None else joined(before, base)
        for agent in self.all:
            for thread in agent.pipes.values() if agent.launch in after else ():
                base = joined(thread.publish(), base)
        self._bases[number] = base

    def finish(self, core: Core) -> None:
        """Keep the agent of a finished core for the findings at the end; drop the core."""
        agent = self.agents.pop(id(core), None)
        if agent is not None:
            agent.core = None
        if not any(
            agent.cluster == self._clusters.get(id(core.cluster)) for agent in self.agents.values()
        ):
            self._clusters.pop(id(core.cluster), None)

    def agent(self, core: Core) -> ClockAgent:
        return self.agents[id(core)]

    def issue(self, unit: Issuer[Clock, Thread, InstructionEvent], item: InstructionEvent) -> None:
        """A fast path for operations that have nothing to wait for."""
        effect, pipe = item.effect, unit.pipes.get(item.pipe)
        if self.parked or pipe is None or pipe.seen != unit.version or item.mark is not None:
            super().issue(unit, item)
            return
        if effect is None:
            self._work(pipe, item)
        elif type(effect) is fx.FlagSet:
            self._set_flag(unit, pipe, item, effect)
        elif type(effect) is fx.FlagWait and unit.flags.get(effect.key):
            self._wait_flag(unit, pipe, item, effect)
        elif type(effect) is fx.PipeBarrier:
            self._barrier(unit, pipe, item, effect)
        else:
            super().issue(unit, item)
            return
        item.is_done = True
        unit.version += item.pipe == "S"

    # ---- interface of the model

    def pipe(self, unit: Issuer[Clock, Thread, InstructionEvent], name: str) -> Thread:
        """The pipe of an agent; one thread for all pipes if a compiler orders them."""
        is_one = isinstance(unit, ClockAgent) and unit.automatic
        return super().pipe(unit, "S" if is_one else name)

    def new_pipe(self, unit: ClockAgent, name: str) -> Thread:
        ordered = unit.automatic or name in self.sync.memory_ordered
        thread = self.clocks.new(unit, name, ordered)
        rules = self.sync.own_order
        thread.own_order = {Space(buffer): least for pipe, buffer, least in rules if pipe == name}
        return thread

    def merged(self, a: Clock, b: Clock) -> Clock:
        return joined(a, b)

    def work(self, unit: ClockAgent, pipe: Thread, item: InstructionEvent) -> Blocked | None:
        if item.accesses or item.effect is None or type(item.effect) is fx.CacheFlush:
            self._work(pipe, item)
        return None

    def was_set(
        self,
        unit: ClockAgent,
        pipe: Thread,
        item: InstructionEvent,
        flag: Flag,
        stamp: Clock,
        before: Sequence[tuple[Clock, InstructionEvent]],
    ) -> None:
        if flag.id == fx.INNER:
            return
        if before:
            self.set_twice.setdefault(id(item.op), (unit, flag, before[-1][1], item))
        self.fences.set(pipe, item, flag, stamp)

    def was_taken(
        self,
        unit: ClockAgent,
        pipe: Thread,
        item: InstructionEvent,
        flag: Flag,
        by: tuple[Clock, InstructionEvent],
    ) -> None:
        if flag.id == fx.INNER:
            return
        self.fences.wait(pipe, item, flag, by[1], by[0])
        unit.taken.add(flag)
        source = unit.pipes.get(flag.src) or self.pipe(unit, flag.src)
        pipe.heard[source.index] = (flag, item.op)

    def was_fenced(self, unit: ClockAgent, pipe: Thread | None, item: InstructionEvent) -> None:
        scalar = unit.pipes.get("S")
        if pipe is None and scalar is not None:
            scalar.fenced = scalar.now
        if pipe is not None:
            # one after a barrier of the library is not called needless: sources need not know that
            orders = int(pipe.clock[pipe.index]) < pipe.now or 0 < pipe.implicit == pipe.now
            self.fences.barrier(item.op, pipe.pipe, orders)
        elif not self.fences.is_known(item.op):
            threads = list(unit.pipes.values())
            clock = joined(threads[0].publish(), None) if threads else None
            for thread in threads[1:]:
                clock = joined(thread.publish(), clock)
            orders = any(not np.array_equal(clock, t.clock) for t in threads if clock is not None)
            self.fences.barrier(item.op, "ALL", orders)
