"""Syntax trees of the user's files: the definition behind a function, and the variables that an
expression is assigned to. Files are read as Python shows them in tracebacks (`linecache`)."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType

Definition = ast.FunctionDef | ast.Lambda
Position = tuple[int | None, int | None, int | None, int | None]  # line, last line, columns


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tree_of(file: str, around: Mapping[str, object] | None = None) -> ast.Module | None:
    """The syntax tree of a file; None if its text is not available."""
    lines = linecache.getlines(file, None if around is None else dict(around))
    return _parsed("".join(lines)) if lines else None


Found = tuple[Definition, ast.ClassDef | None]


def definition_of(code: CodeType, around: Mapping[str, object]) -> Found | None:
    """The definition that a code object was compiled from, and the innermost class around it.

    None if the source is not available, or is not the one that was compiled: the arguments and
    the line of the definition must agree.
    """
    linecache.checkcache(code.co_filename)
    _show_typed(code)
    tree = tree_of(code.co_filename, around)
    if tree is None:
        return None
    candidates = [(n, c) for n, c in _definitions(tree, None) if _is_of(n, code)]
    if len(candidates) > 1:  # lambdas on one line
        candidates = [(n, c) for n, c in candidates if _spans(n.body, code)]  # pyright: ignore[reportArgumentType]
    return candidates[0] if len(candidates) == 1 else None


def _show_typed(code: CodeType) -> None:
    """Register source that was typed at a prompt by the name of its file, which is one for each
    input. Python 3.14 keeps it by the code object only."""
    by_code = getattr(linecache, "_getlines_from_code", None)
    file = code.co_filename
    lines: list[str] = by_code(code) if by_code and file not in linecache.cache else []
    if lines and file.startswith("<"):
        linecache.cache[file] = len("".join(lines)), None, lines, file


def _definitions(node: ast.AST, inside: ast.ClassDef | None) -> Iterator[Found]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child, inside
        yield from _definitions(child, child if isinstance(child, ast.ClassDef) else inside)


def _is_of(node: Definition, code: CodeType) -> bool:
    first = node.lineno
    if isinstance(node, ast.FunctionDef):
        first = min([first, *(decorator.lineno for decorator in node.decorator_list)])
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    return (
        first == code.co_firstlineno and name == code.co_name and parameters(node) == _given(code)
    )


def parameters(node: Definition | ast.AsyncFunctionDef) -> list[str]:
    """The names of the parameters, in the order of a code object's variables."""
    a = node.args
    rest = [argument for argument in (a.vararg, a.kwarg) if argument is not None]
    return [argument.arg for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, *rest)]


def _given(code: CodeType) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args, **named
    return list(code.co_varnames[:count])


def _spans(body: ast.expr, code: CodeType) -> bool:
    """True if the widest expression of the code is this one."""
    positions = {p for p in code.co_positions() if None not in p and p[2] != p[3]}
    return (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in positions and (
        min((p[0], p[2]) for p in positions) == (body.lineno, body.col_offset)  # pyright: ignore[reportArgumentType]
    )


@lru_cache(maxsize=64)
def _assignments(tree: ast.Module) -> dict[Position, tuple[str, ...]]:
    assigned: dict[Position, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            target, value = node.target, node.value
        else:
            continue
        names = names_in(target)
        if value is not None and names:
            key_node = value if not isinstance(node, ast.AugAssign) else node
            assigned[position_of(key_node)] = names
    return assigned


def names_in(target: ast.expr) -> tuple[str, ...]:
    """`a` of the target `a`, `a, b` of `(a, b)`; none where it is not made of names alone."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return tuple(names) if len(names) == len(parts) else ()


def position_of(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def names_at(file: str, position: Position) -> tuple[str, ...]:
    """The variables that the value of the expression at a position is assigned to."""
    tree = tree_of(file)
    return () if tree is None else _assignments(tree).get(position, ())
