"""Generators of a kernel: they call the body of the `for` statement over them where they yield.

A generator resumes its frame between two iterations, which a loop of the program cannot do. It
is therefore rewritten to a function that calls the body of the `for` statement over it:

    for i in pto.range(n):        for i in pto.range(n):
        yield i               ->      if _pto_yield(i):  # the body left its loop
                                          return
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any

from pto.lang.call.place import mistake

YIELD = "_pto_yield"  # the body of the `for` statement, a variable of the rewritten function
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)
Iterator = Generator[object, object, object]  # as a generator function returns it
Body = Callable[[object], object]  # returns whether it left the loop


def call_body(node: ast.FunctionDef) -> bool:
    """Replace each `yield` by a call of the body. False, and no change, if that is not possible: a
    value is sent to it, or exceptions of the loop's body would be handled."""
    if not all(_is_replaceable(statement) for statement in node.body):
        return False
    node.body = [_Caller().visit(statement) for statement in node.body]
    return True


def _is_replaceable(node: ast.AST) -> bool:
    if isinstance(node, _SCOPES):
        return True
    if isinstance(node, ast.Try | ast.TryStar) and node.handlers and _yields(node.body):
        return False
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom):
        return node.value.value is None or not _yields([node.value.value])
    return not isinstance(node, _YIELDS) and all(map(_is_replaceable, ast.iter_child_nodes(node)))


def _yields(nodes: Iterable[ast.AST]) -> bool:
    """True if the nodes yield, without the functions inside."""
    return any(
        isinstance(node, _YIELDS) or _yields(ast.iter_child_nodes(node))
        for node in nodes
        if not isinstance(node, _SCOPES)
    )


class _Caller(ast.NodeTransformer):
    """Replaces statements that yield, and drops the value of `return`."""

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Yield):
            return _called(node.value.value or ast.Constant(None), node)
        if isinstance(node.value, ast.YieldFrom):
            item = ast.Name("_pto_yielded", ast.Store())
            body = _called(ast.Name("_pto_yielded", ast.Load()), node)
            loop = ast.For(item, node.value.value, [body], [])
            return ast.fix_missing_locations(ast.copy_location(loop, node))
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        if node.value is None:
            return [node]
        value = ast.copy_location(ast.Expr(node.value), node)
        return [value, ast.copy_location(ast.Return(None), node)]


def _called(value: ast.expr, where: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(YIELD, ast.Load()), [value], [])
    branch = ast.If(call, [ast.Return(None)], [])
    return ast.fix_missing_locations(ast.copy_location(branch, where))


class Generated(Iterator):
    """A call of a generator function. A `for` statement over it runs the rewritten function; for
    anything else it is the generator that Python makes."""

    def __init__(self, resumed: Iterator, called: Callable[[Body], object]) -> None:
        self._resumed = resumed
        self._called = called
        self._is_left = False

    @property
    def is_fresh(self) -> bool:
        """True before the first element is taken."""
        return inspect.getgeneratorstate(self._resumed) == inspect.GEN_CREATED  # pyright: ignore[reportArgumentType]

    def run(self, body: Body, *, can_leave: bool) -> None:
        """Call the body with each element. `can_leave`: the loop may end before the generator."""
        self._resumed.close()
        self._is_left = True
        self._called(body)
        self._is_left = can_leave

    def _python(self) -> Iterator:
        if self._is_left:
            raise mistake(
                "PTO-U224",
                "a generator is used again inside or after a `for` statement over it that can be"
                " left with break or return: how far it came is known only at run time",
                help="call the generator function again, or iterate over a list of its elements",
            )
        return self._resumed

    def send(self, value: object, /) -> object:
        return self._python().send(value)

    def throw(self, *error: Any) -> object:
        return self._python().throw(*error)

    def close(self) -> None:
        self._resumed.close()
