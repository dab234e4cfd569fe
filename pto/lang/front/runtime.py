"""The functions that rewritten kernels call: each behaves as Python where it knows the condition,
and adds a branch or loop to the program where only the run knows it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from pto.isa.row.traits import Control
from pto.isa.row.types import Scalar as ScalarType
from pto.lang.call.place import mistake
from pto.lang.call.session import Handle, active, current
from pto.lang.control import Carry, Range, deprecated
from pto.lang.debug import Text, print_
from pto.lang.debug import assert_ as assert_in_program
from pto.lang.express.functions import maximum, minimum
from pto.lang.front.branches import branch
from pto.lang.front.convert import rewritten
from pto.lang.front.loops import conditional, counted
from pto.lang.front.values import BOOLEAN, UNSET, Slots, leaves
from pto.lang.trace import Trace
from pto.lang.values.operators import Comparison
from pto.lang.values.scalars import Scalar, compare
from pto.lang.values.tiles import Tile

Block = Callable[..., Any]
Lazy = Callable[[], Any]
_DECIDED = (Control.IF, Control.FOR, Control.WHILE)
_ENDLESS = 10_000  # iterations of a loop that Python decides


def _trace() -> Trace:
    session = current()
    assert isinstance(session, Trace)
    return session


def truth(value: Any) -> Any:
    """A condition: a Python value, or a number of type i1 of the program."""
    if isinstance(value, Carry):
        value = value.value
    if isinstance(value, Scalar):
        return value if value.scalar.name == "i1" else compare("!=", value, 0)
    if isinstance(value, Handle) and not isinstance(value, Comparison):
        what = "a tile" if isinstance(value, Tile) else f"a {value.type.kind}"
        raise mistake(
            "PTO-T206",
            f"a condition is one number, and {what} has many",
            help="compare a number: if n > 0; choose by element with pto.where(t > 0.0, a, b)",
        )
    return value


def _nothing() -> None:
    """The block of an `if` without `else`."""


# ---- statements


def if_(test: Any, then: Block, orelse: Block | None, live: Iterable[str]) -> None:
    test = truth(test)
    other = orelse or _nothing
    if not isinstance(test, Scalar):
        (then if test else other)()
        return
    branch(test, (then, other), Slots((then, orelse), _trace().carries), live)


def while_(test: Lazy, body: Block, live: Sequence[str], head: Sequence[str]) -> None:
    session = active()
    if not isinstance(session, Trace):
        while test():
            body()
        return
    slots = Slots((test, body), session.carries)
    for _ in builtins.range(_ENDLESS):
        mark, before = session.mark(), slots.read()
        holds = truth(test())
        if not isinstance(holds, Scalar):
            if not holds:
                return
            body()
            check, ended = session.mark(), slots.read()
            again = truth(test())
            is_known = not isinstance(again, Scalar)
            session.rollback(check if is_known else mark)
            slots.write(ended if is_known else before)
            if is_known:
                continue
        else:
            session.rollback(mark)
            slots.write(before)
        conditional(
            lambda: truth_of_program(session, test()), body, slots, {*live}, {*head}, session
        )
        return
    raise mistake(
        "PTO-U218",
        f"a `while` has not ended after {_ENDLESS:,} iterations, while the kernel is traced",
        help="its condition is known to Python: let the body change it, or count in the program",
    )


def truth_of_program(trace: Trace, value: Any) -> Scalar[Any]:
    """A condition as a number of the program, also where Python knows it."""
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
        slots = Slots((body, going_on), items.trace.carries)
        names = {*live, *head}
        counted(items, body, slots, {*live}, names, stops, target)
        return
    for item in items:
        holds = True if going_on is None else going_on()
        if isinstance(holds, Scalar):
            slots = Slots((body, going_on), _trace().carries)
            branch(holds, (lambda item=item: body(item), _nothing), slots, {*live, *head})
        elif holds:
            body(item)
        else:
            return


def assert_(test: Any, message: Lazy | None = None) -> None:
    session = active()
    if isinstance(test, Scalar | Comparison) and isinstance(session, Trace):
        if isinstance(test, Scalar):
            test = truth(test)
        told = () if message is None else (message(),)
        texts = told[0] if told and isinstance(told[0], str) else ""
        assert_in_program(test, texts, *(() if texts else told))
    elif not _bool(test):
        told = "" if message is None else f"{message()}"
        raise mistake("PTO-S135", f"an assertion does not hold while the kernel is traced: {told}")


def known(subject: Any) -> Any:
    """The subject of a `match` that Python decides."""
    if any(isinstance(each, Scalar) for each in leaves(subject)):
        raise mistake(
            "PTO-U202",
            "`match` compares a number of the program with a class, a mapping or `*rest`, which"
            " Python would decide before the kernel runs",
            help="match values, names, `_` and sequences of these, or write `if`",
        )
    return subject


def raises() -> None:
    """A `raise` statement: only where the trace, not the program, decides to come here."""
    session = active()
    around = session.builder.blocks[1:] if isinstance(session, Trace) else ()
    if any(block.region.owner.control in _DECIDED for block in around):
        raise mistake(
            "PTO-U206",
            "`raise` in a branch or loop of the program, which is traced even if it will not run",
            help="the program has no exceptions: write `assert condition, message`",
        )


# ---- expressions


def going(*flags: Any) -> Any:
    """True while none of the flags is set."""
    left: Any = False
    for each in flags:
        left = or_(left, lambda each=each: each)
    return not_(left)


def choose(test: Any, a: Lazy, b: Lazy) -> Any:
    test = truth(test)
    if not isinstance(test, Scalar):
        return a() if test else b()
    return branch(test, (a, b), Slots((), _trace().carries), ())


def and_(first: Any, *rest: Lazy) -> Any:
    for each in rest:
        test = truth(first)
        if not isinstance(test, Scalar):
            if not test:
                return first
            first = each()
        else:
            value = first
            first = choose(test, each, lambda value=value: value)
    return first


def or_(first: Any, *rest: Lazy) -> Any:
    for each in rest:
        test = truth(first)
        if not isinstance(test, Scalar):
            if test:
                return first
            first = each()
        else:
            value = first
            first = choose(test, lambda value=value: value, each)
    return first


def not_(value: Any) -> Any:
    test = truth(value)
    return ~test if isinstance(test, Scalar) else not test


def compared(first: Any, *pairs: tuple[str, Lazy]) -> Any:
    """`a < b < c`, `a in b`: each operand is evaluated once."""
    (word, operand), *rest = pairs
    second = operand()
    held = _comparison(word, first, second)
    return and_(held, lambda: compared(second, *rest)) if rest else held


def _comparison(word: str, a: Any, b: Any) -> Any:
    if word in ("In", "NotIn"):
        found = _contains(a, b)
        return found if word == "In" else not_(found)
    if word in ("Is", "IsNot"):
        return (a is b) is (word == "Is")
    return _OPERATORS[word](a, b)


def _contains(item: Any, within: Any) -> Any:
    if isinstance(within, range) and isinstance(item, Scalar) and within.step == 1:
        return and_(item >= within.start, lambda: item < within.stop)
    several = isinstance(within, tuple | list | set | frozenset)
    if several and any(isinstance(each, Scalar) for each in (item, *within)):
        equal = [lambda each=each: item == each for each in within]
        return or_(False, *equal)
    return item in within


_CONVERSIONS: dict[int, Callable[[Any], Any]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def text(*parts: Any) -> Any:
    """An f-string: Python's text, or a `Text` with numbers and tiles of the program."""
    made: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            made.append(part)
            continue
        value, conversion, form = part
        if isinstance(value, Scalar | Tile):
            made.append((value, form))
        else:
            made.append(format(_CONVERSIONS.get(conversion, lambda each: each)(value), form))
    return "".join(made) if all(isinstance(each, str) for each in made) else Text(made)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": lambda a, b: a == b,
    "NotEq": lambda a, b: a != b,
    "Lt": lambda a, b: a < b,
    "LtE": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b,
    "GtE": lambda a, b: a >= b,
}


