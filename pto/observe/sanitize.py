"""The sanitizer: one run, watched, and everything that is wrong with its order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pto.core import html
from pto.core.errors import Diagnostic, PtoError
from pto.core.memory import Space
from pto.ir.graph import Module, Operation
from pto.observe.again import Again
from pto.observe.looks import closer_looks, occupancy, shared_bytes, unused_tests, with_fixes
from pto.observe.memory import undefined
from pto.observe.memory.atomic import combination, footprints
from pto.observe.memory.caches import Caches
from pto.observe.memory.granules import Cells, Conflict
from pto.observe.memory.items import Conflicts
from pto.observe.memory.log import GlobalLog, GlobalShadow
from pto.observe.memory.lost import Lost, Pair
from pto.observe.memory.shadow import Footprint, Shadow
from pto.observe.memory.visible import PUBLISHING, Visible
from pto.observe.memory.working import WorkingSpace
from pto.observe.mend.fix import Gap
from pto.observe.mode import Mode, looked_at, mode_of, placed_by_hand
from pto.observe.order import flags
from pto.observe.order.clocks import Agent, Clock, Moment, ScopeEvent, Thread
from pto.observe.order.pipes import Order, around_barrier
from pto.observe.order.reserved import Reserved
from pto.observe.order.scopes import Scope
from pto.observe.races import Races
from pto.observe.storage.assigned import AssignedTap
from pto.run.launch.arrays import copied
from pto.run.launch.call import Program, count_of, load
from pto.run.launch.entry import entry_functions
from pto.run.launch.host import Report, launch
from pto.run.launch.progress import Progress
from pto.run.launch.written import may_be_written
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.sites import ANSWERED
from pto.run.watch.events import Event, Observer, Tap
from pto.run.watch.memory import Access, WatchedMemory
from pto.target.facts import Profile
from pto.verify.target import target_of


class Sanitizer(Observer):
    """An observer that finds races and flags that do not match."""

    def __init__(self, profile: Profile, mode: Mode = "flags") -> None:
        self.mode: Mode = mode
        self.profile = profile
        self.order = Order(profile.sync, self._work, mode == "automatic")
        self._races = Races(str(profile))
        self._scopes: dict[int, ScopeEvent | None] = {}  # that are being told, by core
        self.origins = undefined.Origins()
        self._reserved = Reserved(profile)
        self._buffers: dict[int, undefined.Buffer] = {}
        self._shadows: dict[int, list[Shadow]] = {}  # of cores at work
        self.is_mixed = False  # writes of a local buffer, by two operations or places, have met
        self._global = GlobalLog()
        self._caches = Caches(self.order.clocks, self._global)
        self._visible = Visible(profile, self.order.clocks, self._global)
        self._ended = False
        self._items = Conflicts()
        self._working = WorkingSpace()

    # ---- what the engine tells

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
        self._buffers[id(memory)] = undefined.buffer_of(core, memory)
        memory.shadow = Shadow(memory)
        self._shadows.setdefault(id(core), []).append(memory.shadow)

    def event(self, event: Event) -> None:
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

    def _in_scope(self, agent: Agent, core: int, event: Event) -> None:
        """A scope is one operation of its pipe."""
        whole = self._scopes[core]
        if whole is None:
            whole = self._scopes[core] = ScopeEvent(event)
            self.order.issue(agent, whole)
        if whole.begun is None:
            whole.kept.append(event)
        else:
            self._work_inside(whole.begun, event)

    def enter_scope(self, core: Core) -> None:
        self._scopes[id(core)] = None

    def leave_scope(self, core: Core) -> None:
        whole = self._scopes.pop(id(core))
        if whole is not None and whole.begun is not None:
            whole.begun.thread.done()

    def conflicts(self, core: Core) -> Conflicts:
        self._items.meet()
        return self._items

    def end(self) -> None:
        self._ended = True

    @property
    def has_begun(self) -> bool:
        """False for a program that was refused before it ran."""
        return bool(self.order.all)

    def findings(self) -> list[Diagnostic]:
        """Everything found so far; about flags only when the launch came to its end."""
        found = flags.findings(self.order, self.profile) if self._ended else []
        if self._ended and self.mode == "flags":
            found += self.order.fences.findings()
        others = [*self._items.findings(), *found, *self._reserved.findings()]
        unseen = self._visible.findings()
        return [*self._races.findings(), *self._caches.findings(), *unseen, *others]

    def look_at_lost(self, again: Callable[[Observer], None]) -> None:
        """Decide by a second run which of two writes of a pipe have cost somebody data."""
        races = self._races
        if races.lost:
            look = Lost(races.lost)
            again(look)
            races.harmful |= look.harmful

    def gaps(self) -> list[tuple[Diagnostic, Gap | None]]:
        """Races, with the operations that nothing orders."""
        return self._races.with_gaps()

    def races(self) -> list[tuple[Diagnostic, Pair]]:
        """Races, with their two operations, the earlier one first."""
        return self._races.with_pairs()

    # ---- work: accesses of an operation that starts

    def _work(self, thread: Thread, event: Event) -> None:
        if isinstance(event, ScopeEvent):
            self._begin_scope(thread, event)
            return
        agent = thread.agent
        if agent.flags:
            self._reserved.look(agent, event)
        time = thread.tick(event)
        moment = thread.moments[-1]
        if event.reads or event.leaves:
            self._touch_registers(thread, moment, time, event.reads, event.leaves)
        if type(event.effect) is fx.Flush:
            self._caches.flush(thread, event.effect.address, time)
        fenced = event.op.traits.fenced_row
        parts = around_barrier(event, self.profile.name) if fenced else None
        if parts is None:
            self._accesses(thread, event, time, event.accesses)
            thread.done()
            return
        self._accesses(thread, event, time, parts[0])
        thread.done(fenced=True)
        if parts[1]:
            self._accesses(thread, event, thread.tick(event), parts[1])
            thread.done()

    def _accesses(self, thread: Thread, event: Event, time: int, accesses: list[Access]) -> None:
        moment = thread.moments[-1]
        is_scalar = event.pipe == "S" and not event.op.traits.uncached
        for cells, access, atomic in footprints(accesses):
            if access.memory.space is Space.GM:
                if is_scalar or self._caches.has_stores:
                    self._look_into_cache(thread, is_scalar, time, cells, access)
                if self._visible.is_used and not access.writes:
                    self._visible.read(thread, moment, cells, access.memory.shadow.base)
            by = combination(event.op, thread.agent.core) if atomic else ""
            self._touch(thread, thread.clock, moment, time, cells, access, by)

    def _look_into_cache(
        self, thread: Thread, is_scalar: bool, time: int, cells: Cells, access: Access
    ) -> None:
        shadow: GlobalShadow = access.memory.shadow
        moment = thread.moments[-1]
        if access.writes:
            if is_scalar:
                self._caches.store(thread, moment, time, cells, shadow.base)
            else:
                self._caches.write(thread, moment, cells, shadow.base)
            return
        self._caches.read(thread, moment, cells, shadow.base, is_scalar)
        if is_scalar:
            self._caches.load(thread, moment, cells, shadow.base)

    def _begin_scope(self, thread: Thread, whole: ScopeEvent) -> None:
        whole.begun = Scope(thread)
        for event in whole.kept:
            self._work_inside(whole.begun, event)
        whole.kept.clear()
        thread.done()

    def _work_inside(self, scope: Scope, event: Event) -> None:
        """Loads and stores of a vector scope, one by one."""
        thread, op = scope.thread, event.op
        if isinstance(event.effect, fx.MemoryBarrier):
            orders = scope.barrier(event.effect.kind, thread.now)
            self.order.fences.memory_barrier(op, event.effect.kind, orders)
            return
        time, is_scalar = thread.tick(event), event.pipe == "S"
        moment = thread.moments[-1]
        if event.reads or event.leaves:
            self._touch_registers(thread, moment, time, event.reads, event.leaves)
        for cells, access, atomic in footprints(event.accesses):
            by = combination(op, event.core) if atomic else ""
            self._touch(thread, scope.clock, moment, time, cells, access, by, scope, is_scalar)
            scope.touch(time, op, is_scalar, access.writes)

    def _touch(
        self,
        thread: Thread,
        clock: Clock,
        moment: Moment,
        time: int,
        cells: Cells,
        access: Access,
        combined: str,
        scope: Scope | None = None,
        is_scalar: bool = False,
    ) -> None:
        shadow: Any = access.memory.shadow  # GlobalShadow where cells are no footprint
        writes, space = access.writes, access.memory.space
        least = thread.own_order.get(space) if thread.own_order else None
        keeps = least is not None and access.nbytes >= least
        found: list[Conflict]
        if isinstance(cells, Footprint):
            if writes:
                found = shadow.stores(
                    cells, thread.index, time, clock, keeps, id(moment.op), access.is_scratch
                )
            else:
                found = shadow.loads(cells, thread.index, time, clock, keeps)
                if not cells.is_full:
                    self._look(shadow, cells, moment)
        elif writes:
            found = shadow.stores(cells, thread.index, time, clock, combined)
        else:
            found = shadow.loads(cells, thread.index, time, clock)
        for conflict in found:
            barrier = ""
            if conflict.thread == thread.index:
                # its own other operand, or a unit that keeps order with itself here
                if conflict.time == time or keeps:
                    continue
                if scope is not None and conflict.time in scope:
                    barrier = scope.missing(conflict, moment.op, is_scalar, access.writes)
                    if not barrier:
                        continue
            other = self.order.clocks.threads[conflict.thread]
            if ANSWERED in other.moments[conflict.time - 1].op.attrs:
                continue
            where = f"{space.value.upper()}[{conflict.first:#06x}..{conflict.last:#06x})"
            costs = self._working.costs_data(access, conflict)
            self._races.add(conflict, where, other, thread, moment, access.writes, barrier, costs)
        if access.is_scratch and writes:
            self._working.fill(thread.index, time, access)

    def _touch_registers(
        self,
        thread: Thread,
        moment: Moment,
        time: int,
        reads: tuple[str, ...],
        leaves: tuple[str, ...],
    ) -> None:
        """A pipe keeps order with its own registers; others have to wait for what it leaves."""
        special = thread.agent.special
        for name in reads:
            other, left = special.get(name, (thread, 0))
            if other is not thread and left > thread.clock[other.index]:
                conflict = Conflict(other.index, left, True, 0, 0)
                where = f"special register {name}"
                self._races.add(conflict, where, other, thread, moment, False)
        special.update(dict.fromkeys(leaves, (thread, time)))

    def _look(self, shadow: Shadow, cells: Footprint, moment: Moment) -> None:
        """Remember a read of bytes that nobody has written."""
        places = shadow.unwritten(cells, id(moment.op))
        buffer = self._buffers.get(id(shadow.memory))
        if places is not None and buffer is not None:
            origin = self.origins.add(moment.op, moment.counters, buffer, shadow.grain, places)
            threads = self.order.clocks.threads
            origin.beside.update(
                threads[thread].moments[time - 1].op for thread, time in shadow.writers(cells)
            )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a sanitized run was and what it found; `report` is None where it did not end."""

    findings: tuple[Diagnostic, ...]
    mode: Mode
    report: Report | None
    about: str = ""  # what was looked at, and what was not

    @property
    def is_clean(self) -> bool:
        return not self.findings

    def _repr_html_(self) -> str:
        return html.findings(self.findings)


