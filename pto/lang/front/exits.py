"""`break`, `continue` and early `return` as structured control flow.

If one branch of an `if` exits, the statements after the `if` move into the other branch. Elsewhere
a flag variable records the exit and guards the following statements. Loops test the flag:

    while c:                  brk = False
        if a:                 while going(brk) and c:
            break      ->         if a:
        b                             brk = True
                                  else:
                                      b
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pto.lang.call.misused import RESULT
from pto.lang.front.variables import binds, map_blocks

RETURNED = "_pto_returned"
GOING = "going"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While)
_EXITS = (ast.Return, ast.Break, ast.Continue)
Block = list[ast.stmt]


@dataclass(frozen=True, slots=True)
class _ExitFlags:
    """The exit flags of the innermost loop (break) and of its iteration (continue)."""

    broken: str
    skipped: str


def structured(body: Block) -> Block:
    """The body of a function without break and continue; it returns at its end only."""
    lower = _Lower(has_result=any(map(_gives, body)))
    if not any(_inner(each, ast.Return) for each in body[:-1]) and (
        not body or isinstance(body[-1], ast.Return) or not _inner(body[-1], ast.Return)
    ):
        return lower.block(body, None, keeps_return=True)
    if not lower.has_result:
        return [_assign(RETURNED, False, body[0]), *lower.block(body, None)]
    first = [_assign(RETURNED, False, body[0]), _assign(RESULT, None, body[0])]
    first[1].value = ast.Attribute(ast.Name("_pto", ast.Load()), "UNSET", ast.Load())
    last = ast.copy_location(ast.Return(ast.Name(RESULT, ast.Load())), body[-1])
    doc = body[:1] if _is_text(body[0]) else []
    rest = body[len(doc) :]
    if not _leaves(body):
        rest = [*rest, ast.copy_location(ast.Return(None), body[-1])]
    return [*doc, *first, *lower.block(rest, None), last]


def _gives(each: ast.stmt) -> bool:
    """True if a `return` inside has a value; a function without one has no result to join."""
    returns = (node for node in _found(each, ast.Return, own=False) if isinstance(node, ast.Return))
    return any(node.value is not None and ast.unparse(node.value) != "None" for node in returns)


def _is_text(each: ast.stmt) -> bool:
    return (
        isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Constant)
        and isinstance(each.value.value, str)
    )


class _Lower:
    """Rewrites the blocks of one function."""

    def __init__(self, *, has_result: bool) -> None:
        self._loops = 0
        self.has_result = has_result  # a `return` has a value

    def block(self, body: Block, loop: _ExitFlags | None, *, keeps_return: bool = False) -> Block:
        made: Block = []
        for at, each in enumerate(body):
            if isinstance(each, _EXITS):
                return [*made, *([each] if keeps_return else self._left(each, loop))]
            rest = body[at + 1 :]
            flags = _flags(each, loop)
            whole = _joined(each, rest) if flags and rest and isinstance(each, ast.If) else None
            if whole is not None:
                return [*made, *self._statement(whole, loop)]
            made += self._statement(each, loop)
            if flags and rest:
                guard = ast.If(going(flags), self.block(rest, loop), [])
                return [*made, _at(guard, rest[0])]
        return made

    def _statement(self, each: ast.stmt, loop: _ExitFlags | None) -> Block:
        if isinstance(each, _LOOPS):
            return self._loop(each, loop)
        map_blocks(each, lambda body: self.block(body, loop))
        return [each]

    def _loop(self, each: ast.For | ast.While, around: _ExitFlags | None) -> Block:
        if isinstance(each, ast.While) and binds([each.test]):
            each = _tested_inside(each)
        self._loops += 1
        own = _ExitFlags(f"_pto_broken{self._loops}", f"_pto_skipped{self._loops}")
        breaks = any(_inner(s, ast.Break, own=True) for s in each.body)
        skips = any(_inner(s, ast.Continue, own=True) for s in each.body)
        returns = any(_inner(s, ast.Return) for s in each.body)
        stops = [own.broken] * breaks + [RETURNED] * returns
        orelse, each.orelse = each.orelse, []
        each.body = [_assign(own.skipped, False, each.body[0])] * skips + self.block(each.body, own)
        made: Block = [_assign(own.broken, False, each)] if breaks else []
        made.append(each)
        if stops and isinstance(each, ast.While):
            joined = ast.BoolOp(ast.And(), [going(stops), each.test])
            each.test = ast.copy_location(joined, each.test)
        each.stops = stops  # pyright: ignore[reportAttributeAccessIssue]
        if orelse:
            inner = self.block(orelse, around)
            made += [_at(ast.If(going(stops), inner, []), orelse[0])] if stops else inner
        return made

    def _left(self, each: ast.stmt, loop: _ExitFlags | None) -> Block:
        if isinstance(each, ast.Return):
            returned = _assign(RETURNED, True, each)
            if not self.has_result:
                return [returned]
            value = each.value or ast.copy_location(ast.Constant(None), each)
            result = ast.Assign([ast.Name(RESULT, ast.Store())], value)
            return [ast.copy_location(result, each), returned]
        if loop is None:
            return [each]  # Python's compiler reports the error
        name = loop.broken if isinstance(each, ast.Break) else loop.skipped
        return [_assign(name, True, each)]


def _tested_inside(each: ast.While) -> ast.While:
    """`while (a := f()) > 0:` as `while True:` that begins with the condition: the body binds the
    variable."""
    if any(_inner(s, kind, own=True) for s in each.orelse for kind in (ast.Break, ast.Continue)):
        return each  # they leave the loop around this one
    end = ast.copy_location(ast.Break(), each.test)
    test = ast.copy_location(ast.UnaryOp(ast.Not(), each.test), each.test)
    stop = ast.copy_location(ast.If(test, [*each.orelse, end], []), each.test)
    always = ast.copy_location(ast.Constant(True), each.test)
    return ast.copy_location(ast.While(always, [stop, *each.body], []), each)


def _joined(each: ast.If, rest: Block) -> ast.If | None:
    """The `if` with the statements after it moved into the branch that does not exit."""
    if _leaves(each.body):
        return _at(ast.If(each.test, each.body, [*each.orelse, *rest]), each)
    if _leaves(each.orelse):
        return _at(ast.If(each.test, [*each.body, *rest], each.orelse), each)
    return None


def _leaves(body: Block) -> bool:
    """True if a block always ends with an exit."""
    return any(
        isinstance(each, (*_EXITS, ast.Raise))
        or (isinstance(each, ast.If) and _leaves(each.body) and _leaves(each.orelse))
        for each in body
    )


def _flags(each: ast.stmt, loop: _ExitFlags | None) -> list[str]:
    """The variables that a statement may set."""
    found = [RETURNED] if _inner(each, ast.Return) else []
    if loop is not None:
        found += [loop.broken] if _inner(each, ast.Break, own=True) else []
        found += [loop.skipped] if _inner(each, ast.Continue, own=True) else []
    return found


def _inner(node: ast.AST, kind: type[ast.stmt], *, own: bool = False) -> bool:
    """True if a statement is one of a kind, or has one inside; `own`: not of a loop inside."""
    return any(True for _ in _found(node, kind, own))


def _found(node: ast.AST, kind: type[ast.stmt], own: bool) -> Iterator[ast.AST]:
    if isinstance(node, kind):
        yield node
    if isinstance(node, _SCOPES):
        return
    inner = node.orelse if own and isinstance(node, _LOOPS) else ast.iter_child_nodes(node)
    for each in inner:
        yield from _found(each, kind, own)


def going(flags: list[str]) -> ast.expr:
    """An expression that is true while no exit flag is set."""
    function = ast.Attribute(ast.Name("_pto", ast.Load()), GOING, ast.Load())
    return ast.Call(function, [ast.Name(each, ast.Load()) for each in flags], [])


def _assign(name: str, value: object, where: ast.stmt) -> ast.Assign:
    made = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))  # pyright: ignore[reportArgumentType]
    return ast.copy_location(made, where)


def _at(node: ast.If, where: ast.stmt) -> ast.If:
    for each in (node, node.test):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, where)
    return node
