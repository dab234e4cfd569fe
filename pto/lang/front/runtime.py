"""The functions that rewritten kernels call: `_pto` in their code is this module.

If Python knows the condition, each function behaves as the Python statement; else it adds a branch
or loop to the program.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from types import FunctionType, MethodType
from typing import Any

from pto.lang.call.place import mistake
from pto.lang.call.session import ValueHandle, active, current
from pto.lang.control import Range
from pto.lang.debug import FormattedText, print_
from pto.lang.debug import assert_ as assert_in_program
from pto.lang.express.functions import maximum, minimum
from pto.lang.front.branches import branch
from pto.lang.front.checks import binds_global as binds_global
from pto.lang.front.checks import caught as caught
from pto.lang.front.checks import decided as decided
from pto.lang.front.checks import known as known
from pto.lang.front.checks import passed as passed
from pto.lang.front.checks import raises as raises
from pto.lang.front.checks import require_objects
from pto.lang.front.convert import rewritten
from pto.lang.front.generators import Generated
from pto.lang.front.loops import conditional, counted
from pto.lang.front.values import BOOLEAN, Key, OuterBlock, VariableSlots
from pto.lang.front.values import UNSET as UNSET
from pto.lang.trace import Trace
from pto.lang.values.arrays import inside_another
from pto.lang.values.operators import Binary, Comparison
from pto.lang.values.scalars import Scalar, compare
from pto.lang.values.tiles import Tile

Block = Callable[..., object]
Lazy = Callable[[], object]
_ENDLESS = 10_000  # iterations of a loop that Python decides


def _trace() -> Trace:
    session = current()
    assert isinstance(session, Trace)
    return session


def truth(value: object) -> object:
    """A condition: a Python value, or a number of type i1 of the program."""
    if isinstance(value, Scalar):
        return value if value.scalar.name == "i1" else compare("!=", value, 0)
    if isinstance(value, ValueHandle) and not isinstance(value, Comparison):
        subject = "a tile" if isinstance(value, Tile) else f"a {value.type.kind}"
        raise mistake(
            "PTO-T206",
            f"a condition is one number, and {subject} has many",
            help="compare a number: if n > 0; choose by element with pto.where(t > 0.0, a, b)",
        )
    return value


def _nothing() -> None:
    """The block of an `if` without `else`."""


# ---- statements


def if_(test: object, then: Block, orelse: Block | None, live: Iterable[str]) -> None:
    test = truth(test)
    other = orelse or _nothing
    if not isinstance(test, Scalar):
        (then if test else other)()
        return
    branch(test, (then, other), VariableSlots((then, orelse), _trace()), live)


def while_(test: Lazy, body: Block, live: Sequence[str], head: Sequence[str]) -> None:
    session = active()
    if not isinstance(session, Trace):
        while test():
            body()
        return
    slots = VariableSlots((test, body), session)
    for _ in builtins.range(_ENDLESS):
        mark, before = session.mark(), slots.read()
        holds = truth(test())
        runs = not isinstance(holds, Scalar)
        if runs:
            if not holds:
                return
            body()
            check, ended = session.mark(), slots.read()
            if not isinstance(truth(test()), Scalar):
                session.rollback(check)
                slots.write(ended)
                continue
        session.rollback(mark)
        slots.write(before)
        condition = lambda: truth_of_program(session, test())  # noqa: E731
        conditional(condition, body, slots, {*live}, {*head}, session, runs=runs)
        return
    raise mistake(
        "PTO-U218",
        f"a `while` has not ended after {_ENDLESS:,} iterations, while the kernel is traced",
        help="its condition is known to Python: let the body change it, or count in the program",
    )


def truth_of_program(trace: Trace, value: object) -> Scalar[object]:
    """A condition as a value of the program, also if Python knows it."""
    value = truth(value)
    if isinstance(value, Scalar):
        return value
    return trace.scalar(trace.constant(bool(value), BOOLEAN))


def for_(
    items: Any,
    body: Block,
    live: Sequence[str],
    head: Sequence[str],
    going_on: Lazy | None,
    target: str,
) -> None:
    if isinstance(items, Range):
        stops = () if going_on is None else going_on.__code__.co_freevars
        slots = VariableSlots((body, going_on), items.trace)
        names: set[Key] = {*live, *head}
        counted(items, body, slots, {*live}, names, stops, target)
        return
    items = _iterable(items)
    _taken_from(items)
    if isinstance(items, Generated) and items.is_fresh:
        _generated(items, body, {*live, *head}, going_on)
        return
    for item in items:
        holds = True if going_on is None else going_on()
        if isinstance(holds, Scalar):
            slots = VariableSlots((body, going_on), _trace())
            branch(holds, (lambda item=item: body(item), _nothing), slots, {*live, *head})
        elif holds:
            body(item)
        else:
            return


def _iterable(items: object) -> object:
    """The generator of an object with a method `__iter__` that yields."""
    method = getattr(type(items), "__iter__", None)
    return fn(MethodType(method, items))() if isinstance(method, FunctionType) else items  # pyright: ignore[reportCallIssue]


def _generated(items: Generated, body: Block, names: set[str], going_on: Lazy | None) -> None:
    """A `for` statement over a generator, which calls the body with each element."""
    trace = _trace()
    around = trace.outer

    def call(item: object) -> object:
        inside, trace.outer = trace.outer, around
        try:
            body(item)
            return going_on is not None and not_(going_on())
        finally:
            trace.outer = inside

    trace.outer = (*around, OuterBlock((body, going_on), names))
    try:
        items.run(call, can_leave=going_on is not None)
    finally:
        trace.outer = around


def assert_(test: object, message: Lazy | None = None) -> None:
    session = active()
    if isinstance(test, Scalar | Comparison) and isinstance(session, Trace):
        if isinstance(test, Scalar):
            test = truth(test)
        texts_given = () if message is None else (message(),)
        texts = texts_given[0] if texts_given and isinstance(texts_given[0], str) else ""
        assert_in_program(test, texts, *(() if texts else texts_given))
    elif not bool_(test):
        texts_given = "" if message is None else f"{message()}"
        raise mistake(
            "PTO-S135", f"an assertion does not hold while the kernel is traced: {texts_given}"
        )


# ---- expressions


def going(*flags: object) -> object:
    """True while none of the flags is set."""
    left: object = False
    for flag in flags:
        left = or_(left, lambda each=flag: each)
    return not_(left)


def choose(test: object, a: Lazy, b: Lazy, *, shared: Lazy | None = None) -> object:
    test = truth(test)
    if not isinstance(test, Scalar):
        return a() if test else b()
    names = () if shared is None else shared.__code__.co_freevars
    return branch(test, (a, b), VariableSlots((shared,), _trace()), names)


def and_(first: object, *rest: Lazy, shared: Lazy | None = None) -> object:
    return _until(False, first, rest, shared)


def or_(first: object, *rest: Lazy, shared: Lazy | None = None) -> object:
    return _until(True, first, rest, shared)


def _until(stop: bool, first: object, rest: Iterable[Lazy], shared: Lazy | None) -> object:
    """The first operand with the truth `stop`, or the last one."""
    for operand in rest:
        test = truth(first)
        if isinstance(test, Scalar):
            first_value = lambda value=first: value  # noqa: E731
            first = choose(
                test, *((first_value, operand) if stop else (operand, first_value)), shared=shared
            )
        elif bool(test) is stop:
            return first
        else:
            first = operand()
    return first


def not_(value: object) -> object:
    if isinstance(value, Scalar) and value.scalar.name != "i1":
        return compare("==", value, 0)
    test = truth(value)
    return ~test if isinstance(test, Scalar) else not test


def compared(first: object, *pairs: tuple[str, Lazy]) -> object:
    """`a < b < c`, `a in b`: each operand is evaluated once."""
    (word, operand), *rest = pairs
    second = operand()
    result = _comparison(word, first, second)
    return and_(result, lambda: compared(second, *rest)) if rest else result


def _comparison(word: str, a: object, b: object) -> object:
    if word in ("In", "NotIn"):
        is_inside = _contains(a, b)
        return is_inside if word == "In" else not_(is_inside)
    if word in ("Is", "IsNot"):
        require_objects(a, b, "is" if word == "Is" else "is not")
        return (a is b) is (word == "Is")
    return _OPERATORS[word](a, b)


def _contains(item: object, within: Any) -> object:
    if isinstance(within, range) and isinstance(item, Scalar) and within.step == 1:
        return and_(item >= within.start, lambda: item < within.stop)
    several = isinstance(within, tuple | list | set | frozenset)
    if several and any(isinstance(element, Scalar) for element in (item, *within)):
        equal = [lambda each=element: item == each for element in within]
        return or_(False, *equal)
    return item in within


_CONVERSIONS: dict[int, Callable[[object], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def text(*parts: str | tuple[object, int, str]) -> object:
    """An f-string: Python's text, or a `Text` with numbers and tiles of the program."""
    pieces: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
            continue
        value, conversion, form = part
        if isinstance(value, Scalar | Tile):
            pieces.append((value, form))
        else:
            pieces.append(format(_CONVERSIONS.get(conversion, lambda each: each)(value), form))
    return (
        "".join(pieces)
        if all(isinstance(piece, str) for piece in pieces)
        else FormattedText(pieces)
    )


