"""Code of work items: instructions become entries of phases, control flow uses masks.

A value that all items share stays a scalar; code that uses only such values is emitted once, by the
emitters of the scalar unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pto.ir.graph import Block, Operation, Region, Value
from pto.isa.meaning.handle.view import ADD_POINTER, CAST_POINTER, element
from pto.isa.meaning.kinds import ConstantResult, Cooperative, Lane
from pto.isa.meaning.scalar.arith import SCALAR
from pto.isa.meaning.simt.launch import KEEP, QUERIES, RESUME, SYNCTHREADS
from pto.isa.meaning.simt.memory import moved
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.operation import is_cheap
from pto.run.jit.emit.scalar.control import step_error, word_of
from pto.run.jit.emit.simt.phases import Entry, ItemSlot, Phases, Touch
from pto.run.jit.emit.simt.warp import At, Warp, item_of
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import I32, I64
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime.values import ScalarValue

_SELECT = SCALAR["arith.select"]
CLOCKS = (QUERIES["clock32"], QUERIES["clock64"])
_EVERY = (KEEP, RESUME, SYNCTHREADS)  # what concerns warps without active items too
Env = dict[int, Any]
Run = Callable[..., Any]


class Body:
    """Writes the operations of one launch."""

    def __init__(
        self, e: Emitter, phases: Phases, outside: Callable[[Operation], None], clock: bool
    ) -> None:
        self.e = e
        self.x = e.text
        self.p = phases
        self._outside = outside
        self._clock = self.x.stack(I64) if clock else ""
        if clock:
            self.x.store(I64, 0, self._clock, 8)

    def run(self, block: Block) -> Sequence[Value]:
        """Emit all operations but the terminator; returns the values it yields."""
        ops = block.ops
        ends = bool(ops) and ops[-1].is_terminator
        for op in ops[:-1] if ends else ops:
            self._tick()
            self.operation(op)
        return ops[-1].operands if ends else []

    def _tick(self) -> None:
        if self._clock:
            self.x.store(I64, self.x.add(self.x.load(I64, self._clock, 8), 1), self._clock, 8)

    def operation(self, op: Operation) -> None:
        if op.control is not None:
            known = op.control in _CONTROL and "cases" not in op.attrs
            unsupported_if(not known, "a switch of work items")
            _CONTROL[op.control](self, op)
            return
        if self._is_uniform(op):
            self._uniform(op)
            return
        run = self._meaning(op)
        if run is None:
            self.p.flush()
            self._name_results(op)
            self._outside(op)
            return
        self._name_results(op)
        self.p.add(self._entry(op, run))

    # ---- what all items share

    def _is_uniform(self, op: Operation) -> bool:
        if any(isinstance(r.type, t.Vector) for r in op.results) or not op.results:
            return False
        if op.body is ADD_POINTER and element(op.operands[0].type) is None:
            return False  # of packed elements, which only work items count in
        kind = isinstance(op.body, Lane | ConstantResult) or is_cheap(op)
        return kind and all(map(self.p.is_uniform, op.operands))

    def _uniform(self, op: Operation) -> None:
        if isinstance(op.body, Lane) and op.body.needs is not None:
            self.p.flush()  # errors are reported in order
        for result in op.results:
            self.p.kept.pop(id(result), None)
        self.e.operation(op)

    # ---- what each item does

    def _name_results(self, op: Operation) -> None:
        for result in op.results:
            pointer = next((v for v in op.operands if not isinstance(v.type, t.Scalar)), None)
            self.p.kept[id(result)] = self.p.new(result.type, pointer)

    def _entry(self, op: Operation, run: Run) -> Entry:
        body, touches = op.body, _touches(op)
        needs = isinstance(body, Lane) and body.needs is not None
        now: Val = self.x.load(I64, self._clock, 8) if body in CLOCKS else 0

        def write(w: Warp, env: Env) -> None:
            found = run(w, *(self.p.value(w, env, v) for v in op.operands))
            several = found if isinstance(found, tuple) else (found,) * len(op.results)
            self.p.results(w, env, op, several)

        faults = bool(touches) or needs or body in (RESUME, SYNCTHREADS)
        return Entry(op, write, touches, faults, body in _EVERY, now)

    def _meaning(self, op: Operation) -> Run | None:
        """fn(warp, *operands); None: Python does it."""
        body, case = op.body, self.e.case(op)
        if isinstance(body, Cooperative):
            return body.make(case)
        if isinstance(body, Lane):
            return _lane(body, body.function(case))
        if isinstance(body, ConstantResult):
            return _known(body.value(case), op.results[0].type)
        if body is ADD_POINTER:
            return moved(case)
        if body is _SELECT:
            return _chosen
        if body is CAST_POINTER and isinstance(op.operands[0].type, t.Ptr):
            kind = element(op.results[0].type)
            return lambda w, pointer: replace(pointer, dtype=kind)
        return None

    # ---- control flow

    def _cell(self) -> str:
        return self.x.stack(I32)

    def _some(self, cell: str) -> Condition:
        """True if a warp has an active item."""
        return self.x.compare("ne", self.x.load(I32, cell, 4), 0, I32)

    def _split(self, op: Operation, ways: Sequence[tuple[int, str, Run]]) -> None:
        """Compute the mask of each way, where fn(warp, env) selects the items, and whether any item
        takes it."""

        def run(w: Warp, env: Env) -> None:
            found = [fn(w, env) & w.mask for _, _, fn in ways]
            for (mask, cell, _), each in zip(ways, found, strict=True):
                bits = each.bits
                self.x.store(I32, bits, self.p.mask_at(mask, w.number), 4)
                w.note(cell, bits)

        if any(mask == self.p.mask for mask, _, _ in ways):
            self.p.report()  # an error report reads the mask that `run` changes
        for _, cell, _ in ways:
            self.x.store(I32, 0, cell, 4)
        self.p.add(Entry(op, run, every=True))
        self.p.flush()

    def _under(self, mask: int, body: Callable[[], None]) -> None:
        outer, self.p.mask = self.p.mask, mask
        body()
        self.p.flush()
        self.p.mask = outer

    def _arm(self, op: Operation, region: Region, mask: int, results: list[ItemSlot]) -> None:
        def body() -> None:
            found = self.run(region.block)
            if results and not self.p.kept.get(id(op.results[0])):
                self._name(op, results, found)
            self.p.assign(region.block.ops[-1], results, found)

        self._under(mask, body)

    def _name(self, op: Operation, results: list[ItemSlot], sources: Sequence[Value]) -> None:
        """Allocate memory for the results of a branch."""
        made = [self.p.new(r.type, v) for r, v in zip(op.results, sources, strict=True)]
        results[:] = made
        for result, kept in zip(op.results, made, strict=True):
            self.p.kept[id(result)] = kept

    def _if(self, op: Operation) -> None:
        condition, x = op.operands[0], self.x
        for result in op.results:
            self.p.kept.pop(id(result), None)
        results: list[Any] = [None] * len(op.results)
        if self.p.is_uniform(condition):
            self.p.flush()
            holds = x.bit(word_of(self.e, condition).name)
            ways = [(self.p.mask, holds), (self.p.mask, ~holds)]
        else:
            masks, cells = (self.p.new_mask(), self.p.new_mask()), (self._cell(), self._cell())

            def yes(w: Warp, env: Env) -> Any:
                return self.p.value(w, env, condition)

            tests = (yes, lambda w, env: ~yes(w, env))
            self._split(op, list(zip(masks, cells, tests, strict=True)))
            ways = list(zip(masks, map(self._some, cells), strict=True))
        for region, (mask, holds) in zip(op.regions, ways, strict=False):
            if region.blocks:
                x.when(holds, partial(self._arm, op, region, mask, results))

    def _carried(
        self, op: Operation, to: Sequence[Value], sources: Sequence[Value]
    ) -> list[ItemSlot]:
        """Copy carried values to memory of their own."""
        made = [self.p.new(a.type, v) for a, v in zip(to, sources, strict=True)]
        self.p.assign(op, made, sources)
        for a, kept in zip(to, made, strict=True):
            self.p.kept[id(a)] = kept
        return made

    def _for(self, op: Operation) -> None:
        counter, *carried = op.regions[0].block.args
        lower, upper, by, *inits = op.operands
        unsupported_if(not self.p.is_uniform(by), "a step of each work item")
        self.p.flush()
        step = word_of(self.e, by)
        self.e.fail_with(self.x.compare("sgt", step.name, 0, step.types[0]), step_error(op), step)
        around = self._carried(op, carried, inits)
        self.p.flush()
        if self.p.is_uniform(lower) and self.p.is_uniform(upper):
            self._counted(op, counter, around)
        else:
            self._each_counts(op, counter, around)
        for result, kept in zip(op.results, around, strict=True):
            self.p.kept[id(result)] = kept

    def _counted(self, op: Operation, counter: Value, around: list[ItemSlot]) -> None:
        """All items go around equally often."""
        x, block = self.x, op.regions[0].block
        low, high, by = (word_of(self.e, v) for v in op.operands[:3])
        kind = low.types[0]

        def turn(state: list[str]) -> list[Val]:
            self.p.kept.pop(id(counter), None)
            self.e.bind(counter, ScalarValue((state[0],), low.type))
            self.p.assign(block.ops[-1], around, self.run(block))
            self.p.flush()
            self.e.poll()
            return [x.new(f"add {kind} {state[0]}, {by.name}")]

        def test(state: list[str]) -> Condition:
            return x.compare("slt", state[0], high.name, kind)

        x.while_loop([kind], [low.name], test, turn)

    def _each_counts(self, op: Operation, counter: Value, around: list[ItemSlot]) -> None:
        block = op.regions[0].block
        live = self.p.new_mask()
        cell = self._cell()
        lower, upper, by = op.operands[:3]
        (at,) = self._carried(op, [counter], [lower])

        def goes_on(w: Warp, env: Env) -> Any:
            return self.p.read(w, at) < self.p.value(w, env, upper)

        self._split(op, [(live, cell, goes_on)])

        def moves_on(w: Warp, env: Env) -> Any:
            following = self.p.read(w, at) + self.p.value(w, env, by)
            self.p.write(w, at, following, merge=True)
            return following < self.p.value(w, env, upper)

        def turn() -> None:
            self.p.assign(block.ops[-1], around, self.run(block))
            self._split(block.ops[-1], [(live, cell, moves_on)])

        self._while_some(cell, lambda: self._under(live, turn))

    def _while_some(self, cell: str, turn: Callable[[], None]) -> None:
        def once(_: list[str]) -> list[Val]:
            turn()
            self.e.poll()
            return []

        self.x.while_loop([], [], lambda _: self._some(cell), once)

    def _while(self, op: Operation) -> None:
        before, after = (region.block for region in op.regions)
        asked = self._carried(op, before.args, op.operands)
        live = self.p.new_mask()
        cell = self._cell()
        x = self.x
        self._split(op, [(live, cell, lambda w, env: w.mask)])
        told: list[ItemSlot] = []

        def test() -> None:
            condition, *passed = self.run(before)
            told[:] = self._carried(before.ops[-1], after.args, passed)
            for result, kept in zip(op.results, told, strict=True):
                self.p.kept[id(result)] = kept
            self._split(
                before.ops[-1], [(live, cell, lambda w, env: self.p.value(w, env, condition))]
            )

        def repeat() -> None:
            self.p.assign(after.ops[-1], asked, self.run(after))

        def turn() -> None:
            self._under(live, test)
            x.when(self._some(cell), lambda: self._under(live, repeat))

        self._while_some(cell, turn)

    def _call(self, op: Operation) -> None:
        callee = self.e.compiler.callee(op)
        block = callee.regions[0].block
        with self.e.inlined():
            for arg, value in zip(block.args, op.operands, strict=True):
                self.p.rename(arg, value)
            for result, value in zip(op.results, self.run(block), strict=True):
                self.p.rename(result, value)


_CONTROL: dict[Control, Callable[[Body, Operation], None]] = {
    Control.IF: Body._if,  # pyright: ignore[reportPrivateUsage]
    Control.FOR: Body._for,  # pyright: ignore[reportPrivateUsage]
    Control.WHILE: Body._while,  # pyright: ignore[reportPrivateUsage]
    Control.CALL: Body._call,  # pyright: ignore[reportPrivateUsage]
}


def _touches(op: Operation) -> tuple[Touch, ...]:
    """Memories an instruction uses: those its pointers lead to, unless it gives one."""
    if any(not isinstance(r.type, t.Scalar | t.Vector) for r in op.results):
        return ()
    if op.body in (KEEP, RESUME):  # a slot that was refused must not be filled by then
        return (("slots", op.body is KEEP),)
    found = [(v.type, o.role != "in") for o in op.row.operands for v in op.group(o.name)]
    return tuple(
        (str(getattr(type, "space", "own")), writes)
        for type, writes in found
        if not isinstance(type, t.Scalar | t.Vector)
    )


def _lane(body: Lane, fn: Run) -> Run:
    def run(w: Warp, *given: Any) -> Any:
        if body.needs is not None:
            w.fault(~body.needs(*given))
        found = fn(*given)
        if isinstance(found, np.ndarray):  # a constant, whatever the operands are
            return given[0].lanes.constant(found.dtype, found)
        return found

    return run


def _known(value: Any, type: t.Type) -> Run:
    """A constant of packed numbers."""
    kind, count = item_of(type)
    every = np.broadcast_to(np.asarray(value), (32, count)).reshape(-1)
    bits = (
        every
        if every.dtype == kind
        else every.view(kind)
        if every.itemsize == kind.itemsize
        else every.astype(kind)
    )
    return lambda w: w.of(32 * count).constant(kind, bits)


def _chosen(w: Warp, condition: Any, a: Any, b: Any) -> Any:
    if isinstance(a, At):
        others = b.within(a.memory)
        return replace(a, addresses=lanes.where(w.spot, condition, a.addresses, others))
    count = a.lanes.count // w.spot.count
    return lanes.where(a.lanes, w.wide(condition, count), a, b)
