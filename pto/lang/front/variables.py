"""Variables of a function's blocks: which are bound, and which are read later (liveness).

The result is stored on the syntax tree: `live` of a branch or loop are the variables that code
after it may read, `head` of a loop those that an iteration may read from the previous one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from pto.lang.call.source import parameters

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Names = frozenset[str]
NONE: Names = frozenset()


def bound(nodes: Iterable[ast.AST]) -> Names:
    """The variables that statements or expressions bind in their function."""
    return frozenset(name for node in nodes for name in _bound(node))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, _SCOPES):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, _COMPREHENSIONS):
        walrus = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        yield from (n.target.id for n in walrus)
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((a.asname or a.name).partition(".")[0] for a in node.names)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def binds(nodes: Iterable[ast.AST]) -> bool:
    """True if there is a `:=` inside."""
    return any(isinstance(n, ast.NamedExpr) for root in nodes for n in ast.walk(root))


def read(*nodes: ast.AST | None) -> Names:
    """The variables that are read, also by functions inside; without those of these functions."""
    return frozenset(name for node in nodes if node is not None for name in _read(node))


def _read(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node.id
        return
    inner = (name for child in ast.iter_child_nodes(node) for name in _read(child))
    local = _local(node)
    yield from (name for name in inner if name not in local)
    if isinstance(node, _COMPREHENSIONS):  # the first iterable is outside
        yield from _read(node.generators[0].iter)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        outside = (
            *node.args.defaults,
            *node.args.kw_defaults,
            *getattr(node, "decorator_list", ()),
        )
        yield from read(*outside)


def _local(node: ast.AST) -> Names:
    """The variables of a function or comprehension itself."""
    if isinstance(node, _COMPREHENSIONS):
        return bound(generator.target for generator in node.generators)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return NONE
    names = frozenset(parameters(node))
    if isinstance(node, ast.Lambda):
        return names
    return (names | bound(node.body) | declared(node.body, ast.Global)) - declared(
        node.body, ast.Nonlocal
    )


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one function, without those of functions and classes inside."""
    for node in body:
        yield node
        if not isinstance(node, (*_SCOPES, ast.Lambda)):
            yield from own_nodes(ast.iter_child_nodes(node))


def map_blocks(node: ast.stmt, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Replace each list of statements inside a statement; functions and classes stay."""
    if isinstance(node, _SCOPES):
        return
    for owner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            if getattr(owner, name, None):
                setattr(owner, name, change(getattr(owner, name)))


def declared(body: Iterable[ast.stmt], kind: type[ast.Global | ast.Nonlocal]) -> Names:
    """The names of `global` or `nonlocal` statements of one function."""
    listed = (node.names for node in own_nodes(body) if isinstance(node, kind))
    return frozenset(name for names in listed for name in names)


def shared(body: Iterable[ast.stmt]) -> dict[str, Names]:
    """The names that functions inside declare `nonlocal`, by function: a call may bind them."""
    functions = (
        n for statement in body for n in ast.walk(statement) if isinstance(n, ast.FunctionDef)
    )
    inner = {n.name: frozenset(_nonlocals(n)) for n in functions}
    return {name: names for name, names in inner.items() if names}


def _nonlocals(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Nonlocal):
            yield from inner.names


def note_liveness(body: Sequence[ast.stmt]) -> None:
    """Store on each branch and loop of a function the variables that are read later."""
    functions = (n for statement in body for n in ast.walk(statement))
    captured = [n for n in functions if isinstance(n, (*_SCOPES, ast.Lambda))]
    around = declared(body, ast.Nonlocal)  # the function around reads them after a call
    _Live(read(*captured).union(around, *shared(body).values())).block(body, NONE)


class _Live:
    def __init__(self, always: Names) -> None:
        self._always = always  # functions inside or around this one may read them at any time

    def block(self, body: Sequence[ast.stmt], out: Names) -> Names:
        """The variables that are live before a block, given those that are live after it."""
        for statement in reversed(body):
            out = self._statement(statement, out | self._always)
        return out

    def _statement(self, s: ast.stmt, out: Names) -> Names:
        if isinstance(s, ast.If):
            _note(s, live=out)
            return read(s.test) | self.block(s.body, out) | self.block(s.orelse, out)
        if isinstance(s, ast.While):
            return self._loop(s, out, read(s.test), NONE)
        if isinstance(s, ast.For):
            stops: list[str] = getattr(s, "stops", [])
            head = self._loop(s, out, frozenset(stops), bound([s.target]))
            return head | read(s.iter)
        if isinstance(s, ast.With):
            inner = self.block(s.body, out) - bound(
                i.optional_vars for i in s.items if i.optional_vars
            )
            return inner | read(*s.items)
        if isinstance(s, ast.Try | ast.TryStar):
            return self._try(s, out)
        if isinstance(s, ast.Match):
            cases = [
                self.block(case.body, out) | read(case.pattern, case.guard) for case in s.cases
            ]
            return out.union(read(s.subject), *cases)
        if isinstance(s, ast.Return | ast.Raise):
            return read(s)
        if isinstance(s, ast.AugAssign | ast.Delete):  # the variable has a value before it
            return out | read(s) | bound([s])
        if isinstance(s, _SCOPES):
            return (out - {s.name}) | read(s)
        if isinstance(s, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom):
            return (out - bound([s])) | read(s)
        return out | read(s)

    def _loop(self, s: ast.For | ast.While, out: Names, first: Names, target: Names) -> Names:
        head = out | first
        while True:
            inner = head | (self.block(s.body, head) - target)
            if inner == head:
                break
            head = inner
        _note(s, live=out, head=(self.block(s.body, head) - target) | first)
        return head

    def _try(self, s: ast.Try | ast.TryStar, out: Names) -> Names:
        last = self.block(s.finalbody, out) | out
        caught = last.union(*(self.block(h.body, last) | read(h.type) for h in s.handlers))
        return self.block(s.body, self.block(s.orelse, last) | caught) | caught


def _note(node: ast.stmt, **names: Names) -> None:
    for key, value in names.items():
        setattr(node, key, value)