_OPERATORS: dict[str, Binary] = {
    "Eq": lambda a, b: a == b,
    "NotEq": lambda a, b: a != b,
    "Lt": lambda a, b: a < b,
    "LtE": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b,
    "GtE": lambda a, b: a >= b,
}


# ---- calls


def fn(function: object) -> object:
    """The function to call instead of the written one."""
    session = active()
    if not isinstance(session, Trace):
        return function
    kind = type(function)
    if hasattr(kind, "launched") and kind.__module__.startswith("pto."):  # Kernel, Bound
        kernel: Any = getattr(function, "kernel", function)
        raise inside_another(kernel.name)
    try:
        replacement = _BUILTINS.get(function) or _replaced(function)
    except TypeError:  # it cannot be a key
        replacement = None
    return replacement or rewritten(function)


def _replaced(function: object) -> Callable[..., object] | None:
    """The replacement for a builtin that another library has replaced, such as a logged print."""
    for plain, replacement in _BUILTINS.items():
        if function is getattr(builtins, plain.__name__):
            return replacement
    return None


def _extreme(plain: Callable[..., object], two: Callable[..., object]) -> Callable[..., object]:
    def call(*values: object, **named: object) -> object:
        operands = (
            list(values[0])
            if len(values) == 1 and isinstance(values[0], list | tuple)
            else [*values]
        )
        numbers = any(isinstance(value, Scalar) for value in operands)
        if named or not numbers or any(isinstance(value, Tile) for value in operands):
            return plain(*values, **named)
        return reduce(two, operands)

    return call


