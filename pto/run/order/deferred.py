"""Deferred execution: the scalar unit issues operations; a policy decides when they run.

`Scheduler` is an instrumentation hook, as an observer's is: steps are wrapped when a program is
compiled, so a run in program order costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from pto.core.memory import Memory
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.meaning.handle.memref import Unbound
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.row import order as kinds
from pto.isa.row import types as t
from pto.isa.row.phases import InnerFlag
from pto.isa.row.pipe_of import phases_of
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.machine import agents
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.order.choice import choice_of
from pto.run.order.deferred_registers import DeferredRegisters
from pto.run.order.phased import Seen, computing, is_phased, leading, spoiling
from pto.run.order.pipes import Issued, PipeAgent, Pipes
from pto.run.order.resolve import effect_of, issuing_pipe, mark_of
from pto.run.order.schedule import Schedule
from pto.run.reference.code import Regs, Step, Wait, Waits, until_ready
from pto.run.reference.simt import captured
from pto.run.watch.events import Hook, Made
from pto.run.watch.phases import handoff, scratch_of
from pto.target.facts import Sync

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

_BLOCKS_AT_ONCE = 32  # about the cores of a chip; each block holds its buffers
_AT_ONCE = ("S", "none")
_ISSUED = (
    kinds.Within,
    kinds.Signal,
    kinds.OfQueue,
    kinds.CoreBarrier,
)  # to a pipe, by their order


class _Values(dict[int, Any]):
    """The registers an operation was issued with; None for one that was never written."""

    def __missing__(self, slot: int) -> Any:
        return None


class Scheduler(Hook):
    """Runs issued operations when a schedule decides, within the limits of synchronisation."""

    def __init__(self, schedule: Schedule, sync: Sync, automatic: bool = False) -> None:
        """`automatic`: a compiler is yet to order the pipes, so that only blocks are reordered."""
        super().__init__()
        self.schedule = schedule
        self._automatic = automatic
        self._paused = False  # an agent has yielded
        self._choice = choice_of(schedule)
        self._pipes = Pipes(sync)
        self._begun = 0
        # operations that a pipe runs, or that wait for one, by id, with their unit flags
        self._issued: dict[int, fx.UnitFlag | None] = {}
        self._done_before = 0  # operations done when agents last ran

    # ---- agents

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        return memory

    def begin(self, core: Core) -> None:
        core.flags = fx.AlwaysSet()  # flags are kept here
        core.registers = registers = DeferredRegisters()
        self._pipes.agents[id(core)] = PipeAgent(core, self._begun, registers)
        self._begun += 1

    def around(self, core: Core, program: Waits) -> Waits:
        """The program of an agent, extended so that it ends when its pipes are empty."""
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
        """Start blocks up to the limit, so that all run concurrently."""

        def next_blocks() -> Sequence[agents.Agent]:
            added: list[agents.Agent] = []
            while len({unit.core.block for unit in self._pipes.agents.values()}) < _BLOCKS_AT_ONCE:
                fresh = start()
                if not fresh:
                    break
                added += fresh
            return added

        return next_blocks

    def ordered(self, live: list[agents.Agent]) -> list[agents.Agent]:
        return self._choice.ordered(live)

    def unstick(self) -> bool:
        if self._paused:
            self._paused = False
            return True
        self._choice.unstick(self._pipes)
        moved, self._done_before = self._pipes.done != self._done_before, self._pipes.done
        return moved

    # ---- operations

    def may_wait(self, op: Operation) -> bool:
        """True for issued operations, which block on a full queue or a missing result."""
        return id(op) in self._issued

    def control(self, op: Operation, control: Made) -> Made:
        """Run a vector scope as one operation of its pipe."""
        if op.control is not Control.SCOPE:
            return control
        body = control[0]

        def scope(core: Core, regs: Regs) -> Any:
            blocked = self._issue(self._pipes.agents[id(core)], op, "V", body, list(regs), None)
            return blocked if isinstance(blocked, Blocked) else None

        return scope, until_ready(op, scope)

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step that issues an operation to its pipe; without a pipe the step is unchanged."""
        if any(op.around(Control.SCOPE)):
            return step
        case = Case(op, compiler.profile)
        launches = compiler.launched(op) is not None
        order, pipe = op.row.order, _on_vector if launches else issuing_pipe(case)
        is_data = launches or any(isinstance(v.type, t.PLACES) for v in (*op.operands, *op.results))
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
        is_signal = isinstance(order, kinds.Signal)  # its pipe may be an operand
        if isinstance(order, kinds.CoreBarrier) or (not is_signal and pipe([]) == "ALL"):
            return self._after_all(step)
        return self._deferred(compiler, op, case, step, pipe)

    def _in_turn(self, step: Step) -> Step:
        """A step that runs at once, after a chance for other agents to run."""

        def turned(core: Core, regs: Regs) -> Any:
            return self._pause(self._pipes.agents[id(core)]) or step(core, regs)

        return turned

    def _pause(self, unit: PipeAgent) -> Blocked | None:
        """Yield to another agent, at most once for each operation."""
        if unit.paused or len(self._pipes.agents) == 1 or not self._choice.pauses():
            unit.paused = False
            return None
        unit.paused = self._paused = True
        return Blocked("its turn")

    def _after_all(self, step: Step) -> Step:
        """A step that runs after all pipes of the agent are empty."""

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
        binds = body.defines if isinstance(body, Do) else ""
        outs = compiler.slots(op.group(binds) if binds else op.results)
        groups = [compiler.slots(op.group(name)) for name in case.row.operand_names]

        def issue(unit: PipeAgent, values: _Values) -> Blocked | None:
            named = [values[group[0]] if group else None for group in groups]
            effect_now = None if effect is None else effect(unit.core, named)
            where = pipe(named)
            blocked = self._issue(
                unit, op, "S" if where in _AT_ONCE else where, step, values, effect_now
            )
            if isinstance(blocked, Blocked):
                return blocked
            if outs or where in _AT_ONCE:
                unit.stalled = blocked  # it may be done by now
            return None

        return self._issuing(step, reads, outs, issue)

    def _issuing(
        self,
        step: Step,
        reads: Sequence[int],
        outs: Sequence[int],
        issue: Callable[[PipeAgent, _Values], Blocked | None],
    ) -> Step:
        """A step that issues an operation with the values it has now, unless the agent pauses, and
        waits for the result; inside of another operation it runs at once."""

        def issuing(core: Core, regs: Regs) -> Any:
            unit = self._pipes.agents[id(core)]
            if unit.at_work:
                return step(core, regs)
            if unit.stalled is None:
                blocked = self._pause(unit) or issue(
                    unit, _Values({slot: _kept(regs[slot]) for slot in reads})
                )
                if blocked is not None:
                    return blocked
            return self._go_on(unit, regs, outs)

        return issuing

    def _in_phases(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        """Issue an item for each phase to its pipe. The scalar unit reads at issue, after waits."""
        steps = phases_of(case)
        last = computing(case)
        waits = leading(case)
        reads = compiler.slots(op.operands)
        slots = {name: compiler.slots(op.group(name)) for name in case.row.operand_names}

        def issue(unit: PipeAgent, values: Any) -> Blocked | None:
            for pipe in waits:
                if (blocked := self._drained(unit, pipe)) is not None:
                    return blocked
            looks = Seen()
            for n, part_step in enumerate(steps):
                if isinstance(part_step, InnerFlag):
                    if part_step.src != "S" and n >= len(
                        waits
                    ):  # its own work is done when it issues
                        for part in handoff(part_step):
                            self._put(unit, op, part.pipe, _nothing, values, part.effect)
                elif n == last:
                    self._put(unit, op, part_step.pipe, looks.around(step), values)
                elif n < last:
                    look = looks.take([s for name in part_step.reads for s in slots[name]])
                    if part_step.pipe == "S":
                        look(unit.core, values)
                    else:
                        self._put(unit, op, part_step.pipe, look, values)
            self._choice.issued(self._pipes)
            scalar = self._pipes.pipe(unit, "S").queue
            unit.stalled = scalar[-1] if scalar else None
            return None

        return self._issuing(step, reads, (), issue)

    def _drained(self, unit: PipeAgent, pipe: str) -> Blocked | None:
        """Run until a pipe is empty; Blocked if it cannot become empty now."""
        queue = self._pipes.pipe(unit, pipe).queue
        self._choice.settle(self._pipes, lambda: queue[-1] if queue else None)
        return Blocked(self._why(queue[0])) if queue else None

    def _put(
        self,
        unit: PipeAgent,
        op: Operation,
        pipe: str,
        step: Step,
        values: Any,
        effect: fx.Effect | None = None,
    ) -> Issued:
        number, registers = self._pipes.number(), unit.registers.kept()
        item = Issued(
            *(op, pipe, number, effect, self._issued.get(id(op))),
            unit=unit,
            step=step,
            values=values,
            registers=registers,
        )
        unit.registers.take(number)
        self._pipes.put(unit, item)
        return item

    def _issue(
        self,
        unit: PipeAgent,
        op: Operation,
        pipe: str,
        step: Step,
        values: Any,
        effect: fx.Effect | None,
    ) -> Blocked | Issued:
        """Put an operation into the queue of its pipe; Blocked while the queue is full."""
        depth = self._pipes.sync.queue_depth
        queue = self._pipes.pipe(unit, pipe).queue
        if len(queue) >= depth:
            self._choice.settle(self._pipes, lambda: queue[0] if len(queue) >= depth else None)
            if len(queue) >= depth:
                return Blocked(f"room in the queue of {pipe}: {self._why(queue[0])}")
        item = self._put(unit, op, pipe, step, values, effect)
        self._choice.issued(self._pipes)
        return item

    def _go_on(self, unit: PipeAgent, regs: Regs, outs: Sequence[int]) -> Blocked | None:
        """Run until the last issued operation, or its result, is available to the scalar unit."""
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

    def _unfinished(self, unit: PipeAgent) -> Wait:
        """The oldest operation of an agent that is not done."""
        heads = (pipe.queue[0] for pipe in unit.pipes.values() if pipe.queue)
        oldest = min(heads, key=lambda item: item.number)
        return Wait(oldest.op, Blocked(f"{self._why(oldest)}, on pipe {oldest.pipe}"))


def _nothing(core: Core, regs: Regs) -> None:
    return None


def _kept(value: Any) -> Any:
    """A snapshot of a value: the valid region of a tile may change before the tile is used."""
    return copy(value) if isinstance(value, Tile | Unbound) else value


def _on_vector(values: list[Any]) -> str:
    """The pipe of a launch of work items."""
    return "V"
