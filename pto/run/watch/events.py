"""Events: the reads, writes and ordering of each executed instruction, reported to an observer.

`Tap` connects the engine and an observer. Without an observer the engine compiles plain code and
nothing here is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pto.core.memory import Memory
from pto.ir.graph import Operation
from pto.isa.cost.work import Work
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.row import types as t
from pto.isa.row.order import OfFlag, OfSignal, Within
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.machine.agents import SchedulingPolicy
from pto.run.machine.core import Core
from pto.run.order.effects import AlwaysSet, ChangeLog, Effect, UnitFlag
from pto.run.order.resolve import MakeEffect, arrival_of, effect_of, issuing_pipe, mark_of
from pto.run.order.state import QueuedOp
from pto.run.reference.code import Regs, Step, Waits
from pto.run.watch.memory import Access, Recorder, WatchedMemory
from pto.run.watch.phases import PhaseEvent, PhaseSplit, is_plain
from pto.run.watch.registers import WatchedRegisters

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

Made = tuple[Step, Callable[[Core, Regs], Waits] | None]


class InstructionEvent(QueuedOp):
    """One executed instruction: exactly the bytes it accessed, and its effect on order."""

    __slots__ = ("accesses", "core", "counters", "leaves", "phase", "reads", "work")

    def __init__(
        self,
        op: Operation,
        core: Core,
        pipe: str,  # MTE2, V, ..., ALL or none
        accesses: list[Access],
        counters: tuple[int, ...],  # of the enclosing loops, outermost first
        effect: Effect | None = None,
        work: Work | None = None,  # its cost description, if requested
        reads: tuple[str, ...] = (),  # special registers that an operation of a pipe has left
        leaves: tuple[str, ...] = (),  # special registers written by an operation of a pipe
        mark: UnitFlag | None = None,
        phase: int = 0,  # its number among the events of the same execution
    ) -> None:
        # without super().__init__(), which is slower: every operation of a run makes an event
        self.op = op
        self.pipe = pipe
        self.effect = effect
        self.mark = mark
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

    This base class ignores all events.
    """

    def launch(self, number: int, after: Collection[int], functions: Sequence[Operation]) -> None:
        """Called before the agents of a launch begin; `after` are the launches that had ended
        before it.

        Not called if there is only one launch.
        """

    def begin(self, core: Core) -> None: ...
    def finish(self, core: Core) -> None:
        """Called when an agent has ended; after the last of a core its buffers are dropped."""

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        """Called when a memory is first used: a local buffer of `core`, else global memory."""

    def event(self, event: InstructionEvent) -> None: ...
    def enter_scope(self, core: Core) -> None:
        """Called at the start of a vector scope: its body is one operation of its pipe."""

    def leave_scope(self, core: Core) -> None: ...
    def conflicts(self, core: Core) -> Any:
        """Called at a launch of work items: a recorder for the accesses of each, or None."""
        return None

    def end(self) -> None:
        """Called after every agent has ended."""


