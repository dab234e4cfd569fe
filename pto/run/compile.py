"""Graph to code: gives every value a register and turns every operation into a step.

What an operation does is its row's body; control flow is in `run/control.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation, Region, Value
from pto.isa.instr import Instr
from pto.isa.meaning import Do, Fold, Lane
from pto.isa.rules import Case
from pto.run import tiles, vectors
from pto.run.code import Block, Code, Regs, Step, until_ready
from pto.run.control import CONTROL
from pto.run.core import Core
from pto.target.facts import Profile
from pto.verify.functions import name_of
from pto.verify.operation import constant

Function = Callable[..., Any]


class Compiler:
    """Prepares the functions of one module for one side of a core."""

    def __init__(self, module: Module, profile: Profile, side: str) -> None:
        self.module = module
        self.profile = profile
        self.side = side
        self.functions = {name_of(f): f for f in module.functions()}
        self._codes: dict[str, Code] = {}
        self._slots: dict[int, int] = {}

    def code(self, name: str) -> Code:
        """The code of a function, made once."""
        found = self._codes.get(name)
        if found is None:
            found = self._function(self.functions[name])
            self._codes[name] = found
        return found

    def _function(self, function: Operation) -> Code:
        outer, self._slots = self._slots, {}
        block = function.regions[0].block
        args = [self.slot(a) for a in block.args]
        body = self.block(function.regions[0])
        code = Code(function, len(self._slots), args, body, bool(body.waits))
        self._slots = outer
        return code

    def slot(self, value: Value) -> int:
        return self._slots.setdefault(id(value), len(self._slots))

    def slots(self, values: list[Value]) -> list[int]:
        return [self.slot(v) for v in values]

    def block(self, region: Region) -> Block:
        """The steps of a region's only block."""
        out = Block()
        for op in region.block.ops:
            self._add(out, op)
        return out

    def _add(self, out: Block, op: Operation) -> None:
        control = CONTROL.get(op.name)
        if control is not None:
            made = control(self, op)
            if made is None:
                return
            step, wait = made
        else:
            step = self.step(op)
            body = op.row.body if op.row else None
            wait = until_ready(op, step) if isinstance(body, Do) and body.blocks else None
        if wait is not None:
            out.waits[len(out.steps)] = wait
        out.ops.append(op)
        out.steps.append(step)

    def step(self, op: Operation) -> Step:
        """The step of an operation whose row has a body."""
        row = op.row
        if row is None or row.body is None:
            message = f"'{op.name}' op is parsed and checked, but not executed yet"
            raise PtoError(Diagnostic("PTO-X020", message, op.loc))
        try:
            fn = self._function_of(op, row)
        except PtoError as error:
            raise PtoError(*(d.at(op.loc) for d in error.diagnostics)) from None
        return self._bind(op, row, fn)

    def _function_of(self, op: Operation, row: Instr) -> Function:
        case = Case(op, row, self.profile, constant)
        if isinstance(row.body, Do):
            return row.body.make(case)
        if isinstance(row.body, Lane):
            engine = vectors if row.family.section == "vector" else tiles
            return engine.lane(case, row.body)
        if isinstance(row.body, Fold):
            return tiles.fold(case, row.body)
        raise RuntimeError(f"{row.name}: no engine case for {type(row.body).__name__}")

    def _bind(self, op: Operation, row: Instr, fn: Function) -> Step:
        """Read operands from registers, call, write results."""
        outs = self.slots(op.results)
        if row.fixed_operands:
            return _bind_fixed(fn, self.slots(op.operands), outs)
        plan: list[int | list[int] | None] = []
        for operand in row.operands:
            found = self.slots(op.group(operand.name))
            plan.append(found if operand.variadic else found[0] if found else None)
        return _bind_open(fn, plan, outs)


def _bind_fixed(fn: Function, ins: list[int], outs: list[int]) -> Step:
    """Straight code for the common arities: this is the inner loop of the engine."""
    if len(outs) > 1:

        def many(core: Core, regs: Regs) -> Any:
            for slot, value in zip(outs, fn(core, *[regs[i] for i in ins]), strict=True):
                regs[slot] = value

        return many
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
        if len(outs) == 1:
            regs[outs[0]] = result
        elif outs:
            for slot, value in zip(outs, result, strict=True):
                regs[slot] = value
        return result

    return step