def sanitize(
    program: Program,
    *,
    entry: str | None = None,
    args: Sequence[Any] = (),
    blocks: int | tuple[int, ...] = 1,
    profile: str | None = None,
    device: str | None = None,
    engine: str = "reference",
    check: bool = True,
    timeout: float | None = None,
    automatic: bool = False,
    fixes: bool = True,
    progress: Progress | None = None,
) -> Verdict:
    """Run a kernel as `launch` does, and find what is wrong with its order.

    `automatic`: a compiler will insert synchronisation, although tiles have addresses already.
    `fixes`: the first races come with a fix that was tried, which takes runs of its own.
    """
    module = load(program)
    target = target_of(module, profile=profile, device=device)
    functions = entry_functions(module, entry)
    mode = mode_of(functions)
    about = looked_at(mode, functions, count_of(blocks))
    unordered = [] if automatic or mode == "flags" else placed_by_hand(functions)
    watcher = Sanitizer(target.profile, mode)
    options: dict[str, Any] = {"entry": entry, "blocks": blocks, "profile": profile}
    options |= {"device": device, "engine": engine, "timeout": timeout}
    written = may_be_written(functions, len(args))
    before = copied(args, written)
    report, found = None, tuple[Diagnostic, ...]()
    try:
        more: dict[str, Any] = {"observer": watcher, "progress": progress, **options}
        report = launch(module, args=args, check=check, **more)
    except PtoError as error:
        found = error.diagnostics
    if watcher.has_begun:
        again = Again(module, before, written, options, report is None)
        found = _judged(watcher, again, found, fixes)
        if unordered and report is not None and not _needs_order(watcher.profile, again):
            unordered = []
    found += tuple(shared_bytes(functions, target.profile, found))
    found += tuple(occupancy(functions, target.profile, target.device, count_of(blocks)))
    found += tuple(unused_tests(functions))
    return Verdict((*unordered, *found), mode, report, about)


