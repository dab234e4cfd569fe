"""Loops, branches, scopes and calls in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.errors import PtoError
from pto.ir import choice
from pto.ir.graph import Operation, Region, Value
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.operation import STRUCTURES, emitter_of
from pto.run.jit.ir.kinds import certain, unsupported_if
from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import I32, I64
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime.values import Lowered, Mask, ScalarValue
from pto.run.reference.code import located
from pto.run.reference.control import require_step

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
        ways = [way[n].names_like(value) for way in froms]
        names = [
            e.text.phi(type, [(way[k], label) for way, label in zip(ways, labels, strict=True)])
            for k, type in enumerate(value.types)
        ]
        out.append(value.renamed(names))
    return out


def _require_loose(e: Emitter, values: Sequence[Value]) -> None:
    """Refuse a tile with a valid region that is set under a second name."""
    unsupported_if(
        any(id(v) in e.stack_slots for v in values),
        "a tile whose valid region is set goes by two names",
    )


def _flat(like: Sequence[Lowered], values: Sequence[Lowered]) -> list[Val]:
    """The names of values that a loop carries, which have the form of its first values."""
    pairs = zip(like, values, strict=True)
    return [name for form, value in pairs for name in value.names_like(form)]


def _bind_all(
    e: Emitter, args: Sequence[Value], like: Sequence[Lowered], names: Sequence[Val]
) -> None:
    """Bind values of these forms, with these names."""
    rest = iter(names)
    for arg, value in zip(args, like, strict=True):
        e.bind(arg, value.renamed([next(rest) for _ in value.names]))


def _for(e: Emitter, op: Operation) -> None:
    x, block = e.text, op.regions[0].block
    lower, upper, step, *inits = op.operands
    _require_loose(e, [*inits, *block.args, *block.ops[-1].operands])
    low, high, by = (word_of(e, v) for v in (lower, upper, step))
    e.fail_with(x.compare("sgt", by.name, 0, by.types[0]), step_error(op), by)
    start, kind = _carried(e, inits), low.types[0]

    def turn(state: list[str]) -> list[Val]:
        counter, *names = state
        e.bind(block.args[0], ScalarValue((counter,), low.type))
        _bind_all(e, block.args[1:], start, names)
        e.block(block)
        back = _flat(start, _carried(e, block.ops[-1].operands))
        return [x.new(f"add {kind} {counter}, {by.name}"), *back]

    count = _iterations(e, kind, low.name, high.name, by.name)
    types, first = [type for value in start for type in value.types], _flat(start, start)
    quick = kind in (I32, I64) and _is_quick(op)
    ends = _repeat(e, kind, count, [kind, *types], [low.name, *first], turn, quick)
    _bind_all(e, op.results, start, ends[1:])


def _iterations(e: Emitter, kind: str, low: Val, high: Val, step: Val) -> Val:
    """The number of iterations, unsigned: so a counter that wraps at the end is not looked at."""
    x = e.text
    if isinstance(step, int) and isinstance(low, int) and isinstance(high, int) and step > 0:
        return max(0, -((low - high) // step))
    left = high if low == 0 else x.new(f"sub {kind} {high}, {low}")
    if step != 1:
        last = x.new(f"udiv {kind} {x.new(f'sub {kind} {left}, 1')}, {step}")
        left = x.new(f"add {kind} {last}, 1")
    runs = x.compare("slt", low, high, kind)
    return x.new(f"select i1 {runs}, {kind} {left}, {kind} 0")


def _repeat(
    e: Emitter,
    kind: str,
    count: Val,
    types: Sequence[str],
    first: Sequence[Val],
    turn: Callable[[list[str]], Sequence[Val]],
    quick: bool,
) -> list[str]:
    """values = turn(values), so many times; returns the last values. A quick loop polls after some
    iterations, any other one after each."""
    x = e.text

    def more(state: list[str]) -> Condition:
        return x.compare("ne", state[0], 0, kind)

    def once(state: list[str]) -> list[Val]:
        left, *values = state
        found = turn(values)
        if not quick:
            e.poll()
        return [x.new(f"sub {kind} {left}, 1"), *found]

    def some(state: list[str]) -> list[Val]:
        left, *values = state
        few = x.new(f"icmp ult {kind} {left}, {_TURNS}")
        part = x.new(f"select i1 {few}, {kind} {left}, {kind} {_TURNS}")
        found = x.while_loop([kind, *types], [part, *values], more, once)[1:]
        rest = x.new(f"sub {kind} {left}, {part}")
        x.when(x.compare("ne", rest, 0, kind), e.poll)
        return [rest, *found]

    nested = quick and not (isinstance(count, int) and count <= _TURNS)
    return x.while_loop([kind, *types], [count, *first], more, some if nested else once)[1:]


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


def word_of(e: Emitter, value: Value) -> ScalarValue:
    return certain(e.value(value), ScalarValue)


def _if(e: Emitter, op: Operation) -> None:
    x = e.text
    chosen, done = word_of(e, op.operands[0]), x.fresh("done")
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
    before, after = (region.block for region in op.regions)
    _require_loose(e, [*op.operands, *before.args, *after.args, *before.ops[-1].operands])
    start, passed = _carried(e, op.operands), list[Lowered]()

    def test(names: list[str]) -> Condition:
        _bind_all(e, before.args, start, names)
        e.block(before)
        condition, *values = before.ops[-1].operands
        passed[:] = _carried(e, values)
        return e.text.bit(word_of(e, condition).name)

    def step(_: list[str]) -> list[Val]:
        for arg, value in zip(after.args, passed, strict=True):
            e.bind(arg, value)
        e.block(after)
        e.poll()
        return _flat(start, _carried(e, after.ops[-1].operands))

    types = [type for value in start for type in value.types]
    e.text.while_loop(types, _flat(start, start), test, step)
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
    with e.inlined():
        found = _inline(e, callee.regions[0], [e.value(v) for v in op.operands])
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
