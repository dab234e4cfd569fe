"""C++ operators and member functions on host values."""

from __future__ import annotations

import operator
from collections.abc import Callable

from pto.gym.host.runtime import FileStream, Runtime, Sink, store
from pto.gym.host.values import (
    CPointer,
    CVector,
    LValue,
    Pointed,
    Reference,
    Value,
    cannot_follow,
    described,
    text_of,
)


def _divide(a: int | float, b: int | float) -> int | float:
    if isinstance(a, float) or isinstance(b, float):
        if b == 0:
            raise cannot_follow("a floating-point division by zero")
        return a / b
    if b == 0:
        raise cannot_follow("a division by zero")
    quotient = abs(a) // abs(b)  # C++ rounds towards zero
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - int(_divide(a, b)) * b


def _shift(by: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def shifted(a: int, b: int) -> int:
        if not 0 <= b < 64:
            raise cannot_follow(f"a shift by {b} bits")
        return by(a, b)

    return shifted


_NUMBERS: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": _shift(operator.lshift),
    ">>": _shift(operator.rshift),
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_MOST_BITS = 256  # no host file computes with wider numbers; keeps shifts and products bounded


def binary(runtime: Runtime, op: str, a: Value, b: Value) -> Value:
    """`a op b`, both already evaluated."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _number(op, a, b)
    if isinstance(a, Sink):
        runtime.tell(a, b if isinstance(b, str) else described(b))
        return a
    if op in ("==", "!="):
        return same(a, b) is (op == "==")
    if op == "+" and (isinstance(a, str) or isinstance(b, str)):
        return text_of(a) + text_of(b)
    if isinstance(a, CPointer) and isinstance(b, int) and op in "+-":
        return a.moved(b if op == "+" else -b)
    if isinstance(b, CPointer) and isinstance(a, int) and op == "+":
        return b.moved(a)
    if isinstance(a, CPointer) and isinstance(b, CPointer) and op == "-" and a.block is b.block:
        return (a.offset - b.offset) // a.step
    raise cannot_follow(f"`{op}` between {described(a)} and {described(b)}")


def _number(op: str, a: int | float, b: int | float) -> Value:
    try:
        result = _NUMBERS[op](a, b)
    except TypeError:
        raise cannot_follow(f"`{op}` between {a!r} and {b!r}") from None
    if isinstance(result, int) and result.bit_length() > _MOST_BITS:
        raise cannot_follow(f"`{op}` gives a number of {result.bit_length()} bits")
    return result


def same(a: Value, b: Value) -> bool:
    if isinstance(a, CPointer) and isinstance(b, CPointer):
        return a.block is b.block and a.offset == b.offset
    if a is None or b is None:
        return (a is None or a == 0) and (b is None or b == 0)
    return a == b


def unary(op: str, value: Value) -> Value:
    if isinstance(value, int | float):
        if op == "-":
            return -value
        if op == "+":
            return value
        if op == "~" and isinstance(value, int):
            return ~value
    raise cannot_follow(f"`{op}` of {described(value)}")


def method(value: Value, name: str) -> Callable[..., Value] | None:
    """A member function of a library type, ready to call."""
    if isinstance(value, str):
        table = {"c_str": lambda: value, "data": lambda: value, "empty": lambda: not value}
        return {**table, "size": lambda: len(value), "length": lambda: len(value)}.get(name)
    if isinstance(value, CVector):
        table = {"data": lambda: value.start, "size": lambda: value.count}
        return {**table, "empty": lambda: value.count == 0}.get(name)
    if isinstance(value, FileStream):
        return _stream_method(value, name)
    return None


def _stream_method(stream: FileStream, name: str) -> Callable[..., Value] | None:
    def read(to: Value, count: int) -> FileStream:
        content = (stream.content or b"")[stream.at : stream.at + count]
        store(to, content)
        stream.at += len(content)
        stream.good = stream.good and len(content) == count
        return stream

    def close() -> None:
        return None

    def is_open() -> bool:
        return stream.content is not None

    table: dict[str, Callable[..., Value]] = {"read": read, "close": close, "is_open": is_open}
    return {**table, "good": lambda: stream.good, "fail": lambda: not stream.good}.get(name)


def address_of(place: LValue) -> CPointer | Reference:
    """`&place`: memory gives its pointer, a variable its reference."""
    return place.pointer if isinstance(place, Pointed) else Reference(place)
