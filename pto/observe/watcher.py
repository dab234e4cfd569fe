"""The sanitizer's observer: gives every access of a run its time, and passes it to the checkers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pto.core.errors import Diagnostic
from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.observe.fixes.fix import Gap
from pto.observe.memory.accesses import AccessOrder, Checker, touches
from pto.observe.memory.caches import Caches
from pto.observe.memory.items import Conflicts
from pto.observe.memory.log import GlobalLog
from pto.observe.memory.lost import Lost, Pair
from pto.observe.memory.shadow import Shadow
from pto.observe.memory.undefined import Origin, UnwrittenReads
from pto.observe.memory.visible import PUBLISHING, Visible
from pto.observe.mode import Mode, mode_of
from pto.observe.order import flags
from pto.observe.order.clocks import ClockAgent, ScopeEvent, Thread
from pto.observe.order.pipes import RunOrder, around_barrier
from pto.observe.order.reserved import Reserved
from pto.observe.order.scopes import ScopeOrder
from pto.observe.races import Races
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import Access, WatchedMemory
from pto.target.facts import Profile


class Sanitizer(Observer):
    """An observer that finds races and flags that do not match."""

    def __init__(self, profile: Profile, mode: Mode = "flags") -> None:
        self.mode: Mode = mode
        self.profile = profile
        self.order = RunOrder(profile.sync, self._work, mode == "automatic")
        self._races = Races(str(profile))
        self._scopes: dict[int, ScopeEvent | None] = {}  # in progress, by core
        self._unwritten = UnwrittenReads(self.order.clocks)
        self._reserved = Reserved(profile)
        self._shadows: dict[int, list[Shadow]] = {}  # of cores at work
        self.is_mixed = False  # writes of a local buffer, by two operations or places, have met
        self._global = GlobalLog()
        self._caches = Caches(self.order.clocks, self._global)
        self._visible = Visible(profile, self.order.clocks, self._global)
        self._ended = False
        self._items = Conflicts()
        # every access, and accesses to global memory outside of vector scopes
        self._checkers: tuple[Checker, ...] = (
            AccessOrder(self._races, self.order.clocks),
            self._unwritten,
        )
        self._global_checkers: tuple[Checker, ...] = (self._caches, self._visible)

    @property
    def origins(self) -> list[Origin]:
        """Reads of bytes that were never written."""
        return list(self._unwritten.origins.values())

    # ---- interface of the engine

    def launch(self, number: int, after: Collection[int], functions: Sequence[Operation]) -> None:
        self.order.launch(number, after, mode_of(functions) == "automatic")

    def begin(self, core: Core) -> None:
        self.order.begin(core)

    def finish(self, core: Core) -> None:
        self.order.finish(core)
        self.is_mixed |= any(shadow.is_mixed for shadow in self._shadows.pop(id(core), ()))

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        if core is None:
            memory.shadow = self._global.over(memory)
            self._caches.lines.know(memory.base, memory.size)
            return
        self._unwritten.watch(core, memory)
        memory.shadow = Shadow(memory)
        self._shadows.setdefault(id(core), []).append(memory.shadow)

    def event(self, event: InstructionEvent) -> None:
        order, core = self.order, id(event.core)
        agent = order.agents[core]
        agent.count += not event.phase
        event.number = agent.count
        if type(event.effect) in PUBLISHING:
            self._visible.watch(agent, event)
        if self._scopes and core in self._scopes:
            self._in_scope(agent, core, event)
        elif not (agent.automatic and isinstance(event.effect, fx.Within)):
            order.issue(agent, event)  # inside an agent that a compiler orders it has no meaning

    def _in_scope(self, agent: ClockAgent, core: int, event: InstructionEvent) -> None:
        """Add an event to its scope, which is one operation of its pipe."""
        scope = self._scopes[core]
        if scope is None:
            scope = self._scopes[core] = ScopeEvent(event)
            self.order.issue(agent, scope)
        if scope.begun is None:
            scope.kept.append(event)
        else:
            self._work_inside(scope.begun, event)

    def enter_scope(self, core: Core) -> None:
        self._scopes[id(core)] = None

    def leave_scope(self, core: Core) -> None:
        scope = self._scopes.pop(id(core))
        if scope is not None and scope.begun is not None:
            scope.begun.thread.done()

    def conflicts(self, core: Core) -> Conflicts:
        self._items.meet()
        return self._items

    def end(self) -> None:
        self._ended = True

    @property
    def has_begun(self) -> bool:
        """False for a program that was rejected before it ran."""
        return bool(self.order.all)

    def findings(self) -> list[Diagnostic]:
        """Everything found so far; about flags only when the launch came to its end."""
        flag_findings = flags.findings(self.order, self.profile) if self._ended else []
        if self._ended and self.mode == "flags":
            flag_findings += self.order.fences.findings()
        others = [*self._items.findings(), *flag_findings, *self._reserved.findings()]
        unseen = self._visible.findings()
        return [*self._races.findings(), *self._caches.findings(), *unseen, *others]

    def look_at_lost(self, again: Callable[[Observer], None]) -> None:
        """Decide by a second run which pairs of writes of a pipe lose data."""
        races = self._races
        if races.lost:
            look = Lost(races.lost)
            again(look)
            races.harmful |= look.harmful

    def gaps(self) -> list[tuple[Diagnostic, Gap | None]]:
        """Races, with the two unordered operations."""
        return self._races.with_gaps()

    def races(self) -> list[tuple[Diagnostic, Pair]]:
        """Races, with their two operations, the earlier one first."""
        return self._races.with_pairs()

    # ---- work: accesses of an operation that starts

    def _work(self, thread: Thread, event: InstructionEvent) -> None:
        if isinstance(event, ScopeEvent):
            self._begin_scope(thread, event)
            return
        if thread.agent.flags:
            self._reserved.look(thread.agent, event)
        self._tick(thread, event)
        if type(event.effect) is fx.CacheFlush:
            self._caches.flush(thread, event.effect.address, thread.now)
        fenced = event.op.traits.fenced_row
        parts = around_barrier(event, self.profile.name) if fenced else None
        if parts is None:
            self._check(thread, event, event.accesses)
            thread.done()
            return
        self._check(thread, event, parts[0])
        thread.done(fenced=True)
        if parts[1]:
            thread.tick(event)
            self._check(thread, event, parts[1])
            thread.done()

    def _tick(self, thread: Thread, event: InstructionEvent) -> None:
        """Advance the time of a thread by an event, and check its special registers."""
        thread.tick(event)
        if event.reads or event.leaves:
            self._races.touch_registers(thread, event.reads, event.leaves)

    def _check(self, thread: Thread, event: InstructionEvent, accesses: list[Access]) -> None:
        is_scalar = event.pipe == "S" and not event.op.traits.uncached
        for touch in touches(event, accesses, thread, thread.clock, is_scalar):
            if touch.access.memory.space is Space.GM:
                for checker in self._global_checkers:
                    checker.touch(touch)
            for checker in self._checkers:
                checker.touch(touch)

    def _begin_scope(self, thread: Thread, scope: ScopeEvent) -> None:
        scope.begun = ScopeOrder(thread)
        for event in scope.kept:
            self._work_inside(scope.begun, event)
        scope.kept.clear()
        thread.done()

    def _work_inside(self, scope: ScopeOrder, event: InstructionEvent) -> None:
        """Check the loads and stores of a vector scope, one by one."""
        thread, op = scope.thread, event.op
        if isinstance(event.effect, fx.ScopeBarrier):
            orders = scope.barrier(event.effect.kind, thread.now)
            self.order.fences.barrier(op, event.effect.kind, orders, "mem_bar")
            return
        self._tick(thread, event)
        is_scalar = event.pipe == "S"
        for touch in touches(event, event.accesses, thread, scope.clock, is_scalar, scope):
            for checker in self._checkers:
                checker.touch(touch)
            scope.touch(touch.time, op, is_scalar, touch.access.writes)
