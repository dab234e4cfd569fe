"""Rewrites functions for the front end and compiles them under their own file and lines.

`rewritten(f)` replaces `f`; if that is not possible (the source is not available, or it awaits) it
is `f` itself, and `why_not` gives the reason for error messages.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from pto.lang.call.place import is_installed, is_own, is_users
from pto.lang.call.rewritten import DONE, REASONS
from pto.lang.call.session import ValueHandle
from pto.lang.call.source import definition_of, tree_of
from pto.lang.front.generators import YIELD, Body, Generated, call_body
from pto.lang.front.rewrite import NAME, PREFIX, complete, rewrite

_NO_SOURCE = "its source is not available"
_CHANGED = "its source has changed since it was imported"
_OF_REWRITING = re.compile(r"_pto_(?:around|block\d+)\.<locals>\.")  # parts of qualified names
_AWAITS = "it is a coroutine"
_YIELDS_WITHIN = "it is a generator that yields in an expression, or in a `try` with `except`"
_RESUMED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_made: dict[tuple[CodeType, str], CodeType | None] = {}


def rewritten(function: Any) -> Any:
    """The function to call for `function`."""
    if isinstance(function, FunctionType):
        return _function(function)
    if isinstance(function, MethodType):
        plain = function.__func__
        inner = _function(plain) if isinstance(plain, FunctionType) else plain
        return function if inner is plain else MethodType(inner, function.__self__)
    if isinstance(function, partial):
        inner = rewritten(function.func)
        if inner is function.func:
            return function
        return partial(inner, *function.args, **function.keywords)
    method = vars(type(function)).get("__call__")
    if isinstance(method, FunctionType) and not isinstance(function, type):
        inner = _function(method)
        return function if inner is method else MethodType(inner, function)
    return function


def _function(function: FunctionType) -> FunctionType | partial[object]:
    code = function.__code__
    if code in DONE or is_own(code.co_filename):
        return function
    if not is_users(code.co_filename):
        return partial(_foreign, function) if is_installed(code.co_filename) else function
    return _copied(function)


def _foreign(function: FunctionType, *args: object, **named: object) -> object:
    """Call a function of an installed package, rewritten if an argument is a kernel value."""
    if any(isinstance(argument, ValueHandle) for argument in (*args, *named.values())):
        return _copied(function)(*args, **named)
    return function(*args, **named)


def _copied(function: FunctionType) -> Callable[..., object]:
    code = _code(function)
    if code is None:
        return function
    if function.__code__.co_flags & CO_GENERATOR:
        return partial(_generated, function, code)
    return _instance(function, code)


def _generated(function: FunctionType, code: CodeType, *args: object, **named: object) -> Generated:
    def called(body: Body) -> object:
        return _instance(function, code, body)(*args, **named)

    return Generated(function(*args, **named), called)


def _instance(function: FunctionType, code: CodeType, body: Body | None = None) -> FunctionType:
    """The rewritten code with the variables of a function, and the body that a generator calls."""
    from pto.lang.front import runtime  # it calls `rewritten` for the functions of a kernel

    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[NAME], cells[YIELD] = CellType(runtime), CellType(body)
    closure = tuple(cells[name] for name in code.co_freevars)
    copied = FunctionType(code, function.__globals__, function.__name__, None, closure)
    copied.__defaults__, copied.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    copied.__qualname__, copied.__module__ = function.__qualname__, function.__module__
    return copied


def _code(function: FunctionType) -> CodeType | None:
    code = function.__code__
    key = code, code.co_filename  # equal code of two files is equal
    if key not in _made:
        _made[key] = _compiled(function)
    return _made[key]


def _compiled(function: FunctionType) -> CodeType | None:
    code = function.__code__
    if code.co_flags & _RESUMED & ~CO_GENERATOR:
        REASONS[code] = _AWAITS
        return None
    definition = definition_of(code, function.__globals__)
    if definition is None:
        is_there = tree_of(code.co_filename, function.__globals__) is not None
        is_there &= code.co_filename != "<string>"  # texts of exec have this name, and so has -c
        REASONS[code] = _CHANGED if is_there else _NO_SOURCE
        return None
    node, inside = definition
    node = copy.deepcopy(node)
    if code.co_flags & CO_GENERATOR and not (isinstance(node, ast.FunctionDef) and call_body(node)):
        REASONS[code] = _YIELDS_WITHIN
        return None
    around: Mapping[str, object] = function.__globals__
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    rewrite(node, lambda each: _resolved(each, around, local))
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, inner = [], node
    else:
        inner = ast.copy_location(ast.Expr(node), node)
    top = _in_scopes(inner, inside, (*code.co_freevars, NAME, YIELD))
    flags = code.co_flags & 0xFFF0000  # of `from __future__` statements
    module = compile(top, code.co_filename, "exec", flags=flags, dont_inherit=True)
    converted = _find(module, code)
    if converted is None or set(converted.co_freevars) - {*code.co_freevars, NAME, YIELD}:
        REASONS[code] = _CHANGED
        return None
    return _named(converted, code.co_name)


def _in_scopes(
    inner: ast.stmt, inside: ast.ClassDef | None, variables: tuple[str, ...]
) -> ast.Module:
    """The definition nested in a function and a class like the original, so that free variables and
    private names of a class resolve as before."""
    body: list[ast.stmt] = [inner]
    if inside is not None:
        body = [complete(ast.ClassDef(inside.name, [], [], body, []))]
    elif isinstance(inner, ast.FunctionDef) and inner.name not in variables:
        body.insert(0, ast.Global([inner.name]))  # the function calls itself by its global name
    arguments = [ast.arg(name) for name in variables if name != "__class__"]
    named = ast.arguments([], arguments, None, [], [], None, [])
    around = complete(ast.FunctionDef("_pto_around", named, body, []))
    top = ast.Module([ast.copy_location(around, inner)], [])
    return ast.fix_missing_locations(top)


def _find(code: CodeType, wanted: CodeType) -> CodeType | None:
    """The code object of the function, within the compiled module."""
    todo = [code]
    while todo:
        outer = todo.pop(0)
        inner = [c for c in outer.co_consts if isinstance(c, CodeType)]
        if outer.co_name == "_pto_around":
            while len(inner) == 1 and inner[0].co_name != wanted.co_name:
                inner = [c for c in inner[0].co_consts if isinstance(c, CodeType)]
            return next((c for c in inner if c.co_name == wanted.co_name), None)
        todo += inner
    return None


def _named(code: CodeType, name: str) -> CodeType:
    """The code object, marked as rewritten, with its blocks named after the user's function.
    Generators inside are rewritten when they are called."""
    consts = tuple(
        _named(c, name if c.co_name.startswith(PREFIX) else c.co_name)
        if isinstance(c, CodeType) and not c.co_flags & _RESUMED
        else c
        for c in code.co_consts
    )
    qualified = _OF_REWRITING.sub("", code.co_qualname)
    renamed = code.replace(co_name=name, co_qualname=qualified, co_consts=consts)
    DONE.add(renamed)
    return renamed


def _resolved(node: ast.expr, around: Mapping[str, object], local: set[str]) -> object:
    """The value of a global name, or of an attribute of a module; None if it is neither."""
    if isinstance(node, ast.Attribute):
        module = _resolved(node.value, around, local)
        return getattr(module, node.attr, None) if inspect.ismodule(module) else None
    if isinstance(node, ast.Name) and node.id not in local:
        return around.get(node.id, getattr(builtins, node.id, None))
    return None
