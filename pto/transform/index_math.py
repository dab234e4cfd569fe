"""Arithmetic of indices, inserted before an operation; constants are folded."""

from __future__ import annotations

from pto.ir.builder import INDEX, Builder
from pto.ir.graph import Operation, Value
from pto.isa.row.instr import Instr
from pto.isa.row.traits import FOLDED
from pto.isa.scalar.arith import ADDI, CEILDIVSI, FLOORDIVSI, MAXSI, MINSI, MULI, SUBI

Number = int | Value  # a constant, or a value of the program


class IndexMath:
    """Inserts arithmetic before `anchor`; every number is an index."""

    def __init__(self, builder: Builder, anchor: Operation) -> None:
        self._builder = builder
        self._anchor = anchor

    def add(self, a: Number, b: Number) -> Number:
        return a if b == 0 else b if a == 0 else self._computed(ADDI, a, b)

    def sub(self, a: Number, b: Number) -> Number:
        return a if b == 0 else self._computed(SUBI, a, b)

    def mul(self, a: Number, b: Number) -> Number:
        return a if b == 1 else b if a == 1 else self._computed(MULI, a, b)

    def floordiv(self, a: Number, b: Number) -> Number:
        return a if b == 1 else self._computed(FLOORDIVSI, a, b)

    def cdiv(self, a: Number, b: Number) -> Number:
        return a if b == 1 else self._computed(CEILDIVSI, a, b)

    def mod(self, a: Number, b: Number) -> Number:
        return self.sub(a, self.mul(self.floordiv(a, b), b))

    def min(self, a: Number, b: Number) -> Number:
        return self._computed(MINSI, a, b)

    def max(self, a: Number, b: Number) -> Number:
        return self._computed(MAXSI, a, b)

    def value(self, number: Number) -> Value:
        """The number as a value of the program."""
        return self._builder.constant(number, INDEX) if isinstance(number, int) else number

    def _computed(self, row: Instr, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return FOLDED[row.traits.operator](a, b)
        operands = {"lhs": self.value(a), "rhs": self.value(b)}
        op = self._builder.make(row, operands, results=[INDEX], where=self._anchor.loc)
        self._anchor.home.insert(self._anchor.home.ops.index(self._anchor), op)
        return op.results[0]


def known(value: Value) -> Number:
    """The constant that a value is, or the value itself."""
    return value if value.number is None else value.number
