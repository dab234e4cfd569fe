"""Which ways a program takes on given numbers, found by a dry run.

Scalars are computed. Instructions on data do nothing, unless `data` is set: control flow
rarely depends on data. Flags never wait; queues and signals between agents do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pto.core.errors import Loc
from pto.core.memory import Memory
from pto.ir.graph import Operation, Value
from pto.isa.row.order import Within
from pto.isa.rules.rule import Case
from pto.run.machine.core import Core
from pto.run.order.effects import AlwaysSet
from pto.run.order.resolve import effect_of, issuing_pipe
from pto.run.reference.code import Regs, Step
from pto.run.watch.events import Hook, Made
from pto.run.watch.outline import REGISTER_TYPES

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

MANY = 2  # iterations that count as several
EXTENTS = ("valid_row", "valid_col", "sizes")  # operands that give a tile or a window its size
Outcome = tuple[int, str, int]  # operation, what is decided, how


def extents_of(op: Operation) -> list[tuple[str, Value]]:
    """The operands of an operation that give a tile or a window its size, by name."""
    names = op.row.operand_names
    return [(name, value) for name in EXTENTS if name in names for value in op.group(name)]


class Paths(Hook):
    """A tap that collects outcomes: regions of branches, iterations of loops, empty tiles."""

    def __init__(self, *, data: bool = False) -> None:
        super().__init__()
        self.outcomes: set[Outcome] = set()
        self.negative: dict[int, tuple[Operation, str, int]] = {}  # extents below zero
        self.fences: set[Loc | None] = set()  # of flags and barriers that were executed
        self.steps = 0
        self._data = data

    def adopt(self, memory: Memory, core: Core | None = None) -> Memory:
        return memory

    def begin(self, core: Core) -> None:
        core.flags = AlwaysSet()

    def finish(self, core: Core, done: Any) -> None:
        done()

    def conflicts(self, core: Core) -> None:
        return None

    def control(self, op: Operation, control: Made) -> Made:
        return control

    def trips(self, core: Core, op: Operation, counted: range) -> Iterable[int]:
        self.outcomes.add((id(op), "trips", min(len(counted), MANY)))
        return counted

    def took(self, op: Operation, way: int) -> None:
        self.outcomes.add((id(op), "way", way))

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        case = Case(op, compiler.profile)
        extents = [(name, compiler.slot(value)) for name, value in extents_of(op)]
        if extents:
            return self._sized(op, step, extents)
        if isinstance(op.row.order, Within):
            return self._fence(op)
        if effect_of(case) is not None or issuing_pipe(case)([]) in ("S", "none"):
            return step
        is_data = all(isinstance(v.type, REGISTER_TYPES) for v in op.results)
        return self._counted(None if is_data and not self._data else step)

    def _counted(self, step: Step | None) -> Step:
        def counted(core: Core, regs: Regs) -> Any:
            self.steps += 1
            return None if step is None else step(core, regs)

        return counted

    def _fence(self, op: Operation) -> Step:
        def passed(core: Core, regs: Regs) -> None:
            self.steps += 1
            self.fences.add(op.loc)

        return passed

    def _sized(self, op: Operation, step: Step, extents: list[tuple[str, int]]) -> Step:
        def sized(core: Core, regs: Regs) -> Any:
            for name, slot in extents:
                extent = int(regs[slot])
                self.outcomes.add((id(op), name, min(max(extent, -1), 1)))
                if extent < 0:
                    self.negative.setdefault(id(op), (op, name, extent))
            return step(core, regs)

        return sized
