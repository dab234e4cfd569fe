"""A dry run: scalars are computed; instructions on data only report their accesses.

Arguments may be empty arrays of the right shape. Control flow must not depend on data: such a read
is an error, and the run has to be made with data. A float that only goes to tiles and arrays is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any

from pto.core.errors import fail
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.isa.cost.describe import REGISTERS, Describe, work_of
from pto.isa.cost.moves import hinted, touched
from pto.isa.cost.vectors import class_of
from pto.isa.cost.work import Cycles, GlobalRegion, ScopeWork, TransferWork, Work
from pto.isa.meaning.kinds import Blocked
from pto.isa.row import types as t
from pto.isa.row.pipe_of import is_scalar_loop
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.plan.stores import is_global
from pto.run.machine.core import Core
from pto.run.order.resolve import effect_of, issuing_pipe, mark_of
from pto.run.reference.code import Regs, Step
from pto.run.watch.events import Hook, InstructionEvent, Made, Observer, counted

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

REGISTER_TYPES = (t.VReg, t.Mask, t.Align, t.LogicalVReg, t.LogicalMask)
_NO_PIPE = ("none", "S")
_CACHE_LINE, _CACHE_LINES = 64, 512  # of the scalar unit's data cache, 32 KiB


def threads_registers(op: Operation) -> bool:
    """True if an operation computes an address or number from vector registers.

    Control flow then depends on register code, which has to be executed.
    """
    if op.row.cost not in REGISTERS:
        return False
    takes_registers = any(isinstance(v.type, REGISTER_TYPES) for v in op.operands)
    return takes_registers and any(not isinstance(v.type, REGISTER_TYPES) for v in op.results)


def needs_registers(functions: Iterable[Operation]) -> bool:
    return any(threads_registers(op) for function in functions for op in function.walk())


def meets_others(functions: Iterable[Operation]) -> bool:
    """True if an agent waits for another: its blocks cannot be run alone to get addresses."""
    return any(
        op.row.cost in ("queue", "semaphore", "remote")
        for function in functions
        for op in function.walk()
    )


class DryRun(Hook):
    """Steps that report the `work` of an instruction instead of executing it.

    `data`: everything is executed and reported. `registers`: vector scopes are executed.
    """

    def __init__(
        self, observer: Observer | None = None, *, data: bool = False, registers: bool = False
    ) -> None:
        super().__init__(observer)
        self.data = data
        self.registers = registers or data
        self._counts: Counter[str] = Counter()
        self._lines: dict[int, dict[tuple[int, int], bool]] = {}  # of the data caches, by core

    def begin(self, core: Core) -> None:
        """Start a core with an empty data cache: an earlier core may have had its id."""
        self._lines.pop(id(core), None)
        super().begin(core)

    def step(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        row = op.row
        case = Case(op, compiler.profile)
        if row.cost in REGISTERS:
            return self._in_scope(op, step, class_of(case))
        if effect_of(case) is not None:
            return self._ordered(compiler, op, step)
        if row.cost == "simt":  # addresses of work items depend on data
            return step if self.data else _refused(op)
        if row.cost == "element":
            if op.results and not self.data and not is_only_data(op):
                return _refused(op)
            return self._by_one(compiler, op, step)
        if is_scalar_loop(case):
            return self._by_elements(compiler, op, case, step)
        if issuing_pipe(case)([]) in _NO_PIPE:
            return step
        return self._worked(compiler, op, case, step)

    def _ordered(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        return super().step(compiler, op, step)

    def _worked(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        describe = work_of(case)
        if describe is None or self.data:
            return self._executed(compiler, op, case, step, describe)
        return self._described(compiler, op, case, describe)

    def _described(self, compiler: Compiler, op: Operation, case: Case, describe: Describe) -> Step:
        tell = self._reporter(compiler, op, case)
        slots, hints = slots_of(compiler, op), hinted(case)

        def said(core: Core, regs: Regs) -> None:
            values = [None if i is None else regs[i] for i in slots]
            tell(core, regs, hints(values, describe(values)))

        return said

    def _by_one(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        """The scalar unit reads or writes an element; in global memory through its data cache."""
        recorder = self.recorder
        tell = self.observer.event
        data = self.data
        slots, counters = slots_of(compiler, op), counted(compiler.counters(op))
        ones = _ones(compiler, op)
        usual = "gm" if is_global(op.operands[0].type) else "ub"

        def ran(core: Core, regs: Regs) -> Any:
            result = step(core, regs) if data else ones(core, regs)
            recorder.log.clear()
            pointer, offset = (None if i is None else regs[i] for i in slots[:2])
            how = usual
            if how == "gm" and isinstance(pointer, Pointer) and pointer.dtype is not None:
                at = pointer.address + int(offset or 0) * pointer.itemsize
                how = "ub" if self._cached(core, (id(pointer.memory), at // _CACHE_LINE)) else "gm"
            work = Cycles("element", how)
            tell(InstructionEvent(op, core, "S", [], counters(regs), None, work))
            return result

        return ran

    def _by_elements(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        """A tile instruction that the library implements as a loop of the scalar unit."""
        tell = self._reporter(compiler, op, case)
        slot = slots_of(compiler, op)[case.row.places[case.row.subject]]
        how = "gm" if any(is_global(v.type) for v in op.operands) else "ub"
        recorder, data = self.recorder, self.data

        def ran(core: Core, regs: Regs) -> Any:
            result = step(core, regs) if data else None
            recorder.log.clear()
            tile = None if slot is None else regs[slot]
            count = prod(tile.get_valid()) if isinstance(tile, Tile) else 1
            tell(core, regs, Cycles("element", how, count))
            return result

        return ran

    def _cached(self, core: Core, line: tuple[int, int]) -> bool:
        """True if the data cache has a line; the least recently used line is evicted."""
        lines = self._lines.setdefault(id(core), {})
        is_cached = lines.pop(line, False)
        lines[line] = True
        if len(lines) > _CACHE_LINES:
            del lines[next(iter(lines))]
        return is_cached

    def _executed(
        self,
        compiler: Compiler,
        op: Operation,
        case: Case,
        step: Step,
        describe: Describe | None,
    ) -> Step:
        """Execute an operation on memory: its accesses are known only from the run."""
        recorder, tell = self.recorder, self._reporter(compiler, op, case)
        slots, hints = slots_of(compiler, op), hinted(case)

        def ran(core: Core, regs: Regs) -> Any:
            result = step(core, regs)
            accesses = recorder.take()
            if isinstance(result, Blocked):
                return result
            values = [None if i is None else regs[i] for i in slots]
            tell(core, regs, hints(values, describe(values) if describe else touched(accesses)))
            return result

        return ran

    def _reporter(
        self, compiler: Compiler, op: Operation, case: Case
    ) -> Callable[[Core, Regs, Any], None]:
        tell, pipe = self.observer.event, issuing_pipe(case)([])
        counters = counted(compiler.counters(op))
        mark, slot = mark_of(op), _accumulator(compiler, op)

        def told(core: Core, regs: Regs, work: Work | None) -> None:
            if work is None:
                return
            tile = None if mark is None or slot is None else regs[slot]
            flag = mark.of(tile.address, tile.nbytes) if mark and isinstance(tile, Tile) else mark
            tell(InstructionEvent(op, core, pipe, [], counters(regs), None, work, mark=flag))

        return told

    def _in_scope(self, op: Operation, step: Step, kind: str) -> Step:
        counts = self._counts
        pure = all(isinstance(v.type, REGISTER_TYPES) for v in op.results)
        runs = self.registers or not pure

        def counting(core: Core, regs: Regs) -> Any:
            counts[kind] += 1
            return step(core, regs) if runs else None

        return counting

    def control(self, op: Operation, control: Made) -> Made:
        """Report a vector scope as one operation, with its instructions counted by class."""
        if op.control is not Control.SCOPE:
            return control
        step, wait = control
        counts = self._counts
        recorder = self.recorder
        tell = self.observer.event

        def scope(core: Core, regs: Regs) -> Any:
            counts.clear()
            step(core, regs)
            recorder.log.clear()
            work = ScopeWork("scope", tuple(counts.items()))
            tell(InstructionEvent(op, core, "V", [], (), None, work))

        return scope, wait


def slots_of(compiler: Compiler, op: Operation) -> list[int | None]:
    """The slot of the first value of each operand of its row."""
    groups = [op.group(o.name) for o in op.row.operands]
    return [compiler.slot(g[0]) if g else None for g in groups]


def _accumulator(compiler: Compiler, op: Operation) -> int | None:
    """The slot of the operand that is a tile of the accumulator."""
    for value in op.operands:
        if isinstance(value.type, t.TileBuf) and value.type.tile.space is Space.L0C:
            return compiler.slot(value)
    return None


def is_only_data(op: Operation) -> bool:
    """True if its results are floats from which only floats are computed, and which control flow
    does not receive: they decide no path and no address."""
    todo, visited = [*op.results], set[int]()
    while todo:
        value = todo.pop()
        if not isinstance(value.type, t.Scalar) or not value.type.is_float:
            return False
        for user in value.uses:
            if user.control is not None or user.regions:
                return False
            if id(user) not in visited:
                visited.add(id(user))
                todo += user.results
    return True


def _ones(compiler: Compiler, op: Operation) -> Step:
    """A step that gives 1 as each of its results."""
    types = [(compiler.slot(v), v.type) for v in op.results]
    constants = [
        (n, y.dtype.numpy.type(1)) for n, y in types if isinstance(y, t.Scalar) and y.dtype
    ]

    def ones(core: Core, regs: Regs) -> None:
        for slot, one in constants:
            regs[slot] = one

    return ones


def _refused(op: Operation) -> Step:
    """A step that raises: control flow may depend on a value that the scalar unit reads."""

    def refused(core: Core, regs: Regs) -> Any:
        raise fail(
            "PTO-C010",
            f"'{op.name}' op reads data, but this run uses only the shapes of arrays",
            help="let it use the arrays: kernel.time(..., data=True), pto time --data, pto run"
            " --time=data",
        )

    return refused


class Addresses(DryRun):
    """A dry run of other blocks that only reports where transfers begin; their shapes are known."""

    def __init__(self, *, registers: bool = False) -> None:
        super().__init__(registers=registers)
        self.regions: list[GlobalRegion] = []

    def _ordered(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        return _nothing

    def _by_one(self, compiler: Compiler, op: Operation, step: Step) -> Step:
        return _ones(compiler, op)

    def _by_elements(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        return _nothing

    def _worked(self, compiler: Compiler, op: Operation, case: Case, step: Step) -> Step:
        is_transfer = any(is_global(v.type) for v in op.operands)
        return super()._worked(compiler, op, case, step) if is_transfer else _nothing

    def _reporter(
        self, compiler: Compiler, op: Operation, case: Case
    ) -> Callable[[Core, Regs, Any], None]:
        regions = self.regions

        def told(core: Core, regs: Regs, work: Work | None) -> None:
            if isinstance(work, TransferWork) and work.region is not None:
                regions.append(work.region)

        return told


def _nothing(core: Core, regs: Regs) -> None:
    return None
