"""The scalar unit issues operations with their operands' values; when they are done is a choice.

`Scheduler` takes the place of an observer's tap, as a stepper does: steps are wrapped when a
program is prepared, so a run in program order costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from pto.core.memory import Memory
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.meaning import Blocked, Do
from pto.isa.meaning.handle.memref import Unbound
from pto.isa.row import order as kinds
from pto.isa.row import types as t
from pto.isa.row.phases import Handoff
from pto.isa.row.pipe_of import phases_of
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.machine import agents
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.order.choice import choice_of
from pto.run.order.deferred_registers import Registers
from pto.run.order.phased import Seen, computing, is_phased, leading, spoiling
from pto.run.order.pipes import Agent, Issued, Pipes
from pto.run.order.resolve import effect_of, issuing_pipe, mark_of
from pto.run.order.schedule import Schedule
from pto.run.reference.code import Regs, Step, Wait, Waits, until_ready
from pto.run.reference.simt import captured
from pto.run.watch.events import Made, Tap
from pto.run.watch.phases import handoff, scratch_of
from pto.target.facts import Sync
from pto.verify.operation import constant

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

_PLACES = (t.Ptr, t.TileBuf, t.View, t.MemRef)
_BLOCKS_AT_ONCE = 32  # about as many as a chip has cores; each holds its buffers
_AT_ONCE = ("S", "none")
_ISSUED = (kinds.Within, kinds.Signal, kinds.OfQueue, kinds.Meet)  # to a pipe, by their order


class _Values(dict[int, Any]):
    """The registers an operation was issued with; one nobody wrote is None."""

    def __missing__(self, slot: int) -> Any:
        return None


class Scheduler(Tap):
    """Does what is issued when a schedule says so, within what synchronisation allows."""

    def __init__(self, schedule: Schedule, sync: Sync, automatic: bool = False) -> None:
        """`automatic`: a compiler is yet to order the pipes, so that only blocks are free."""
        super().__init__()
        self.schedule = schedule
        self._automatic = automatic
        self._paused = False  # somebody has let others go on
        self._choice = choice_of(schedule)
        self._pipes = Pipes(sync)
        self._begun = 0
        # operations that go to a pipe, or wait for one, by id, with their unit flags
        self._issued: dict[int, fx.Mark | None] = {}
        self._heard = 0  # operations done when agents were last let go on

    # ---- agents

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        return memory

    def begin(self, core: Core) -> None:
        core.flags = fx.AlwaysSet()  # flags are kept here
        core.registers = registers = Registers()
        self._pipes.agents[id(core)] = Agent(core, self._begun, registers)
        self._begun += 1

    def around(self, core: Core, program: Waits) -> Waits:
        """An agent has finished when its pipes have."""
        yield from program
        unit = self._pipes.agents[id(core)]
        while not unit.is_idle:
            yield self._unfinished(unit)

    def finish(self, core: Core, done: Callable[[], None]) -> None:
        del self._pipes.agents[id(core)]
        done()

    def paced(
        self, start: Callable[[], Sequence[agents.Agent]]
    ) -> Callable[[], Sequence[agents.Agent]]:
        """Blocks begin while there is room for them: all are at work at once."""

        def next_blocks() -> Sequence[agents.Agent]:
            found: list[agents.Agent] = []
            while len({unit.core.block for unit in self._pipes.agents.values()}) < _BLOCKS_AT_ONCE:
                fresh = start()
                if not fresh:
                    break
                found += fresh
            return found

        return next_blocks

    def turns(self, live: list[agents.Agent]) -> list[agents.Agent]:
        return self._choice.turns(live)

    def unstick(self) -> bool:
        if self._paused:
            self._paused = False
            return True
        self._choice.unstick(self._pipes)
        moved, self._heard = self._pipes.done != self._heard, self._pipes.done
        return moved

    # ---- operations

    def may_wait(self, op: Operation) -> bool:
        """Where a queue is full, or a result is needed, the scalar unit stands still."""
        return id(op) in self._issued

    def control(self, op: Operation, made: Made) -> Made:
        """A vector scope is one piece of work of its pipe."""
        if op.control is not Control.SCOPE:
            return made
        body = made[0]

        def scope(core: Core, regs: Regs) -> Any:
            found = self._issue(self._pipes.agents[id(core)], op, "V", body, list(regs), None)
            return found if isinstance(found, Blocked) else None

        return scope, until_ready(op, scope)

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step of an operation that is issued to a pipe; others are done at once."""
        if op.row is None or _in_scope(op):
            return step
        case = Case(op, op.row, compiler.profile, constant)
        launches = compiler.launched(op) is not None
        order, pipe = op.row.order, _on_vector if launches else issuing_pipe(case)
        is_data = launches or any(isinstance(v.type, _PLACES) for v in (*op.operands, *op.results))
        if not (is_data or isinstance(order, _ISSUED)) or isinstance(order, kinds.MemoryBarrier):
            return step
        self._issued[id(op)] = mark_of(op)
        used = [] if self._automatic else scratch_of(case)
        if used:
            step = spoiling(step, [s for name in used for s in compiler.slots(op.group(name))])
        if is_phased(case) and not self._automatic:
            return self._in_phases(compiler, op, case, step)
        if self._automatic or (not isinstance(order, _ISSUED) and pipe([]) in _AT_ONCE):
            return self._in_turn(step)
        is_signal = isinstance(order, kinds.Signal)  # whose pipe an operand may name
        if isinstance(order, kinds.Meet) or (not is_signal and pipe([]) == "ALL"):
            return self._after_all(step)
        return self._deferred(compiler, op, case, step, pipe)

    def _in_turn(self, step: Step) -> Step:
        """Done at once, when others have been let go on."""

        def turned(core: Core, regs: Regs) -> Any:
            return self._pause(self._pipes.agents[id(core)]) or step(core, regs)

        return turned

    def _pause(self, unit: Agent) -> Blocked | None:
        """Another agent may go on first: once for each operation."""
        if unit.paused or len(self._pipes.agents) == 1 or not self._choice.pauses():
            unit.paused = False
            return None
        unit.paused = self._paused = True
        return Blocked("its turn")

    def _after_all(self, step: Step) -> Step:
        """Every pipe of the agent has done its work first."""

        def drained(core: Core, regs: Regs) -> Any:
            unit = self._pipes.agents[id(core)]
            self._choice.settle(self._pipes, unit.newest)
            return step(core, regs) if unit.is_idle else self._unfinished(unit).reason

        return drained

    def _deferred(
        self,
        compiler: Compiler,
        op: Operation,
        case: Case,
        step: Step,
        pipe: Callable[[list[Any]], str],
    ) -> Step:
        effect = effect_of(case) if isinstance(case.row.order, kinds.Within) else None
        body = case.row.body
        reads = compiler.slots([*op.operands, *captured(op)])
        binds = body.binds if isinstance(body, Do) else ""
        outs = compiler.slots(op.group(binds) if binds else op.results)
        groups = [compiler.slots(op.group(name)) for name in case.row.operand_names]

        def issue(core: Core, regs: Regs) -> Any:
            unit = self._pipes.agents[id(core)]
            if unit.at_work:
                return step(core, regs)
            if unit.stalled is not None:
                return self._go_on(unit, regs, outs)
            if (pause := self._pause(unit)) is not None:
                return pause
            values = _Values({slot: _kept(regs[slot]) for slot in reads})
            named = [values[group[0]] if group else None for group in groups]
            made = None if effect is None else effect(core, named)
            where = pipe(named)
            waits = bool(outs) or where in _AT_ONCE
            found = self._issue(unit, op, "S" if where in _AT_ONCE else where, step, values, made)
            if isinstance(found, Blocked):
                return found
            if not waits:
                return None
            unit.stalled = found  # which may be done by now
            return self._go_on(unit, regs, outs)

        return issue

    def _in_phases(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        """An item for each phase on its pipe. The scalar unit reads when it issues, after the pipes
        that the operation makes it wait for."""
        steps, last, waits = phases_of(case), computing(case), leading(case)
        reads = compiler.slots(op.operands)
        slots = {name: compiler.slots(op.group(name)) for name in case.row.operand_names}

        def issue(core: Core, regs: Regs) -> Any:
            unit = self._pipes.agents[id(core)]
            if unit.at_work:
                return step(core, regs)
            if unit.stalled is not None:
                return self._go_on(unit, regs, ())
            if (pause := self._pause(unit)) is not None:
                return pause
            for pipe in waits:
                if (blocked := self._drained(unit, pipe)) is not None:
                    return blocked
            values: Any = _Values({slot: _kept(regs[slot]) for slot in reads})
            seen = Seen()
            for n, each in enumerate(steps):
                if isinstance(each, Handoff):
                    if each.src != "S" and n >= len(waits):  # its own work is done when it issues
                        for part in handoff(each):
                            self._put(unit, op, part.pipe, _nothing, values, part.effect)
                elif n == last:
                    self._put(unit, op, each.pipe, seen.around(step), values)
                elif n < last:
                    look = seen.take([s for name in each.reads for s in slots[name]])
                    if each.pipe == "S":
                        look(core, values)
                    else:
                        self._put(unit, op, each.pipe, look, values)
            self._choice.issued(self._pipes)
            scalar = self._pipes.pipe(unit, "S").queue
            unit.stalled = scalar[-1] if scalar else None
            return self._go_on(unit, regs, ())

        return issue

    def _drained(self, unit: Agent, pipe: str) -> Blocked | None:
        """Until a pipe has done all it was given; Blocked while it cannot."""
        queue = self._pipes.pipe(unit, pipe).queue
        self._choice.settle(self._pipes, lambda: queue[-1] if queue else None)
        return Blocked(self._why(queue[0])) if queue else None

    def _put(
        self,
        unit: Agent,
        op: Operation,
        pipe: str,
        step: Step,
        values: Any,
        effect: fx.Effect | None = None,
    ) -> Issued:
        number, kept = self._pipes.number(), unit.registers.kept()
        item = Issued(
            *(op, pipe, number, effect, self._issued.get(id(op))),
            unit=unit,
            step=step,
            values=values,
            registers=kept,
        )
        unit.registers.take(number)
        self._pipes.put(unit, item)
        return item

    def _issue(
        self,
        unit: Agent,
        op: Operation,
        pipe: str,
        step: Step,
        values: Any,
        effect: fx.Effect | None,
    ) -> Blocked | Issued:
        """Hand an operation to its pipe, whose queue may be full."""
        depth = self._pipes.sync.queue_depth
        queue = self._pipes.pipe(unit, pipe).queue
        if len(queue) >= depth:
            self._choice.settle(self._pipes, lambda: queue[0] if len(queue) >= depth else None)
            if len(queue) >= depth:
                return Blocked(f"room in the queue of {pipe}: {self._why(queue[0])}")
        item = self._put(unit, op, pipe, step, values, effect)
        self._choice.issued(self._pipes)
        return item

    def _go_on(self, unit: Agent, regs: Regs, outs: Sequence[int]) -> Blocked | None:
        """The scalar unit needs what it has issued last, or its result."""
        item = unit.stalled
        if item is None:
            return None
        self._choice.settle(self._pipes, lambda: None if item.is_done else item)
        if not item.is_done:
            return Blocked(self._why(item))
        unit.stalled = None
        for slot in outs:
            regs[slot] = item.values[slot]
        return None

    def _why(self, item: Issued) -> str:
        first, reason = self._pipes.cause(item)
        text = str(reason or "its turn")
        return text if first is item else f"{text} (pipe {first.pipe}, {first.op.loc})"

    def _unfinished(self, unit: Agent) -> Wait:
        """The oldest operation of an agent that is not done."""
        heads = (pipe.queue[0] for pipe in unit.pipes.values() if pipe.queue)
        oldest = min(heads, key=lambda item: item.number)
        return Wait(oldest.op, Blocked(f"{self._why(oldest)}, on pipe {oldest.pipe}"))


def _nothing(core: Core, regs: Regs) -> None:
    return None


def _kept(value: Any) -> Any:
    """A value as it is now: the valid region of a tile may change before the tile is used."""
    return copy(value) if isinstance(value, Tile | Unbound) else value


def _on_vector(values: list[Any]) -> str:
    """The pipe of a launch of work items."""
    return "V"


def _in_scope(op: Operation) -> bool:
    return any(op.around(Control.SCOPE))
