"""Loops of the program: the body is traced once, for all iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.ir.graph import Block, Operation, Region, Value
from pto.isa.scalar.structure import CONDITION, FOR, WHILE, YIELD
from pto.lang.control import Range
from pto.lang.front.branches import unbroken
from pto.lang.front.carried import Assumed, CarriedLoop, CarriedValue, TraceAgain
from pto.lang.front.exits import RESULT
from pto.lang.front.values import Key, VariableSlots
from pto.lang.trace import Trace
from pto.lang.values.linear import Linear
from pto.lang.values.scalars import Scalar, as_value, compare

Body = Callable[..., object]


def _attempts(trace: Trace, slots: VariableSlots, run: Callable[[Assumed], object]) -> object:
    """Trace a loop until its assumptions about tiles hold."""
    assumed, before, mark = Assumed(), slots.read(), trace.mark()
    while True:
        try:
            with unbroken(trace):
                return run(assumed)
        except TraceAgain as again:
            getattr(assumed, again.what).add(again.place)
            trace.rollback(mark)
            slots.write(before)


def counted(
    items: Range,
    body: Body,
    slots: VariableSlots,
    live: set[Key],
    head: set[Key],
    stops: Sequence[str],
    target: str,
) -> None:
    """`for i in pto.range(...)`: an scf.for, or an scf.while where the body can leave the loop."""
    trace = items.trace
    names = live | head | {*slots.carries}

    def run(assumed: Assumed) -> None:
        loop = CarriedLoop(trace, slots, names, assumed, 1)
        kind = items.kind
        bounds = {n: as_value(getattr(items, n), kind) for n in ("lower", "upper", "step")}
        op = trace.append(FOR, {**bounds, "inits": []})
        counter = Value(kind, target)
        block = trace.open(op, [counter], loop=True)
        loop.first = lambda: compare("==", trace.scalar(counter), trace.scalar(bounds["lower"]))
        block.args += [_owned(arg, block) for arg in (leaf.args[0] for leaf in loop.carried)]
        loop.bind(0)
        body(Scalar[object](counter, trace, _steps(op, items)))
        loop.collect(0)
        trace.close()
        loop.carry_late(op, [block], loop.late if items.runs else [RESULT])
        kept = loop.finish(op, [block])
        trace.reopen(block)
        trace.append(YIELD, {"results": [leaf.ends[0] for leaf in kept]})
        trace.close(certain=True)
        inits = loop.inits(kept)
        op.set_group("inits", inits)
        leaving = [leaf for leaf in kept if leaf.place[0] in stops]
        if leaving:
            results = _as_while(trace, op, kept, leaving, inits)
        else:
            op.results = [Value(leaf.args[0].type, leaf.name, op) for leaf in kept]
            results = op.results
        loop.after(kept, results, live)

    _attempts(trace, slots, run)


def _owned(arg: Value, block: Block) -> Value:
    arg.owner = block
    return arg


def _steps(op: Operation, items: Range) -> Linear | None:
    """The counter as start plus a multiple of the step, if Python knows both."""
    low, step = items.lower, items.step
    return Linear(low, {op: step}) if isinstance(low, int) and isinstance(step, int) else None


def _as_while(
    trace: Trace,
    loop: Operation,
    kept: Sequence[CarriedValue],
    leaving: Sequence[CarriedValue],
    inits: list[Value],
) -> list[Value]:
    """A counted loop that also ends when one of the carried flags is set."""
    body = loop.regions.pop().block
    lower, upper, step = loop.operands[:3]
    loop.erase()
    op = trace.append(WHILE, {"inits": [lower, *inits]})
    op.where = loop.where
    args = [Value(v.type, v.name) for v in body.args]
    trace.open(op, args, loop=True)
    going = compare("<", trace.scalar(args[0]), trace.scalar(upper))
    for leaf, arg in zip(kept, args[1:], strict=True):
        if leaf in leaving:
            going = going & ~trace.scalar(arg)
    trace.append(CONDITION, {"condition": going.used(), "args": args})
    trace.close()
    region = Region(op)
    region.blocks.append(body)
    body.region = region
    op.regions.append(region)
    last = body.ops[-1]
    last.erase()
    trace.reopen(body, loop=True)
    following = trace.scalar(body.args[0]) + trace.scalar(step)
    trace.append(YIELD, {"results": [following.used(), *last.operands]})
    trace.close()
    op.results = [Value(v.type, v.name, op) for v in body.args]
    return op.results[1:]


def conditional(
    test: Callable[[], Scalar[object]],
    body: Body,
    slots: VariableSlots,
    live: set[Key],
    head: set[Key],
    trace: Trace,
    *,
    runs: bool,
) -> None:
    """`while`: an scf.while; `runs`: the condition holds before the first iteration."""
    names = live | head | {*slots.carries}

    def run(assumed: Assumed) -> None:
        loop = CarriedLoop(trace, slots, names, assumed, 2)
        op = trace.append(WHILE, {"inits": []})
        blocks: list[Block] = []
        tested: list[Value] = []
        for n in range(2):
            blocks.append(trace.open(op, [leaf.args[n] for leaf in loop.carried], loop=True))
            loop.bind(n)
            if n == 0:
                tested.append(test().used())
            else:
                body()
            loop.collect(n)
            trace.close()
        loop.carry_late(op, blocks, loop.late if runs else [RESULT])
        kept = loop.finish(op, blocks)
        trace.reopen(blocks[0])
        passed = [leaf.ends[0] for leaf in kept]
        trace.append(CONDITION, {"condition": loop.final(tested[0]), "args": passed})
        trace.close(certain=True)
        trace.reopen(blocks[1])
        trace.append(YIELD, {"results": [leaf.ends[1] for leaf in kept]})
        trace.close(certain=True)
        inits = loop.inits(kept)
        op.set_group("inits", inits)
        op.results = [Value(leaf.args[0].type, leaf.name, op) for leaf in kept]
        loop.after(kept, op.results, live)

    _attempts(trace, slots, run)
