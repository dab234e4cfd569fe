"""Expressions of lanes as data: what one element of a result is, in terms of the elements it reads.

An `Expr` is a node of a directed graph: a read of a source, a constant, a cast, the same bits as
another type, or a primitive (`core/primitives.py`). Equal expressions are one object, so `is` is
equality and an expression can be a part of a key. `trace` runs a lane function on symbols and
returns its expression; `llvm/lowering.py` writes an expression as LLVM.

A definition that has a name (`exp`) is a node too: `inner` is what it computes, on the same reads.
A loop (`repeated`) is a node whose body is expressions of its `state`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from pto.core.dtypes import DType
from pto.core.primitives import Symbolic
from pto.run.jit.ir.conversions import convert
from pto.run.jit.ir.kinds import BOOL, F64, Kind, computes, symbol_type, unsupported_if

READ: Final = "read"
CONSTANT: Final = "constant"
CAST: Final = "cast"
VIEW: Final = "view"
REPEATED: Final = "repeated"
STATE: Final = "state"
PICK: Final = "pick"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Expr:
    """One node. `data`: the number of a read, the bytes of a constant, the function of a
    definition, the body of a loop."""

    op: str
    dtype: Kind
    args: tuple[Expr, ...] = ()
    data: Hashable = None
    inner: Expr | None = None

    @property
    def value(self) -> Any:
        """The number of a constant."""
        if not isinstance(self.data, bytes):
            raise TypeError(f"{self.op} is no constant")
        return np.frombuffer(self.data, self.dtype)[0]

    def __str__(self) -> str:
        return "; ".join(written(self))


_nodes: Final = WeakValueDictionary[tuple[Any, ...], Expr]()


def node(
    op: str,
    dtype: Kind,
    args: tuple[Expr, ...] = (),
    data: Hashable = None,
    inner: Expr | None = None,
) -> Expr:
    """The node with these parts; equal parts give the same object."""
    unsupported_if(not computes(dtype), f"arithmetic of {dtype}")
    key = op, dtype, args, data, inner
    found = _nodes.get(key)
    if found is None:
        found = _nodes[key] = Expr(*key)
    return found


def read(number: int, dtype: Kind) -> Expr:
    """The element of source `number`."""
    return node(READ, dtype, data=number)


def constant(dtype: Kind, value: Any) -> Expr:
    """A number in every lane."""
    values = np.asarray(value, dtype)
    if values.size != 1:
        raise TypeError("a lane function has one number for all lanes")
    return node(CONSTANT, dtype, data=values.tobytes())


# ---- queries


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that one is computed from: a definition by its inner one."""
    return expr.args if expr.inner is None else (expr.inner,)


def nodes_of(*roots: Expr, parts: Callable[[Expr], tuple[Expr, ...]] = parts_of) -> list[Expr]:
    """All nodes that are computed, each once and after its parts; bodies of loops apart."""
    found: dict[Expr, None] = {}
    pending: list[tuple[Expr | None, Iterator[Expr]]] = [(None, iter(roots))]
    while pending:
        expr, rest = pending[-1]
        part = next((each for each in rest if each not in found), None)
        if part is not None:
            pending.append((part, iter(parts(part))))
        elif expr is None:
            break
        else:
            found[expr] = None
            pending.pop()
    return list(found)


def body_of(loop: Expr) -> tuple[Expr, ...]:
    """The next state of a loop."""
    return tuple(part for part in _tuple(loop.data) if isinstance(part, Expr))


def state_of(loop: Expr) -> list[Expr]:
    """The nodes that are the state inside a loop."""
    level = _tuple(loop.data)[0]
    return [node(STATE, v.dtype, data=(level, n)) for n, v in enumerate(loop.args)]


def _tuple(data: Hashable) -> tuple[Any, ...]:
    if not isinstance(data, tuple):
        raise TypeError(f"{data!r} is no loop")
    return data


