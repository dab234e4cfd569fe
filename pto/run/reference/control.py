"""Control flow as steps: functions, loops, branches, sections and scopes.

Each entry of CONTROL returns the step, and its generator form when something inside can wait; None
when the operation needs no step on this side of the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pto.core.errors import fail
from pto.ir.choice import ways
from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.row.traits import Control
from pto.plan.polling import polls
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step, Wait, Waits

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

Made = tuple[Step, Callable[[Core, Regs], Waits] | None]


def require_step(step: int) -> None:
    if step <= 0:
        raise fail("PTO-S130", f"'scf.for' op needs a positive step, got {step}")


def _hand(regs: Regs, sources: list[int], targets: list[int]) -> None:
    """Copy values between registers; all are read before the first is written, so they may swap."""
    values = [regs[i] for i in sources]
    for to, value in zip(targets, values, strict=True):
        regs[to] = value


def _for(c: Compiler, op: Operation) -> Made:
    region = op.regions[0]
    lower, upper, stride, *inits = c.slots(op.operands)
    counter, *carried = c.slots(region.block.args)
    body = c.block(region)
    body.drop_end()
    yielded = c.slots(region.block.ops[-1].operands)
    outs = c.slots(op.results)
    tap = c.tap

    def start(core: Core, regs: Regs) -> Iterable[int]:
        require_step(regs[stride])
        _hand(regs, inits, carried)
        counted = range(regs[lower], regs[upper], regs[stride])
        return counted if tap is None else tap.trips(core, op, counted)

    def step(core: Core, regs: Regs) -> None:
        limit = core.cluster.limit
        for i in start(core, regs):
            regs[counter] = i
            body.run(core, regs)
            _hand(regs, yielded, carried)
            if limit is not None:
                limit.look(core.name)
        _hand(regs, carried, outs)

    def gen(core: Core, regs: Regs) -> Waits:
        limit = core.cluster.limit
        for i in start(core, regs):
            regs[counter] = i
            yield from body.gen(core, regs)
            _hand(regs, yielded, carried)
            if limit is not None:
                limit.look(core.name)
        _hand(regs, carried, outs)

    return step, gen if body.waits else None


def _if(c: Compiler, op: Operation) -> Made:
    (chosen,) = c.slots(op.operands)
    numbers = ways(op)
    outs = c.slots(op.results)
    arms: list[tuple[Any, list[int]]] = []
    for region in op.regions:
        if not region.blocks:
            arms.append((None, []))
            continue
        body = c.block(region)
        body.drop_end()
        arms.append((body, c.slots(region.block.ops[-1].operands)))

    tap = c.tap

    def choose(regs: Regs) -> tuple[Any, list[int]]:
        number = numbers.get(regs[chosen], 0)
        if tap is not None:
            tap.took(op, number)
        return arms[number]

    def step(core: Core, regs: Regs) -> None:
        body, yielded = choose(regs)
        if body is not None:
            body.run(core, regs)
            _hand(regs, yielded, outs)

    def gen(core: Core, regs: Regs) -> Waits:
        body, yielded = choose(regs)
        if body is not None:
            yield from body.gen(core, regs)
            _hand(regs, yielded, outs)

    can_wait = any(body is not None and body.waits for body, _ in arms)
    return step, gen if can_wait else None


def _region(c: Compiler, op: Operation) -> Made:
    body = c.block(op.regions[0])
    body.drop_end()
    yielded, outs = c.slots(op.regions[0].block.ops[-1].operands), c.slots(op.results)

    def step(core: Core, regs: Regs) -> None:
        body.run(core, regs)
        _hand(regs, yielded, outs)

    def gen(core: Core, regs: Regs) -> Waits:
        yield from body.gen(core, regs)
        _hand(regs, yielded, outs)

    return step, gen if body.waits else None


def _while(c: Compiler, op: Operation) -> Made:
    before_region, after_region = op.regions
    inits, outs = c.slots(op.operands), c.slots(op.results)
    before_args = c.slots(before_region.block.args)
    after_args = c.slots(after_region.block.args)
    before, after = c.block(before_region), c.block(after_region)
    for block in (before, after):
        block.drop_end()
    condition, *passed = c.slots(before_region.block.ops[-1].operands)
    yielded = c.slots(after_region.block.ops[-1].operands)
    tap = c.tap

    def goes_on(regs: Regs) -> bool:
        is_true = bool(regs[condition])
        if tap is not None:
            tap.took(op, int(is_true))
        return is_true

    def step(core: Core, regs: Regs) -> None:
        limit = core.cluster.limit
        _hand(regs, inits, before_args)
        while True:
            before.run(core, regs)
            if not goes_on(regs):
                break
            _hand(regs, passed, after_args)
            after.run(core, regs)
            _hand(regs, yielded, before_args)
            if limit is not None:
                limit.look(core.name)
        _hand(regs, passed, outs)

    watches = any(is_polling(inner) for inner in op.walk())
    steady = polls(op)  # then only another agent can end it
    wait = Wait(op, Blocked("others to change what its loop looks at"), not steady)

    def gen(core: Core, regs: Regs) -> Waits:
        _hand(regs, inits, before_args)
        while True:
            yield from before.gen(core, regs)
            if not goes_on(regs):
                break
            _hand(regs, passed, after_args)
            yield from after.gen(core, regs)
            old = [regs[i] for i in before_args]
            _hand(regs, yielded, before_args)
            if core.cluster.limit is not None:
                core.cluster.limit.look(core.name)
            if watches:
                core.progress += _differ(old, [regs[i] for i in before_args])
                yield wait
        _hand(regs, passed, outs)

    return step, gen if watches or before.waits or after.waits else None


def is_polling(op: Operation) -> bool:
    """True if an operation, or a loop as a whole, reads state that other agents change."""
    return (isinstance(op.body, Do) and op.body.polls) or polls(op)


def _differ(old: list[Any], new: list[Any]) -> bool:
    """True if a loop carries other values than before, so it makes progress."""
    pairs = zip(old, new, strict=True)
    return any(a is not b and not (isinstance(a, int | float) and a == b) for a, b in pairs)


def _call(c: Compiler, op: Operation) -> Made | None:
    callee = c.callee(op)
    if callee.side() not in (None, c.side) and c.side != "both":
        return None
    code = c.code(callee)
    ins, outs = c.slots(op.operands), c.slots(op.results)

    def step(core: Core, regs: Regs) -> None:
        for to, value in zip(outs, code.call(core, [regs[i] for i in ins]), strict=True):
            regs[to] = value

    def gen(core: Core, regs: Regs) -> Waits:
        values = yield from code.gen(core, [regs[i] for i in ins])
        for to, value in zip(outs, values, strict=True):
            regs[to] = value

    return step, gen if code.can_wait else None


def _section(c: Compiler, op: Operation) -> Made | None:
    """Only one side of a core executes a section."""
    return _scope(c, op) if c.side in (op.side(), "both") else None


def _scope(c: Compiler, op: Operation) -> Made:
    """A body that is executed once, with its own names for captured values."""
    region = op.regions[0]
    ins, args = c.slots(op.operands), c.slots(region.block.args)
    body = c.block(region)
    if not args:
        return body.run, body.gen if body.waits else None

    def step(core: Core, regs: Regs) -> None:
        for to, source in zip(args, ins, strict=True):
            regs[to] = regs[source]
        body.run(core, regs)

    return step, None


def _nothing(c: Compiler, op: Operation) -> Made:
    """The end of a region: the parent operation moves the values."""
    return lambda core, regs: None, None


CONTROL: dict[Control, Callable[[Compiler, Operation], Made | None]] = {
    Control.FOR: _for,
    Control.IF: _if,
    Control.REGION: _region,
    Control.WHILE: _while,
    Control.YIELD: _nothing,
    Control.CONDITION: _nothing,
    Control.CALL: _call,
    Control.SECTION: _section,
    Control.SCOPE: _scope,
}
