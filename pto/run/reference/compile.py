"""Prepares a graph for the reference engine: assigns registers, and makes a step per operation.

The body of a row defines the operation; control flow is in `run/reference/control.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.core.errors import Diagnostic, Note, PtoError, fail
from pto.core.tile import Tile
from pto.ir.graph import Module, Operation, Region, Value
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.meaning.handle.view import pointer_to
from pto.isa.meaning.kinds import (
    Blocked,
    ConstantResult,
    Cooperative,
    Do,
    Fold,
    ItemLaunch,
    Lane,
    Move,
    Permute,
    Repeats,
    TreeFold,
    Vectors,
)
from pto.isa.meaning.simt.launch import CALL
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.meaning.vector import raw
from pto.isa.row import types as t
from pto.isa.row.instr import Instr
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case, open_regions, unlike
from pto.plan.calls import FunctionNames
from pto.run.machine.core import Core
from pto.run.reference import logical, scalars, simt, tiles, vectors
from pto.run.reference.code import FunctionCode, Regs, Step, StepBlock, until_ready
from pto.run.reference.control import CONTROL
from pto.target.facts import Profile
from pto.verify.functions import SIMT_ENTRY

if TYPE_CHECKING:
    from pto.run.watch.events import Hook

Function = Callable[..., Any]


class Compiler:
    """Prepares the functions of one module for one side of a core."""

    def __init__(
        self, module: Module, profile: Profile, side: str, tap: Hook | None = None
    ) -> None:
        self.module = module
        self.profile = profile
        self.side = side
        self.tap = tap  # reports steps to the observer of a run
        self._names = FunctionNames()
        self._codes: dict[int, FunctionCode] = {}
        self._slots: dict[int, int] = {}

    def code(self, function: Operation | str) -> FunctionCode:
        """The code of a function, made once."""
        if isinstance(function, str):
            function = {f.symbol: f for f in self.module.functions()}[function]
        code = self._codes.get(id(function))
        if code is None:
            code = self._function(function)
            self._codes[id(function)] = code
        return code

    def callee(self, op: Operation) -> Operation:
        """The function that a call names; one of its own module takes precedence."""
        caller = next(op.around(Control.FUNCTION))
        callee = self._names.find(op.attrs.get("callee"), caller)
        if callee is None:
            raise fail("PTO-S102", f"'{op.name}' op calls a function without a body", loc=op.loc)
        return callee

    def _function(self, function: Operation) -> FunctionCode:
        outer, self._slots = self._slots, {}
        block = function.regions[0].block
        args = [self.slot(a) for a in block.args]
        body = self.block(function.regions[0])
        ends = block.ops[-1:] if block.ops and block.ops[-1].control is Control.RETURN else []
        results = [self.slot(v) for op in ends for v in op.operands]
        code = FunctionCode(function, len(self._slots), args, body, bool(body.waits), results)
        self._slots = outer
        return code

    def scope_code(self, function: Operation) -> FunctionCode:
        """The code of the vector scope that a function consists of, without entering the scope.

        It gives the results of the last operation.
        """
        outer, self._slots = self._slots, {}
        block = function.regions[0].block
        args = [self.slot(a) for a in block.args]
        region = block.ops[-1].regions[0]
        body = self.block(region)
        results = self.slots(region.block.ops[-1].results)
        code = FunctionCode(function, len(self._slots), args, body, bool(body.waits), results)
        self._slots = outer
        return code

    def slot(self, value: Value) -> int:
        return self._slots.setdefault(id(value), len(self._slots))

    def _absent(self) -> int:
        """A register that is never written: an absent operand reads None from it."""
        return self._slots.setdefault(0, len(self._slots))

    def slots(self, values: list[Value]) -> list[int]:
        return [self.slot(v) for v in values]

    def counters(self, op: Operation) -> list[int]:
        """The registers that count the loops around an operation, outermost first."""
        return self.slots([loop.regions[0].block.args[0] for loop in op.loops()])

    def block(self, region: Region) -> StepBlock:
        """The steps of a region's only block."""
        out = StepBlock()
        for op in region.block.ops:
            self._add(out, op)
        return out

    def _add(self, out: StepBlock, op: Operation) -> None:
        control = op.control
        if control is Control.RETURN:
            return  # the function knows the registers of its results
        if control is not None and self.launched(op) is None:
            built = CONTROL[control](self, op)
            if built is None:
                return
            step, wait = built if self.tap is None else self.tap.control(op, built)
        else:
            step = self.step(op)
            if self.tap is not None:
                step = self.tap.step(self, op, step)
            wait = until_ready(op, step) if self._may_wait(op) else None
        if wait is not None:
            out.waits[len(out.steps)] = wait
        out.ops.append(op)
        out.steps.append(step)

    def launched(self, op: Operation) -> ItemLaunch | None:
        """How an operation starts work items; None if it does not. A call of an entry does, too."""
        if op.control is Control.CALL:
            return CALL if SIMT_ENTRY in self.callee(op).attrs else None
        return op.body if isinstance(op.body, ItemLaunch) else None

    def _may_wait(self, op: Operation) -> bool:
        by_itself = isinstance(op.body, Do) and op.body.blocks
        return by_itself or (self.tap is not None and self.tap.may_wait(op))

    def step(self, op: Operation) -> Step:
        """The step of an operation with a body in its row."""
        row = op.row
        if row.body is None:
            message = f"'{op.name}' op is parsed and checked, but not executed yet"
            raise PtoError(Diagnostic("PTO-X020", message, op.loc))
        launched = self.launched(op)
        if launched is not None:
            return simt.launch(self, op, launched)
        case = Case(op, self.profile)
        try:
            fn = _function_of(case, row.body)
        except PtoError as error:
            raise PtoError(*(d.at(op.loc) for d in error.diagnostics)) from None
        step = self._bind(op, row, _agreeing(op, case, _addressed(op, row, fn)))
        words = row.body.words if isinstance(row.body, Do) else None
        words = Mover if isinstance(row.body, Move) else words
        step = step if words is None else _with_words(step, words, case)
        return self._kept(op, step) if _is_kept(op) else step

    def _kept(self, op: Operation, step: Step) -> Step:
        """Reuse the tile in the register if the last iteration made one with the same region."""
        (out,), valid = self.slots(op.results), self.slots(op.operands)
        if not valid:
            return lambda core, regs: step(core, regs) if regs[out] is None else None
        rows, cols = valid

        def again(core: Core, regs: Regs) -> None:
            tile: Tile | None = regs[out]
            if tile is None or tile.known_valid != (regs[rows], regs[cols]):
                step(core, regs)

        return again

    def _bind(self, op: Operation, row: Instr, fn: Function) -> Step:
        """Read operands from registers, call, write results."""
        body = row.body
        binds = body.defines if isinstance(body, Do) else ""
        outs = self.slots(op.group(binds) if binds else op.results)
        if not (isinstance(body, Do) and body.blocks) and not any(o.variadic for o in row.operands):
            groups = [op.group(o.name) for o in row.operands]
            return _bind_fixed(fn, [self.slot(g[0]) if g else self._absent() for g in groups], outs)
        plan: list[int | list[int] | None] = []
        for operand in row.operands:
            positions = self.slots(op.group(operand.name))
            plan.append(positions if operand.variadic else positions[0] if positions else None)
        return _bind_open(fn, plan, outs)


