"""Numbers of a kernel that are known when it runs, with Python's operators.

Python numbers stay Python numbers, so constants fold by themselves. `//` and `%` are Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, NoReturn, TypeVar

from pto.core.dtypes import F32, I1, I64, DType
from pto.ir.builder import INDEX, scalar_type
from pto.ir.graph import Operation, Value
from pto.isa.row.attributes import Enum
from pto.isa.row.instr import Instr
from pto.isa.row.traits import FOLDED
from pto.isa.row.types import KINDS
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.rules.rule import Case
from pto.lang.call.place import mistake, user_frame
from pto.lang.call.rewritten import why_not
from pto.lang.call.session import Session, ValueHandle, current
from pto.lang.values.elements import element
from pto.lang.values.linear import Linear
from pto.lang.values.operators import COMPARED, Comparisons, Operators, operations
from pto.target.profile import profile

E = TypeVar("E", covariant=True)
Number = int | float
Extent = Any  # a size or offset: an int, a Scalar, or None where only the program knows it

_OF_TRUTHS = ("&", "|", "^", "==", "!=", "select")  # these take truths as they are
_LINEAR: dict[str, Callable[[Linear, Linear], Linear | None]] = {
    "+": lambda a, b: a.plus(b),
    "-": lambda a, b: a.plus(b, -1),
    "*": lambda a, b: _product(a, b),
}


def _product(a: Linear, b: Linear) -> Linear | None:
    if b.known is not None:
        return a.times(b.known)
    return b.times(a.known) if a.known is not None else None


class Scalar(Comparisons["Scalar[object]"], Operators["Scalar[object]"], ValueHandle, Generic[E]):
    """A number the scalar unit holds. `pto.Scalar[pto.i32]` annotates a parameter that is one."""

    __slots__ = ("linear",)

    def __init__(self, value: Value, home: Session, linear: Linear | None = None) -> None:
        super().__init__(value, home)
        self.linear = Linear(0, {value: 1}) if linear is None else linear

    @property
    def scalar(self) -> ScalarType:
        if not isinstance(self.type, ScalarType):
            raise RuntimeError(f"{self!r} is no scalar")
        return self.type

    def to(self, kind: object) -> Scalar[object]:
        """The same number in another type: rounded to even, truncated toward zero, or wrapped."""
        return convert(self, scalar_type(element(kind)))

    def operate(self, sign: str, a: object, b: object) -> Scalar[object]:
        for operand in (a, b):
            if isinstance(operand, Operators) and not isinstance(operand, Scalar):
                return operand.operate(sign, a, b)  # a tile, a carry
        return a - arith("//", a, b) * b if sign == "%" else arith(sign, a, b)

    def compare(self, sign: str, a: object, b: object) -> Scalar[object]:
        return compare(sign, a, b)

    def __neg__(self) -> Scalar[object]:
        return arith("-", 0, self)

    def __invert__(self) -> Scalar[object]:
        return arith("^", self, True if self.scalar.name == "i1" else -1)

    def __abs__(self) -> Scalar[object]:
        return select(self <= 0, -self, self)

    def __divmod__(self, other: object) -> tuple[Scalar[object], Scalar[object]]:
        return self // other, self % other

    def __pow__(self, power: object) -> Scalar[object]:
        """A product of as many factors; the exponent is an integer that Python knows."""
        if not isinstance(power, int) or power < 1:
            raise mistake(
                "PTO-T202",
                f"the exponent of a number of the program is a positive integer of Python, got"
                f" {power!r}",
                help="n ** 3 is n * n * n; pto.tpows raises the elements of a tile to any power",
            )
        if power == 1:
            return self
        if power % 2:
            return self * self ** (power - 1)
        half = self ** (power // 2)
        return half * half

    def __bool__(self) -> bool:
        raise mistake(
            "PTO-U202",
            f"Python decides here while the kernel is traced, when the value of `{self.value.name}`"
            f" is not known{because()}",
            help="`if`, `while`, `and`, `or`, `not` and `a if c else b` work on it where the source"
            " is at hand; elsewhere choose with pto.select, pto.max or pto.min",
        )

    def __index__(self) -> NoReturn:
        raise mistake(
            "PTO-U203",
            f"`{self.value.name}` is known only when the kernel runs, and Python needs the number"
            " while it is traced",
            help="loop with `for i in pto.range(n)`; sizes of tiles must be Python numbers",
        )

    def __format__(self, form: str) -> NoReturn:
        raise mistake(
            "PTO-U203",
            f"`{self.value.name}` is known only when the kernel runs, and Python needs its text"
            " while it is traced",
            help='an f-string of the kernel shows it: print(f"n = {n}")',
        )

    def __str__(self) -> str:
        return format(self)

    __int__ = __index__
    __float__ = __index__

    def __hash__(self) -> NoReturn:
        raise mistake(
            "PTO-U203",
            f"%{self.value.name} cannot be a key of a set or dictionary: it is known only at run"
            " time",
            help="choose by comparing: a if n == 1 else b",
        )


def because() -> str:
    """Why the user's function that is being executed was not rewritten, as an end of a message."""
    frame = user_frame()
    reason = None if frame is None else why_not(frame.f_code)
    name = "" if frame is None else frame.f_code.co_name
    return f": `{name}` runs as it is, because {reason}" if reason else ""


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, DType)


