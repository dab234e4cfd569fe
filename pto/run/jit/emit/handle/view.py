"""Numbers, conditions, scalars, registers and views of an instruction in compiled code, and the
host fallback of an instruction that lacks a condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.pointer import FAR
from pto.core.primitives import less_of
from pto.isa.meaning.memory import registers
from pto.isa.meaning.scalar.arith import from_bits
from pto.isa.row import types as t
from pto.run.jit.emit.operation import Emit, OpContext
from pto.run.jit.ir.kinds import certain, unsupported_if
from pto.run.jit.llvm.index import Count, Index, Number
from pto.run.jit.llvm.text import I64, Text, is_integer, width_of
from pto.run.jit.llvm.value import FALSE, TRUE, Condition, Val, known_condition
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.state import register_offset
from pto.run.jit.runtime.values import Array, Lowered, PointerDesc, ScalarValue, ViewDesc

FAULT, LEFT = 1, 2  # how a function ends: the reference says what is wrong, or does it all


def bit(fact: object) -> Condition:
    """A condition as a bit of LLVM."""
    return fact if isinstance(fact, Condition) else known_condition(fact)


def wide(x: Text, word: ScalarValue) -> Val:
    """A signed integer as 64 bits."""
    kind = word.types[0]
    if kind == I64 or isinstance(word.name, int):
        return word.name
    if not is_integer(kind):
        raise TypeError(f"a number of {kind}")
    return x.new(f"sext {kind} {word.name} to i64")


class Numbers:
    """Where an instruction counts: the text, and pointers of the context."""

    def __init__(self, x: Text, context: Callable[[int], str]) -> None:
        self.x = x
        self.context = context
        self.statuses: set[int] = set()  # that the function may return, beside 0

    def require(self, fact: object, error: Callable[[], PtoError]) -> None:
        """Else the function ends, and the reference engine says why."""
        self.end_unless(fact, FAULT)

    def leave_unless(self, fact: Condition) -> None:
        """Else the reference engine does the instruction."""
        self.end_unless(fact, LEFT)

    def end_unless(self, fact: object, status: int) -> None:
        known = bit(fact)
        if not known.is_true:
            self.statuses.add(status)
            self.x.leave_unless(known, lambda: self.x.do(f"ret i32 {status}"), ", !prof !2")

    def when(
        self, fact: object, body: Callable[[], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        self.x.when(bit(fact), body, otherwise)

    def least(self, a: Count | Index, b: Count | Index) -> Any:
        if isinstance(a, Index):
            if a.step == 0:
                return Index(a.lanes, self.least(a.start, b), 0)
            return Index.of(less_of(a, b))
        return Number(self.x, self.x.smaller(self.number(a).value, self.number(b).value))

    def greatest(self, a: Number, b: Number) -> Number:
        return Number(self.x, self.x.greater(a.value, b.value))

    def choose(self, fact: object, a: Callable[[], Count], b: int) -> Number:
        known = bit(fact)
        if known.is_known:
            return self.number(a() if known.is_true else b)
        return Number(
            self.x, self.x.new(f"select i1 {fact}, i64 {self.number(a()).value}, i64 {b}")
        )

    def number(self, value: Any) -> Number:
        if value is None:
            return Number(self.x, 0)
        if isinstance(value, ScalarValue):
            return Number(self.x, wide(self.x, value))
        return value if isinstance(value, Number) else Number(self.x, int(value))

    # ---- scalars and registers

    def bits(self, value: ScalarValue, type: t.Scalar) -> Number:
        kind, x = value.types[0], self.x
        size = width_of(kind)
        if isinstance(value.name, int) and is_integer(kind):
            return Number(x, value.name & ((1 << size) - 1))
        name = str(value.name)
        if not is_integer(kind):
            name = x.new(f"bitcast {kind} {name} to i{size}")
        return Number(x, name if size == 64 else x.new(f"zext i{size} {name} to i64"))

    def scalar(self, number: Number, type: t.Scalar) -> ScalarValue:
        empty, x = ScalarValue(("",), type), self.x
        kind, name = empty.types[0], self.number(number).value
        size = width_of(kind)
        if isinstance(name, int) and is_integer(kind):
            return replace(empty, names=(int(from_bits(type, name & (1 << size) - 1)),))
        if size < 64:
            name = x.new(f"trunc i64 {name} to i{size}")
        if not is_integer(kind):
            name = x.new(f"bitcast i{size} {name} to {kind}")
        return replace(empty, names=(name,))

    def slot(self, array: Array, k: Number) -> Number:
        return Number(self.x, self.x.load("i64", self._slot(array, k), 8))

    def set_slot(self, array: Array, k: Number, word: Number) -> None:
        self.x.store("i64", word.value, self._slot(array, k), 8)

    def _slot(self, array: Array, k: Number) -> str:
        at = self.x.add(array.address, self.x.mul(k.value, 8))
        return self.x.new(f"inttoptr i64 {at} to ptr")

    def get(self, register: str, n: int = 0) -> Number:
        return Number(self.x, self.x.load("i64", self._register(register, n), 8))

    def put(self, register: str, *words: Count) -> None:
        for n, word in enumerate(words):
            self.x.store("i64", self.number(word).value, self._register(register, n), 8)
        if register in registers.OPTIONAL:
            self.x.store("i64", 1, self._register(register, -1), 8)

    def has(self, register: str) -> Condition:
        return self.x.compare("ne", self.get(register, -1).value, 0)

    def _register(self, name: str, n: int) -> str:
        ahead = 1 if name in registers.OPTIONAL else 0
        return self.x.at(self.context(Word.REGISTERS), register_offset(name) + 8 * (n + ahead))


def wide_number(s: OpContext, native: Lowered) -> Val:
    """A number of the program as 64 bits."""
    return wide(s.x, certain(native, ScalarValue))


def near(x: Text, count: Val, far: int = FAR) -> Condition:
    """True if a number is small enough that arithmetic with it cannot wrap."""
    return x.compare("ult", x.add(count, far), 2 * far)


def inside(s: OpContext, view: ViewDesc) -> Condition:
    """True if all elements of a view lie inside its memory; tested at each use."""
    x, empty = s.x, FALSE
    nbytes, whole = view.dtype.itemsize, TRUE
    for size, step in zip(view.shape, view.strides, strict=True):
        empty = empty | x.compare("eq", size, 0)
        for op, factor in (("mul", x.sub(size, 1)), ("mul", view.dtype.itemsize)):
            step, kept = _exact(s, op, step, factor)
            whole = whole & kept
        nbytes, kept = _exact(s, "add", nbytes, step)
        whole = whole & kept
    whole = whole & x.compare("sge", nbytes, 0)
    return empty | (whole & s.e.inside(view.memory, view.address, nbytes))


def _exact(s: OpContext, op: str, a: Val, b: Val) -> tuple[Val, Condition]:
    """A sum or product, and whether it fits into 64 bits."""
    if isinstance(a, int) and isinstance(b, int):
        found = a * b if op == "mul" else a + b
        return found, known_condition(abs(found) < 1 << 63)
    if (op, b) in (("mul", 1), ("add", 0)):
        return a, TRUE
    if op == "mul" and 0 in (a, b):
        return 0, TRUE
    s.e.unit.declare(f"declare {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64, i64)")
    pair = s.x.new(f"call {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64 {a}, i64 {b})")
    over = s.x.new(f"extractvalue {{i64, i1}} {pair}, 1")
    return s.x.new(f"extractvalue {{i64, i1}} {pair}, 0"), ~s.x.bit(over)


@dataclass(frozen=True, slots=True)
class PointerAt:
    """A pointer with an address that may be an SSA value, and the space of its type."""

    memory: Val
    address: Number
    dtype: DType | None
    space: Space | None = None

    @property
    def place(self) -> PointerDesc:
        return PointerDesc((self.memory, self.address.value), self.dtype)


class Guarded(Numbers):
    """Words that emit an instruction in place, and may leave it to the reference engine."""

    _slow: str = ""  # the label of the host fallback, if one is needed
    _why: str = ""

    def __init__(self, s: OpContext) -> None:
        Numbers.__init__(self, s.x, s.e.word)
        self.s = s

    def require(self, fact: object, error: Callable[[], PtoError]) -> None:
        self.s.fault_unless(bit(fact))

    def leave_unless(self, fact: object, why: str = "operands overlap") -> None:
        """Leave the instruction to the reference engine unless a fact holds. Nothing has been
        written yet."""
        x, condition = self.s.x, bit(fact)
        unsupported_if(condition.is_false, why)
        if not condition.is_true:
            self._slow, self._why = self._slow or x.fresh("slow"), self._why or why
            go = x.fresh("go")
            x.branch(condition, go, self._slow)
            x.label(go)

    def finish(self) -> None:
        """Emit the host fallback after the instruction, which has no results then."""
        if self._slow:
            x, done = self.s.x, self.s.x.fresh("done")
            x.jump(done)
            x.label(self._slow)
            self.s.e.host_fallback(self.s.op, self._why, seldom=True)
            x.jump(done)
            x.label(done)

    # ---- operands and results

    def seen(self, native: Lowered | None, type: t.Type | None) -> Any:
        """An operand as the words know it."""
        return native

    def lowered(self, found: Any, type: t.Type) -> Lowered:
        """A result of the words as a lowered value."""
        return found

    def results(self, found: Any) -> Sequence[Lowered]:
        types = [result.type for result in self.s.op.results]
        several = found if isinstance(found, tuple) else (found,) * len(types)
        return [self.lowered(each, type) for each, type in zip(several, types, strict=True)]


def emits_in(make: Callable[[OpContext], Guarded]) -> Emit:
    """The emitter of meanings in these words."""

    def emit(s: OpContext) -> Sequence[Lowered]:
        words = make(s)
        given = [
            [words.seen(each, None) for each in s.operands(o.name)]
            if o.variadic
            else words.seen(s.operand(o.name), s.case.type(o.name))
            for o in s.case.row.operands
        ]
        found = s.body.make(s.case)(words, *given)
        words.finish()
        return words.results(found)

    return emit
