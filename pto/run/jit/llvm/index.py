"""Numbers of compiled code as Python objects: extents, indices, conditions.

A `Number` is one i64, an `Index` an int64 for every lane. An index knows if its lanes are affine
(start and step): then a read is one load, not a gather. Divided numbers and indices are not
negative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import gcd
from typing import Any, Final

import numpy as np

from pto.run.jit.llvm.lanes import Lanes, Symbol
from pto.run.jit.llvm.text import Text, wrap
from pto.run.jit.llvm.value import Val, facts

INT64: Final = np.dtype(np.int64)


def _method(name: str, word: str) -> Callable[[Any, Any], Any]:
    """An operator: the method of this name, with the word for the operation."""
    return lambda self, other: getattr(self, name)(word, other)


class Number:
    """One i64; `value` is a number where it is known now, else a name."""

    __slots__ = ("text", "value")

    def __init__(self, text: Text, value: Val) -> None:
        self.text = text
        self.value = value

    @property
    def known(self) -> int | None:
        return self.value if isinstance(self.value, int) else None

    def _other(self, other: Any) -> Val:
        return other.value if isinstance(other, Number) else int(other)

    def _folded(self, op: str, other: Any) -> Any:
        if isinstance(other, Symbol):
            return NotImplemented
        return Number(self.text, getattr(self.text, op)(self.value, self._other(other)))

    __add__ = __radd__ = _method("_folded", "add")
    __sub__ = _method("_folded", "sub")
    __mul__ = __rmul__ = _method("_folded", "mul")

    def __rsub__(self, other: Any) -> Number:
        return Number(self.text, self.text.sub(self._other(other), self.value))

    def _divided(self, op: str, other: Any) -> Number:
        b = self._other(other)
        if not isinstance(b, int):  # what is never 0 may be divided by before it is needed
            none = self.text.compare("eq", b, 0)
            b = self.text.new(f"select i1 {none}, i64 1, i64 {b}")
        return Number(self.text, getattr(self.text, op)(self.value, b))

    __floordiv__, __mod__ = _method("_divided", "over"), _method("_divided", "rest")

    def _bits(self, op: str, other: Any) -> Number:
        a, b = self.value, self._other(other)
        if isinstance(a, int) and isinstance(b, int):
            return Number(self.text, _BITS[op](a, b))
        return Number(self.text, self.text.new(f"{op} i64 {a}, {b}"))

    __and__, __or__ = _method("_bits", "and"), _method("_bits", "or")
    __lshift__, __rshift__ = _method("_bits", "shl"), _method("_bits", "lshr")  # no sign

    def __rlshift__(self, other: Any) -> Number:
        return Number(self.text, self.text.new(f"shl i64 {int(other)}, {self.value}"))

    def __invert__(self) -> Number:
        return self._bits("xor", -1)

    def _compare(self, word: str, other: Any) -> Any:
        if isinstance(other, Symbol):
            return NotImplemented
        return self.text.compare(word, self.value, self._other(other))

    def __eq__(self, other: object) -> Any:
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("ne", other)

    __lt__, __le__ = _method("_compare", "slt"), _method("_compare", "sle")
    __gt__, __ge__ = _method("_compare", "sgt"), _method("_compare", "sge")
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("a meaning branches on a number; `when`, `choose` or `require` can")

    def in_lanes(self, lanes: Lanes) -> Index:
        return Index(lanes, self, 0)


class Index(Symbol):
    """An int64 for every lane: start + step * (lane // repeat), or any (`step` None, `vector` its
    name).

    `multiple`: what the start is known to be a multiple of.
    """

    __slots__ = ("multiple", "repeat", "start", "step", "vector")

    def __init__(
        self,
        lanes: Lanes,
        start: Number,
        step: int | None,
        multiple: int = 1,
        vector: str = "",
        repeat: int = 1,
    ) -> None:
        self.lanes = lanes
        self.dtype = INT64
        self.start = start
        self.step = step
        self.multiple = multiple if start.known is None else start.known
        self.vector = vector
        self.repeat = repeat

    @classmethod
    def of(cls, symbol: Symbol) -> Index:
        """Lanes that are not negative."""
        if isinstance(symbol, Index):
            return symbol
        wide = symbol.astype(INT64)
        x, name = wide.lanes.x, str(wide.name)
        uniform = facts(name).uniform
        if uniform is not None:
            return cls(wide.lanes, Number(x, uniform), 0)
        return cls(wide.lanes, Number(x, 0), None, vector=name)

    @property
    def name(self) -> str:  # type: ignore[override]
        if self.step is None:
            return self.vector
        spread = str(self.lanes.spread(INT64, self.start.value).name)  # blocks come and go
        if not self.step:
            return spread
        listed = ", ".join(f"i64 {self.step * (n // self.repeat)}" for n in range(self.lanes.count))
        return self.lanes.x.new(f"add {self.type} {spread}, <{listed}>")

    def _affine(self, other: Any) -> Index | None:
        """The other operand as an affine index, where it is one."""
        if isinstance(other, Index):
            return other if other.step is not None else None
        if isinstance(other, Number):
            return Index(self.lanes, other, 0)
        if isinstance(other, int | np.integer):
            return Index(self.lanes, Number(self.lanes.x, int(other)), 0)
        return None

    def _lanes_of(self, other: Any) -> Symbol:
        found = self._affine(other)
        if found is not None:
            return found
        return other if isinstance(other, Symbol) else self.lanes.constant(INT64, other)

    def _vector(self, op: str, other: Any) -> Symbol:
        b = self._lanes_of(other)
        if not isinstance(b, Index):
            wide = b.astype(INT64)
            return self.new(f"{op} {self.type} {self.name}, {wide.name}", INT64)
        found = self.lanes.x.new(f"{op} {self.type} {self.name}, {b.name}")
        return Index(self.lanes, self.start, None, vector=found)

    def _summed(self, op: str, other: Any) -> Any:
        b = self._affine(other)
        if b is None or self.step is None or b.step is None:
            return self._vector(op, other)
        if self.step and b.step and self.repeat != b.repeat:
            return self._vector(op, other)
        sign = 1 if op == "add" else -1
        start = self.start + b.start if op == "add" else self.start - b.start
        repeat = self.repeat if self.step else b.repeat
        multiple = gcd(self.multiple, b.multiple)
        return Index(self.lanes, start, self.step + sign * b.step, multiple, repeat=repeat)

    __add__ = __radd__ = _method("_summed", "add")
    __sub__ = _method("_summed", "sub")

    def __rsub__(self, other: Any) -> Any:
        return Index.of(self._lanes_of(other)) - self

    def __mul__(self, other: Any) -> Any:
        b = self._affine(other)
        if b is None or self.step is None or b.step is None or (self.step and b.step):
            return self._vector("mul", other)
        by = b.start.known
        if by is None and self.step:
            return self._vector("mul", other)
        times = self.step * (by or 0) if self.step else b.step * (self.start.known or 0)
        if b.step and self.start.known is None:
            return self._vector("mul", other)
        repeat, multiple = self.repeat if self.step else b.repeat, self.multiple * b.multiple
        return Index(self.lanes, self.start * b.start, times, multiple, repeat=repeat)

    __rmul__ = __mul__

    def _divided(self, other: Any, whole: bool) -> Index:
        b, count = self._affine(other), self.lanes.count
        if b is None or b.step != 0:
            return Index.of(self._vector("udiv" if whole else "urem", other))
        size = b.start.known
        if self.step == 0:
            start = self.start // b.start if whole else self.start % b.start
            return Index(self.lanes, start, 0)
        # lanes of one strip lie in one part
        if self.step == self.repeat == 1 and size and size % count == self.multiple % count == 0:
            if whole:
                return Index(self.lanes, self.start // size, 0)
            return Index(self.lanes, self.start % size, 1, gcd(self.multiple, size))
        if self.step == self.repeat == 1 and size and count % size == self.multiple % size == 0:
            if whole:  # so many lanes each
                return Index(self.lanes, self.start // size, 1, self.multiple // size, repeat=size)
            listed = ", ".join(f"i64 {n % size}" for n in range(count))
            return Index(self.lanes, self.start, None, vector=f"<{listed}>")
        power = size.bit_length() - 1 if size and size & (size - 1) == 0 else None
        if power is not None:
            shift, mask = ("lshr", power) if whole else ("and", (size or 1) - 1)
            return Index.of(self._vector(shift, mask))
        return Index.of(self._vector("udiv" if whole else "urem", other))

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(other, True)

    def __mod__(self, other: Any) -> Any:
        return self._divided(other, False)

    def _against(self, word: str, other: Any) -> Any:
        """Compare affine lanes and numbers: the lanes before a limit, in elements as narrow as a
        strip allows."""
        b = self._affine(other)
        if b is None or self.step is None or b.step is None:
            return self.primitive(word, (self, other))
        if self.step and b.step and self.repeat != b.repeat:
            return self.primitive(word, (self, other))
        if self.step < b.step:
            return b._against(_TURNED[word], self)
        rest = self - b
        x = self.lanes.x
        count = self.lanes.count
        if rest.step == 0:
            return x.compare(f"s{word}", rest.start.value, 0).in_lanes(self.lanes)
        for limit in ("smin", "smax"):
            self.lanes.declare(f"declare i64 @llvm.{limit}.i64(i64, i64)")
        far = x.sub(0 if word in ("ge", "lt") else 1, rest.start.value)  # of the first that is not
        near = x.smaller(x.greater(far, 0), rest.step * count)
        bits, ahead = max(8, 512 // max(count, 8)), x.up(near, rest.step)
        kind = np.dtype(f"u{bits // 8}")
        small = (
            ahead
            if bits == 64 or isinstance(ahead, int)
            else x.new(f"trunc i64 {ahead} to i{bits}")
        )
        lane = self.lanes.constant(kind, np.arange(count) // rest.repeat)
        first = self.lanes.spread(kind, small)
        op = "uge" if word in ("ge", "gt") else "ult"
        return lane.new(f"icmp {op} {lane.type} {lane.name}, {first.name}", np.dtype(np.bool_))

    __lt__, __le__ = _method("_against", "lt"), _method("_against", "le")
    __gt__, __ge__ = _method("_against", "gt"), _method("_against", "ge")


_BITS: Final[dict[str, Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: wrap(a << b),
    "lshr": lambda a, b: wrap((a & (1 << 64) - 1) >> b),
}
_TURNED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


# What meanings count with: extents, which are one number, and positions, which may differ by lane.
Count = int | Number
Position = int | np.integer[Any] | Number | Symbol
Place = tuple[Position, Position]