def type_of(number: Number) -> ScalarType:
    """The default type of a Python number: index, or f32 for a float."""
    return INDEX if isinstance(number, int) else scalar_type(F32)


def as_value(number: object, type: ScalarType) -> Value:
    """A Python number or Scalar as a value of `type`; integers change their width freely."""
    session = current()
    if is_number(number):
        if isinstance(number, float) and not type.is_float:
            raise mistake("PTO-T202", f"{number!r} is a float where {type.name} is needed")
        return session.constant(_fitting(number, type), type)
    if isinstance(number, Scalar):
        return converted(number, type, implicit=True).used()  # pyright: ignore[reportUnknownMemberType]
    raise mistake("PTO-T202", f"a number of type {type.name} is needed, got {number!r}")


def _fitting(number: Extent, type: ScalarType) -> Number:
    """The number; raises if it does not fit the type."""
    if isinstance(number, float) and not math.isfinite(number):
        return number
    kind = type.dtype
    low, high = (-kind.max, kind.max) if kind and kind.is_float else limits_of(type)
    if low <= number <= high:
        return number
    raise mistake(
        "PTO-T202",
        f"{number!r} does not fit {type.name}, which goes from {low} to {high}",
        help="compute in a wider type, or write the value that it is to become",
    )


def convert(number: object, type: ScalarType) -> Scalar[object]:
    """`number` in `type`; a Python number becomes a Scalar of that type."""
    if is_number(number):
        session = current()
        return session.scalar(session.constant(_fitting(number, type), type))
    return converted(number, type, implicit=False)  # pyright: ignore[reportArgumentType]


def converted(number: Scalar[object], type: ScalarType, *, implicit: bool) -> Scalar[object]:
    source = number.scalar
    if source == type:
        return number
    if type.name == "i1":
        return compare("!=", number, 0)
    if implicit and source.is_float != type.is_float and source.is_float:
        raise mistake(
            "PTO-T202",
            f"%{number.value.name} is {source.name}, and {type.name} is needed",
            help=f"say how with .to(pto.{type.dtype or 'i64'})",
        )
    value = number.used()
    for row, step in cast_steps(source, type):
        (value,) = current().emit(row, {"in": value}, results=[step], names=[value.name])
    result = current().scalar(value)
    if isinstance(result, Scalar) and _holds(type, source):
        result.linear = number.linear
    return result


def _holds(type: ScalarType, source: ScalarType) -> bool:
    """True if every number of an integer type is one of another integer type."""
    if source.is_float or type.is_float:
        return False
    (low, high), (least, most) = limits_of(source), limits_of(type)
    return least <= low and high <= most


