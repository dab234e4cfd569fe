"""Conditions of numbers and views, and the host fallback of an instruction that lacks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.pointer import FAR
from pto.isa.row import types as t
from pto.run.jit.emit.operation import Emit, OpContext
from pto.run.jit.emit.tile import numbers
from pto.run.jit.emit.tile.numbers import Numbers, bit
from pto.run.jit.llvm.condition import FALSE, TRUE, Condition, known_condition
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import Text, Val, certain, unsupported_if
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, ViewDesc


def wide(s: OpContext, native: Lowered) -> Val:
    """A number of the program as 64 bits."""
    return numbers.wide(s.x, certain(native, ScalarValue))


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

    def require(self, fact: Any, error: Callable[[], PtoError]) -> None:
        self.s.fault_unless(bit(fact))

    def leave_unless(self, fact: Any, why: str = "operands overlap") -> None:
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
