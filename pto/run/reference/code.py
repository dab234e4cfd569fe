"""A function prepared for the reference engine: each operation is a step on numbered registers.

`step(core, regs)` executes one operation. A block that can wait for another agent also runs as a
generator that yields the operation at which it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from pto.core.errors import PtoError
from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Blocked
from pto.run.machine.core import Core

Regs = list[Any]
Step = Callable[[Core, Regs], Any]
Waits = Generator["Wait", None, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """The operation at which an agent waits, and the reason.

    A polling agent may continue by itself.
    """

    op: Operation
    reason: Blocked
    looks: bool = False


@dataclass(slots=True)
class StepBlock:
    """Steps in program order. `waits` holds the generator form of the steps that can wait."""

    ops: list[Operation] = field(default_factory=list[Operation])
    steps: list[Step] = field(default_factory=list[Step])
    waits: dict[int, Callable[[Core, Regs], Waits]] = field(
        default_factory=dict[int, Callable[[Core, Regs], Waits]]
    )

    def run(self, core: Core, regs: Regs) -> None:
        """Run all steps; none of them can wait."""
        n = 0
        try:
            for n, step in enumerate(self.steps):  # noqa: B007
                step(core, regs)
        except PtoError as error:
            raise located(error, self.ops[n]) from None

    def drop_end(self) -> None:
        """Remove the last step: the parent operation moves the values of a yield."""
        self.ops.pop()
        self.steps.pop()

    def gen(self, core: Core, regs: Regs) -> Waits:
        """Run all steps, and yield whenever one has to wait."""
        n = 0
        try:
            for n, step in enumerate(self.steps):
                wait = self.waits.get(n)
                if wait is None:
                    step(core, regs)
                else:
                    yield from wait(core, regs)
        except PtoError as error:
            raise located(error, self.ops[n]) from None


def located(error: PtoError, op: Operation) -> PtoError:
    """The same error with the operation's location, unless it already has one."""
    return type(error)(*(d.at(op.loc) for d in error.diagnostics))


def until_ready(op: Operation, step: Step) -> Callable[[Core, Regs], Waits]:
    """Retry a step until it succeeds; each failed try yields."""

    def gen(core: Core, regs: Regs) -> Waits:
        while isinstance(blocked := step(core, regs), Blocked):
            yield Wait(op, blocked)
        core.progress += 1

    return gen


@dataclass(slots=True)
class FunctionCode:
    """One function: its registers, the registers of its arguments and results, and its body."""

    function: Operation
    size: int
    args: list[int]
    body: StepBlock
    can_wait: bool
    results: list[int] = field(default_factory=list[int])

    def call(self, core: Core, values: list[Any]) -> list[Any]:
        regs = self.frame(values)
        self.body.run(core, regs)
        return [regs[i] for i in self.results]

    def gen(self, core: Core, values: list[Any]) -> Waits:
        regs = self.frame(values)
        yield from self.body.gen(core, regs)
        return [regs[i] for i in self.results]

    def frame(self, values: list[Any]) -> Regs:
        regs: Regs = [None] * self.size
        for slot, value in zip(self.args, values, strict=True):
            regs[slot] = value
        return regs
