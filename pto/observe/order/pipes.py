"""The order of a watched run: the model of pipes and queues with vector clocks.

The engine tells events in program order of each agent; the model parks what has to wait. What is
left in the queues at the end can never run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from pto.core.memory import Space
from pto.isa.meaning import Blocked
from pto.isa.row.flag import Flag
from pto.isa.row.types import TileBuf
from pto.observe.order.clocks import Agent, Clock, Clocks, Thread, joined
from pto.observe.order.fences import Fences
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.order.model import Model
from pto.run.order.state import Unit
from pto.run.watch.events import Event
from pto.run.watch.memory import Access
from pto.target.facts import Sync

Work = Callable[[Thread, Event], None]


def around_barrier(event: Event, profile: str) -> tuple[list[Access], list[Access]] | None:
    """What an operation touches before and behind a barrier of its pipe that the library has in it,
    behind the first row that it pads; None: there is none, or nobody can tell."""
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


class Order(Model[Clock, Thread, Event]):
    """Decides what comes after what. `work` is called for every event when it starts."""

    def __init__(self, sync: Sync, work: Work, automatic: bool) -> None:
        super().__init__(sync)
        self.clocks = Clocks()
        self.fences = Fences(sync)
        self.agents: dict[int, Agent] = {}  # those at work, by core
        self.all: list[Agent] = []
        self._clusters: dict[int, int] = {}
        self._work = work
        self._automatic = automatic
        # sets of a flag that was still set: (agent, flag, the earlier set, the later), by operation
        self.set_twice: dict[int, tuple[Agent, Flag, Event, Event]] = {}
        self._launch = 0  # that agents which begin now belong to
        self._bases: dict[int, Clock | None] = {}  # by launch

    # ---- agents

    def begin(self, core: Core) -> Agent:
        number = self._clusters.setdefault(id(core.cluster), len(self.all))
        agent = Agent(
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
        """Agents that begin from now on belong to this launch, which began after those."""
        self._launch, self._automatic = number, automatic
        if number in self._bases:
            return
        self.pump_all()
        base: Clock | None = None
        for each in after:
            before = self._bases.get(each)
            base = base if before is None else joined(before, base)
        for agent in self.all:
            for thread in agent.pipes.values() if agent.launch in after else ():
                base = joined(thread.publish(), base)
        self._bases[number] = base

    def finish(self, core: Core) -> None:
        """Its agent stays, for what is found at the end; the core itself may go."""
        agent = self.agents.pop(id(core), None)
        if agent is not None:
            agent.core = None
        if not any(
            agent.cluster == self._clusters.get(id(core.cluster)) for agent in self.agents.values()
        ):
            self._clusters.pop(id(core.cluster), None)

    def agent(self, core: Core) -> Agent:
        return self.agents[id(core)]

    def issue(self, unit: Unit[Clock, Thread, Event], item: Event) -> None:
        """Most operations have nothing to wait for: a short way to the same."""
        effect, pipe = item.effect, unit.pipes.get(item.pipe)
        if self.parked or pipe is None or pipe.seen != unit.version or item.mark is not None:
            super().issue(unit, item)
            return
        if effect is None:
            self._work(pipe, item)
        elif type(effect) is fx.SetFlag:
            self._set_flag(unit, pipe, item, effect)
        elif type(effect) is fx.WaitFlag and unit.flags.get(effect.key):
            self._wait_flag(unit, pipe, item, effect)
        elif type(effect) is fx.Barrier:
            self._barrier(unit, pipe, item, effect)
        else:
            super().issue(unit, item)
            return
        item.is_done = True
        unit.version += item.pipe == "S"

    # ---- what the model asks for

    def pipe(self, unit: Unit[Clock, Thread, Event], name: str) -> Thread:
        """Where a compiler orders the pipes, an agent is one thread."""
        is_one = isinstance(unit, Agent) and unit.automatic
        return super().pipe(unit, "S" if is_one else name)

    def new_pipe(self, unit: Agent, name: str) -> Thread:
        ordered = unit.automatic or name in self.sync.memory_ordered
        thread = self.clocks.new(unit, name, ordered)
        own = self.sync.own_order
        thread.own_order = {Space(buffer): least for pipe, buffer, least in own if pipe == name}
        return thread

    def merged(self, a: Clock, b: Clock) -> Clock:
        return joined(a, b)

    def work(self, unit: Agent, pipe: Thread, item: Event) -> Blocked | None:
        if item.accesses or item.effect is None or type(item.effect) is fx.Flush:
            self._work(pipe, item)
        return None

    def was_set(
        self,
        unit: Agent,
        pipe: Thread,
        item: Event,
        flag: Flag,
        stamp: Clock,
        before: Sequence[tuple[Clock, Event]],
    ) -> None:
        if flag.id == fx.INNER:
            return
        if before:
            self.set_twice.setdefault(id(item.op), (unit, flag, before[-1][1], item))
        self.fences.set(pipe, item, flag, stamp)

    def was_taken(
        self, unit: Agent, pipe: Thread, item: Event, flag: Flag, by: tuple[Clock, Event]
    ) -> None:
        if flag.id == fx.INNER:
            return
        self.fences.wait(pipe, item, flag, by[1], by[0])
        unit.taken.add(flag)
        source = unit.pipes.get(flag.src) or self.pipe(unit, flag.src)
        pipe.heard[source.index] = (flag, item.op)

    def was_fenced(self, unit: Agent, pipe: Thread | None, item: Event) -> None:
        scalar = unit.pipes.get("S")
        if pipe is None and scalar is not None:
            scalar.fenced = scalar.now
        if pipe is not None:
            # one behind a barrier of the library is not called needless: sources need not know that
            orders = int(pipe.clock[pipe.index]) < pipe.now or 0 < pipe.implicit == pipe.now
            self.fences.barrier(item, pipe.pipe, orders)
        elif not self.fences.is_known(item.op):
            threads = list(unit.pipes.values())
            whole = joined(threads[0].publish(), None) if threads else None
            for thread in threads[1:]:
                whole = joined(thread.publish(), whole)
            orders = any(not np.array_equal(whole, t.clock) for t in threads if whole is not None)
            self.fences.barrier(item, "ALL", orders)