def written(root: Expr, names: Sequence[str] = ()) -> list[str]:
    """An expression as text: a line for each value that is used twice, and one for the result."""
    uses: dict[Expr, int] = {}
    order = _shown(root, uses)
    named: dict[Expr, str] = {}

    def text(expr: Expr) -> str:
        if expr in named:
            return named[expr]
        if expr.op == READ and isinstance(expr.data, int):
            return names[expr.data] if names else f"s{expr.data}"
        if expr.op == CONSTANT:
            return f"{expr.value}"
        inner = ", ".join(map(text, expr.args))
        if expr.op in (CAST, VIEW):
            return f"{inner}.{expr.dtype}" if expr.op == CAST else f"bits({inner}).{expr.dtype}"
        return f"{expr.op}({inner})"

    lines: list[str] = []
    for expr in order:
        if uses[expr] > 1 and expr.args:
            line = f"t{len(lines)} = {text(expr)}"
            named[expr] = f"t{len(lines)}"
            lines.append(line)
    return [*lines, text(root)]


def _shown(root: Expr, uses: dict[Expr, int]) -> list[Expr]:
    """The nodes that a reader sees (a definition hides what is inside), and how often each is
    used."""
    order: list[Expr] = []

    def visit(expr: Expr) -> None:
        uses[expr] = uses.get(expr, 0) + 1
        if uses[expr] == 1:
            for part in expr.args:
                visit(part)
            order.append(expr)

    visit(root)
    return order


# ---- the symbols that lane functions are run on

_BOOLEAN: Final = frozenset(
    {"lt", "le", "gt", "ge", "eq", "ne", "signbit", "isnan", "isinf", "isfinite", "every"}
)
_LIBRARY: Final = frozenset({"sine", "cosine"})
# Primitives with arguments that are no lanes: the type of the result by those.
_TYPED: Final[dict[str, Callable[..., Kind]]] = {
    "to_integer": lambda kind: kind,
    "saturated": lambda kind: kind,
    "lookup": lambda table: np.dtype(f"u{table.dtype.itemsize}"),
}


_S = TypeVar("_S", bound="LaneSymbol")
Operator = Callable[[_S, object], _S]


def _operator(word: str) -> tuple[Operator[Any], Operator[Any]]:
    """An operator, and the one with its operands exchanged."""

    def left(self: _S, other: object) -> _S:
        return self.primitive(word, (self, other))

    def right(self: _S, other: object) -> _S:
        return self.primitive(word, (other, self))

    return left, right


class LaneSymbol(Symbolic):
    """A symbol that lane functions compute with: its operators are primitives."""

    __slots__ = ()

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("truediv")
    __floordiv__, __rfloordiv__ = _operator("floordiv")
    __mod__, __rmod__ = _operator("mod")
    __and__, __rand__ = _operator("and")
    __or__, __ror__ = _operator("or")
    __xor__, __rxor__ = _operator("xor")
    __lshift__, __rlshift__ = _operator("lshift")
    __rshift__, __rrshift__ = _operator("rshift")
    __lt__, __gt__ = _operator("lt")[0], _operator("gt")[0]
    __le__, __ge__ = _operator("le")[0], _operator("ge")[0]
    __eq__, __ne__ = _operator("eq")[0], _operator("ne")[0]  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self: _S) -> _S:
        return self.primitive("neg", (self,))

    def __invert__(self: _S) -> _S:
        return self.primitive("invert", (self,))

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("a definition makes an array of lanes")

    def __bool__(self) -> bool:
        raise TypeError("a definition branches on lanes")


