"""Compiler of the jit engine: runs of operations that cannot wait become compiled regions.

Everything else, and the order of the regions, is as in the reference engine.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import Any

from pto.ir.graph import Module, Operation, Region, Value
from pto.isa.meaning.handle.view import ALLOC_TILE, PARTITION, SET_VALID, TENSOR_VIEW
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.plan.buffers import Placement
from pto.run.jit.emit import instructions
from pto.run.jit.emit.emitter import Emitter
from pto.run.jit.emit.frame import bytes_of, form_of
from pto.run.jit.emit.fusion import FusingEmitter
from pto.run.jit.emit.names import LiveIn, Names
from pto.run.jit.emit.operation import emitter_of, is_cheap
from pto.run.jit.emit.scalar.control import STRUCTURES
from pto.run.jit.emit.unit import Unit
from pto.run.jit.ir.kinds import UnsupportedLowering
from pto.run.jit.runtime.coroutine import Coroutine
from pto.run.jit.runtime.region import CompiledRegion
from pto.run.jit.runtime.values import Lowered
from pto.run.machine.core import Core
from pto.run.reference.code import FunctionCode, Regs, Step, StepBlock, until_ready
from pto.run.reference.compile import Compiler
from pto.run.reference.control import is_polling
from pto.target.facts import Profile

instructions.load()
_LONGEST = 8_000  # operations of a region: LLVM's time grows faster than linearly
_LARGEST = 20_000  # operations of one loop or call, including called functions
Crossing = tuple[Value, Lowered, int]  # a live-in or live-out value, its representation, its offset


class NativeCompiler(Compiler):
    """Compiles functions; `unit` collects the compiled code of the whole kernel."""

    def __init__(
        self,
        unit: Unit,
        placement: Placement,
        module: Module,
        profile: Profile,
        side: str,
    ) -> None:
        super().__init__(module, profile, side)
        self.unit = unit
        self.placement = placement
        self._waits: dict[int, bool] = {}
        self._weights: dict[int, int] = {}
        self._alone = threading.RLock()
        self._plain = False  # True while reference steps are made
        self.whole: CompiledRegion | None = None  # the region that is a whole function

    def block(self, region: Region) -> StepBlock:
        if self._plain:
            return super().block(region)
        out = StepBlock()
        run = list[Operation]()
        weight = 0
        for op in region.block.ops:
            if not self._can_compile(op):
                self._close(out, run)
                run, weight = [], 0
                self._on_host(out, op)
                continue
            run.append(op)
            weight += self._weight(op)
            if weight > _LONGEST:
                self._close(out, run)
                run, weight = [], 0
        self._close(out, run)
        return out

    def _function(self, function: Operation) -> FunctionCode:
        made = None if self._plain else self._coroutine(function)
        if made is not None:
            return made
        code = super()._function(function)
        if len(code.body.steps) == 1:
            owner = getattr(code.body.steps[0], "__self__", None)
            self.whole = owner if isinstance(owner, CompiledRegion) and owner.is_whole else None
        return code

    def _coroutine(self, function: Operation) -> FunctionCode | None:
        """A function that can wait, as one compiled region; None if that is impossible."""
        ops = function.regions[0].block.ops
        ops = ops[:-1] if ops and ops[-1].control is Control.RETURN else ops
        if not any(map(self._can_wait, ops)) or not all(map(self._fits_coroutine, ops)):
            return None
        if sum(map(self._weight, ops)) > _LARGEST:
            return None
        outer = self._slots
        self._slots = {}
        noted = self.unit.recorded
        try:
            args = [self.slot(a) for a in function.regions[0].block.args]
            region = self._region(ops, waits=True)
            size = len(self._slots)
        except UnsupportedLowering as why:
            self.unit.count_fallback(ops[0], str(why))
            return None
        finally:
            self._slots = outer
        if not region.is_whole:
            self.unit.recorded = noted
            return None
        self.unit.has_coroutines = True
        plain = cache(partial(self._plainly, function))
        more: dict[str, Any] = {"unit": self.unit, "region": region, "plain": plain}
        return Coroutine(function, size, args, StepBlock(), True, **more)

    def _plainly(self, function: Operation) -> FunctionCode:
        """The reference code of a function."""
        with self._reference_steps(self._slots):
            return super()._function(function)

    @contextmanager
    def _reference_steps(self, slots: dict[int, int]) -> Generator[None]:
        """Make reference steps on these registers."""
        outer = self._slots, self._plain
        self._slots, self._plain = slots, True
        try:
            yield
        finally:
            self._slots, self._plain = outer

    def _can_wait(self, op: Operation) -> bool:
        """True if an operation, or one inside it, waits for another agent."""
        inner = self._inside(op)
        return (isinstance(op.body, Do) and op.body.blocks) or any(map(self._can_wait, inner))

    def _fits_coroutine(self, op: Operation) -> bool:
        """True if an operation is supported in a coroutine."""
        if self._can_compile(op) or op.is_terminator:
            return True
        if op.control is not None:
            simple = op.control in STRUCTURES and not any(is_polling(inner) for inner in op.walk())
            return simple and all(map(self._fits_coroutine, self._inside(op)))
        body = op.body
        return isinstance(body, Do) and not (op.regions or body.defines or body.polls)

    def _close(self, out: StepBlock, ops: list[Operation]) -> None:
        """Compile a run of operations as one region, if that is worth a call."""
        if not any(_is_work(op) for op in ops):
            for op in ops:
                self._add(out, op)
            return
        try:
            region = self._region(ops)
        except UnsupportedLowering as why:
            for op in ops:
                self._on_host(out, op, str(why))
            return
        out.ops.append(ops[0])
        out.steps.append(region.step)

    def _on_host(self, out: StepBlock, op: Operation, why: str = "") -> None:
        """A reference step between compiled regions; it counts as a host fallback."""
        n = len(out.steps)
        self._add(out, op)
        if op.control is not None or len(out.steps) == n:
            return
        why = why or _why_not(op)
        self.unit.count_fallback(op, why)
        step, key = out.steps[n], (op.name, why)

        def counted(core: Core, regs: Regs) -> Any:
            found = step(core, regs)
            if not isinstance(found, Blocked):
                core.cluster.fallbacks[key] += 1
            return found

        out.steps[n] = counted
        if n in out.waits:
            out.waits[n] = until_ready(op, counted)

    def _region(self, ops: list[Operation], *, waits: bool = False) -> CompiledRegion:
        """One compiled region; raises UnsupportedLowering if there is no lowering."""
        noted = self.unit.recorded
        inner = [op for outer in ops for op in self._reached(outer)]
        names = _repeated(inner)
        inner = [*names, *inner]
        ins, outs = _live_values(ops, inner, self._arguments(inner))
        emitter, name = FusingEmitter(self.unit, self, waits=waits), self.unit.new_name()
        emitter.live_in = LiveIn(emitter, self.unit.needs)
        emitter.allocate_stack_slots(inner)
        try:
            before = _load_arguments(emitter, ins, outs)
            sizes = _hoist_sizes(emitter, inner)
            emitter.operations([*names, *ops])
            after = _store_results(emitter, outs, sum(form.nbytes for _, form, _ in before))
            kept = _store_regions(emitter, before)
        except UnsupportedLowering:
            self.unit.recorded = noted
            raise
        self.unit.add(name, emitter.finish_coroutine(name) if waits else emitter.finish(name))
        self._reserve(inner)
        ins, outs, kept = (
            [(self.slot(v), form, at) for v, form, at in each] for each in (before, after, kept)
        )
        return CompiledRegion(
            self.unit, name, ops[0], emitter, ins, outs, kept, sizes, self._reference(ops)
        )

    def _reserve(self, inner: Sequence[Operation]) -> None:
        """Reserve registers for the reference steps of these operations."""
        for op in inner:
            self.slots([*op.operands, *op.results])
            self.slots([a for region in op.regions for b in region.blocks for a in b.args])

    def _reference(self, ops: list[Operation]) -> Callable[[], tuple[StepBlock, int]]:
        """A function that makes reference steps on demand, and counts their registers."""
        slots = self._slots

        def make() -> tuple[StepBlock, int]:
            with self._reference_steps(slots):
                plain = StepBlock()
                for op in ops:
                    self._add(plain, op)
                return plain, len(slots)

        return make

    def alone(self, op: Operation) -> tuple[Step, dict[int, int], int]:
        """The reference step of one operation on its own registers: step, slots, their number."""
        slots: dict[int, int] = {}
        with self._alone, self._reference_steps(slots):  # threads may report the same error
            step = self.step(op)
            self.slots([*op.operands, *op.results])
            return step, slots, len(slots) + 1

    def _arguments(self, inner: Sequence[Operation]) -> set[int]:
        """Arguments of called functions, which are inlined."""
        calls = [self.callee(op) for op in inner if op.control is Control.CALL]
        return {id(a) for callee in calls for a in callee.regions[0].block.args}

    @cached_property
    def names(self) -> Names:
        return Names(self.module, self.placement.addresses.get)

    # ---- supported operations

    def _can_compile(self, op: Operation) -> bool:
        """True if nothing inside an operation can wait, and the operation has a lowering."""
        found = self._waits.get(id(op))
        if found is None:
            self._waits[id(op)] = False  # a recursive call has no lowering
            found = self._waits[id(op)] = self._is_compilable(op)
        return found

    def _is_compilable(self, op: Operation) -> bool:
        if self.launched(op) is not None:
            return True
        if op.control is not None:
            if op.control not in STRUCTURES or any(is_polling(inner) for inner in op.walk()):
                return False
            inner = self._inside(op)
            if not all(self._can_compile(o) or o.is_terminator for o in inner):
                return False
            return self._weight(op) <= _LARGEST
        body = op.body
        if body is None or op.regions:
            return False
        if isinstance(body, Do) and body.defines and _binds_own(op, body.defines):
            return True
        return not (isinstance(body, Do) and (body.blocks or body.defines or body.polls))

    def _inside(self, op: Operation) -> list[Operation]:
        """The operations of its regions, or of the function it calls."""
        if op.control is Control.CALL:
            return self.callee(op).regions[0].block.ops
        return [o for b in op.blocks() for o in b.ops] if op.regions else []

    def _weight(self, op: Operation) -> int:
        """The number of operations after inlining."""
        found = self._weights.get(id(op))
        if found is None:
            self._weights[id(op)] = _LARGEST + 1  # recursion has no end
            found = self._weights[id(op)] = 1 + sum(map(self._weight, self._inside(op)))
        return found

    def _reached(self, op: Operation) -> Iterator[Operation]:
        """An operation and all inside it, including called functions."""
        yield op
        for inner in self._inside(op):
            yield from self._reached(inner)


def _why_not(op: Operation) -> str:
    """The reason why an operation has no lowering."""
    if isinstance(op.body, Do) and op.body.defines:
        return "it defines the place of a tile"
    return f"a {'poll' if is_polling(op) else 'wait'} in a function that is no coroutine"


def _binds_own(op: Operation, name: str) -> bool:
    """True if a tile that gets another address had one before."""
    makers = [value.maker for value in op.group(name)]
    plain = all(maker is not None and maker.body is ALLOC_TILE for maker in makers)
    return plain and emitter_of(op) is not None


def _is_work(op: Operation) -> bool:
    """True if compiling is worthwhile: not for scalars, handles and flags outside of loops."""
    if op.is_loop or op.control is Control.CALL:
        return True
    if op.regions:
        return any(_is_work(o) for region in op.regions for b in region.blocks for o in b.ops)
    return emitter_of(op) is not None and not is_cheap(op)


def _load_arguments(
    emitter: Emitter, ins: Sequence[Value], outs: Sequence[Value]
) -> list[Crossing]:
    """Load live-in values from the argument buffer; space for results follows them."""
    found: list[Crossing] = []
    emitter.live_out = {id(value) for value in outs}
    for value in ins:
        form = form_of(value.type)
        emitter.bind(value, emitter.get(form, emitter.reserved))
        found.append((value, form, emitter.reserved))
        emitter.reserved += form.nbytes
    emitter.reserved += sum(bytes_of(v.type) for v in outs)
    return found


def _hoist_sizes(emitter: Emitter, inner: Sequence[Operation]) -> list[tuple[Lowered, int, int]]:
    """Constants that are only array sizes or loop bounds are loaded from the argument buffer, so
    that other sizes share compiled code: representation, offset, value."""
    found: list[tuple[Lowered, int, int]] = []
    for op in inner:
        value = op.results[0].number if op.traits.constant else None
        if value is None or not _is_size(op.results[0]):
            continue
        form = form_of(op.results[0].type)
        emitter.hoisted[id(op)] = emitter.get(form, emitter.reserved)
        found.append((form, emitter.reserved, value))
        emitter.reserved += form.nbytes
    return found


def _store_results(emitter: Emitter, outs: Sequence[Value], at: int) -> list[Crossing]:
    """Store results in the argument buffer, in their final representation."""
    found: list[Crossing] = []
    for value in outs:
        native, room = emitter.value(value), bytes_of(value.type)
        emitter.put(native, at)
        found.append((value, native.renamed([""] * len(native.names)), at))
        at += room
    return found


def _store_regions(emitter: Emitter, before: Sequence[Crossing]) -> list[Crossing]:
    """Live-in tiles with a valid region that may have been set."""
    kept = [crossing for crossing in before if id(crossing[0]) in emitter.stack_slots]
    for value, _, at in kept:
        emitter.put(emitter.value(value), at)
    return kept


def _is_size(value: Value) -> bool:
    """True if the value is only the size of arrays and the bound of loops."""
    for op in value.uses:
        shape = op.group("shape") if op.body is TENSOR_VIEW else []
        if value not in (op.operands[1:2] if op.control is Control.FOR else shape):
            return False
    return bool(value.uses)


def _live_values(
    ops: Sequence[Operation], inner: Sequence[Operation], args: set[int]
) -> tuple[list[Value], list[Value]]:
    """The live-in values of these operations, and their live-out values."""
    made, used = args | _made(inner), [v for op in inner for v in op.operands]
    counts, values = Counter(map(id, used)), {id(v): v for v in used}
    ins = [v for key, v in values.items() if key not in made]
    return ins, [r for op in ops for r in op.results if len(r.uses) > counts[id(r)]]


def _made(inner: Sequence[Operation]) -> set[int]:
    """The ids of the values that these operations define."""
    made = {id(r) for op in inner for r in op.results}
    return made | {id(a) for op in inner for r in op.regions for b in r.blocks for a in b.args}


def _repeated(inner: Sequence[Operation]) -> list[Operation]:
    """Operations before a region that are emitted once more inside it, in order of their
    dependences. They only name a place: constants, tiles that the planner placed, views. A region
    that gets them as arguments would compute with addresses and sizes that are not known when it is
    compiled, which takes five times the code."""
    made, found = _made(inner), dict[int, Operation]()
    for op in inner:
        for value in op.operands:
            if id(value) not in made and isinstance(value.type, t.TileBuf | t.View):
                _repeat(value, found)
    return list(found.values())


def _repeat(value: Value, found: dict[int, Operation]) -> bool:
    """True if a value can be defined again; adds its operations to `found`."""
    op = value.maker
    if op is None:
        return isinstance(value.type, t.Ptr)  # an argument of the function
    if id(op) in found or op.traits.constant:
        found[id(op)] = op
        return True
    if op.body is ALLOC_TILE:
        fixed = op.operand("addr") is None and not any(_sets(user, value) for user in value.uses)
    else:
        fixed = op.body in (TENSOR_VIEW, PARTITION)
    own: dict[int, Operation] = {}
    if not fixed or not all(_repeat(each, own) for each in op.operands):
        return False
    found |= own
    found[id(op)] = op
    return True


def _sets(op: Operation, tile: Value) -> bool:
    """True if an operation sets the address or the valid region of a tile."""
    bound = op.group(op.body.defines) if isinstance(op.body, Do) and op.body.defines else []
    return tile in (op.operands[:1] if op.body is SET_VALID else bound)