def _function_of(case: Case, body: Any) -> Function:
    """fn(core, or the words of the body, *operands)."""
    if isinstance(body, Do):
        return body.make(case) if body.words is None else tiles.on_words(case, body)
    return _KINDS[type(body)](case, body)


def _with_words(step: Step, words: Callable[[Core, Case], Any], case: Case) -> Step:
    """A step on words made from the core; the words of the last core are cached."""
    latest: tuple[Core | None, Any] = None, None

    def run(core: Core, regs: Regs) -> Any:
        nonlocal latest
        last, core_words = latest  # both in one assignment: threads share a step
        if last is not core:
            core_words = words(core, case)
            latest = core, core_words
        return step(core_words, regs)

    return run


def _lane(case: Case, body: Lane) -> Function:
    """The evaluator of a lane function: it depends on the operands' kind."""
    lanes, results = t.VReg | t.Mask | t.LogicalVReg | t.LogicalMask, case.op.results
    if any(isinstance(r.type, lanes) for r in results):
        return vectors.lane(case, body)
    return scalars.lane(case, body) if results else tiles.lane(case, body)


def _known(case: Case, body: ConstantResult) -> Function:
    """A value known in advance.

    An array is copied each time, because tmrgsort writes to its own.
    """
    value = body.value(case)
    if isinstance(value, np.ndarray) and value.dtype != np.bool_:
        return lambda core: value.copy()
    return lambda core: value


_KINDS: dict[type, Callable[[Case, Any], Function]] = {
    Lane: _lane,
    Cooperative: simt.alone,
    Permute: vectors.permute,
    TreeFold: vectors.neighbours,
    Vectors: logical.vectors,
    Repeats: raw.repeats,
    ConstantResult: _known,
    Fold: tiles.fold,
    Move: tiles.on_words,
}


