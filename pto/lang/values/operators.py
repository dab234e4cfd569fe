"""Python's operators on the values of a kernel, and their instructions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import numpy as np

from pto.core.dtypes import F32, I16, I32, I64
from pto.ir.builder import INDEX, scalar_type
from pto.isa.row.instr import Instr
from pto.isa.row.types import KINDS, Type
from pto.isa.table import rows
from pto.lang.call.place import mistake

if TYPE_CHECKING:
    from pto.lang.values.tiles import Tile

R = TypeVar("R", covariant=True)
T = TypeVar("T")
Binary = Callable[[Any, Any], Any]  # a Python operator
COMPARED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
COMMUTES = frozenset("+*&|^")
_NUMBERS = (INDEX, *map(scalar_type, (I64, I32, I16, F32)))


@lru_cache(maxsize=1)
def _by_operator() -> dict[str, list[Instr]]:
    rows_of: dict[str, list[Instr]] = {}
    for row in rows():
        rows_of.setdefault(row.traits.operator, []).append(row)
    return rows_of


def operations(sign: str, *types: Type | None, unsigned: bool = False) -> list[Instr]:
    """The rows that implement an operator on values of these types; None is a bare number."""
    return [
        row
        for row in _by_operator().get(sign, ())
        if row.traits.signed is not unsigned and _takes(row, types)
    ]


def _takes(row: Instr, types: tuple[Type | None, ...]) -> bool:
    if len(row.operands) < len(types):
        return False
    return all(
        any(map(KINDS[operand.kind].accepts, _NUMBERS if type is None else (type,)))
        for operand, type in zip(row.operands, types, strict=False)
    )


def plain(value: object) -> object:
    """A number of NumPy as Python's; any other value as it is."""
    single = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    return value.item() if single else value  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]


# NumPy's names of operators, for a NumPy number on the left: np.float32(2) * t.
_UFUNCS: dict[str, Binary] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


class TracedOperand:
    """A value without elements while the kernel is traced: NumPy cannot compute with it."""

    __slots__ = ()

    def __array_ufunc__(
        self, ufunc: Callable[..., object], method: str, *inputs: object, **named: object
    ) -> Any:
        """Handle an operator with a NumPy number on the left; raise for other NumPy functions."""
        apply = _UFUNCS.get(ufunc.__name__)
        number = plain(inputs[0])
        if apply is None or method != "__call__" or not isinstance(number, int | float):
            self._refuse_numpy(ufunc.__name__, inputs)
        return apply(number, inputs[1])

    def __array_function__(
        self, function: Callable[..., object], types: object, args: object, named: object
    ) -> NoReturn:
        self._refuse_numpy(function.__name__, ())

    def __array__(self, *args: object, **named: object) -> NoReturn:
        self._refuse_numpy("array", ())

    def _refuse_numpy(self, name: str, inputs: Sequence[object]) -> NoReturn:
        from pto.lang.call.misused import instead, words_of  # built on these values

        help = instead(name) or "results are read from the array that pto.store writes"
        raise mistake(
            "PTO-U081",
            f"NumPy's {name} cannot compute with {words_of(self)}: it has elements only when the"
            " kernel runs",
            help=help,
        )


@dataclass(frozen=True, slots=True)
class Comparison(TracedOperand):
    """A comparison of tiles, element by element: the condition of `pto.where`."""

    mode: str  # eq, ne, lt, ...; & and | of two comparisons; ~ of the left one
    left: Any  # a tile, or a comparison
    right: Any  # a tile, a number, or a comparison

    def tiles(self) -> list[object]:
        """All compared tiles."""
        sides = (self.left,) if self.mode == "~" else (self.left, self.right)
        return [t for s in sides for t in (s.tiles() if isinstance(s, Comparison) else [s])]

    def replaced(self, old: object, new: object) -> Comparison:
        """The same comparison with another tile in place of `old`."""

        def each(side: object) -> object:
            nested = isinstance(side, Comparison)
            return side.replaced(old, new) if nested else new if side is old else side

        return Comparison(self.mode, each(self.left), each(self.right))

    def __and__(self, other: object) -> Comparison:
        return self._joined("&", other)

    def __or__(self, other: object) -> Comparison:
        return self._joined("|", other)

    def __invert__(self) -> Comparison:
        """The logical negation, which is true for NaN."""
        return Comparison("~", self, None)

    def to(self, dtype: object) -> Tile:
        """Ones and zeros in an element type, which can be added up: a `pto.where` of both."""
        from pto.lang.express import choose

        return choose.where(self, 1, 0).to(dtype)

    astype = to

    def _joined(self, sign: str, other: object) -> Comparison:
        if isinstance(other, Comparison):
            return Comparison(sign, self, other)
        raise mistake(
            "PTO-U202",
            f"`{sign}` of a comparison of tiles and {type(other).__name__}",
            help="it binds closer than <: write (t > 0.0) & (t < 1.0)",
        )

    def __bool__(self) -> bool:
        raise mistake(
            "PTO-U202",
            "a comparison of tiles has a truth for each element, and Python's `if`, `and`, `or` and"
            " `not` need one",
            help="choose between elements with pto.where(t < 0.0, a, b), pto.max or pto.min; for"
            " `assert` write pto.assert_(t < 0.0); join comparisons in brackets with & and |",
        )


def left(sign: str) -> Callable[[Operators[T], object], T]:
    """The method of an operator for a value on its left."""
    return lambda self, other: self.operate(sign, self, plain(other))


def right(sign: str) -> Callable[[Operators[T], object], T]:
    """The method of an operator for a value on its right, beside one that lacks it."""
    return lambda self, other: self.operate(sign, plain(other), self)


class Operators(TracedOperand, Generic[R]):
    """Every operator as `operate(sign, a, b)`, in the order written; `self` is a or b."""

    __slots__ = ()

    def operate(self, sign: str, a: object, b: object) -> R:
        raise NotImplementedError(sign)

    __add__, __radd__ = left("+"), right("+")
    __sub__, __rsub__ = left("-"), right("-")
    __mul__, __rmul__ = left("*"), right("*")
    __matmul__ = left("@")
    __truediv__, __rtruediv__ = left("/"), right("/")
    __floordiv__, __rfloordiv__ = left("//"), right("//")
    __mod__, __rmod__ = left("%"), right("%")
    __and__, __rand__ = left("&"), right("&")
    __or__, __ror__ = left("|"), right("|")
    __xor__, __rxor__ = left("^"), right("^")
    __lshift__, __rshift__ = left("<<"), left(">>")


def _compared(sign: str) -> Callable[[Comparisons[T], object], T]:
    """The method of a comparison, for a value on its left."""
    return lambda self, other: self.compare(sign, self, plain(other))


class Comparisons(Generic[R]):
    """Every comparison as `compare(sign, a, b)`, in the order written."""

    __slots__ = ()

    def compare(self, sign: str, a: object, b: object) -> R:
        raise NotImplementedError(sign)

    __eq__, __ne__ = _compared("=="), _compared("!=")
    __lt__, __le__ = _compared("<"), _compared("<=")
    __gt__, __ge__ = _compared(">"), _compared(">=")
    __hash__ = object.__hash__
