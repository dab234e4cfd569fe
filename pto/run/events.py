"""Events: what each instruction of a run read, wrote and ordered, told to an observer as it runs.

`Tap` sits between the engine and an observer. Without one the engine compiles the same code as
ever: nothing here is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pto.core.memory import Memory
from pto.ir.graph import Operation
from pto.isa import types as t
from pto.isa.meaning import Blocked
from pto.isa.rules import Case
from pto.run.code import Regs, Step, Waits
from pto.run.core import Core
from pto.run.effects import (
    AlwaysSet,
    Effect,
    MakeEffect,
    Tally,
    arrival_of,
    effect_of,
    issuing_pipe,
)
from pto.run.watched import Access, Recorder, WatchedMemory
from pto.verify.operation import constant

if TYPE_CHECKING:
    from pto.run.compile import Compiler

Made = tuple[Step, Callable[[Core, Regs], Waits] | None]
_PLACES = (t.Ptr, t.TileBuf, t.View, t.MemRef)
_SCOPES = ("pto.vecscope", "pto.strict_vecscope")


@dataclass(slots=True)
class Event:
    """One instruction, executed: exactly the bytes it touched, and what it orders."""

    op: Operation
    core: Core
    pipe: str  # MTE2, V, ..., ALL or none
    accesses: list[Access]
    counters: tuple[int, ...]  # of the loops around, outermost first
    effect: Effect | None = None


class Observer(Protocol):
    """Watches a run, in program order of each agent. It never changes the run."""

    def begin(self, core: Core) -> None: ...
    def event(self, event: Event) -> None: ...
    def enter_scope(self, core: Core) -> None:
        """A vector scope begins: what follows is one piece of work of its pipe."""
        ...

    def leave_scope(self, core: Core) -> None: ...
    def end(self) -> None:
        """Every agent has come to its end."""
        ...


class Tap:
    """The engine's side: watched memories, and steps that report what they did."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.recorder = Recorder()

    def adopt(self, memory: Memory) -> Memory:
        """The same bytes, watched."""
        return WatchedMemory(memory, self.recorder)

    def begin(self, core: Core) -> None:
        """Flags become the observer's matter, counters between agents tell what changes."""
        core.flags = AlwaysSet()
        shared = core.cluster
        if not isinstance(shared.cross_flags, Tally):
            shared.cross_flags = Tally(shared.cross_flags)
            shared.arrivals = Tally(shared.arrivals)
        self.observer.begin(core)

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step of an operation, reporting; the same step where there is nothing to report."""
        if op.row is None:
            return step
        case = Case(op, op.row, compiler.profile, constant)
        loops = [
            compiler.slot(a.regions[0].block.args[0]) for a in op.ancestors() if a.name == "scf.for"
        ][::-1]
        effect = effect_of(case)
        if effect is not None:
            slots = [compiler.slots(op.group(name)) for name in op.row.operand_names]
            both = (effect, arrival_of(case))
            return self._ordering(op, step, both, issuing_pipe(case), slots, loops)
        values = (*op.operands, *op.results)
        if not any(isinstance(v.type, _PLACES) for v in values):
            return step
        return self._working(op, step, issuing_pipe(case)([]), loops)

    def _working(self, op: Operation, step: Step, pipe: str, loops: list[int]) -> Step:
        recorder, tell = self.recorder, self.observer.event

        def watched(core: Core, regs: Regs) -> Any:
            found = step(core, regs)
            if recorder.log:
                if isinstance(found, Blocked):
                    recorder.log.clear()
                else:
                    counters = tuple([regs[i] for i in loops])
                    tell(Event(op, core, pipe, recorder.take(), counters))
            return found

        return watched

    def _ordering(
        self,
        op: Operation,
        step: Step,
        effects: tuple[MakeEffect, MakeEffect | None],
        pipe: Callable[[list[Any]], str],
        slots: list[list[int]],
        loops: list[int],
    ) -> Step:
        recorder, tell = self.recorder, self.observer.event

        def watched(core: Core, regs: Regs) -> Any:
            found = step(core, regs)
            effect = effects[1 if isinstance(found, Blocked) else 0]
            values = [regs[group[0]] if group else None for group in slots]
            made = None if effect is None else effect(core, values)
            accesses = recorder.take()
            if made is not None:
                counters = tuple([regs[i] for i in loops])
                tell(Event(op, core, pipe(values), accesses, counters, made))
            return found

        return watched

    def control(self, op: Operation, made: Made) -> Made:
        """A vector scope tells where it begins and ends; other regions are steps one by one."""
        if op.name not in _SCOPES:
            return made
        step, wait = made
        observer = self.observer

        def scope(core: Core, regs: Regs) -> Any:
            observer.enter_scope(core)
            step(core, regs)
            observer.leave_scope(core)

        return scope, wait