class Hook(SchedulingPolicy):
    """The instrumentation hook of the engine: watched memories, and steps that report events."""

    def __init__(self, observer: Observer | None = None) -> None:
        self.observer = Observer() if observer is None else observer
        self.recorder = Recorder()

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        """The same bytes as watched memory; `core` owns a local buffer."""
        watched = WatchedMemory(memory, self.recorder)
        self.observer.memory(watched, core)
        return watched

    def begin(self, core: Core) -> None:
        """Let the observer keep the flags, and record changes of counters between agents."""
        core.flags = AlwaysSet()
        core.registers = WatchedRegisters(core.registers)
        shared = core.cluster
        if not isinstance(shared.cross_flags, ChangeLog):
            shared.cross_flags = ChangeLog(shared.cross_flags)
            shared.arrivals = ChangeLog(shared.arrivals)
        self.observer.begin(core)

    def finish(self, core: Core, done: Callable[[], None]) -> None:
        self.observer.finish(core)
        done()

    def around(self, core: Core, program: Waits) -> Waits:
        """The program of an agent, possibly wrapped."""
        return program

    def conflicts(self, core: Core) -> Any:
        return self.observer.conflicts(core)

    def may_wait(self, op: Operation) -> bool:
        """True if a step that never waits by its semantics may have to be tried again."""
        return False

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step of an operation with reporting; the same step if there is nothing to report."""
        case = Case(op, compiler.profile)
        loops = compiler.counters(op)
        effect = effect_of(case)
        is_flag = isinstance(op.row.order, OfFlag)
        if effect is not None and (
            is_flag or (isinstance(op.row.order, Within) and not op.operands)
        ):
            at = compiler.slot(op.operands[0]) if op.operands else None
            return self._reporting(op, step, effect, issuing_pipe(case)([]), at, loops)
        parts = None if is_plain(case) else PhaseSplit(case, _named_slots(compiler, op, case))
        if effect is not None:
            slots = [compiler.slots(op.group(name)) for name in op.row.operand_names]
            both = (effect, arrival_of(case))
            return self._ordering(op, step, both, issuing_pipe(case), slots, loops, parts)
        if op.row.traits.names_only:
            return step
        if compiler.launched(op) is not None:  # work items may access memory without an operand
            return self._working(op, step, "V", loops)
        values, pipe = (*op.operands, *op.results), issuing_pipe(case)([])
        if not any(isinstance(v.type, t.PLACES) for v in values) and not _may_ask(op, pipe):
            return step
        return self._working(op, step, pipe, loops, parts)

    def _reporting(
        self,
        op: Operation,
        step: Step,
        effect: MakeEffect,
        pipe: str,
        at: int | None,
        loops: list[int],
    ) -> Step:
        """A flag or barrier: the step only reports its event. `at`: the slot of a run-time id;
        effects are cached, since the ids are few."""
        tell, nothing = self.observer.event, list[Access]()
        cached: dict[int | None, Effect | None] = {}
        counters = counted(loops)

        def watched(core: Core, regs: Regs) -> None:
            number = None if at is None else regs[at]
            if number not in cached:
                if at is not None:
                    step(core, regs)  # refuses an id that does not exist
                cached[number] = effect(core, [] if at is None else [number])
            tell(InstructionEvent(op, core, pipe, nothing, counters(regs), cached[number]))

        return watched

    def _working(
        self,
        op: Operation,
        step: Step,
        pipe: str,
        loops: list[int],
        parts: PhaseSplit | None = None,
    ) -> Step:
        recorder, tell = self.recorder, self.observer.event
        is_scalar = pipe in ("S", "none")
        mark = mark_of(op)
        counters = counted(loops)

        def watched(core: Core, regs: Regs) -> Any:
            special: Any = core.registers
            if special.is_touched:
                special.forget()
            result = step(core, regs)
            if isinstance(result, Blocked):
                recorder.log.clear()
                return result
            reads = leaves = ()
            if special.is_touched:
                reads, leaves = special.take(is_scalar)
            accesses = recorder.log
            if parts is not None:
                recorder.log = []
                phases = parts.of(accesses, regs)
                self._report_parts(op, core, phases, counters(regs), reads, leaves, mark)
            elif accesses or reads or leaves:
                recorder.log = []
                now = counters(regs)
                tell(
                    InstructionEvent(op, core, pipe, accesses, now, None, None, reads, leaves, mark)
                )
            return result

        return watched

    def _report_parts(
        self,
        op: Operation,
        core: Core,
        parts: Iterable[PhaseEvent],
        counters: tuple[int, ...],
        reads: tuple[str, ...] = (),
        leaves: tuple[str, ...] = (),
        mark: UnitFlag | None = None,
    ) -> None:
        """Report an event for each phase; special registers belong to the first."""
        for n, (pipe, accesses, effect) in enumerate(parts):
            accesses_of_part = (reads, leaves) if not n else ((), ())
            self.observer.event(
                InstructionEvent(
                    op, core, pipe, accesses, counters, effect, None, *accesses_of_part, mark, n
                )
            )

    def _ordering(
        self,
        op: Operation,
        step: Step,
        effects: tuple[MakeEffect, MakeEffect | None],
        pipe: Callable[[list[Any]], str],
        slots: list[list[int]],
        loops: list[int],
        parts: PhaseSplit | None,
    ) -> Step:
        recorder, tell = self.recorder, self.observer.event
        # accesses to signal words of ranks are no data accesses
        is_signal = isinstance(op.order, OfSignal)

        def watched(core: Core, regs: Regs) -> Any:
            result = step(core, regs)
            effect = effects[1 if isinstance(result, Blocked) else 0]
            values = [regs[group[0]] if group else None for group in slots] if slots else []
            effect_now = None if effect is None else effect(core, values)
            accesses = recorder.take()
            if is_signal:
                accesses = []
            if effect_now is not None:
                counters = tuple([regs[i] for i in loops])
                phase = 0
                if parts is not None:
                    phases = list(parts.of(accesses, regs))
                    self._report_parts(op, core, phases, counters)
                    accesses, phase = [], len(phases)
                tell(
                    InstructionEvent(
                        op, core, pipe(values), accesses, counters, effect_now, phase=phase
                    )
                )
            return result

        return watched

    def trips(self, core: Core, op: Operation, counted: range) -> Iterable[int]:
        """The iterations of a loop that run."""
        return counted

    def took(self, op: Operation, way: int) -> None:
        """Called when a branch runs its region `way`, or a while loop continues (1) or ends (0)."""

    def control(self, op: Operation, control: Made) -> Made:
        """Report the start and end of a vector scope; steps of other regions report themselves."""
        if op.control is not Control.SCOPE:
            return control
        step, wait = control
        observer = self.observer

        def scope(core: Core, regs: Regs) -> Any:
            observer.enter_scope(core)
            step(core, regs)
            observer.leave_scope(core)

        return scope, wait


def counted(loops: list[int]) -> Callable[[Regs], tuple[int, ...]]:
    """A function that returns the counters of the enclosing loops, outermost first."""
    if not loops:
        return lambda regs: ()
    if len(loops) == 1:
        (only,) = loops
        return lambda regs: (regs[only],)
    return itemgetter(*loops)


def _named_slots(compiler: Compiler, op: Operation, case: Case) -> dict[str, list[int]]:
    return {name: compiler.slots(op.group(name)) for name in case.row.operand_names}


def _may_ask(op: Operation, pipe: str) -> bool:
    """True if the scalar unit may read a special register without accessing memory."""
    return pipe == "S" and isinstance(op.row.body, Do)
