"""Control statements and conditions of a function as calls of `runtime`, on its syntax tree.

The blocks of a statement become inner functions with nonlocal variables, so that the runtime can
execute a block, read the variables and set them:

    if c:                 def then():
        a = 1                 nonlocal a
                   ->         a = 1
                          _pto.if_(c, then, None, live)

All nodes keep the positions of the user's file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pto.lang.call.source import Definition, names_in, parameters
from pto.lang.front.exits import going, structured
from pto.lang.front.match import chained
from pto.lang.front.variables import (
    Names,
    binds,
    bound,
    declared,
    note_liveness,
    own_nodes,
    shared,
)

NAME = "_pto"  # the runtime, a variable of the rewritten function
PREFIX = "_pto_block"  # of functions that are blocks
_UNTOUCHED = ("super", "locals", "globals", "vars", "dir", "eval", "exec")
_BUILTINS = ("isinstance", "len", "range", "enumerate", "zip", "list", "tuple", "type")
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Import, ast.ImportFrom)
N = TypeVar("N", bound=ast.AST)
Resolve = Callable[[ast.expr], Any]  # the value of a global name, or of an attribute of one


def rewrite(node: Definition, resolve: Resolve) -> None:
    """Rewrite a function in place."""
    if isinstance(node, ast.Lambda):
        node.body = _Rewriter(resolve, []).visit(node.body)
    else:
        _Rewriter(resolve, node.body, parameters(node)).function(node)


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function; those inside it have rewriters of their own."""

    def __init__(
        self, resolve: Resolve, body: list[ast.stmt], parameters: Iterable[str] = ()
    ) -> None:
        self._resolve = resolve
        self._blocks = 0
        self._moved: set[str] = set()  # variables of blocks
        self._global = declared(body, ast.Global)
        self._given = declared(body, ast.Nonlocal).union(parameters)
        inner, local = shared(body), bound(body) | self._given
        self._shared = frozenset[str]().union(*inner.values()) & local  # functions inside bind them
        self._binders = frozenset(name for name, names in inner.items() if names & local)

    # ---- functions

    def function(self, node: ast.FunctionDef) -> None:
        node.body = structured(chained(node.body))
        note_liveness(node.body)
        node.body = self._statements(node.body)
        moved = self._moved - self._global - self._given
        if moved:  # declare variables of the function, which a block cannot create
            names = [ast.Name(name, ast.Store()) for name in sorted(moved)]
            never = ast.If(ast.Constant(False), [ast.Assign([*names], ast.Constant(None))], [])
            at = 1 if ast.get_docstring(node, clean=False) is not None else 0
            node.body.insert(at, ast.copy_location(never, node.body[0]))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.args = self.visit(node.args)
        if not _resumes(node):
            rewrite(node, self._resolve)
        return node

    def visit_ClassDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef

    # ---- statements

    def _statements(self, body: Iterable[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            names = (
                sorted(bound([statement]) & self._global) if isinstance(statement, _SIMPLE) else []
            )
            if names:
                call = _call("binds_global", [ast.Constant(names[0])], statement)
                out.append(ast.copy_location(ast.Expr(call), statement))
            visited = self.visit(statement)
            out += visited if isinstance(visited, list) else [visited]
        return out

    def _block(
        self, body: list[ast.stmt], where: ast.AST, item: ast.expr | None = None
    ) -> ast.FunctionDef:
        """A block as a function; `item` is bound to its argument first."""
        names = bound(body) | (frozenset() if item is None else bound([item]))
        names |= self._called(body)
        statements: list[ast.stmt] = []
        for kind, chosen in (
            (ast.Global, names & self._global),
            (ast.Nonlocal, names - self._global),
        ):
            if chosen:
                statements.append(kind(sorted(chosen)))
        self._moved |= names
        if item is not None:
            value = ast.copy_location(ast.Name("_pto_item", ast.Load()), item)
            statements.append(ast.copy_location(ast.Assign([item], value), item))
        statements += self._statements(body) or [ast.Pass()]
        return self._define(statements, where, ["_pto_item"] if item is not None else [])

    def _define(
        self, body: list[ast.stmt], where: ast.AST, arguments: list[str]
    ) -> ast.FunctionDef:
        self._blocks += 1
        named = ast.arguments(
            [], [ast.arg(argument) for argument in arguments], None, [], [], None, []
        )
        function = complete(ast.FunctionDef(f"{PREFIX}{self._blocks}", named, body, []))
        return ast.copy_location(function, where)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        test = self._test(node.test)
        then = self._block(node.body, node)
        parts: list[ast.expr] = [_name(then.name), ast.Constant(None)]
        statements: list[ast.stmt] = [then]
        if node.orelse:
            orelse = self._block(node.orelse, node.orelse[0])
            statements.append(orelse)
            parts[1] = _name(orelse.name)
        call = _call("if_", [test, *parts, _names(getattr(node, "live", ()))], node.test)
        return [*statements, ast.copy_location(ast.Expr(call), node.test)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        _mark_condition(node.test)
        ask = ast.copy_location(ast.Return(node.test), node.test)
        test, body = self._block([ask], node.test), self._block(node.body, node)
        parts = [_name(test.name), _name(body.name), *self._liveness(node)]
        call = _call("while_", parts, node.test)
        return [test, body, ast.copy_location(ast.Expr(call), node.test)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        items = self.visit(node.iter)
        body = self._block(node.body, node, node.target)
        stops: list[str] = getattr(node, "stops", [])
        asks = _lambda(going(stops), node) if stops else ast.Constant(None)
        target = ast.Constant((names_in(node.target) or ("i",))[0])
        parts = [items, _name(body.name), *self._liveness(node), asks, target]
        call = _call("for_", parts, node.iter)
        return [body, ast.copy_location(ast.Expr(call), node.iter)]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = [_lambda(self.visit(node.msg), node.msg)] if node.msg else []
        call = _call("assert_", [self._test(node.test), *message], node)
        return ast.copy_location(ast.Expr(call), node)

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        check = ast.copy_location(ast.Expr(_call("raises", [], node)), node)
        return [check, _visited(self, node)]

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        every = node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException")
        node.body = self._statements(node.body)
        if every:
            check = ast.copy_location(ast.Expr(_call("caught", [], node)), node)
            node.body.insert(0, check)
        return node

    def _called(self, body: Iterable[ast.AST]) -> Names:
        """The variables that functions inside may bind when statements call them."""
        if not self._shared:
            return self._shared
        calls = any(isinstance(n, ast.Call) for part in body for n in ast.walk(part))
        return self._shared if calls else frozenset()

    def _liveness(self, node: ast.For | ast.While) -> list[ast.expr]:
        """The variables bound in a loop that are read after it, and by its next iteration."""
        names = bound([*node.body, node.target if isinstance(node, ast.For) else node.test])
        names |= self._called([node])
        return [_names(names & getattr(node, moment, frozenset())) for moment in ("live", "head")]

    # ---- expressions

    def _test(self, node: ast.expr) -> ast.expr:
        _mark_condition(node)
        return self.visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._binders and isinstance(node.ctx, ast.Load):
            return _call("passed", [node, ast.Constant(node.id)], node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if binds(node.values[1:]):
            node.values = [self._decided(part) for part in node.values]
            return node
        word = "and_" if isinstance(node.op, ast.And) else "or_"
        shared = self._called([node])
        values = [self.visit(part) for part in node.values]
        if getattr(node, "is_condition", False):
            values = [_call("bool_", [part], part) for part in values]
        first, *rest = values
        return _lazy(word, [first, *(_lambda(part, part) for part in rest)], node, shared)

    def _decided(self, value: ast.expr) -> ast.expr:
        """A condition of an expression with `:=`, which Python decides."""
        return _call("decided", [self.visit(value)], value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return _call("not_", [self._test(node.operand)], node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if binds([node.body, node.orelse]):
            node.test = self._decided(node.test)
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
            return node
        shared = self._called([node])
        parts = [self._test(node.test)]
        parts += [_lambda(self.visit(part), part) for part in (node.body, node.orelse)]
        return _lazy("choose", parts, node, shared)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        chained = len(node.ops) > 1
        contains = any(
            isinstance(part, ast.In | ast.NotIn | ast.Is | ast.IsNot) for part in node.ops
        )
        if not (chained or contains) or binds(node.comparators[1:]):
            return self.generic_visit(node)
        first, *rest = [self.visit(part) for part in (node.left, *node.comparators)]
        pairs = [
            ast.Tuple([ast.Constant(type(op).__name__), _lambda(part, part)], ast.Load())
            for op, part in zip(node.ops, rest, strict=True)
        ]
        return _call("compared", [first, *pairs], node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                form = part.format_spec
                how = ast.Constant("") if form is None else self.visit(form)
                items: list[ast.expr] = [
                    self.visit(part.value),
                    ast.Constant(part.conversion),
                    how,
                ]
                parts.append(ast.Tuple(items, ast.Load()))
            else:
                parts.append(part)
        return ast.fix_missing_locations(_call("text", parts, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        named = node.func.id if isinstance(node.func, ast.Name) else ""
        if named in self._binders:
            node.args = [self.visit(argument) for argument in node.args]
            node.keywords = [self.visit(argument) for argument in node.keywords]
        else:
            node = _visited(self, node)
        if named not in (*_UNTOUCHED, *_BUILTINS) and not self._is_ours(node.func):
            node.func = _call("fn", [node.func], node.func)
        return node

    def _is_ours(self, function: ast.expr) -> bool:
        module = getattr(self._resolve(function), "__module__", None) or ""
        return module.partition(".")[0] in ("pto", "numpy")


def complete(node: N) -> N:
    """The node with the fields that newer Python versions require."""
    if "type_params" in node._fields:
        setattr(node, "type_params", [])  # noqa: B010
    return node


def _visited(maker: ast.NodeTransformer, node: N) -> N:
    maker.generic_visit(node)
    return node


def _mark_condition(node: ast.expr) -> None:
    """Mark `and` and `or` of a condition: only the truth of their operands counts."""
    if isinstance(node, ast.BoolOp):
        node.is_condition = True  # pyright: ignore[reportAttributeAccessIssue]
        for operand in node.values:
            _mark_condition(operand)


def _resumes(node: ast.FunctionDef) -> bool:
    """True for a generator or a coroutine: its blocks cannot be functions."""
    resuming = (ast.Yield, ast.YieldFrom, ast.Await)
    return any(isinstance(node_inside, resuming) for node_inside in own_nodes(node.body))


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _names(names: Iterable[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(name) for name in sorted(names)], ast.Load())


def _lazy(word: str, args: list[ast.expr], where: ast.AST, shared: Names) -> ast.Call:
    """A call with operands that the program may skip, and the variables that these may bind."""
    call = _call(word, args, where)
    if shared:
        names = ast.Tuple([_name(name) for name in sorted(shared)], ast.Load())
        call.keywords.append(ast.keyword("shared", _lambda(names, where)))
    return ast.fix_missing_locations(call)


def _lambda(body: ast.expr, where: ast.AST) -> ast.expr:
    named = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(named, body), where)


def _call(word: str, args: list[ast.expr], where: ast.AST) -> ast.Call:
    call = ast.Call(ast.Attribute(_name(NAME), word, ast.Load()), args, [])
    return ast.copy_location(call, where)