def limits_of(type: ScalarType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    kind = I64 if type.dtype is None else type.dtype
    return (0, 1) if kind is I1 else (int(kind.min), int(kind.max))


@lru_cache(maxsize=256)
def cast_steps(source: ScalarType, to: ScalarType) -> tuple[tuple[Instr, ScalarType], ...]:
    """The casts from one scalar type to another: one, or two through a wider type."""
    sign = "index" if INDEX in (source, to) else "bitcast" if _are_as_wide(source, to) else "cast"
    unsigned = to.name.startswith("u") if source.is_float else _is_unsigned(source)
    for row in operations(sign, source, unsigned=unsigned):
        if _gives(row, source, to):
            return ((row, to),)
    wide = scalar_type(F32 if source.is_float and to.is_float else I64)
    return (*cast_steps(source, wide), *cast_steps(wide, to))


def _gives(row: Instr, source: ScalarType, to: ScalarType) -> bool:
    """True if a cast can have this result type and its rules allow the pair."""
    op = Operation.of(row, [Value(source, "in")])
    op.results.append(Value(to, "out", op))
    case = Case(op, profile("cpu"))
    fits = KINDS[row.results[0].kind].accepts(to)
    return fits and all(rule.test(case) is None for rule in row.rules)


def _is_unsigned(type: ScalarType) -> bool:
    return type.name.startswith("u") or type.name == "i1"


def _are_as_wide(a: ScalarType, b: ScalarType) -> bool:
    """Two integers of one width."""
    widths = {scalar.dtype.bits if scalar.dtype else 64 for scalar in (a, b)}
    return a.is_integer and b.is_integer and len(widths) == 1


def _joined(a: object, b: object, sign: str) -> tuple[Value, Value, ScalarType]:
    """Both operands in a common type: a number takes the Scalar's, an integer beside index is
    index."""
    for operand in (a, b):
        if not is_number(operand) and not isinstance(operand, Scalar):
            raise mistake(
                "PTO-T202", f"`{sign}` joins numbers of a kernel, got {type(operand).__name__}"
            )
    _settle(a, b)
    _settle(b, a)
    kinds = [operand.scalar for operand in (a, b) if isinstance(operand, Scalar)]
    kind = kinds[0]
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        if kinds[0].is_float or kinds[1].is_float or INDEX not in kinds:
            names = " and ".join(k.name for k in kinds)
            raise mistake(
                "PTO-T202", f"`{sign}` of {names}: one type is needed", help="convert with .to()"
            )
        kind = INDEX
    if (isinstance(a, float) or isinstance(b, float)) and not kind.is_float:
        raise mistake(
            "PTO-T202", f"`{sign}` of {kind.name} and a float", help="convert with .to(pto.f32)"
        )
    return as_value(a, kind), as_value(b, kind), kind


def _settle(number: object, other: object) -> None:
    """Give a loop variable initialised by a Python number the type of a float operand."""
    if not isinstance(number, Scalar) or not number.home.is_loose(number.value):
        return
    kind = other.scalar if isinstance(other, Scalar) else None
    if isinstance(other, float) and not number.scalar.is_float:
        kind = scalar_type(F32)
    if kind is not None and kind.is_float:
        number.home.tighten(number.value, kind)


def is_truth(number: object) -> bool:
    """True for a truth of Python or of the program."""
    if isinstance(number, Scalar):
        return isinstance(number.type, ScalarType) and number.type.name == "i1"
    return isinstance(number, bool)


def _truths_counted(sign: str, a: object, b: object) -> tuple[object, object]:
    """The operands with truths as the integers 0 and 1, as Python counts them. A choice between
    truths, `&`, `|`, `^`, `==` and `!=` of them take them as they are."""
    if not (is_truth(a) or is_truth(b)):
        return a, b
    if is_truth(a) and is_truth(b) and sign in _OF_TRUTHS:
        return a, b
    kinds = [n.scalar for n in (a, b) if isinstance(n, Scalar) and not is_truth(n)]  # pyright: ignore[reportUnknownMemberType]
    kind = kinds[0] if kinds and kinds[0].is_integer else INDEX
    return _integer(a, kind), _integer(b, kind)


def _integer(number: object, kind: ScalarType) -> object:
    if not is_truth(number):
        return number
    return converted(number, kind, implicit=True) if isinstance(number, Scalar) else int(number)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]


def linear_of(number: object) -> Linear | None:
    if isinstance(number, Scalar):
        return None if number.scalar.is_float else number.linear
    return Linear(number) if isinstance(number, int) else None


def arith(sign: str, a: object, b: object) -> Extent:
    """One arithmetic operation, with constant folding; tracks linear forms of integers."""
    a, b = _truths_counted(sign, a, b)
    _require_defined(sign, a, b)
    if is_number(a) and is_number(b):
        return FOLDED[sign](a, b)
    for simpler in (_neutral, _within):
        same = simpler(sign, a, b)
        if same is not None:
            return same
    left, right, kind = _joined(a, b, sign)
    rows = operations(sign, kind, kind, unsigned=kind.name.startswith("u"))
    rows = [row for row in rows if row.results]  # an instruction of tiles may take numbers too
    if not rows:
        raise mistake(
            "PTO-T202",
            f"`{sign}` is not defined for {kind.name}",
            help="use // for integers and / for floats",
        )
    first, second = linear_of(a), linear_of(b)
    follow = _LINEAR.get(sign)
    linear = follow(first, second) if follow and first and second else None
    if linear is not None and linear.known is not None:
        return linear.known
    session = current()
    (value,) = session.emit(rows[0], {"lhs": left, "rhs": right}, results=[kind])
    result = session.scalar(value)
    if linear is not None and isinstance(result, Scalar):
        result.linear = linear
    return result


