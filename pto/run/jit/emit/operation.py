"""The context of one operation while it is emitted, and valid regions that its types leave open:
compared where a rule of the row says that they agree, and known where they are set once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, TypeVar

from pto.core.compact import Compact
from pto.ir.graph import Operation
from pto.isa.meaning.handle.view import ALLOC_TILE, SET_VALID, Handles
from pto.isa.meaning.kinds import ConstantResult, Do, Lane
from pto.isa.meaning.memory import registers
from pto.isa.meaning.order.flags import IN_ORDER, SET_FLAG, WAIT_FLAG
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.isa.rules.rule import open_regions
from pto.run.jit.emit import frame
from pto.run.jit.ir.kinds import expect, unsupported_if
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import TRUE, Condition, Val
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.state import register_offset
from pto.run.jit.runtime.values import Handle, Lowered, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter

_T = TypeVar("_T")


class OpContext:
    """The emission context of one operation. Its operands have the form of their type: a value that
    only Python holds, and a packed value of a work item, have none here."""

    def __init__(self, emitter: Emitter, op: Operation) -> None:
        held = any(isinstance(emitter.env.get(id(v)), Handle) for v in op.operands)
        packed = any(isinstance(result.type, t.Vector) for result in op.results)
        unsupported_if(held or packed, "a value that Python holds")
        self.e = emitter
        self.x = emitter.text
        self.op = op
        self.case = emitter.case(op)

    @property
    def body(self) -> Any:
        return self.op.body

    def operand(self, name: str) -> Lowered | None:
        """The value of an operand; None when it is optional and absent."""
        found = self.op.operand(name)
        return None if found is None else self.e.value(found)

    def operands(self, name: str) -> list[Lowered]:
        return [self.e.value(v) for v in self.op.group(name)]

    def all(self) -> list[Lowered]:
        return [self.e.value(v) for v in self.op.operands]

    def need(self, kind: type[_T], name: str) -> _T:
        """An operand that must have this representation."""
        found = self.operand(name)
        return expect(found, kind, f"{name} is {type(found).__name__}")

    def fault_unless(self, condition: Condition) -> None:
        """Report an error of this operation if the condition does not hold."""
        self.e.fault(self.op, condition)

    def log_access(self, *given: Val, writes: bool) -> None:
        """Log an access to global memory (`Emitter.log_access`)."""
        self.e.log_access(*given, writes=writes)

    def call(
        self, key: Hashable, given: Sequence[tuple[str, Val]], write: Callable[[Text], None]
    ) -> None:
        """Call a shared procedure, which `write` emits; its parameters are %p0, %p1, .."""

        def make(name: str) -> str:
            x = Text(self.e.unit.declare)
            write(x)
            return x.procedure(name, parameters.types)

        parameters = frame.Parameters(*given)
        self.x.do(f"call void {self.e.unit.shared(key, make)}({parameters.listed})")

    def register(self, name: str, n: int = 0) -> str:
        """A word of a register."""
        return self.x.load(I64, self.register_at(name, n), 8)

    def control(self, mask: int) -> str:
        """These bits of the control register."""
        return self.x.new(f"and i64 {self.register(registers.CTRL)}, {mask}")

    def register_at(self, name: str, n: int = 0) -> str:
        return self.x.at(self.e.word(Word.REGISTERS), register_offset(name) + 8 * n)

    def pointer(self, memory: Val, address: Val, *, logged: bool = False) -> str:
        """A machine address. Accesses to global memory that are not `noted` make blocks run in
        order."""
        if not isinstance(memory, int) and not logged:
            self.e.unit.ordered = True
        return self.x.at(self.e.base(memory), address)


class Prepared(OpContext):
    """The context of an operation that is described as a nest, and perhaps emitted later:
    conditions and accesses are collected. LLVM removes arithmetic without a use."""

    def __init__(self, emitter: Emitter, op: Operation) -> None:
        super().__init__(emitter, op)
        self.needs = TRUE
        self._accesses: list[Callable[[], None]] = []

    def fault_unless(self, condition: Condition) -> None:
        self.needs = self.needs & condition

    def log_access(self, *given: Val, writes: bool) -> None:
        self._accesses.append(lambda: self.e.log_access(*given, writes=writes))

    def commit(self) -> None:
        """Emit what was collected."""
        for log in self._accesses:
            log()
        self.e.fault(self.op, self.needs)


def require_regions(s: OpContext) -> None:
    """Where they differ the reference step says so."""
    x, guard = s.x, TRUE
    for rule, names in open_regions(s.case):
        tiles: list[TileDesc] = [s.need(TileDesc, name) for name in names]
        for (tile, last), axis in product(pairwise(tiles), rule.axes):
            first, second = (
                x.mul(each.valid[axis], each.type.dtype.values_per_item if axis else 1)
                for each in (tile, last)
            )
            guard = guard & x.compare("eq", first, second)
    s.fault_unless(guard)


def set_once(ops: Sequence[Operation]) -> set[int]:
    """The ids of operations that set the region of a tile once, before its first use: the tile
    counts as made with that region. `ops` are in the order of the text."""
    found = dict[int, int]()
    again = set[int]()
    fresh = set[int]()
    for op in ops:
        if op.body is SET_VALID:
            tile = id(op.operands[0])
            again |= set() if tile in fresh else {tile}
            found[tile] = id(op)
        fresh -= {id(v) for v in op.operands}
        if op.regions or "callee" in op.attrs:  # their operations may not run
            fresh.clear()
        if op.body in (ALLOC_TILE, RESHAPE):
            fresh |= {id(v) for v in op.results if _has_one_form(v.type)}
    return {op for tile, op in found.items() if tile not in again}


def _has_one_form(type: t.Type) -> bool:
    """True if the layout of a tile does not depend on its valid region."""
    return isinstance(type, t.TileBuf) and type.tile.compact is Compact.NULL


# ---- the emitters of rows: by body, by the kind of a body, and by the words of a meaning

Emit = Callable[["OpContext"], Sequence[Lowered]]

# The body of a row -> its emitter. Rows that share a body share the emitter.
EMITTERS: dict[int, Emit] = {}
CHEAP: set[int] = set()
# The kinds that need no entry of their own, meanings in words, and control flow.
KINDS: dict[type, Emit] = {}
WORDS: dict[Any, Emit] = {}
STRUCTURES: dict[Control, Callable[[Emitter, Operation], None]] = {}


def emits(*bodies: object, cheap: bool = False) -> Callable[[Emit], Emit]:
    """Register the emitter of all rows with these bodies; a region of cheap operations only is not
    compiled."""

    def register(emit: Emit) -> Emit:
        for body in bodies:
            EMITTERS[id(body)] = emit
            if cheap:
                CHEAP.add(id(body))
        return emit

    return register


def emitter_of(op: Operation) -> Emit | None:
    """The emitter of an operation; None if there is none."""
    body = op.body
    words = WORDS.get(body.words) if isinstance(body, Do) else None
    return words or EMITTERS.get(id(body)) or KINDS.get(type(body))


def is_cheap(op: Operation) -> bool:
    """True if it is not worth a compiled region alone: scalars, handles, flags."""
    numbers = bool(op.results) and all(isinstance(r.type, t.Scalar) for r in op.results)
    names = isinstance(op.body, Do) and op.body.words is Handles
    return names or id(op.body) in CHEAP or (numbers and isinstance(op.body, Lane | ConstantResult))


def touches_no_tile(op: Operation) -> bool:
    """True for scalars, handles and flags."""
    if op.control is not None or not is_cheap(op):
        return False
    return bool(op.results) or op.body in (SET_FLAG, WAIT_FLAG, IN_ORDER)
