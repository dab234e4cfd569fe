"""Stop a run before an instruction, to inspect its operands. The display is not part of this file.

A `Stepper` is an instrumentation hook: steps are wrapped when a program is compiled, so a run
without one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pto.core.errors import fail
from pto.core.memory import Memory
from pto.ir.graph import Module, Operation, Value
from pto.isa.meaning.kinds import Blocked
from pto.isa.row.traits import Control
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step
from pto.run.reference.compile import Compiler
from pto.run.watch.events import Hook, Made

Move = Literal["next", "continue", "quit"]


class Quit(Exception):
    """The user ends the run at the prompt."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stopped run: `op` comes next on `core`, after `done` instructions of all agents."""

    op: Operation
    core: Core
    done: int
    operands: tuple[tuple[Value, Any], ...]
    _names: dict[str, tuple[Value, int]]
    _regs: Regs

    def value(self, name: str) -> tuple[Value, Any]:
        """The value of a name in the function; None if it is not computed yet."""
        entry = self._names.get(name.lstrip("%"))
        if entry is None:
            raise fail("PTO-U041", f"there is no %{name.lstrip('%')} in this function")
        value, slot = entry
        return value, self._regs[slot] if slot < len(self._regs) else None


class Stepper(Hook):
    """Calls `tell` before an instruction to get the next action: the first one, a number, or a
    line.

    >>> launch(module, args=args, stepper=Stepper(lambda stop: "next"))
    """

    def __init__(self, tell: Callable[[Stop], Move], *, after: int = 0, line: int = 0) -> None:
        super().__init__()
        self.done = 0
        self._tell = tell
        self._until: int | None = None if line else after  # stop when this many are done
        self._line = line
        self._waiting: set[tuple[int, int]] = set()  # stopped at, but not executed yet
        self._names: dict[tuple[int, int], dict[str, tuple[Value, int]]] = {}

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        return memory

    def begin(self, core: Core) -> None:
        pass

    def control(self, op: Operation, control: Made) -> Made:
        return control

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The step of an operation, with a stop before it. Scalar arithmetic stops only by line."""
        counts = is_instruction(op)
        if not counts and not self._is_here(op):
            return step
        names = self._names_of(compiler, op)
        operands = [(value, compiler.slot(value)) for value in op.operands]

        def asking(core: Core, regs: Regs) -> Any:
            here = (id(core), id(op))
            if here not in self._waiting and self._stops(op):
                now = tuple((value, regs[slot]) for value, slot in operands)
                self._ask(Stop(op, core, self.done, now, names, regs))
            result = step(core, regs)
            if isinstance(result, Blocked):
                self._waiting.add(here)
                return result
            self._waiting.discard(here)
            self.done += counts
            return result

        return asking

    def _is_here(self, op: Operation) -> bool:
        return op.loc is not None and op.loc.line == self._line

    def _stops(self, op: Operation) -> bool:
        return self._is_here(op) or (self._until is not None and self.done >= self._until)

    def _ask(self, stop: Stop) -> None:
        move = self._tell(stop)
        if move == "quit":
            raise Quit
        self._until = 0 if move == "next" else None

    def _names_of(self, compiler: Compiler, op: Operation) -> dict[str, tuple[Value, int]]:
        """Every value of the enclosing function; of equal names, the last one written."""
        function = next(op.around(Control.FUNCTION))
        key = (id(compiler), id(function))
        if key not in self._names:
            self._names[key] = {v.name: (v, compiler.slot(v)) for v in _values(function)}
        return self._names[key]


def is_instruction(op: Operation) -> bool:
    """True for operations of a core: no scalar arithmetic, and no handles."""
    return op.row.family.dialect == "pto." and op.row.pipe != "none"


def _values(function: Operation) -> Iterator[Value]:
    for op in function.walk():
        for region in op.regions:
            for block in region.blocks:
                yield from block.args
        if op is not function:
            yield from op.results


def require_line(module: Module, line: int) -> None:
    """Check that an operation begins on a line, so that a run can stop before it."""
    lines = {
        op.loc.line
        for function in module.functions()
        if function.has_body
        for op in function.walk()
        if op.loc is not None and not op.regions
    }
    if line in lines:
        return
    later = min((n for n in lines if n > line), default=None)
    raise fail(
        "PTO-U040",
        f"no operation begins on line {line}",
        help=None if later is None else f"the next one is on line {later}",
    )
