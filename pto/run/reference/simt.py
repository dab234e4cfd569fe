"""Work items on the reference engine: one instruction for all active items of a launch at a time.

A value is an array with an entry for each item. Divergent paths run one after the other, each with
its items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.core.errors import PtoError, fail
from pto.core.pointer import Pointer
from pto.core.primitives import on_arrays
from pto.ir.choice import ways
from pto.ir.graph import Operation, Region, Value
from pto.isa.meaning.handle.view import ADD_POINTER, pointer_to
from pto.isa.meaning.kinds import ConstantResult, Cooperative, Do, ItemLaunch, Lane
from pto.isa.meaning.memory import registers
from pto.isa.meaning.scalar.arith import kind_of
from pto.isa.meaning.simt.items import Pointers, Size
from pto.isa.meaning.simt.memory import Own, moved
from pto.isa.row import types as t
from pto.isa.row.attributes import integer
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.isa.rules.simt import MAX_ITEMS
from pto.run.machine.core import Core
from pto.run.reference.code import Regs, Step, located
from pto.run.reference.control import require_step
from pto.run.reference.group import Frame, ItemGroup
from pto.run.reference.tiles import in_words

if TYPE_CHECKING:
    from pto.run.reference.compile import Compiler

Do_ = Callable[[ItemGroup, Frame], None]


# ---- launches


def launch(c: Compiler, op: Operation, body: ItemLaunch) -> Step:
    """The step of an operation that starts work items."""
    around = captured(op)
    program = (
        ItemProgram(c, op.regions[0], around) if op.regions else ItemProgram.of(c, c.callee(op))
    )
    ins = c.slots(around if op.regions else op.operands)
    written = _written_size(op) if body.sizes == "attributes" else None

    def step(core: Core, regs: Regs) -> None:
        values = [regs[i] for i in ins]
        stored = core.registers.get(registers.LAUNCH_SIZE)
        size = written or (None if stored is None else Size(*stored))
        if body.sizes == "operands":
            size, values = Size(*values[:3]), values[3:]
        if size is None:
            raise fail("PTO-S095", "no launch size was stored before this call")
        if not 1 <= size.items <= MAX_ITEMS or min(size) < 1:
            size_text = " x ".join(map(str, size))
            raise fail("PTO-S095", f"a launch has 1 to {MAX_ITEMS} work items, not {size_text}")
        watch = None if c.tap is None else c.tap.conflicts(core)
        group = ItemGroup(core, size, np.arange(size.items), watch)
        program.call(
            group, [everywhere(v, a.type, size) for v, a in zip(values, program.args, strict=True)]
        )

    return step


def everywhere(value: Any, type: t.Type, size: Size) -> Any:
    """One value for every item."""
    value = pointer_to(value)
    if isinstance(value, Own):
        addresses = np.arange(size.items) * value.nbytes + value.address
        return Pointers(value.memory, addresses, None)
    if isinstance(value, Pointer):
        addresses = np.full(size.items, value.address, np.int64)
        return Pointers(value.memory, addresses, value.dtype)
    if isinstance(type, t.Scalar):
        return np.full(size.items, value, kind_of(type))
    return value


def alone(case: Case, body: Cooperative) -> Callable[..., Any]:
    """One work item: the scalar unit executes such an instruction."""
    fn, one = body.make(case), Size(1, 1, 1)
    types = [v.type for v in case.op.operands]

    def run(core: Core, *operands: Any) -> Any:
        group = ItemGroup(core, one, np.arange(1))
        result = fn(group, *(everywhere(v, ty, one) for v, ty in zip(operands, types, strict=True)))
        return None if result is None else number(result, 0, case.op.results[0].type)

    return run


# ---- programs


class ItemProgram:
    """A region for work items: compiled once, run with any group of them.

    It belongs to a function with arguments, or to an operation that captures values around it.
    """

    def __init__(self, c: Compiler, region: Region, args: Sequence[Value]) -> None:
        self.args = args
        self._body = _Body(c, region)

    @classmethod
    def of(cls, c: Compiler, function: Operation) -> ItemProgram:
        region = function.regions[0]
        return cls(c, region, region.block.args)

    def call(self, group: ItemGroup, values: Sequence[Any]) -> list[Any]:
        frame: Frame = {id(a): v for a, v in zip(self.args, values, strict=True)}
        self._body.run(group, frame)
        return [frame[id(v)] for v in self._body.last]


def captured(op: Operation) -> list[Value]:
    """Values around an operation that its body uses."""
    if not op.regions:
        return []
    inside = {id(r) for inner in op.walk() for r in inner.results}
    inside |= {id(a) for o in op.walk() for r in o.regions for b in r.blocks for a in b.args}
    used = {id(v): v for inner in op.walk() for v in inner.operands}
    return [v for key, v in used.items() if key not in inside]


def _written_size(op: Operation) -> Size:
    return Size(*(integer(op.attrs, f"dim{d}") or 0 for d in "XYZ"))


class _Body:
    """The operations of a region except the last, which passes values on."""

    def __init__(self, c: Compiler, region: Region) -> None:
        ops = region.block.ops
        ends = bool(ops) and ops[-1].is_terminator
        self.last = ops[-1].operands if ends else []
        self._steps = [(op, step_of(c, op)) for op in (ops[:-1] if ends else ops)]

    def run(self, group: ItemGroup, frame: Frame) -> None:
        for op, step in self._steps:
            group.op = op
            group.ticks[0] += 1
            try:
                step(group, frame)
            except PtoError as error:
                raise located(error, op) from None


def step_of(c: Compiler, op: Operation) -> Do_:
    make_control = _CONTROL.get(op.control) if op.control is not None else None
    if make_control is not None:
        return make_control(c, op)
    row = op.row
    if row.body is None or op.control is not None:
        message = f"'{op.name}' op is parsed and checked, but not executed by work items yet"
        raise fail("PTO-X020", message, loc=op.loc)
    case = Case(op, c.profile)
    body = row.body
    if isinstance(body, Cooperative):
        return _together(op, body.make(case))
    if isinstance(body, Lane):
        return _lane(case, body)
    if isinstance(body, ConstantResult):
        return _known(op, body.value(case))
    if body is ADD_POINTER:
        return _together(op, moved(case))
    if isinstance(body, Do) and not body.blocks:
        return _one_by_one(case, body)
    raise fail("PTO-X020", f"'{op.name}' op cannot be executed by work items", loc=op.loc)


def _together(op: Operation, fn: Callable[..., Any]) -> Do_:
    def step(group: ItemGroup, frame: Frame) -> None:
        result = fn(group, *(group.taken(frame[id(v)]) for v in op.operands))
        if op.results:
            type = op.results[0].type
            group.put(frame, op.results[0], _of_type(result, type))

    return step


def kind_in(type: t.Type) -> np.dtype[Any]:
    return kind_of(type.elem if isinstance(type, t.Vector) else type)


def _of_type(lanes: Any, type: t.Type) -> Any:
    """The low bits, in the type of the result."""
    if not isinstance(lanes, np.ndarray) or not isinstance(type, t.Scalar | t.Vector):
        return lanes
    kind = kind_in(type)
    return (
        lanes.astype(np.uint8).astype(kind)
        if kind == np.bool_ and lanes.dtype != kind
        else (lanes.astype(kind, copy=False))
    )


def _lane(case: Case, body: Lane) -> Do_:
    op, fn = case.op, on_arrays(body.function(case))

    def step(group: ItemGroup, frame: Frame) -> None:
        values = [group.taken(frame[id(v)]) for v in op.operands]
        if body.needs is not None and body.refused is not None:
            bad = np.flatnonzero(~np.asarray(body.needs(*values)))
            if bad.size:
                raise body.refused(*(v[bad[0]] for v in values))
        outputs = fn(*values)
        for result, lanes in zip(
            op.results, outputs if len(op.results) > 1 else (outputs,), strict=True
        ):
            lanes = np.asarray(lanes)
            if not lanes.ndim:  # a constant, whatever the operands are
                lanes = np.broadcast_to(lanes, values[0].shape)
            group.put(frame, result, _of_type(lanes, result.type))

    return step


def _known(op: Operation, value: Any) -> Do_:
    result = op.results[0]

    def step(group: ItemGroup, frame: Frame) -> None:
        shape = (group.size.items, *np.shape(value))
        if isinstance(result.type, t.Scalar | t.Vector):
            frame[id(result)] = np.broadcast_to(np.asarray(value, kind_in(result.type)), shape)
        else:
            frame[id(result)] = value

    return step


# ---- operations without a form for many items: one item after the other


def number(value: Any, n: int, type: t.Type) -> Any:
    """The value of one item as a value of the scalar unit."""
    if isinstance(value, Pointers):
        return Pointer(value.memory, int(value.addresses[n]), value.dtype)
    if not isinstance(value, np.ndarray) or not isinstance(type, t.Scalar):
        return value[n] if isinstance(value, np.ndarray) else value
    return int(value[n]) if value.dtype.kind in "biu" else value[n]


def _one_by_one(case: Case, body: Do) -> Do_:
    op, fn = case.op, in_words(case, body)
    groups = [(o.variadic, case.op.group(o.name)) for o in case.row.operands]

    def step(group: ItemGroup, frame: Frame) -> None:
        taken = {id(v): group.taken(frame[id(v)]) for v in op.operands}
        results: list[Any] = []
        for n in range(group.active.size):
            columns = [
                (several, [number(taken[id(v)], n, v.type) for v in values])
                for several, values in groups
            ]
            numbers = [
                arguments if several else arguments[0] if arguments else None
                for several, arguments in columns
            ]
            results.append(fn(group.core, *numbers))
        for k, result in enumerate(op.results):
            arguments = [f[k] for f in results] if len(op.results) > 1 else results
            group.put(frame, result, _gathered(arguments, result.type))

    return step


def _gathered(values: list[Any], type: t.Type) -> Any:
    if isinstance(values[0], Pointer):
        if any(p.memory is not values[0].memory for p in values):
            raise fail("PTO-M116", "work items point into different memories")
        addresses = np.array([p.address for p in values], np.int64)
        return Pointers(values[0].memory, addresses, values[0].dtype)
    if isinstance(type, t.Scalar):
        return np.array(values, kind_of(type))
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


# ---- control flow


def _if(c: Compiler, op: Operation) -> Do_:
    arms = [_Body(c, region) if region.blocks else None for region in op.regions]
    numbers = ways(op)

    def step(group: ItemGroup, frame: Frame) -> None:
        selector = group.taken(frame[id(op.operands[0])])
        results: list[Any] = [None] * len(op.results)
        of_number = [selector == number for number in numbers]
        for arm, chosen in zip(arms, (~np.logical_or.reduce(of_number), *of_number), strict=False):
            if arm is None or not chosen.any():
                continue
            part = group.of(group.active[chosen])
            arm.run(part, frame)
            for n, value in enumerate(arm.last):
                new = frame[id(value)]
                results[n] = new if results[n] is None else part.merged(results[n], new)
        for result, value in zip(op.results, results, strict=True):
            frame[id(result)] = value

    return step


def _hand(frame: Frame, to: Sequence[Value], sources: Sequence[Value]) -> None:
    for a, v in zip(to, sources, strict=True):
        frame[id(a)] = frame[id(v)]


def _carry(group: ItemGroup, frame: Frame, to: Sequence[Value], sources: Sequence[Value]) -> None:
    merged = [
        group.merged(frame.get(id(a)), frame[id(v)]) for a, v in zip(to, sources, strict=True)
    ]
    for a, value in zip(to, merged, strict=True):
        frame[id(a)] = value


def _for(c: Compiler, op: Operation) -> Do_:
    body = _Body(c, op.regions[0])
    counter, *carried = op.regions[0].block.args
    lower, upper, by, *inits = op.operands

    def step(group: ItemGroup, frame: Frame) -> None:
        at = np.array(frame[id(lower)])
        end, stride = frame[id(upper)], frame[id(by)]
        require_step(int(group.taken(stride).min()))
        _hand(frame, carried, inits)
        live = group.active[at[group.active] < end[group.active]]
        while live.size:
            part = group.of(live)
            frame[id(counter)] = at.copy()
            body.run(part, frame)
            _carry(part, frame, carried, body.last)
            at[live] += stride[live]
            live = live[at[live] < end[live]]
            group.look()
        _hand(frame, op.results, carried)

    return step


def _while(c: Compiler, op: Operation) -> Do_:
    before, after = (_Body(c, region) for region in op.regions)
    test_args, body_args = (region.block.args for region in op.regions)
    condition, *passed = before.last

    def step(group: ItemGroup, frame: Frame) -> None:
        _hand(frame, test_args, op.operands)
        live = group.active
        while live.size:
            part = group.of(live)
            before.run(part, frame)
            _carry(part, frame, op.results, passed)
            live = live[frame[id(condition)][live].astype(np.bool_)]
            if live.size:
                part = group.of(live)
                _hand(frame, body_args, passed)
                after.run(part, frame)
                _carry(part, frame, test_args, after.last)
            group.look()

    return step


def _call(c: Compiler, op: Operation) -> Do_:
    program = ItemProgram.of(c, c.callee(op))

    def step(group: ItemGroup, frame: Frame) -> None:
        results = program.call(group, [frame[id(v)] for v in op.operands])
        for result, value in zip(op.results, results, strict=True):
            frame[id(result)] = value

    return step


_CONTROL: dict[Control, Callable[[Compiler, Operation], Do_]] = {
    Control.IF: _if,
    Control.FOR: _for,
    Control.WHILE: _while,
    Control.CALL: _call,
}
