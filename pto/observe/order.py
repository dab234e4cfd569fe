"""The pipes of all agents as queues: operations start when what they wait for has happened.

The engine tells events in program order of each agent. Here every event goes into the queue of its
pipe; a wait whose flag is not set parks that pipe while the others go on. What is left in the
queues at the end can never run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from pto.observe.clocks import Agent, Clock, Clocks, Item, Moment, Thread, join, joined
from pto.observe.fences import Fences
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.watch.events import Event
from pto.target.facts import Sync

_BUFFERS = (fx.GetBuffer, fx.ReleaseBuffer)
# what names a flag: the rest of its name makes no difference
_IDENTITY: dict[str, Callable[[fx.Flag], fx.Flag]] = {
    "src dst id": lambda flag: flag,
    "src id": lambda flag: flag._replace(dst="any"),
    "dst id": lambda flag: flag._replace(src="any"),
}
Work = Callable[[Thread, Item], None]


class Order:
    """Decides what comes after what. `work` is called for every event when it starts."""

    def __init__(self, sync: Sync, work: Work, automatic: bool) -> None:
        self.sync = sync
        self.clocks = Clocks()
        self.fences = Fences(sync)
        self.agents: dict[int, Agent] = {}  # those at work, by core
        self.all: list[Agent] = []
        self._clusters: dict[int, int] = {}
        self._identity = _IDENTITY[sync.flag_identity]
        self._work = work
        self._automatic = automatic
        # sets of a flag that was still set: (agent, flag, the earlier set, the later), by operation
        self.set_twice: dict[int, tuple[Agent, fx.Flag, Item, Item]] = {}
        self.signals: dict[Any, deque[tuple[Clock, Agent, Item]]] = {}  # sent and not yet heard
        self._rounds: dict[Any, list[tuple[int, Clock]]] = {}
        self._meetings: dict[Any, Clock] = {}
        self._parked: set[Agent] = set()
        self._launch = 0  # that agents which begin now belong to
        self._bases: dict[int, Clock | None] = {}  # by launch
        self._handlers: dict[type, Callable[[Thread, Item, Any], bool]] = {
            fx.SetFlag: self._set_flag,
            fx.WaitFlag: self._wait_flag,
            fx.Barrier: self._barrier,
            fx.GetBuffer: self._get_buffer,
            fx.ReleaseBuffer: self._release_buffer,
            fx.Send: self._send,
            fx.Hear: self._hear,
            fx.Meet: self._meet,
        }

    # ---- issue

    def begin(self, core: Core) -> Agent:
        number = self._clusters.setdefault(id(core.cluster), len(self.all))
        agent = Agent(
            f"{core.name} of launch {self._launch}" if self._launch else core.name,
            core.block,
            number,
            self._automatic,
            self._launch,
            core.device.rank,
            self._bases.get(self._launch),
        )
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
            for thread in agent.threads.values() if agent.launch in after else ():
                base = joined(thread.published(), base)
        self._bases[number] = base

    def finish(self, core: Core) -> None:
        """Its agent stays, for what is found at the end; the core itself may go."""
        self.agents.pop(id(core), None)
        if not any(
            agent.cluster == self._clusters.get(id(core.cluster)) for agent in self.agents.values()
        ):
            self._clusters.pop(id(core.cluster), None)

    def agent(self, core: Core) -> Agent:
        return self.agents[id(core)]

    def thread(self, agent: Agent, pipe: str) -> Thread:
        name = "S" if agent.automatic or pipe in ("none", "ALL") else pipe
        found = agent.threads.get(name)
        if found is None:
            ordered = agent.automatic or name in self.sync.memory_ordered
            found = self.clocks.new(agent, name, ordered)
            agent.threads[name] = found
        return found

    def _scalar(self, agent: Agent) -> Thread:
        return agent.threads.get("S") or self.thread(agent, "S")

    def moment(self, agent: Agent, event: Event) -> Moment:
        agent.count += 1
        return Moment(event.op, event.counters, agent.count)

    def issue(self, agent: Agent, item: Item) -> None:
        """The scalar unit hands an operation to its pipe."""
        if agent not in self._parked:
            self._issue_at_once(agent, item)
            return
        if agent.waiting or not self._issue(agent, item):
            agent.waiting.append(item)
        self._pump(agent)

    def _issue_at_once(self, agent: Agent, item: Item) -> None:
        """Every queue is empty: it starts now, or is the first to wait."""
        event = item.event
        if event.pipe == "ALL":
            self._join_all(agent, item)
            return
        if type(event.effect) in _BUFFERS:
            self._count_buffers(agent, event.effect, item)
        thread = agent.threads.get(event.pipe) or self.thread(agent, event.pipe)
        if not self._start(thread, item):
            item.clock, item.version = self._scalar(agent).published(), agent.version
            thread.queue.append(item)
            self._parked.add(agent)

    def _issue(self, agent: Agent, item: Item) -> bool:
        """False while the scalar unit has to wait before it can hand out this operation."""
        event, scalar = item.event, self._scalar(agent)
        if scalar.queue:
            return False
        effect = event.effect
        if event.pipe == "ALL":
            if any(t.queue for t in agent.threads.values()):
                return False
            self._join_all(agent, item)
            return True
        thread = self.thread(agent, event.pipe)
        if len(thread.queue) >= self.sync.queue_depth:
            return False
        if effect is not None:
            self._count_buffers(agent, effect, item)
        if thread.queue:
            item.clock, item.version = scalar.published(), agent.version
        if thread.queue or not self._start(thread, item):
            if item.clock is None:
                item.clock, item.version = scalar.published(), agent.version
            thread.queue.append(item)
            self._parked.add(agent)
        return True

    def _join_all(self, agent: Agent, item: Item) -> None:
        threads = list(agent.threads.values()) or [self.thread(agent, "S")]
        whole = threads[0].published()
        for thread in threads[1:]:
            whole = joined(whole, thread.published())
        if not self.fences.is_known(item.event.op):
            orders = any(not np.array_equal(whole, thread.clock) for thread in threads)
            self.fences.barrier(item, "ALL", orders)
        for thread in threads:
            thread.clock = whole.copy()
        agent.version += 1

    def _count_buffers(self, agent: Agent, effect: fx.Effect | None, item: Item) -> None:
        if isinstance(effect, fx.ReleaseBuffer):
            agent.releases[effect.id] = agent.releases.get(effect.id, 0) + 1
        elif isinstance(effect, fx.GetBuffer):
            item.need = agent.releases.get(effect.id, 0) if effect.waits else 0

    # ---- start

    def _start(self, thread: Thread, item: Item) -> bool:
        """Run one operation; False when it has to wait."""
        agent = thread.agent
        effect = item.event.effect
        if item.clock is not None:
            if item.version != thread.issued:
                join(thread, item.clock)
                thread.issued = item.version
        elif thread.issued != agent.version:
            if thread.pipe != "S":
                join(thread, self._scalar(agent).published())
            thread.issued = agent.version
        if effect is not None and not self._handlers[type(effect)](thread, item, effect):
            return False
        if item.event.accesses or item.scope:
            self._work(thread, item)
        if isinstance(effect, fx.Meet):
            self._publish(thread, effect)
        if thread.pipe == "S":
            agent.version += 1
        return True

    def _pump(self, agent: Agent) -> None:
        """Let parked pipes go on as far as they can."""
        moved = True
        while moved:
            moved = False
            for thread in list(agent.threads.values()):
                while thread.queue and self._start(thread, thread.queue[0]):
                    thread.queue.popleft()
                    moved = True
            while agent.waiting and self._issue(agent, agent.waiting[0]):
                agent.waiting.popleft()
                moved = True
        if not agent.waiting and not any(t.queue for t in agent.threads.values()):
            self._parked.discard(agent)

    def pump_all(self) -> None:
        """Until nothing moves any more."""
        before = -1
        while before != (left := self._left()):
            before = left
            for agent in list(self._parked):
                self._pump(agent)

    def _left(self) -> int:
        return sum(
            len(a.waiting) + sum(len(t.queue) for t in a.threads.values()) for a in self._parked
        )

    # ---- what each effect does

    def _set_flag(self, thread: Thread, item: Item, effect: fx.SetFlag) -> bool:
        key = self._identity(effect.flag)
        queue = thread.agent.flags.get(key)
        if queue is None:
            queue = thread.agent.flags[key] = deque()
        if queue:
            self.set_twice.setdefault(
                id(item.event.op), (thread.agent, effect.flag, queue[-1][1], item)
            )
        clock = thread.published()
        self.fences.set(thread, item, effect.flag, clock)
        queue.append((clock, item))
        return True

    def _wait_flag(self, thread: Thread, item: Item, effect: fx.WaitFlag) -> bool:
        queue = thread.agent.flags.get(self._identity(effect.flag))
        if not queue:
            return False
        clock, setter = queue.popleft()
        self.fences.wait(thread, item, effect.flag, setter, clock)
        join(thread, clock)
        pipe = effect.flag.src
        source = thread.agent.threads.get(pipe) or self.thread(thread.agent, pipe)
        thread.heard[source.index] = (effect.flag, item.event.op)
        return True

    def _barrier(self, thread: Thread, item: Item, effect: fx.Barrier) -> bool:
        self.fences.barrier(item, thread.pipe, int(thread.clock[thread.index]) < thread.now)
        thread.settle()
        return True

    def _get_buffer(self, thread: Thread, item: Item, effect: fx.GetBuffer) -> bool:
        agent = thread.agent
        agent.users.setdefault(effect.id, set()).add(thread.pipe)
        done = agent.buffers.get(effect.id, [])
        if len(done) < item.need:
            return False
        if item.need:
            join(thread, done[item.need - 1])
        return True

    def _release_buffer(self, thread: Thread, item: Item, effect: fx.ReleaseBuffer) -> bool:
        agent, clock = thread.agent, thread.published()
        if effect.of_all:
            for pipe in agent.users.get(effect.id, ()):
                clock = joined(clock, self.thread(agent, pipe).published())
        done = agent.buffers.setdefault(effect.id, [])
        done.append(joined(clock, done[-1]) if done else clock)
        return True

    def _send(self, thread: Thread, item: Item, effect: fx.Send) -> bool:
        clock = thread.published()
        launch = thread.agent.launch
        for block, key in effect.signals:
            queue = self.signals.setdefault(((launch, block), key), deque())
            queue.append((clock, thread.agent, item))
        for (meeting, block, _), value in effect.arrivals:
            self._rounds.setdefault((launch, meeting, value), []).append((block, clock))
        self._wake(thread.agent)
        return True

    def _hear(self, thread: Thread, item: Item, effect: fx.Hear) -> bool:
        launch, block = thread.agent.launch, thread.agent.block
        keys = [((launch, where), key) for where, key in effect.signals]
        if not all(self.signals.get(key) for key in keys):
            return False
        for key in keys:
            join(thread, self.signals[key].popleft()[0])
        for meeting, value in effect.meetings:
            for where, clock in self._rounds.get((launch, meeting, value), ()):
                if meeting[0] == "0" or where == block:
                    join(thread, clock)
        return True

    def _meet(self, thread: Thread, item: Item, effect: fx.Meet) -> bool:
        if any(key in effect.joins for key in effect.publishes):
            # where all meet, what one's own pipes have done is done for one's other pipes too
            self._publish(thread, effect)
        for key in effect.joins:
            clock = self._meetings.get(_of_launch(thread, key))
            for each in _who_meets(thread, effect) if clock is not None else ():
                join(each, clock)  # type: ignore[arg-type]
        return True

    def _publish(self, thread: Thread, effect: fx.Meet) -> None:
        """After the accesses of the operation itself: a push has written what a pop reads."""
        for key in (_of_launch(thread, key) for key in effect.publishes):
            clock = self._meetings.get(key)
            for each in _who_meets(thread, effect):
                own = each.published()
                clock = own if clock is None else joined(clock, own)
            if clock is not None:
                self._meetings[key] = clock
        self._wake(thread.agent)

    def _wake(self, but: Agent) -> None:
        for agent in list(self._parked):
            if agent is not but:
                self._pump(agent)


def _of_launch(thread: Thread, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Queues and meetings of blocks belong to their launch; signals in memory to everyone."""
    return key if key[0] in fx.EVERYWHERE else (thread.agent.launch, *key)


def _who_meets(thread: Thread, effect: fx.Meet) -> list[Thread]:
    """The pipe of the operation; where all cores meet, every pipe of the agent."""
    everywhere = any(key[0] == "syncall" for key in (*effect.joins, *effect.publishes))
    return list(thread.agent.threads.values()) if everywhere else [thread]