# ---- calls


def fn(function: Any) -> Any:
    """The function to call for the one that is written."""
    session = active()
    if not isinstance(session, Trace):
        return function
    try:
        own = _BUILTINS.get(function) or _replaced(function)
    except TypeError:  # it cannot be a key
        own = None
    return own or rewritten(function, RUNTIME)


def _replaced(function: Any) -> Callable[..., Any] | None:
    """For a function that somebody has put in the place of a builtin, as a logger does of print."""
    for plain, own in _BUILTINS.items():
        if function is getattr(builtins, plain.__name__):
            return own
    return None


def _extreme(plain: Callable[..., Any], two: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any, **named: Any) -> Any:
        found = (
            list(values[0])
            if len(values) == 1 and isinstance(values[0], list | tuple)
            else [*values]
        )
        numbers = any(isinstance(each, Scalar) for each in found)
        if named or not numbers or any(isinstance(each, Tile) for each in found):
            return plain(*values, **named)
        best = found[0]
        for each in found[1:]:
            best = two(best, each)
        return best

    return call


def _print(*parts: Any, **named: Any) -> None:
    """Python's print: a line of the program, printed by each block that comes to it."""
    if "file" in named:
        builtins.print(*parts, **named)
        return
    if named:
        raise mistake(
            "PTO-U205",
            f"print in a kernel has no {next(iter(named))}=: a line has its parts, and ends",
            help="print(a, b) prints one line; pto.print has blocks= to choose who prints",
        )
    print_(*parts)


def _all(values: Iterable[Any]) -> Any:
    held: Any = True
    for each in values:
        held = and_(held, lambda each=each: truth(each))
    return held if isinstance(held, Scalar) else bool(held)


def _any(values: Iterable[Any]) -> Any:
    held: Any = False
    for each in values:
        held = or_(held, lambda each=each: truth(each))
    return held if isinstance(held, Scalar) else bool(held)


def _bool(value: Any = False) -> Any:
    test = truth(value)
    return test if isinstance(test, Scalar) else bool(test)


_BUILTINS: dict[Any, Callable[..., Any]] = {
    print: _print,
    max: _extreme(max, maximum),
    min: _extreme(min, minimum),
    all: _all,
    any: _any,
    bool: _bool,
}


# ---- deprecated forms


def condition(test: Any) -> Any:
    """The condition of `with pto.If(...)`."""
    deprecated("with pto.If(c): ... with pto.Else(): ...", "if c: ... else: ...")
    is_truth = isinstance(test, Scalar) and isinstance(test.type, ScalarType)
    if isinstance(test, bool) or (is_truth and test.scalar.name == "i1"):
        return test
    raise mistake(
        "PTO-T206",
        f"a condition is a comparison of numbers, got {test!r}",
        help="write it out: if n > 0",
    )


RUNTIME = SimpleNamespace(
    if_=if_,
    while_=while_,
    for_=for_,
    assert_=assert_,
    going=going,
    choose=choose,
    and_=and_,
    or_=or_,
    not_=not_,
    compared=compared,
    fn=fn,
    condition=condition,
    UNSET=UNSET,
    raises=raises,
    text=text,
    known=known,
)


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel's function as it is traced."""
    return rewritten(function, RUNTIME)
