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
from pto.isa.meaning.handle import config
from pto.isa.meaning.handle.memref import Unbound
from pto.isa.meaning.order import flags as sync
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.machine.agents import Agent
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.order.choice import Schedule
from pto.run.order.deferred_registers import Registers
from pto.run.order.pipes import Item, Pipes, Unit
from pto.run.reference.code import Regs, Step, Wait, Waits, until_ready
from pto.run.watch.events import Made, Nobody, Tap
from pto.verify.operation import constant

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

_PLACES = (t.Ptr, t.TileBuf, t.View, t.MemRef)
_UNIT_FLAGS = frozenset({"unit_flag", "unit_flag_mode"})
_BLOCKS_AT_ONCE = 32  # about as many as a chip has cores; each holds its buffers
_AT_ONCE = ("S", "none")


class _Values(dict[int, Any]):
    """The registers an operation was issued with; one nobody wrote is None."""

    def __missing__(self, slot: int) -> Any:
        return None


class Scheduler(Tap):
    """Does what is issued when a schedule says so, within what synchronisation allows."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(Nobody())
        self.schedule = schedule
        self._choice = schedule.choice()
        self._pipes = Pipes()
        self._begun = 0
        self._issued: set[int] = set()  # operations that go to a pipe, or wait for one
        self._heard = 0  # operations done when agents were last let go on

    # ---- agents

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        return memory

    def begin(self, core: Core) -> None:
        core.flags = fx.AlwaysSet()  # flags are kept here
        core.registers = registers = Registers()
        self._pipes.units[id(core)] = Unit(core, self._begun, registers)
        self._begun += 1

    def around(self, core: Core, program: Waits) -> Waits:
        """An agent has finished when its pipes have."""
        yield from program
        unit = self._pipes.units[id(core)]
        while not unit.is_idle:
            yield self._unfinished(unit)

    def finish(self, core: Core, done: Callable[[], None]) -> None:
        del self._pipes.units[id(core)]
        done()

    def paced(self, start: Callable[[], Sequence[Agent]]) -> Callable[[], Sequence[Agent]]:
        """Blocks begin while there is room for them: all are at work at once."""

        def next_block() -> Sequence[Agent]:
            blocks = {unit.core.block for unit in self._pipes.units.values()}
            return () if len(blocks) >= _BLOCKS_AT_ONCE else start()

        return next_block

    def unstick(self) -> bool:
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
            return self._issue(self._pipes.units[id(core)], op, "V", body, list(regs), None)

        return scope, until_ready(op, scope)

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step of an operation that is issued to a pipe; others are done at once."""
        if op.row is None or _in_scope(op):
            return step
        case = Case(op, op.row, compiler.profile, constant)
        body, pipe = op.row.body, fx.issuing_pipe(case)
        make = fx.WITHIN.get(id(body))
        is_between = id(body) in fx.BETWEEN
        is_data = any(isinstance(v.type, _PLACES) for v in (*op.operands, *op.results))
        if not (make or is_between or is_data) or body is sync.MEMORY_BARRIER:
            return step
        if not make and not is_between and pipe([]) in _AT_ONCE:
            return step
        self._issued.add(id(op))
        if body is config.SYNC_ALL or (id(body) not in fx.CROSS_CORE and pipe([]) == "ALL"):
            return self._after_all(step)
        return self._deferred(compiler, op, case, step)

    def _after_all(self, step: Step) -> Step:
        """Every pipe of the agent has done its work first."""

        def drained(core: Core, regs: Regs) -> Any:
            unit = self._pipes.units[id(core)]
            self._choice.settle(self._pipes, unit.newest)
            return step(core, regs) if unit.is_idle else self._unfinished(unit).reason

        return drained

    def _deferred(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        make = fx.WITHIN.get(id(case.row.body))
        effect = None if make is None else make(case)
        pipe, body = fx.issuing_pipe(case), case.row.body
        reads = compiler.slots(op.operands)
        binds = body.binds if isinstance(body, Do) else ""
        outs = compiler.slots(op.group(binds) if binds else op.results)
        groups = [compiler.slots(op.group(name)) for name in case.row.operand_names]

        def issue(core: Core, regs: Regs) -> Any:
            unit = self._pipes.units[id(core)]
            if unit.at_work:
                return step(core, regs)
            if unit.stalled is not None:
                return self._go_on(unit, regs, outs)
            values = _Values({slot: _kept(regs[slot]) for slot in reads})
            named = [values[group[0]] if group else None for group in groups]
            made = None if effect is None else effect(core, named)
            where = pipe(named)
            waits = bool(outs) or where in _AT_ONCE
            full = self._issue(unit, op, "S" if where in _AT_ONCE else where, step, values, made)
            if full is not None or not waits:
                return full
            unit.stalled = unit.newest()
            return self._go_on(unit, regs, outs)

        return issue

    def _issue(
        self,
        unit: Unit,
        op: Operation,
        pipe: str,
        step: Step,
        values: Any,
        effect: fx.Effect | None,
    ) -> Blocked | None:
        """Hand an operation to its pipe, whose queue may be full."""
        depth = unit.core.profile.sync.queue_depth
        queue = unit.queue(pipe)
        if len(queue) >= depth:
            self._choice.settle(self._pipes, lambda: queue[0] if len(queue) >= depth else None)
            if len(queue) >= depth:
                return Blocked(f"room in the queue of {pipe}: {self._why(queue[0])}")
        number = self._pipes.number()
        marked = bool(_UNIT_FLAGS & op.attrs.keys())
        kept = unit.registers.kept()
        item = Item(op, unit, pipe, number, step, values, kept, effect, marked=marked)
        unit.registers.take(number)
        self._pipes.put(item)
        self._choice.issued(self._pipes)
        return None

    def _go_on(self, unit: Unit, regs: Regs, outs: Sequence[int]) -> Blocked | None:
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

    def _why(self, item: Item) -> str:
        first, reason = self._pipes.cause(item)
        text = str(reason or "its turn")
        return text if first is item else f"{text} (pipe {first.pipe}, {first.op.loc})"

    def _unfinished(self, unit: Unit) -> Wait:
        """The oldest operation of an agent that is not done."""
        oldest = min((q[0] for q in unit.queues.values() if q), key=lambda item: item.number)
        return Wait(oldest.op, Blocked(f"{self._why(oldest)}, on pipe {oldest.pipe}"))


def _kept(value: Any) -> Any:
    """A value as it is now: the valid region of a tile may change before the tile is used."""
    return copy(value) if isinstance(value, Tile | Unbound) else value


def _in_scope(op: Operation) -> bool:
    return any(op.around(Control.SCOPE))