def _is_kept(op: Operation) -> bool:
    """True if a tile always has one address, and no other value holds it when it is made again."""
    if op.row is not ALLOC_TILE or len(op.operands) not in (0, 2) or op.group("addr"):
        return False
    blocks = [
        enclosing.parent for enclosing in (op, *op.ancestors()) if enclosing.parent is not None
    ]
    ends = [block.ops[-1] for block in blocks if block.ops[-1].control is not None]
    return not any(isinstance(v.type, t.TileBuf) for end in ends for v in end.operands)


def _addressed(op: Operation, row: Instr, fn: Function) -> Function:
    """A memref used as a pointer is the address of its first element."""
    places = [i for i, operand in enumerate(row.operands) if tiles.is_address(op, operand)]
    if not places:
        return fn

    def call(core: Core, *operands: Any) -> Any:
        values = list(operands)
        for i in places:
            values[i] = pointer_to(values[i])
        return fn(core, *values)

    return call


def _agreeing(op: Operation, case: Case, fn: Function) -> Function:
    """Check valid regions that are known only at run time against the rules that types satisfy."""
    places = {operand.name: i for i, operand in enumerate(case.row.operands)}
    checks = [(rule, n, [places[name] for name in n]) for rule, n in open_regions(case)]
    if not checks:
        return fn
    even = len({tile.dtype.values_per_item for _, tile in case.tiles()}) == 1  # equal regions agree

    def call(core: Core, *operands: Any) -> Any:
        for rule, names, at in checks:
            tiles: list[Tile] = [operands[i] for i in at]
            regions = [tile.known_valid for tile in tiles]
            if even and regions.count(regions[0]) == len(regions):
                continue
            kinds = [tile.type for tile in tiles]
            difference = unlike([*zip(names, kinds, regions, strict=True)], rule.axes)
            if difference:
                message = f"'{op.name}' op {rule.sentence}: {difference}"
                notes = tuple(_column_notes(op, names, regions))
                raise PtoError(Diagnostic(rule.code, message, notes=notes, help=rule.help))
        return fn(core, *operands)

    return call


def _column_notes(
    op: Operation, names: Sequence[str], regions: Sequence[tuple[int | None, int | None]]
) -> Iterator[Note]:
    """Operands that are columns; an instruction reads them as rows over the same bytes."""
    for name, (_, count) in zip(names, regions, strict=True):
        value = op.operand(name)
        maker = value.owner if value is not None else None
        source = maker.operands[0].type if isinstance(maker, Operation) and maker.operands else None
        if not isinstance(maker, Operation) or maker.body is not RESHAPE:
            continue
        if isinstance(source, t.TileBuf) and source.tile.cols == 1:
            yield Note(f"{name} is a column, of which {count} rows are valid, taken as a row")


def _bind_fixed(fn: Function, ins: list[int], outs: list[int]) -> Step:
    """Unrolled code for the common arities: this is the inner loop of the engine."""
    if len(outs) > 1:

        def many(core: Core, regs: Regs) -> Any:
            for slot, value in zip(outs, fn(core, *[regs[i] for i in ins]), strict=True):
                regs[slot] = value

        return many
    if not outs and len(ins) == 2:
        first, second = ins
        return lambda core, regs: fn(core, regs[first], regs[second])
    if not outs and len(ins) == 3:
        first, second, third = ins
        return lambda core, regs: fn(core, regs[first], regs[second], regs[third])
    if not outs:
        return lambda core, regs: fn(core, *[regs[i] for i in ins])
    out = outs[0]
    if len(ins) == 1:
        (a,) = ins

        def one(core: Core, regs: Regs) -> Any:
            regs[out] = fn(core, regs[a])

        return one
    if len(ins) == 2:
        a, b = ins

        def two(core: Core, regs: Regs) -> Any:
            regs[out] = fn(core, regs[a], regs[b])

        return two

    if len(ins) == 3:
        a, b, c = ins

        def three(core: Core, regs: Regs) -> Any:
            regs[out] = fn(core, regs[a], regs[b], regs[c])

        return three

    def some(core: Core, regs: Regs) -> Any:
        regs[out] = fn(core, *[regs[i] for i in ins])

    return some


def _bind_open(fn: Function, plan: list[int | list[int] | None], outs: list[int]) -> Step:
    def step(core: Core, regs: Regs) -> Any:
        values = [
            [regs[i] for i in p] if isinstance(p, list) else None if p is None else regs[p]
            for p in plan
        ]
        result = fn(core, *values)
        if isinstance(result, Blocked):
            return result
        if len(outs) == 1:
            regs[outs[0]] = result
        elif outs:
            for slot, value in zip(outs, result, strict=True):
                regs[slot] = value
        return result

    return step
