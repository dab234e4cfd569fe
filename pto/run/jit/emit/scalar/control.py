"""Loops, branches, scopes and calls in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pto.core.errors import PtoError
from pto.ir import choice
from pto.ir.graph import Operation, Region, Value
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.registry import STRUCTURES, emitter_of
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import I32, I64, Val, expect, unsupported_if
from pto.run.jit.runtime.values import Lowered, Mask, ScalarValue
from pto.run.reference.code import located
from pto.run.reference.control import require_step

_DEPTH = 16  # calls inside calls that are written in place
_TURNS = 1 << 10  # iterations of a quick loop before it polls


def _carried(e: Emitter, values: Sequence[Value]) -> list[Lowered]:
    """Values carried by a loop: predicates as one bit a byte, since their width may change."""
    found = [e.value(v) for v in values]
    return [masks.image(e.text, v) if isinstance(v, Mask) else v for v in found]


def _phi(
    e: Emitter, values: Sequence[Lowered], froms: Sequence[Sequence[Lowered]], labels: Sequence[str]
) -> list[Lowered]:
    """Phi nodes for values that come from several blocks."""
    out: list[Lowered] = []
    for n, value in enumerate(values):
        ways = [way[n] for way in froms]
        unsupported_if(
            not all(value.is_like(way) for way in ways), "values of different forms meet"
        )
        names = [
            e.text.phi(
                type, [(way.names[k], label) for way, label in zip(ways, labels, strict=True)]
            )
            for k, type in enumerate(value.types)
        ]
        out.append(value.renamed(names))
    return out


def _require_loose(e: Emitter, values: Sequence[Value]) -> None:
    """Refuse a tile with a valid region that is set under a second name."""
    unsupported_if(
        any(id(v) in e.cells for v in values), "a tile whose valid region is set goes by two names"
    )


def _for(e: Emitter, op: Operation) -> None:
    x, region = e.text, op.regions[0]
    lower, upper, step, *inits = op.operands
    _require_loose(e, [*inits, *region.block.args, *region.block.ops[-1].operands])
    low, high, by = (_word(e, v) for v in (lower, upper, step))
    e.fail_with(x.compare("sgt", by.name, 0, by.types[0]), step_error(op), by)
    start = _carried(e, inits)
    kind = low.types[0]
    quick = kind in (I32, I64) and _is_quick(op)
    limit = _first_of(e, kind, low.name, high.name, by.name) if quick else high.name
    before, head, body, done = x.here, x.fresh("head"), x.fresh("body"), x.fresh("done")
    x.jump(head)
    x.label(head)
    place = len(x.lines)  # the phis are known when the body is
    counter, until = x.name(), x.name() if quick else limit
    around = [value.renamed([x.name() for _ in value.names]) for value in start]
    more, check = x.new(f"icmp slt {kind} {counter}, {until}"), x.fresh("check")
    x.branch(more, body, check if quick else done)
    x.label(body)
    e.bind(region.block.args[0], ScalarValue((counter,), low.type))
    for arg, value in zip(region.block.args[1:], around, strict=True):
        e.bind(arg, value)
    e.block(region.block)
    back = _carried(e, region.block.ops[-1].operands)
    if not quick:
        e.look_up()
    following, over = _following(e, kind, counter, by.name)
    latch, leave = x.here, x.fresh("leave")
    x.branch(over, leave, head)
    x.label(leave)
    x.jump(done)
    ahead, again = _look_up(e, kind, (check, head, done), counter, high, by) if quick else ("", "")
    phis: list[tuple[Val, str, Val, Val, Val]] = [(counter, kind, low.name, following, counter)]
    if quick:
        phis.append((until, kind, limit, until, ahead))
    for value, first, last in zip(around, start, back, strict=True):
        unsupported_if(not value.is_like(last), "a loop carries values of different forms")
        pairs = zip(first.names, last.names, strict=True)
        phis += [
            (name, type, a, b, name)
            for type, name, (a, b) in zip(value.types, value.names, pairs, strict=True)
        ]
    x.lines[place:place] = [
        f"  {name} = phi {type} [ {a}, %{before} ], [ {b}, %{latch} ]"
        + (f", [ {stay}, %{again} ]" if quick else "")
        for name, type, a, b, stay in phis
    ]
    x.label(done)
    ends = _phi(e, around, [around, back], [check if quick else head, leave])
    for result, value in zip(op.results, ends, strict=True):
        e.bind(result, value)


def _look_up(
    e: Emitter,
    kind: str,
    labels: tuple[str, str, str],
    counter: str,
    high: ScalarValue,
    by: ScalarValue,
) -> tuple[Val, str]:
    """After some iterations of a quick loop: test for its end, and poll. Returns the end of the
    next iterations, and the block they start from."""
    x, (check, head, done) = e.text, labels
    x.label(check)
    rest = x.fresh("again")
    x.branch(x.new(f"icmp slt {kind} {counter}, {high.name}"), rest, done)
    x.label(rest)
    e.look_up()
    ahead, again = _first_of(e, kind, counter, high.name, by.name), x.here
    x.jump(head)
    return ahead, again


def _following(e: Emitter, kind: str, counter: str, step: Val) -> tuple[str, str]:
    """The next value of the counter, and whether it overflows: that ends the loop."""
    x, pair, name = e.text, f"{{{kind}, i1}}", f"@llvm.sadd.with.overflow.{kind}"
    e.unit.declare(f"declare {pair} {name}({kind}, {kind})")
    found = x.new(f"call {pair} {name}({kind} {counter}, {kind} {step})")
    return x.new(f"extractvalue {pair} {found}, 0"), x.new(f"extractvalue {pair} {found}, 1")


def _first_of(e: Emitter, kind: str, start: Val, end: Val, step: Val) -> Val:
    """The end of the next iterations: the last one, or so many that the cost of a poll is
    negligible."""
    x = e.text
    if isinstance(step, int) and isinstance(start, int) and isinstance(end, int):
        return min(end, start + step * _TURNS) if start < end else end
    left = x.new(f"sub {kind} {end}, {start}")
    span = x.new(f"mul {kind} {step}, {_TURNS}")  # of a step so large that it wraps: any will do
    small = x.new(f"icmp ult {kind} {span}, {left}")
    near = x.new(f"add {kind} {start}, {span}")
    positive = x.new(f"icmp sgt {kind} {span}, 0")
    small = x.both(small, positive)
    runs = x.new(f"icmp slt {kind} {start}, {end}")
    return x.new(f"select i1 {x.both(small, runs)}, {kind} {near}, {kind} {end}")


def _is_quick(op: Operation) -> bool:
    """True if an iteration takes nanoseconds: scalars and registers, no inner loop."""
    return all(_is_quick_step(inner) for outer in op.regions[0].block.ops for inner in outer.walk())


def _is_quick_step(op: Operation) -> bool:
    if op.is_loop or op.control is Control.CALL or (emitter_of(op) is None and op.control is None):
        return False
    types = [v.type for v in (*op.operands, *op.results)]
    plain = all(isinstance(y, t.Scalar | t.VReg | t.Mask | t.Align | t.Ptr) for y in types)
    return plain and sum(isinstance(v.type, t.Ptr) for v in op.operands) < 2


def step_error(op: Operation) -> Any:
    def say(values: Sequence[Any]) -> None:
        try:
            require_step(values[0])
        except PtoError as error:
            raise located(error, op) from None

    return say


def _word(e: Emitter, value: Value) -> ScalarValue:
    return expect(e.value(value), ScalarValue, "a bound that is no scalar")


def _if(e: Emitter, op: Operation) -> None:
    x = e.text
    chosen, done = _word(e, op.operands[0]), x.fresh("done")
    arms = [x.fresh("arm") for _ in op.regions]
    x.switch(
        chosen.types[0], chosen.name, arms[0], {k: arms[n] for k, n in choice.ways(op).items()}
    )
    ways: list[list[Lowered]] = []
    labels: list[str] = []
    for label, region in zip(arms, op.regions, strict=True):
        x.label(label)
        if region.blocks:
            e.block(region.block)
            ends = region.block.ops[-1].operands
            _require_loose(e, ends)
            ways.append(_carried(e, ends))
        else:
            ways.append([])
        labels.append(x.here)
        x.jump(done)
    x.label(done)
    for result, value in zip(
        op.results, _phi(e, ways[0], ways, labels) if op.results else [], strict=True
    ):
        e.bind(result, value)


def _while(e: Emitter, op: Operation) -> None:
    x = e.text
    before, after = (region.block for region in op.regions)
    _require_loose(e, [*op.operands, *before.args, *after.args, *before.ops[-1].operands])
    start, entry = _carried(e, op.operands), x.here
    head, body, done = x.fresh("head"), x.fresh("body"), x.fresh("done")
    x.jump(head)
    x.label(head)
    place = len(x.lines)
    around = [value.renamed([x.name() for _ in value.names]) for value in start]
    for arg, value in zip(before.args, around, strict=True):
        e.bind(arg, value)
    e.block(before)
    condition = _word(e, before.ops[-1].operands[0])
    passed = _carried(e, before.ops[-1].operands[1:])
    x.branch(str(condition.name), body, done)
    x.label(body)
    for arg, value in zip(after.args, passed, strict=True):
        e.bind(arg, value)
    e.block(after)
    e.look_up()
    back, latch = _carried(e, after.ops[-1].operands), x.here
    x.jump(head)
    phis: list[str] = []
    for value, first, last in zip(around, start, back, strict=True):
        unsupported_if(not value.is_like(last), "a loop carries values of different forms")
        for type, name, a, b in zip(value.types, value.names, first.names, last.names, strict=True):
            phis.append(f"  {name} = phi {type} [ {a}, %{entry} ], [ {b}, %{latch} ]")
    x.lines[place:place] = phis
    x.label(done)
    for result, value in zip(op.results, passed, strict=True):
        e.bind(result, value)


def _inline(e: Emitter, region: Region, inputs: Sequence[Lowered]) -> list[Lowered]:
    """Emit a region in place; returns the values of its terminator."""
    block = region.block
    for arg, value in zip(block.args, inputs, strict=True):
        e.bind(arg, value)
    e.block(block)
    return [e.value(v) for v in block.ops[-1].operands]


def _region(e: Emitter, op: Operation) -> None:
    """A body that runs once and yields values."""
    _require_loose(e, op.regions[0].block.ops[-1].operands)
    for result, value in zip(op.results, _inline(e, op.regions[0], []), strict=True):
        e.bind(result, value)


def _call(e: Emitter, op: Operation) -> None:
    callee = e.compiler.callee(op)
    if callee.side() not in (None, e.compiler.side) and e.compiler.side != "both":
        return
    _require_loose(e, op.operands)
    unsupported_if(e.depth == _DEPTH, "calls are nested too deeply")
    e.depth += 1
    found = _inline(e, callee.regions[0], [e.value(v) for v in op.operands])
    e.depth -= 1
    for result, value in zip(op.results, found, strict=True):
        e.bind(result, value)


def _scope(e: Emitter, op: Operation) -> None:
    """A body that runs once; captured values have names of their own inside."""
    region = op.regions[0]
    _require_loose(e, [*op.operands, *region.block.args])
    for arg, value in zip(region.block.args, [e.value(v) for v in op.operands], strict=True):
        e.bind(arg, value)
    e.block(op.regions[0].block, end=not _ends(op))


def _ends(op: Operation) -> bool:
    """True if the last operation of the region only ends it."""
    ops = op.regions[0].block.ops
    return bool(ops) and ops[-1].control is Control.YIELD


def _section(e: Emitter, op: Operation) -> None:
    if e.compiler.side in (op.side(), "both"):
        _scope(e, op)


STRUCTURES.update(
    {
        Control.FOR: _for,
        Control.IF: _if,
        Control.WHILE: _while,
        Control.REGION: _region,
        Control.CALL: _call,
        Control.SECTION: _section,
        Control.SCOPE: _scope,
    }
)