class Traced(LaneSymbol):
    """A symbol of a lane function; its operators build expressions."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    @property
    def dtype(self) -> Kind:
        return self.expr.dtype

    def primitive(self, name: str, args: tuple[Any, ...]) -> Any:
        if name == REPEATED:
            return _loop(*args)
        if name == convert.__name__:
            return _named(convert, args)
        if name in _TYPED:
            value, *how = args
            return Traced(node(name, _TYPED[name](*how), (value.expr,), tuple(how)))
        return Traced(_applied(name, args))

    def shortcut(self, definition: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return _named(definition, args)

    def astype(self, to: Any, copy: bool = True) -> Traced:
        dtype = np.dtype(to)
        return self if dtype == self.dtype else Traced(node(CAST, dtype, (self.expr,)))

    def view(self, to: Any) -> Traced:
        dtype = np.dtype(to)
        if dtype == self.dtype:
            return self
        if dtype.itemsize != self.dtype.itemsize or BOOL in (dtype, self.dtype):
            raise TypeError(f"a definition views {self.dtype} as {dtype}")
        return Traced(node(VIEW, dtype, (self.expr,)))


def _applied(name: str, args: tuple[Any, ...]) -> Expr:
    """A primitive on these arguments; a Python number takes the type of the first typed one."""
    if name == "select":
        return _selected(*args)
    found = _exprs(args)
    if name in _BOOLEAN:
        return node(name, BOOL, found)
    return node(name, F64 if name in _LIBRARY else _promoted(found), found)


def _exprs(args: Sequence[Any]) -> tuple[Expr, ...]:
    typed = next(each.dtype for each in args if hasattr(each, "dtype"))
    return tuple(_expr(each, typed) for each in args)


def _expr(value: Any, like: Kind) -> Expr:
    if isinstance(value, Traced):
        return value.expr
    return constant(value.dtype if isinstance(value, np.ndarray | np.generic) else like, value)


def _selected(condition: Any, a: Any, b: Any) -> Expr:
    test = _expr(condition, BOOL)
    if not any(hasattr(each, "dtype") for each in (a, b)):
        a, b = (np.asarray(each) for each in (a, b))
    found = _exprs((a, b))
    return node("select", _promoted(found), (test, *found))


def _promoted(found: Sequence[Expr]) -> Kind:
    """The type of a result, as NumPy promotes."""
    kinds = {each.dtype for each in found}
    return next(iter(kinds)) if len(kinds) == 1 else np.result_type(*kinds)


def _named(definition: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A definition as one node. Arguments that are no lanes select what it computes."""
    found = definition(*args)
    if not isinstance(found, Traced):
        return found
    exprs = tuple(each.expr for each in args if isinstance(each, Traced))
    return Traced(node(definition.__name__, found.dtype, exprs, definition, found.expr))


_level: Final = ContextVar("_level", default=0)  # of loops around the one that is traced


def _loop(step: Callable[..., tuple[Any, ...]], *start: Any) -> tuple[Traced, ...]:
    first = [v if isinstance(v, Traced) else Traced(constant(v.dtype, v)) for v in start]
    level = _level.get()
    state = [Traced(node(STATE, v.dtype, data=(level, n))) for n, v in enumerate(first)]
    token = _level.set(level + 1)
    try:
        after = step(*state)
    finally:
        _level.reset(token)
    body = tuple(_expr(value, v.dtype) for value, v in zip(after, first, strict=True))
    loop = node(REPEATED, first[0].dtype, tuple(v.expr for v in first), (level, *body))
    return tuple(Traced(node(PICK, v.dtype, (loop,), n)) for n, v in enumerate(first))


def trace(fn: Callable[..., Any], kinds: Sequence[Kind], result: DType) -> Expr:
    """The expression of a lane function on sources of these types, as an item of `result`."""
    return _trace(fn, tuple(kinds), result)


@lru_cache(maxsize=1024)
def _trace(fn: Callable[..., Any], kinds: tuple[Kind, ...], result: DType) -> Expr:
    found = fn(*(Traced(read(n, kind)) for n, kind in enumerate(kinds)))
    if not isinstance(found, Traced):
        found = Traced(constant(result.numpy, found))
    return found.view(symbol_type(result)).expr