def _print(*parts: object, **named: Any) -> None:
    """Python's print in a kernel: each block that reaches it prints a line."""
    if "file" in named:
        builtins.print(*parts, **named)
        return
    if named:
        raise mistake(
            "PTO-U205",
            f"print in a kernel has no {next(iter(named))}=: it prints one line",
            help="print(a, b) prints one line; pto.print(..., blocks=0) prints in one block only",
        )
    print_(*parts)


def _taken_from(items: object) -> None:
    """Record that the kernel takes elements from an iterator: `contents` compares the number."""
    session = active()
    if isinstance(session, Trace) and hasattr(type(items), "__next__"):
        session.advanced[id(items)] = session.advanced.get(id(items), 0) + 1


def _next(items: Any, *default: object) -> object:
    _taken_from(items)
    return next(items, *default)


def _quantifier(stop: bool) -> Callable[[Iterable[object]], object]:
    """`all` (a false value stops it) or `any` (a true one) of values of the program."""

    def call(values: Iterable[object]) -> object:
        return _until(stop, not stop, (lambda each=item: bool_(each) for item in values), None)

    return call


def _text(value: object = "", *more: object) -> object:
    """`str(n)` and `format(n, form)`: the text of an f-string for values of the program."""
    if isinstance(value, Scalar | Tile | FormattedText):
        return value if isinstance(value, FormattedText) else text((value, -1, str(*more)))
    return format(value, str(*more)) if more else str(value)


def bool_(value: object = False) -> object:
    """The truth of a value: of Python, or a number of type i1 of the program."""
    test = truth(value)
    return test if isinstance(test, Scalar) else bool(test)


_BUILTINS: dict[Any, Callable[..., object]] = {
    print: _print,
    max: _extreme(max, maximum),
    min: _extreme(min, minimum),
    all: _quantifier(False),
    any: _quantifier(True),
    bool: bool_,
    format: _text,
    next: _next,
    str: lambda *given: _text(*given) if len(given) == 1 else str(*given),
}
