"""Events: what each instruction of a run read, wrote and ordered, told to an observer as it runs.

`Tap` sits between the engine and an observer. Without one the engine compiles the same code as
ever: nothing here is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pto.core.memory import Memory
from pto.ir.graph import Operation
from pto.isa.cost.work import Work
from pto.isa.meaning import Blocked, Do
from pto.isa.row import types as t
from pto.isa.row.order import OfFlag, OfSignal, Within
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.machine.agents import Pace
from pto.run.machine.core import Core
from pto.run.order.effects import AlwaysSet, Effect, Mark, Tally
from pto.run.order.resolve import MakeEffect, arrival_of, effect_of, issuing_pipe, mark_of
from pto.run.order.state import Item
from pto.run.reference.code import Regs, Step, Waits
from pto.run.watch.memory import Access, Recorder, WatchedMemory
from pto.run.watch.phases import Part, Parts, is_plain
from pto.run.watch.registers import WatchedRegisters
from pto.verify.operation import constant

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

Made = tuple[Step, Callable[[Core, Regs], Waits] | None]
_PLACES = (t.Ptr, t.TileBuf, t.View, t.MemRef)


class Event(Item):
    """One instruction, executed: exactly the bytes it touched, and what it orders."""

    __slots__ = ("accesses", "core", "counters", "leaves", "phase", "reads", "work")

    def __init__(
        self,
        op: Operation,
        core: Core,
        pipe: str,  # MTE2, V, ..., ALL or none
        accesses: list[Access],
        counters: tuple[int, ...],  # of the loops around, outermost first
        effect: Effect | None = None,
        work: Work | None = None,  # what it amounts to on a chip, where somebody asked
        reads: tuple[str, ...] = (),  # special registers that an operation of a pipe has left
        leaves: tuple[str, ...] = (),  # special registers written by an operation of a pipe
        mark: Mark | None = None,
        phase: int = 0,  # its number among the events of the same execution
    ) -> None:
        # by hand: every operation of a run is one of these
        self.op, self.pipe, self.effect, self.mark = op, pipe, effect, mark
        self.number = self.version = 0
        self.need, self.after = -1, ()
        self.stamp = self.reason = None
        self.is_done = False
        self.core = core
        self.accesses = accesses
        self.counters = counters
        self.work = work
        self.reads = reads
        self.leaves = leaves
        self.phase = phase


class Observer:
    """Watches a run, in program order of each agent. It never changes the run.

    This one takes no notice of anything; others look at what they are about.
    """

    def launch(self, number: int, after: Collection[int], functions: Sequence[Operation]) -> None:
        """Agents that begin from now on belong to a launch, which began after others had ended.

        Not told where one launch is all there is.
        """

    def begin(self, core: Core) -> None: ...
    def finish(self, core: Core) -> None:
        """An agent has come to its end; when all of its core have, their buffers are forgotten."""

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        """A memory comes into use: a local buffer of `core`, else global memory."""

    def event(self, event: Event) -> None: ...
    def enter_scope(self, core: Core) -> None:
        """A vector scope begins: what follows is one piece of work of its pipe."""

    def leave_scope(self, core: Core) -> None: ...
    def conflicts(self, core: Core) -> Any:
        """Work items are launched: who is to hear what each of them touches, if anybody."""
        return None

    def end(self) -> None:
        """Every agent has come to its end."""


class Tap(Pace):
    """The engine's side: watched memories, and steps that report what they did."""

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = Observer() if observer is None else observer
        self.recorder = Recorder()

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        """The same bytes, watched; `core` owns a local buffer."""
        watched = WatchedMemory(memory, self.recorder)
        self.observer.memory(watched, core)
        return watched

    def begin(self, core: Core) -> None:
        """Flags become the observer's matter, counters between agents tell what changes."""
        core.flags = AlwaysSet()
        core.registers = WatchedRegisters(core.registers)
        shared = core.cluster
        if not isinstance(shared.cross_flags, Tally):
            shared.cross_flags = Tally(shared.cross_flags)
            shared.arrivals = Tally(shared.arrivals)
        self.observer.begin(core)

    def finish(self, core: Core, done: Callable[[], None]) -> None:
        self.observer.finish(core)
        done()

    def around(self, core: Core, program: Waits) -> Waits:
        """The program of an agent, with what is to be done around it."""
        return program

    def conflicts(self, core: Core) -> Any:
        return self.observer.conflicts(core)

    def may_wait(self, op: Operation) -> bool:
        """Whether a step that is no wait by its meaning may have to be tried again."""
        return False

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step of an operation, reporting; the same step where there is nothing to report."""
        if op.row is None:
            return step
        case = Case(op, op.row, compiler.profile, constant)
        loops = compiler.counters(op)
        effect = effect_of(case)
        if effect is not None and isinstance(op.row.order, Within) and not op.operands:
            return self._telling(op, effect, issuing_pipe(case)([]), loops)
        if effect is not None and isinstance(op.row.order, OfFlag):
            at = compiler.slot(op.operands[0])
            return self._choosing(op, step, effect, issuing_pipe(case)([]), at, loops)
        parts = None if is_plain(case) else Parts(case, _named_slots(compiler, op, case))
        if effect is not None:
            slots = [compiler.slots(op.group(name)) for name in op.row.operand_names]
            both = (effect, arrival_of(case))
            return self._ordering(op, step, both, issuing_pipe(case), slots, loops, parts)
        if op.row.traits.names_only:
            return step
        if compiler.launched(op) is not None:  # work items may reach memory without an operand
            return self._working(op, step, "V", loops)
        values, pipe = (*op.operands, *op.results), issuing_pipe(case)([])
        if not any(isinstance(v.type, _PLACES) for v in values) and not _may_ask(op, pipe):
            return step
        return self._working(op, step, pipe, loops, parts)

    def _telling(self, op: Operation, effect: MakeEffect, pipe: str, loops: list[int]) -> Step:
        """A flag or barrier that nothing but its text decides: there is nothing to do but tell."""
        tell, nothing = self.observer.event, list[Access]()
        known: list[Effect | None] = []
        counters = counted(loops)

        def watched(core: Core, regs: Regs) -> None:
            if not known:
                known.append(effect(core, []))
            tell(Event(op, core, pipe, nothing, counters(regs), known[0]))

        return watched

    def _choosing(
        self, op: Operation, step: Step, effect: MakeEffect, pipe: str, at: int, loops: list[int]
    ) -> Step:
        """A flag whose id a value chooses: few ids come again and again."""
        tell, nothing = self.observer.event, list[Access]()
        known: dict[int, Effect | None] = {}
        counters = counted(loops)

        def watched(core: Core, regs: Regs) -> None:
            number = regs[at]
            if number not in known:
                step(core, regs)  # refuses an id that does not exist
                known[number] = effect(core, [number])
            tell(Event(op, core, pipe, nothing, counters(regs), known[number]))

        return watched

    def _working(
        self, op: Operation, step: Step, pipe: str, loops: list[int], parts: Parts | None = None
    ) -> Step:
        recorder, tell = self.recorder, self.observer.event
        is_scalar, mark, counters = pipe in ("S", "none"), mark_of(op), counted(loops)

        def watched(core: Core, regs: Regs) -> Any:
            special: Any = core.registers
            if special.is_touched:
                special.forget()
            found = step(core, regs)
            if isinstance(found, Blocked):
                recorder.log.clear()
                return found
            reads = leaves = ()
            if special.is_touched:
                reads, leaves = special.take(is_scalar)
            accesses = recorder.log
            if parts is not None:
                recorder.log = []
                phases = parts.of(accesses, regs)
                self._tell_parts(op, core, phases, counters(regs), reads, leaves, mark)
            elif accesses or reads or leaves:
                recorder.log = []
                now = counters(regs)
                tell(Event(op, core, pipe, accesses, now, None, None, reads, leaves, mark))
            return found

        return watched

    def _tell_parts(
        self,
        op: Operation,
        core: Core,
        parts: Iterable[Part],
        counters: tuple[int, ...],
        reads: tuple[str, ...] = (),
        leaves: tuple[str, ...] = (),
        mark: Mark | None = None,
    ) -> None:
        """An event for each phase; special registers are the matter of the first."""
        for n, (pipe, accesses, effect) in enumerate(parts):
            own = (reads, leaves) if not n else ((), ())
            self.observer.event(
                Event(op, core, pipe, accesses, counters, effect, None, *own, mark, n)
            )

    def _ordering(
        self,
        op: Operation,
        step: Step,
        effects: tuple[MakeEffect, MakeEffect | None],
        pipe: Callable[[list[Any]], str],
        slots: list[list[int]],
        loops: list[int],
        parts: Parts | None,
    ) -> Step:
        recorder, tell = self.recorder, self.observer.event
        # words that ranks tell each other something by are no data
        is_signal = op.row is not None and isinstance(op.row.order, OfSignal)

        def watched(core: Core, regs: Regs) -> Any:
            found = step(core, regs)
            effect = effects[1 if isinstance(found, Blocked) else 0]
            values = [regs[group[0]] if group else None for group in slots] if slots else []
            made = None if effect is None else effect(core, values)
            accesses = recorder.take()
            if is_signal:
                accesses = []
            if made is not None:
                counters = tuple([regs[i] for i in loops])
                told = 0
                if parts is not None:
                    phases = list(parts.of(accesses, regs))
                    self._tell_parts(op, core, phases, counters)
                    accesses, told = [], len(phases)
                tell(Event(op, core, pipe(values), accesses, counters, made, phase=told))
            return found

        return watched

    def trips(self, core: Core, op: Operation, counted: range) -> Iterable[int]:
        """The iterations of a loop that run."""
        return counted

    def took(self, op: Operation, way: int) -> None:
        """A branch runs its region `way`; a while loop goes on (1) or ends (0)."""

    def control(self, op: Operation, made: Made) -> Made:
        """A vector scope tells where it begins and ends; other regions are steps one by one."""
        if op.control is not Control.SCOPE:
            return made
        step, wait = made
        observer = self.observer

        def scope(core: Core, regs: Regs) -> Any:
            observer.enter_scope(core)
            step(core, regs)
            observer.leave_scope(core)

        return scope, wait


def counted(loops: list[int]) -> Callable[[Regs], tuple[int, ...]]:
    """What tells the counters of the loops around an operation, outermost first."""
    if not loops:
        return lambda regs: ()
    if len(loops) == 1:
        (only,) = loops
        return lambda regs: (regs[only],)
    return itemgetter(*loops)


def _named_slots(compiler: Compiler, op: Operation, case: Case) -> dict[str, list[int]]:
    return {name: compiler.slots(op.group(name)) for name in case.row.operand_names}


def _may_ask(op: Operation, pipe: str) -> bool:
    """The scalar unit asks for a special register without touching memory."""
    return pipe == "S" and op.row is not None and isinstance(op.row.body, Do)
