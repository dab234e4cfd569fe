"""Operations as LLVM text, by their row's body.

An operation whose emitter gives up (`NotNative`), or that has none, is a call outside: its operands
go to the frame, Python runs the reference step, its results come back. What compiled code finds
wrong ends the same way: the reference step says what it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning import Do, Known, Lane
from pto.isa.meaning.handle.view import SET_VALID, Handles
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.jit.border.context import (
    CALL,
    DUE,
    FAILED,
    FINE,
    FLAGS,
    LOG,
    LOOK,
    REGISTERS,
    ROOM,
    TABLE,
    TOUCHES,
    Action,
    Context,
)
from pto.run.jit.border.values import Native, TilePlace
from pto.run.jit.emit import coroutine, frame
from pto.run.jit.emit.outside import Outside, is_global, outside_form
from pto.run.jit.emit.regions import require_regions, set_once
from pto.run.jit.emit.touches import touched
from pto.run.jit.emit.watch import Follows, Watch
from pto.run.jit.llvm.skeleton import Skeleton
from pto.run.jit.llvm.text import I32, I64, NotNative, Text, Val
from pto.run.reference.simt import captured
from pto.verify.operation import constant

if TYPE_CHECKING:
    from pto.run.jit.compiler import NativeCompiler
    from pto.run.jit.emit.cube.lent import Lent
    from pto.run.jit.emit.unit import Unit

Emit = Callable[["Spot"], Sequence[Native]]
_WRITE: Final = -(1 << 63)
_COLD: Final = ", !prof !1"
_INVARIANT: Final = ", !invariant.load !0"
_HEAD: Final = "define i32 @{}(ptr noalias %ctx, ptr %frame) noinline"
_SPACES: Final = tuple(Space)

# The body of a row -> its emitter. Rows that share a body share the emitter.
EMITTERS: dict[int, Emit] = {}
CHEAP: set[int] = set()
# The kinds that need no entry of their own, meanings in words, and control flow.
KINDS: dict[type, Emit] = {}
WORDS: dict[Any, Emit] = {}
STRUCTURES: dict[Control, Callable[[Emitter, Operation], None]] = {}


def emits(*bodies: object, cheap: bool = False) -> Callable[[Emit], Emit]:
    """Register the emitter of all rows with these bodies; nothing cheap is worth a piece alone."""

    def register(emit: Emit) -> Emit:
        for body in bodies:
            EMITTERS[id(body)] = emit
            if cheap:
                CHEAP.add(id(body))
        return emit

    return register


def emitter_of(op: Operation) -> Emit | None:
    """How an operation is compiled; None: not at all."""
    body = op.body
    words = WORDS.get(body.words) if isinstance(body, Do) else None
    return words or EMITTERS.get(id(body)) or KINDS.get(type(body))


def is_cheap(op: Operation) -> bool:
    """Whether it is not worth a piece alone: numbers, names of places, flags."""
    numbers = bool(op.results) and all(isinstance(r.type, t.Scalar) for r in op.results)
    names = isinstance(op.body, Do) and op.body.words is Handles
    return names or id(op.body) in CHEAP or (numbers and isinstance(op.body, Lane | Known))


class Emitter:
    """Writes one function of compiled code."""

    def __init__(self, unit: Unit, compiler: NativeCompiler) -> None:
        self.text = Text()
        self.unit = unit
        self.compiler = compiler
        self.env: dict[int, Native] = {}
        self.lifted: dict[int, Native] = {}  # constants that are read from the frame, by operation
        self.cells: dict[int, str] = {}  # tiles whose place or region the code sets: kept there
        self.outside: list[Action] = []
        self.border = 0  # bytes of the frame that values of the piece's border take
        self.area = 0  # most bytes behind them that a call outside needs
        self.leaving: set[int] = set()  # results that operations behind the piece use
        self.depth = 0  # of calls written in place
        self.watch: Watch | None = None
        self.reach: Follows | None = None
        self.owners: dict[int, int] = {}  # of tiles that few use: `fusion.py`
        self.lent: dict[int, Lent] = {}  # tiles that are not filled: `cube/lent.py`
        self.unpacked: Any = None  # the right factor that the last product unpacked, and its size
        self._head, self._moving = self.text.allocas, set[int]()  # tiles that get another place
        self._bases, self._words = dict[str, str](), dict[int, str]()

    def prepare_cells(self, ops: Sequence[Operation]) -> None:
        """Tiles whose place or region is set keep it on the stack: every use sees the last one."""
        once = set_once(ops)
        for op in ops:
            bound = op.group(op.body.binds) if isinstance(op.body, Do) and op.body.binds else ()
            for value in op.operands[: id(op) not in once] if op.body is SET_VALID else bound:
                self.cells[id(value)] = self.text.stack("{i64, i64, i64}")
            self._moving |= {id(value) for value in bound}

    def value(self, value: Value) -> Native:
        found = self.env.get(id(value))
        if found is None:
            raise NotNative("a value that only the other side of the core has")
        cell = self.cells.get(id(value))
        if cell is None or not isinstance(found, TilePlace):
            return found
        now = [self.text.load(I64, self.text.at(cell, n), 8) for n in (0, 8, 16)]
        return found.renamed([now[0] if id(value) in self._moving else found.address, *now[1:]])

    def bind(self, value: Value, native: Native) -> None:
        self.env[id(value)] = native
        cell = self.cells.get(id(value))
        if cell is not None and not isinstance(native, TilePlace):
            raise NotNative("the valid region of a handle is set")
        for n, name in enumerate(() if cell is None else native.names):
            self.text.store(I64, name, self.text.at(str(cell), 8 * n), 8)

    # ---- the context

    def word(self, index: int) -> str:
        """A pointer of the context, read once."""
        found = self._words.get(index)
        self.unit.needs.words.add(index)
        if found is None:
            found, place = self.text.name(), self.text.name()
            self._head.append(f"  {place} = getelementptr i8, ptr %ctx, i64 {8 * index}")
            self._head.append(f"  {found} = load ptr, ptr {place}, align 8{_INVARIANT}")
            self._words[index] = found
        return found

    def base(self, memory: Val) -> str:
        """Where a memory begins."""
        return self._entry(memory, "ptr", 0)

    def size(self, memory: Val) -> Val:
        """Bytes of a memory; a number for local buffers."""
        if isinstance(memory, int) and int(memory) < len(_SPACES) and _SPACES[int(memory)].is_local:
            return self.compiler.profile.buffers[_SPACES[memory].value]
        return self._entry(memory, "i64", 8)

    def inside(self, memory: Val, address: Val, nbytes: Val) -> str:
        """Whether so many bytes from an address on lie inside a memory."""
        fine = self._inside(memory, address, nbytes)
        if self.watch is not None:
            self.watch.access(memory, address, nbytes, fine)
        return fine

    def _inside(self, memory: Val, address: Val, nbytes: Val) -> str:
        x, size = self.text, self.size(memory)
        if isinstance(size, int) and isinstance(nbytes, int):
            last = size - nbytes
            return "false" if last < 0 else x.compare("ule", address, last)
        last = x.sub(size, nbytes)
        return x.both(x.compare("sge", last, 0), x.compare("ule", address, last))

    def _entry(self, memory: Val, type: str, offset: int) -> str:
        table = self.word(TABLE)
        if not isinstance(memory, int):
            place = self.text.new(f"shl i64 {memory}, 4")
            pointer = self.text.at(table, self.text.add(place, offset))
            return self.text.load(type, pointer, 8, _INVARIANT)
        self.unit.needs.spaces.add(memory)
        key = f"{memory} {type}"
        if key not in self._bases:
            found, place = self.text.name(), self.text.name()
            self._head.append(
                f"  {place} = getelementptr i8, ptr {table}, i64 {16 * memory + offset}"
            )
            self._head.append(f"  {found} = load {type}, ptr {place}, align 8{_INVARIANT}")
            self._bases[key] = found
        return self._bases[key]

    def room(self) -> str:
        """Scratch memory of the agent, for the instruction at hand."""
        return self.word(ROOM)

    def touched(
        self, memory: Val, address: Val, rows: Val, nbytes: Val, pitch: Val, *, writes: bool
    ) -> None:
        """A use of global memory, for the skeleton: rows of `nbytes`, `pitch` bytes apart."""
        if isinstance(memory, int):
            return
        number = self.text.new(f"or i64 {memory}, {_WRITE}") if writes else memory
        name = self.unit.shared("touched", touched)
        words = ", ".join(f"i64 {w}" for w in (number, address, rows, nbytes, pitch))
        self.text.note(f"call void {name}(ptr {self.word(LOG)}, {words})")

    def block(self, block: Block, end: bool = False) -> None:
        """The operations of a block; its last one, which hands values on, only with `end`."""
        before = set(self.reach.sure) if self.reach else set[tuple[int, int, int]]()
        self.operations(block.ops if end else block.ops[:-1])
        if self.reach is not None:
            self.reach.sure = before  # who knows whether it was run

    def operations(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        launched = self.compiler.launched(op)
        if op.control in STRUCTURES and launched is None:
            STRUCTURES[op.control](self, op)
            return
        if id(op) in self.lifted:
            self.bind(op.results[0], self.lifted[id(op)])
            return
        self._operation(op, emitter_of(op) if launched is None else KINDS[type(launched)])
        if self.reach is not None:
            self.reach.operation(op)

    def _operation(self, op: Operation, emit: Emit | None) -> None:
        state, reason = self.text.mark(), "no emitter"
        if emit is not None:
            try:
                if self.watch is not None:
                    self.watch.before(op)
                spot = Spot(self, op)
                require_regions(spot)
                results = emit(spot)
                if len(results) != len(op.results):
                    raise NotNative("a base that moves on")
                if self.watch is not None:
                    self.watch.after(op)
            except (NotNative, PtoError) as why:  # what is wrong, the reference step says
                self.text.back_to(state)
                reason = str(why)
            else:
                for value, native in zip(op.results, results, strict=True):
                    self.bind(value, native)
                return
        self.unit.left_out(op, reason)
        for value, native in zip(op.results, self.run_outside(op, reason), strict=True):
            self.bind(value, native)

    def case(self, op: Operation) -> Case:
        if op.row is None:
            raise NotNative("no row")
        return Case(op, op.row, self.compiler.profile, constant)

    # ---- calls outside

    def run_outside(
        self, op: Operation, why: str, *, seldom: bool = False, again: str = ""
    ) -> list[Native]:
        """A host fallback: the reference step of an operation, counted under its reason; the
        results. What Python uses of global memory nobody tells: always, or if at all (`seldom`).
        One that has to wait is tried again from `again`."""
        if isinstance(op.body, Do) and op.body.binds:
            raise NotNative("a place that only Python knows")
        values = list({id(v): v for v in (*op.operands, *captured(op))}.values())
        if any(is_global(v.type) for v in values):
            if not seldom:
                self.unit.ordered = True
            elif self.unit.needs.logs:  # more uses than were written down
                self.text.store(I64, str(TOUCHES + 1), self.word(LOG), 8)
        waits = isinstance(op.body, Do) and op.body.blocks
        forms = [outside_form(r.type, plain=waits) for r in op.results]
        ins = [self._put(v, offset) for v, offset in self._area(values)]
        start = sum(form.nbytes for _, form, _ in ins)
        outs: list[tuple[Value, Native, int]] = []
        for value, form in zip(op.results, forms, strict=True):
            outs.append((value, form, self.border + start))
            start += form.nbytes
        self.call(Outside(self.compiler, op, ins, outs, why), start, waits=waits, again=again)
        return [self.get(form, offset) for _, form, offset in outs]

    def _area(self, values: Sequence[Value]) -> list[tuple[Value, int]]:
        offset, found = self.border, []
        for value in values:
            found.append((value, offset))
            offset += self.env[id(value)].nbytes
        return found

    def call(
        self, action: Action, nbytes: int = 0, *, waits: bool = False, again: str = ""
    ) -> None:
        """Python does something, on so many bytes of the frame."""
        self.area = max(self.area, nbytes)
        x, number = self.text, len(self.outside)
        self.outside.append(action)
        go, hold = x.fresh("go"), x.fresh("hold")
        if waits and not again:
            again = x.fresh("again")
            x.jump(again)
            x.label(again)
        status = x.new(f"call i32 {self.word(CALL)}(ptr %ctx, i32 {number})")
        bad = x.new(f"icmp eq i32 {status}, {FAILED}")
        x.branch(bad, "failed", hold if waits else go, _COLD)
        x.label(hold if waits else go)
        if waits:
            coroutine.suspend_unless(x, x.compare("eq", status, FINE, I32), again)

    def look_up(self) -> None:
        """Between two turns of a loop: Python gets a moment when the clock asks for it."""
        x, rest, go = self.text, self.text.fresh("rest"), self.text.fresh("turn")
        due = x.new(f"load volatile i64, ptr {self.word(DUE)}, align 8")
        x.branch(x.new(f"icmp ne i64 {due}, 0"), rest, go, _COLD)
        x.label(rest)
        # what it does is not seen by this code, so that nothing has to be read again after it
        effect = "nounwind memory(inaccessiblemem: readwrite)"
        status = x.new(f"call i32 {self.word(CALL)}(ptr %ctx, i32 {LOOK}) {effect}")
        x.branch(x.new(f"icmp ne i32 {status}, 0"), "failed", go, _COLD)
        x.label(go)

    def _put(self, value: Value, offset: int) -> tuple[Value, Native, int]:
        native = self.value(value)
        self.put(native, offset)
        return value, native, offset

    def put(self, native: Native, offset: int) -> None:
        """Write a value to the frame."""
        frame.put(self.text, native, offset)

    def get(self, form: Native, offset: int) -> Native:
        """Read a value of this form from the frame."""
        return frame.get(self.text, form, offset)

    def fault(self, op: Operation, condition: str) -> None:
        """Where the condition does not hold the reference step of `op` says what is wrong."""
        if condition == "true":
            return
        x = self.text
        bad, go = x.fresh("bad"), x.fresh("go")
        x.branch(condition, go, bad, ", !prof !2")
        x.label(bad)
        values = list({id(v): v for v in op.operands}.values())
        ins = [self._put(v, offset) for v, offset in self._area(values)]
        nbytes = sum(native.nbytes for _, native, _ in ins)
        self.call(Outside(self.compiler, op, ins, [], None), nbytes)
        x.jump("failed")
        x.label(go)

    def fail_with(
        self, condition: str, action: Callable[[Sequence[Any]], None], *given: Native
    ) -> None:
        """Where the condition does not hold, `action` gets the values and raises."""
        if condition == "true":
            return
        x = self.text
        bad, go = x.fresh("bad"), x.fresh("go")
        x.branch(condition, go, bad, ", !prof !2")
        x.label(bad)
        offset, places = self.border, []
        for native in given:
            self.put(native, offset)
            places.append((native, offset))
            offset += native.nbytes

        def run(context: Context, frame: memoryview) -> None:
            action([form.decode(frame, at, context) for form, at in places])

        self.call(run, offset - self.border)
        x.jump("failed")
        x.label(go)

    def finish(self, name: str) -> str:
        """The text of the whole function."""
        x = self.text
        x.do("ret i32 0")
        x.label("failed")
        x.do("ret i32 1")
        # the frame is no noalias: calls outside read and write it
        return x.function(_HEAD.format(name), notes=self.unit.needs.logs)

    def finish_coroutine(self, name: str) -> str:
        """The text of a function that may wait (`coroutine.py`)."""
        return coroutine.finish(self.text, name, self.unit.declare, self.unit.needs.logs)

    def skeleton(self, name: str) -> str | None:
        """A function that only tells what global memory this one will use; None: who knows."""
        if self.unit.ordered or self.watch is not None:
            return None
        state = ["%frame", *(self._words[n] for n in (FLAGS, REGISTERS) if n in self._words)]
        self.unit.shared("touched", touched)  # which what is noted calls
        sure = self.unit.always_succeeds
        found = Skeleton(self.text, state, self.word(CALL), LOOK, sure).lines
        return None if found is None else "\n".join([f"{_HEAD.format(name)} {{", *found, "}"])


class Spot:
    """One operation where it is emitted: what emitters ask for."""

    def __init__(self, emitter: Emitter, op: Operation) -> None:
        self.e = emitter
        self.x = emitter.text
        self.op = op
        self.case = emitter.case(op)

    @property
    def body(self) -> Any:
        return self.op.body

    def operand(self, name: str) -> Native | None:
        """The value of an operand; None when it is optional and absent."""
        found = self.op.operand(name)
        return None if found is None else self.e.value(found)

    def operands(self, name: str) -> list[Native]:
        return [self.e.value(v) for v in self.op.group(name)]

    def all(self) -> list[Native]:
        return [self.e.value(v) for v in self.op.operands]

    def need(self, kind: type, name: str) -> Any:
        """An operand that must have one native form."""
        found = self.operand(name)
        if not isinstance(found, kind):
            raise NotNative(f"{name} is {type(found).__name__}")
        return found

    def fault_unless(self, condition: str) -> None:
        """The reference step of this operation speaks where the condition does not hold."""
        self.e.fault(self.op, condition)

    def pointer(self, memory: Val, address: Val, *, noted: bool = False) -> str:
        """A machine address; in global memory, blocks run one by one but for `noted` uses."""
        if not isinstance(memory, int) and not noted:
            self.e.unit.ordered = True
        return self.x.at(self.e.base(memory), address)
