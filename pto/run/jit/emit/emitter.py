"""Emission of operations as LLVM text, by the body of their row.

An operation without an emitter, or with one that raises UnsupportedLowering, is a host fallback:
its operands are stored in the argument buffer, Python runs the reference step, and its results are
loaded. An error that compiled code detects ends the same way: the reference step reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning.handle.view import SET_VALID
from pto.isa.meaning.kinds import Do
from pto.isa.rules.rule import Case
from pto.run.jit.emit import coroutine, frame
from pto.run.jit.emit.frame import HostFallback, fallback_form, is_global
from pto.run.jit.emit.operation import (
    KINDS,
    STRUCTURES,
    Emit,
    OpContext,
    emitter_of,
    require_regions,
    set_once,
)
from pto.run.jit.ir.kinds import UnsupportedLowering, unsupported_if
from pto.run.jit.llvm.text import FIXED, I32, I64, Text
from pto.run.jit.llvm.value import FALSE, Condition, Val
from pto.run.jit.runtime.context import FAILED, FINE, OVERFLOW, POLL, Action, Context, Word
from pto.run.jit.runtime.values import Lowered, TileDesc
from pto.run.reference.simt import captured

if TYPE_CHECKING:
    from pto.run.jit.compiler import NativeCompiler
    from pto.run.jit.emit.cube.forwarding import ForwardedCopy
    from pto.run.jit.emit.names import LiveIn
    from pto.run.jit.emit.unit import Unit

_T = TypeVar("_T")
_DEPTH: Final = 16  # calls inside calls that are written in place
_WRITE: Final = -(1 << 63)
_COLD: Final = ", !prof !1"
_SPACES: Final = tuple(Space)


class Emitter:
    """Writes one function of compiled code."""

    def __init__(self, unit: Unit, compiler: NativeCompiler, *, waits: bool = False) -> None:
        self.text = Text(unit.declare, coroutine.BODY if waits else "entry")
        self.unit = unit
        self.compiler = compiler
        self.env: dict[int, Lowered] = {}
        # constants loaded from the argument buffer, by operation
        self.hoisted: dict[int, Lowered] = {}
        # stack slots of tiles with an address or region that is set
        self.stack_slots: dict[int, str] = {}
        self.host_calls: list[Action] = []
        self.reserved = 0  # bytes of the argument buffer for live-in and live-out values
        self.fallback_bytes = 0  # bytes after them for host fallbacks
        self.live_out: set[int] = set()  # results that operations after the region use
        self.depth = 0  # of calls written in place
        self.live_in: LiveIn | None = None
        self.privates: dict[int, int] = {}  # of tiles that few use: `fusion.py`
        self.forwarded: dict[int, ForwardedCopy] = {}  # by tile (`cube/forwarding.py`)
        self._moving = set[int]()  # tiles that get another place
        self._bases, self._words = dict[str, str](), dict[int, str]()

    def allocate_stack_slots(self, ops: Sequence[Operation]) -> None:
        """Allocate stack slots for tiles with an address or region that is set: every use loads the
        last one."""
        once = set_once(ops)
        for op in ops:
            bound = op.group(op.body.defines) if isinstance(op.body, Do) and op.body.defines else ()
            for value in op.operands[: id(op) not in once] if op.body is SET_VALID else bound:
                self.stack_slots[id(value)] = self.text.stack("{i64, i64, i64}")
            self._moving |= {id(value) for value in bound}

    def value(self, value: Value) -> Lowered:
        found = self.env.get(id(value))
        if found is None:
            raise UnsupportedLowering("a value that only the other side of the core has")
        cell = self.stack_slots.get(id(value))
        if cell is None or not isinstance(found, TileDesc):
            return found
        now = [self.text.load(I64, self.text.at(cell, n), 8) for n in (0, 8, 16)]
        return found.renamed([now[0] if id(value) in self._moving else found.address, *now[1:]])

    def bind(self, value: Value, native: Lowered) -> None:
        self.env[id(value)] = native
        cell = self.stack_slots.get(id(value))
        unsupported_if(
            cell is not None and not isinstance(native, TileDesc),
            "the valid region of a handle is set",
        )
        for n, name in enumerate(() if cell is None else native.names):
            self.text.store(I64, name, self.text.at(str(cell), 8 * n), 8)

    @contextmanager
    def inlined(self) -> Generator[None]:
        """Around the body of a called function."""
        unsupported_if(self.depth == _DEPTH, "calls are nested too deeply")
        self.depth += 1
        yield
        self.depth -= 1

    # ---- the context

    def word(self, index: int) -> str:
        """A pointer of the context, read once."""
        self.unit.needs.words.add(index)
        if index not in self._words:
            place = self.text.first(f"getelementptr i8, ptr %ctx, i64 {8 * index}")
            self._words[index] = self._first_load("ptr", place)
        return self._words[index]

    def _first_load(self, type: str, place: str) -> str:
        """A fixed word, loaded at the start of the function."""
        return self.text.first(f"load {type}, ptr {place}, align 8, {FIXED}")

    def base(self, memory: Val) -> str:
        """The start of a memory."""
        return self._entry(memory, "ptr", 0)

    def size(self, memory: Val) -> Val:
        """Bytes of a memory; a number for local buffers."""
        if isinstance(memory, int) and int(memory) < len(_SPACES) and _SPACES[int(memory)].is_local:
            return self.compiler.profile.buffers[_SPACES[memory].value]
        return self._entry(memory, "i64", 8)

    def inside(self, memory: Val, address: Val, nbytes: Val) -> Condition:
        """True if a byte range lies inside a memory."""
        x, size = self.text, self.size(memory)
        if isinstance(size, int) and isinstance(nbytes, int):
            last = size - nbytes
            return FALSE if last < 0 else x.compare("ule", address, last)
        last = x.sub(size, nbytes)
        return x.compare("sge", last, 0) & x.compare("ule", address, last)

    def _entry(self, memory: Val, type: str, offset: int) -> str:
        table = self.word(Word.TABLE)
        if not isinstance(memory, int):
            place = self.text.new(f"shl i64 {memory}, 4")
            pointer = self.text.at(table, self.text.add(place, offset))
            return self.text.load_fixed(type, pointer)
        self.unit.needs.spaces.add(memory)
        key = f"{memory} {type}"
        if key not in self._bases:
            place = self.text.first(f"getelementptr i8, ptr {table}, i64 {16 * memory + offset}")
            self._bases[key] = self._first_load(type, place)
        return self._bases[key]

    def scratch(self) -> str:
        """The scratch buffer of the agent, for one instruction."""
        return self.word(Word.SCRATCH_BUFFER)

    def log_access(
        self, memory: Val, address: Val, rows: Val, nbytes: Val, pitch: Val, *, writes: bool
    ) -> None:
        """Log an access to global memory: rows of `nbytes`, `pitch` bytes apart."""
        if isinstance(memory, int) or not self.unit.needs.logs:
            return
        number = self.text.new(f"or i64 {memory}, {_WRITE}") if writes else memory
        words = ", ".join(f"i64 {w}" for w in (number, address, rows, nbytes, pitch))
        self.text.do(f"call void {self.unit.log_access()}(ptr {self.word(Word.LOG)}, {words})")

    def block(self, block: Block, end: bool = False) -> None:
        """Emit the operations of a block; its terminator only with `end`."""
        self.operations(block.ops if end else block.ops[:-1])

    def operations(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        launched = self.compiler.launched(op)
        if op.control in STRUCTURES and launched is None:
            STRUCTURES[op.control](self, op)
            return
        if id(op) in self.hoisted:
            self.bind(op.results[0], self.hoisted[id(op)])
            return
        self._operation(op, emitter_of(op) if launched is None else KINDS[type(launched)])
        if self.live_in is not None:
            self.live_in.operation(op)

    def _operation(self, op: Operation, emit: Emit | None) -> None:
        reason = "no emitter"
        if emit is not None:
            try:
                with self.text.part():
                    results = self._emitted(op, emit)
            except (UnsupportedLowering, PtoError) as why:  # what is wrong, the reference step says
                reason = str(why)
            else:
                for value, native in zip(op.results, results, strict=True):
                    self.bind(value, native)
                return
        self.unit.count_fallback(op, reason)
        for value, native in zip(op.results, self.host_fallback(op, reason), strict=True):
            self.bind(value, native)

    def _emitted(self, op: Operation, emit: Emit) -> Sequence[Lowered]:
        spot = OpContext(self, op)
        require_regions(spot)
        return emit(spot)

    def case(self, op: Operation) -> Case:
        return Case(op, self.compiler.profile)

    # ---- calls outside

    def host_fallback(
        self, op: Operation, why: str, *, seldom: bool = False, again: str = ""
    ) -> list[Lowered]:
        """A host fallback: the reference step of an operation, counted under its reason; returns
        the results. Its accesses to global memory are not logged; `seldom`: it rarely runs. One
        that has to wait is tried again from `again`."""
        unsupported_if(
            isinstance(op.body, Do) and op.body.defines, "a place that only Python knows"
        )
        inside = captured(op) if op.regions else ()
        values = list({id(v): v for v in (*op.operands, *inside)}.values())
        if any(is_global(v.type) for v in values):
            if not seldom:
                self.unit.ordered = True
            elif self.unit.needs.logs:  # more uses than were written down
                self.text.store(I64, OVERFLOW, self.word(Word.LOG), 8)
        waits = isinstance(op.body, Do) and op.body.blocks
        forms = [fallback_form(r.type, plain=waits) for r in op.results]
        ins = self._passed(values)
        start = sum(form.nbytes for _, form, _ in ins)
        outs: list[tuple[Value, Lowered, int]] = []
        for value, form in zip(op.results, forms, strict=True):
            outs.append((value, form, self.reserved + start))
            start += form.nbytes
        step = HostFallback(self.compiler, op, ins, outs, why, seldom=seldom)
        self.call(step, start, waits=waits, again=again)
        return [self.get(form, offset) for _, form, offset in outs]

    def _passed(self, values: Sequence[Value]) -> list[tuple[Value, Lowered, int]]:
        """Values, written to the frame one after the other."""
        offset, found = self.reserved, list[tuple[Value, Lowered, int]]()
        for value in values:
            found.append((value, self.value(value), offset))
            self.put(found[-1][1], offset)
            offset += found[-1][1].nbytes
        return found

    def call(
        self, action: Action, nbytes: int = 0, *, waits: bool = False, again: str = ""
    ) -> None:
        """Call Python, with this many bytes of the argument buffer."""
        self.fallback_bytes = max(self.fallback_bytes, nbytes)
        x, number = self.text, len(self.host_calls)
        self.host_calls.append(action)
        go, hold = x.fresh("go"), x.fresh("hold")
        if waits and not again:
            again = x.fresh("again")
            x.jump(again)
            x.label(again)
        status = x.new(f"call i32 {self.word(Word.CALL)}(ptr %ctx, i32 {number})")
        bad = x.compare("eq", status, FAILED, I32)
        x.branch(bad, "failed", hold if waits else go, _COLD)
        x.label(hold if waits else go)
        if waits:
            coroutine.suspend_unless(x, x.compare("eq", status, FINE, I32), again)

    def poll(self) -> None:
        """Poll between two iterations of a loop: Python runs if the timer has set the flag."""
        x = self.text
        rest = self.text.fresh("rest")
        go = self.text.fresh("turn")
        due = x.load_flag(self.word(Word.POLL_FLAG))
        x.branch(x.compare("ne", due, 0), rest, go, _COLD)
        x.label(rest)
        # its effects are invisible to this code, so that loaded values stay valid
        effect = "nounwind memory(inaccessiblemem: readwrite)"
        status = x.new(f"call i32 {self.word(Word.CALL)}(ptr %ctx, i32 {POLL}) {effect}")
        x.branch(x.compare("ne", status, 0, I32), "failed", go, _COLD)
        x.label(go)

    def put(self, native: Lowered, offset: int) -> None:
        """Write a value to the frame."""
        frame.put(self.text, native, offset)

    def get(self, form: Lowered, offset: int) -> Lowered:
        """Read a value of this form from the frame."""
        return frame.get(self.text, form, offset)

    def fault(self, op: Operation, condition: Condition) -> None:
        """Report an error if the condition does not hold: the reference step of `op` words it."""

        def report() -> None:
            values = list({id(v): v for v in op.operands}.values())
            ins = self._passed(values)
            nbytes = sum(native.nbytes for _, native, _ in ins)
            self.call(HostFallback(self.compiler, op, ins, [], None), nbytes)
            self.text.jump("failed")

        self.text.leave_unless(condition, report, ", !prof !2")

    def fail_with(
        self, condition: Condition, action: Callable[[Sequence[Any]], None], *given: Lowered
    ) -> None:
        """Call `action`, which raises, with these values if the condition does not hold."""

        def report() -> None:
            offset, places = self.reserved, []
            for native in given:
                self.put(native, offset)
                places.append((native, offset))
                offset += native.nbytes

            def run(context: Context, frame: memoryview) -> None:
                action([form.decode(frame, at, context) for form, at in places])

            self.call(run, offset - self.reserved)
            self.text.jump("failed")

        self.text.leave_unless(condition, report, ", !prof !2")

    def finish(self, name: str) -> str:
        """The text of the whole function."""
        x = self.text
        x.do("ret i32 0")
        x.label("failed")
        x.do("ret i32 1")
        # the argument buffer is not noalias: host fallbacks access it
        return x.function(f"define i32 @{name}(ptr noalias %ctx, ptr %frame) noinline")

    def finish_coroutine(self, name: str) -> str:
        """The text of a function that may wait (`coroutine.py`)."""
        return coroutine.finish(self.text, name)