def _needs_order(profile: Profile, again: Again) -> bool:
    """Whether pipes race in a program that has no flag at all."""
    watcher = Sanitizer(profile, "flags")
    again.watch(watcher)
    return bool(watcher.gaps())


def _judged(
    watcher: Sanitizer, again: Again, ended: tuple[Diagnostic, ...], fixes: bool
) -> tuple[Diagnostic, ...]:
    """What was seen in a run, what it takes further runs to see, and what `ended` it early."""
    looks = closer_looks(again.module, watcher.profile, again.step, watcher.is_mixed)
    if again.fails:
        told = (flags.explained(error, watcher.order) for error in ended)
        return (*watcher.findings(), *looks, *told)
    watcher.look_at_lost(again.watch)

    def found_again() -> list[Diagnostic]:
        other = Sanitizer(watcher.profile, watcher.mode)
        again.watch(other)
        return other.findings()

    helped = with_fixes(watcher, found_again) if fixes else watcher.findings()
    late = undefined.findings(watcher.origins, again.watch)
    return (*helped, *looks, *late)


def watch_run(
    profile: Profile,
    run: Callable[[Observer], None],
    ended: Callable[[], None],
    step: Callable[[Tap], None] = lambda tap: None,
    mode: Mode = "flags",
) -> list[Diagnostic]:
    """As `sanitize`, for programs that are no module: `run` runs one, from its beginning, `step`
    does so step by step.

    `ended` is called when the first run has come to its end.
    """
    watcher = Sanitizer(profile, mode)
    try:
        run(watcher)
    except PtoError as error:
        told = [flags.explained(d, watcher.order) for d in error.diagnostics]
        return [*watcher.findings(), *told]
    ended()
    watcher.look_at_lost(run)
    tiles = AssignedTap()
    if watcher.is_mixed:
        step(tiles)
    late = undefined.findings(watcher.origins, run)
    return [*watcher.findings(), *tiles.findings(), *late]


def launch_sanitized(module: Module, **options: Any) -> Report:
    """As `launch`; raises what is wrong. Warnings alone do not stop a run. Checkouts give tile
    programs to a compiler that inserts synchronisation, wherever their tiles lie."""
    verdict = sanitize(module, automatic=True, **options)
    if verdict.report is None or any(d.severity == "error" for d in verdict.findings):
        raise PtoError(*verdict.findings)
    return verdict.report