def _require_defined(sign: str, a: object, b: object) -> None:
    """Refuse a division by the constant zero, and a shift by a negative constant, of integers."""
    if sign in ("//", "cdiv") and type(b) is int and b == 0:
        divided = a if is_number(a) else f"%{a.value.name}" if isinstance(a, Scalar) else type(a)
        raise mistake("PTO-S132", f"integer division of {divided} by zero")
    if sign in ("<<", ">>") and type(b) is int and b < 0:
        raise mistake("PTO-T202", f"`{sign}` by {b}: a shift is by zero or more bits")


def _neutral(sign: str, a: object, b: object) -> object:
    """The result of x + 0, x * 1 and the like without an operation; else None."""
    same_left = {"+": 0, "-": 0, "*": 1, "//": 1, "cdiv": 1, "<<": 0, ">>": 0}
    if type(b) is int and same_left.get(sign) == b and isinstance(a, Scalar):
        return None if a.scalar.is_float else a
    if type(a) is int and {"+": 0, "*": 1}.get(sign) == a and isinstance(b, Scalar):
        return None if b.scalar.is_float else b
    return None


def is_at_least(number: object, bound: int) -> bool:
    """True if the known bounds of an integer of the run are not below `bound`."""
    return isinstance(number, Scalar) and _within("max", number, bound) is number


def is_at_most(number: object, bound: object) -> bool:
    """True if the known bounds of an integer of the run are not above `bound`."""
    return isinstance(number, Scalar) and _within("min", number, bound) is number


def remainder(number: Extent, step: int) -> Extent:
    """number % step; a number of Python where terms that only the run knows are multiples."""
    linear = linear_of(number)
    if linear is not None and all(times % step == 0 for times in linear.terms.values()):
        return linear.const % step
    return number % step


def _within(sign: str, a: object, b: object) -> object:
    """The result of min and max that the known bounds decide, such as max(x, 0) = x; else None."""
    x, bound = (b, a) if type(a) is int else (a, b)
    if sign not in ("min", "max") or type(bound) is not int or not isinstance(x, Scalar):
        return None
    if x.scalar.is_float or x.scalar.name.startswith("u"):
        return None
    low, high = _limits(x.value)
    return x if (low >= bound if sign == "max" else high <= bound) else None


def _limits(value: object) -> tuple[float, float]:
    """Known bounds of an integer, from min and max with constants."""
    maker = value.maker if isinstance(value, Value) else None
    if maker is not None and maker.traits.constant:
        number = getattr(maker.attrs["value"], "value", None)
        return (number, number) if type(number) is int else (-math.inf, math.inf)
    if maker is None or maker.traits.operator not in ("min", "max"):
        return -math.inf, math.inf
    lows, highs = zip(*map(_limits, maker.operands), strict=True)
    choose = min if maker.traits.operator == "min" else max
    return choose(lows), choose(highs)


def compare(sign: str, a: object, b: object) -> Scalar[object]:
    a, b = _truths_counted(sign, a, b)
    left, right, kind = _joined(a, b, sign)
    word = COMPARED[sign]
    if kind.is_float:
        word = f"u{word}" if word == "ne" else f"o{word}"
    elif word not in ("eq", "ne"):
        word = f"u{word}" if kind.name.startswith("u") else f"s{word}"
    row = operations("compare", kind, kind)[0]
    attrs = {row.attrs[0].name: Enum(row.attrs[0].kind, word)}
    truth = scalar_type(I1)
    session = current()
    (value,) = session.emit(row, {"lhs": left, "rhs": right}, attrs=attrs, results=[truth])
    return session.scalar(value)


def cdiv(a: object, b: object) -> Any:
    """a / b rounded up: how many blocks of b cover a."""
    return arith("cdiv", a, b)


def select(condition: object, a: Any, b: Any) -> Any:
    """a where the condition holds, else b; both are evaluated."""
    if not isinstance(condition, Scalar):
        return a if condition else b
    condition = converted(condition, scalar_type(I1), implicit=True)  # pyright: ignore[reportUnknownArgumentType]
    a, b = _truths_counted("select", a, b)
    numbers = [operand for operand in (a, b) if isinstance(operand, Scalar)]
    kind = numbers[0].scalar if numbers else type_of(a if isinstance(a, float) else b)
    values = (condition.used(), as_value(a, kind), as_value(b, kind))
    row = operations("select", condition.type)[0]
    session = current()
    operands = dict(zip(row.operand_names, values, strict=True))
    (value,) = session.emit(row, operands, results=[kind], names=["chosen"])
    return session.scalar(value)


def scalar(number: Number, kind: object) -> Scalar[object]:
    """A constant of a given type, where the type matters: `pto.scalar(3, pto.i16)`."""
    return convert(number, scalar_type(element(kind)))
