"""Loops of the program: the body is traced once, for all iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pto.ir.builder import INDEX
from pto.ir.graph import Block, Operation, Region, Value
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.scalar.structure import CONDITION, FOR, WHILE, YIELD
from pto.lang.control import Range
from pto.lang.front.branches import unbroken
from pto.lang.front.carried import Assumed, CarriedLoop, CarriedValue, TraceAgain
from pto.lang.front.values import Key, VariableSlots
from pto.lang.trace import Trace
from pto.lang.values.linear import Linear
from pto.lang.values.scalars import Scalar, compare, converted

Body = Callable[..., object]
# The arguments of a region that are not carried, its body, and the operation that ends it.
LoopRegion = tuple[list[Value], Callable[[], object], Callable[[list[Value]], object]]


def _attempts(trace: Trace, slots: VariableSlots, run: Callable[[Assumed], object]) -> object:
    """Trace a loop until its assumptions about tiles hold."""
    assumed = Assumed()
    before = slots.read()
    mark = trace.mark()
    while True:
        try:
            with unbroken(trace):
                return run(assumed)
        except TraceAgain as again:
            getattr(assumed, again.what).add(again.place)
            trace.rollback(mark)
            slots.write(before)


def _traced(
    loop: CarriedLoop, op: Operation, regions: Sequence[LoopRegion], *, runs: bool
) -> list[CarriedValue]:
    """Trace the regions of a loop. Returns the values that iterations change, which its results
    are; `runs`: there is certainly an iteration."""
    trace, blocks = loop.trace, list[Block]()
    for n, (first, body, _) in enumerate(regions):
        args = [*first, *(leaf.args[n] for leaf in loop.carried)]
        blocks.append(trace.open(op, args, loop=True))
        loop.bind(n)
        body()
        loop.collect(n)
        trace.close()
    loop.carry_late(op, blocks, runs=runs)
    changed = loop.finish(blocks)
    for n, (_, _, end) in enumerate(regions):
        with trace.inside(blocks[n], certain=True):
            end([leaf.ends[n] for leaf in changed])
    op.set_group("inits", [loop.init(leaf) for leaf in changed])
    op.results = [Value(leaf.args[0].type, leaf.name, op) for leaf in changed]
    return changed


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

    def run(assumed: Assumed) -> None:
        loop = CarriedLoop(trace, slots, live | head, assumed, 1)
        kind = INDEX if stops else items.kind  # `while` adds a step at its end, where i32 may wrap
        bounds, counter = items.bounds(kind), Value(kind, target)
        op = trace.append(FOR, {**bounds, "inits": []})
        loop.first = lambda: compare("==", trace.scalar(counter), trace.scalar(bounds["lower"]))
        number = Scalar[object](counter, trace, _steps(op, items))
        region = [counter], lambda: body(_narrowed(number, items.kind)), _yields(trace)
        changed = _traced(loop, op, [region], runs=items.runs)
        leaving = [leaf for leaf in changed if leaf.place[0] in stops]
        results = _as_while(trace, op, changed, leaving) if leaving else op.results
        loop.after(changed, results, live)

    _attempts(trace, slots, run)


def _narrowed(number: Scalar[object], kind: ScalarType) -> Scalar[object]:
    """The counter in the type of its bounds, which holds it."""
    narrow = converted(number, kind, implicit=True)
    narrow.linear = number.linear
    return narrow


def _yields(trace: Trace) -> Callable[[list[Value]], object]:
    return lambda ends: trace.append(YIELD, {"results": ends})


def _steps(op: Operation, items: Range) -> Linear | None:
    """The counter as start plus a multiple of the step, if Python knows both."""
    low, step = items.lower, items.step
    return Linear(low, {op: step}) if isinstance(low, int) and isinstance(step, int) else None


def _as_while(
    trace: Trace,
    loop: Operation,
    changed: Sequence[CarriedValue],
    leaving: Sequence[CarriedValue],
) -> list[Value]:
    """A counted loop that also ends when one of the carried flags is set."""
    body = loop.regions.pop().block
    lower, upper, step, *inits = loop.operands
    loop.erase()
    op = trace.append(WHILE, {"inits": [lower, *inits]})
    op.where = loop.where
    args = [Value(v.type, v.name) for v in body.args]
    trace.open(op, args, loop=True)
    going = compare("<", trace.scalar(args[0]), trace.scalar(upper))
    for leaf, arg in zip(changed, args[1:], strict=True):
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

    def run(assumed: Assumed) -> None:
        loop = CarriedLoop(trace, slots, live | head, assumed, 2)
        op = trace.append(WHILE, {"inits": []})
        tested: list[Value] = []

        def condition(ends: list[Value]) -> None:
            trace.append(CONDITION, {"condition": loop.final(tested[0]), "args": ends})

        before = [], lambda: tested.append(test().used()), condition
        changed = _traced(loop, op, [before, ([], body, _yields(trace))], runs=runs)
        loop.after(changed, op.results, live)

    _attempts(trace, slots, run)
