"""`match` as a chain of `if`: values, `|`, captures, `_`, guards, and sequences of these.

A statement with other patterns (classes, mappings, `*rest`) is not rewritten: Python executes it
during tracing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from pto.lang.front.variables import map_blocks

_SUBJECT = "_pto_subject"


def chained(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function with `match` rewritten to `if` chains where possible."""
    out: list[ast.stmt] = []
    for statement in body:
        map_blocks(statement, chained)
        out += _chain(statement) if isinstance(statement, ast.Match) else [statement]
    return out


def _chain(node: ast.Match) -> list[ast.stmt]:
    if not all(_is_plain(case.pattern) for case in node.cases):
        function = ast.Attribute(ast.Name("_pto", ast.Load()), "known", ast.Load())
        call = ast.copy_location(ast.Call(function, [node.subject], []), node.subject)
        node.subject = ast.fix_missing_locations(call)
        return [node]
    name = f"{_SUBJECT}{node.lineno}_{node.col_offset}"
    target = ast.copy_location(ast.Name(name, ast.Store()), node.subject)
    keep = ast.copy_location(ast.Assign([target], node.subject), node)
    return [keep, *_cases(name, node.cases)]


def _cases(name: str, cases: Sequence[ast.match_case]) -> list[ast.stmt]:
    if not cases:
        return []
    case, *rest = cases
    where = case.pattern
    subject = ast.copy_location(ast.Name(name, ast.Load()), where)
    tests, captured = _tests(case.pattern, subject), _captures(case.pattern, subject)
    body = case.body
    if case.guard is not None:  # it sees what is captured
        inner = ast.If(case.guard, body, _cases(name, rest))
        body = [ast.copy_location(inner, case.guard)]
    body = [*captured, *body]
    if not tests:
        return body
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    branch = ast.If(ast.copy_location(test, where), body, _cases(name, rest))
    return [ast.fix_missing_locations(ast.copy_location(branch, where))]


def _is_plain(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchValue | ast.MatchSingleton):
        return True
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or _is_plain(pattern.pattern)
    if isinstance(pattern, ast.MatchOr):
        return all(_is_plain(p) and not _captures(p, _nothing()) for p in pattern.patterns)
    return isinstance(pattern, ast.MatchSequence) and all(map(_is_plain, pattern.patterns))


def _nothing() -> ast.expr:
    return ast.Constant(None)


def _tests(pattern: ast.pattern, subject: ast.expr) -> list[ast.expr]:
    """The conditions under which a pattern matches; none if it always does."""
    tests: list[ast.expr] = []
    if isinstance(pattern, ast.MatchValue):
        tests = [ast.Compare(subject, [ast.Eq()], [pattern.value])]
    elif isinstance(pattern, ast.MatchSingleton):
        tests = [ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])]
    elif isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _tests(pattern.pattern, subject)
    elif isinstance(pattern, ast.MatchOr):
        alternatives = [_tests(p, subject) for p in pattern.patterns]
        if all(alternatives):
            parts = [t[0] if len(t) == 1 else ast.BoolOp(ast.And(), t) for t in alternatives]
            tests = [ast.BoolOp(ast.Or(), parts)]
    elif isinstance(pattern, ast.MatchSequence):
        kinds = ast.Tuple([ast.Name("tuple", ast.Load()), ast.Name("list", ast.Load())], ast.Load())
        is_one = ast.Call(ast.Name("isinstance", ast.Load()), [subject, kinds], [])
        length = ast.Call(ast.Name("len", ast.Load()), [subject], [])
        count = ast.Constant(len(pattern.patterns))
        tests = [is_one, ast.Compare(length, [ast.Eq()], [count])]
        for n, inner in enumerate(pattern.patterns):
            tests += _tests(inner, _item(subject, n))
    for alternatives in tests:
        ast.fix_missing_locations(ast.copy_location(alternatives, pattern))
    return tests


def _captures(pattern: ast.pattern, subject: ast.expr) -> list[ast.stmt]:
    """The assignments of a pattern that has matched."""
    if isinstance(pattern, ast.MatchSequence):
        inner = enumerate(pattern.patterns)
        return [capture for n, p in inner for capture in _captures(p, _item(subject, n))]
    if not isinstance(pattern, ast.MatchAs):
        return []
    captures = [] if pattern.pattern is None else _captures(pattern.pattern, subject)
    if pattern.name is not None:
        assignment = ast.Assign([ast.Name(pattern.name, ast.Store())], subject)
        captures.append(ast.fix_missing_locations(ast.copy_location(assignment, pattern)))
    return captures


def _item(subject: ast.expr, n: int) -> ast.expr:
    return ast.copy_location(ast.Subscript(subject, ast.Constant(n), ast.Load()), subject)
