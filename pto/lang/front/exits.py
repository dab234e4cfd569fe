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
    if not any(_inner(statement, ast.Return) for statement in body[:-1]) and (
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


def _gives(statement: ast.stmt) -> bool:
    """True if a `return` inside has a value; a function without one has no result to join."""
    returns = (
        node
        for node in _found(statement, ast.Return, same_loop=False)
        if isinstance(node, ast.Return)
    )
    return any(node.value is not None and ast.unparse(node.value) != "None" for node in returns)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


class _Lower:
    """Rewrites the blocks of one function."""

    def __init__(self, *, has_result: bool) -> None:
        self._loops = 0
        self.has_result = has_result  # a `return` has a value

    def block(self, body: Block, loop: _ExitFlags | None, *, keeps_return: bool = False) -> Block:
        out: Block = []
        for at, statement in enumerate(body):
            if isinstance(statement, _EXITS):
                return [*out, *([statement] if keeps_return else self._left(statement, loop))]
            rest = body[at + 1 :]
            flags = _flags(statement, loop)
            joined = (
                _joined(statement, rest)
                if flags and rest and isinstance(statement, ast.If)
                else None
            )
            if joined is not None:
                return [*out, *self._statement(joined, loop)]
            out += self._statement(statement, loop)
            if flags and rest:
                guard = ast.If(going(flags), self.block(rest, loop), [])
                return [*out, _at(guard, rest[0])]
        return out

    def _statement(self, statement: ast.stmt, loop: _ExitFlags | None) -> Block:
        if isinstance(statement, _LOOPS):
            return self._loop(statement, loop)
        map_blocks(statement, lambda body: self.block(body, loop))
        return [statement]

    def _loop(self, loop_node: ast.For | ast.While, around: _ExitFlags | None) -> Block:
        if isinstance(loop_node, ast.While) and binds([loop_node.test]):
            loop_node = _tested_inside(loop_node)
        self._loops += 1
        loop_flags = _ExitFlags(f"_pto_broken{self._loops}", f"_pto_skipped{self._loops}")
        breaks = any(_inner(s, ast.Break, same_loop=True) for s in loop_node.body)
        skips = any(_inner(s, ast.Continue, same_loop=True) for s in loop_node.body)
        returns = any(_inner(s, ast.Return) for s in loop_node.body)
        stops = [loop_flags.broken] * breaks + [RETURNED] * returns
        orelse, loop_node.orelse = loop_node.orelse, []
        loop_node.body = [
            _assign(loop_flags.skipped, False, loop_node.body[0])
        ] * skips + self.block(loop_node.body, loop_flags)
        out: Block = [_assign(loop_flags.broken, False, loop_node)] if breaks else []
        out.append(loop_node)
        if stops and isinstance(loop_node, ast.While):
            joined = ast.BoolOp(ast.And(), [going(stops), loop_node.test])
            loop_node.test = ast.copy_location(joined, loop_node.test)
        loop_node.stops = stops  # pyright: ignore[reportAttributeAccessIssue]
        if orelse:
            inner = self.block(orelse, around)
            out += [_at(ast.If(going(stops), inner, []), orelse[0])] if stops else inner
        return out

    def _left(self, statement: ast.stmt, loop: _ExitFlags | None) -> Block:
        if isinstance(statement, ast.Return):
            returned = _assign(RETURNED, True, statement)
            if not self.has_result:
                return [returned]
            value = statement.value or ast.copy_location(ast.Constant(None), statement)
            result = ast.Assign([ast.Name(RESULT, ast.Store())], value)
            return [ast.copy_location(result, statement), returned]
        if loop is None:
            return [statement]  # Python's compiler reports the error
        name = loop.broken if isinstance(statement, ast.Break) else loop.skipped
        return [_assign(name, True, statement)]


def _tested_inside(loop_node: ast.While) -> ast.While:
    """`while (a := f()) > 0:` as `while True:` that begins with the condition: the body binds the
    variable."""
    if any(
        _inner(s, kind, same_loop=True)
        for s in loop_node.orelse
        for kind in (ast.Break, ast.Continue)
    ):
        return loop_node  # they leave the loop around this one
    end = ast.copy_location(ast.Break(), loop_node.test)
    test = ast.copy_location(ast.UnaryOp(ast.Not(), loop_node.test), loop_node.test)
    stop = ast.copy_location(ast.If(test, [*loop_node.orelse, end], []), loop_node.test)
    always = ast.copy_location(ast.Constant(True), loop_node.test)
    return ast.copy_location(ast.While(always, [stop, *loop_node.body], []), loop_node)


def _joined(branch: ast.If, rest: Block) -> ast.If | None:
    """The `if` with the statements after it moved into the branch that does not exit."""
    if _leaves(branch.body):
        return _at(ast.If(branch.test, branch.body, [*branch.orelse, *rest]), branch)
    if _leaves(branch.orelse):
        return _at(ast.If(branch.test, [*branch.body, *rest], branch.orelse), branch)
    return None


def _leaves(body: Block) -> bool:
    """True if a block always ends with an exit."""
    return any(
        isinstance(statement, (*_EXITS, ast.Raise))
        or (isinstance(statement, ast.If) and _leaves(statement.body) and _leaves(statement.orelse))
        for statement in body
    )


def _flags(statement: ast.stmt, loop: _ExitFlags | None) -> list[str]:
    """The variables that a statement may set."""
    flags = [RETURNED] if _inner(statement, ast.Return) else []
    if loop is not None:
        flags += [loop.broken] if _inner(statement, ast.Break, same_loop=True) else []
        flags += [loop.skipped] if _inner(statement, ast.Continue, same_loop=True) else []
    return flags


def _inner(node: ast.AST, kind: type[ast.stmt], *, same_loop: bool = False) -> bool:
    """True if a statement is one of a kind or contains one; `same_loop`: not of a loop inside."""
    return any(True for _ in _found(node, kind, same_loop))


def _found(node: ast.AST, kind: type[ast.stmt], same_loop: bool) -> Iterator[ast.AST]:
    if isinstance(node, kind):
        yield node
    if isinstance(node, _SCOPES):
        return
    inner = node.orelse if same_loop and isinstance(node, _LOOPS) else ast.iter_child_nodes(node)
    for child in inner:
        yield from _found(child, kind, same_loop)


def going(flags: list[str]) -> ast.expr:
    """An expression that is true while no exit flag is set."""
    function = ast.Attribute(ast.Name("_pto", ast.Load()), GOING, ast.Load())
    return ast.Call(function, [ast.Name(flag, ast.Load()) for flag in flags], [])


def _assign(name: str, value: object, where: ast.stmt) -> ast.Assign:
    assignment = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))  # pyright: ignore[reportArgumentType]
    return ast.copy_location(assignment, where)


def _at(node: ast.If, where: ast.stmt) -> ast.If:
    for created in (node, node.test):
        if not hasattr(created, "lineno"):
            ast.copy_location(created, where)
    return node
