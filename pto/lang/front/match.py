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
    made: list[ast.stmt] = []
    for each in body:
        map_blocks(each, chained)
        made += _chain(each) if isinstance(each, ast.Match) else [each]
    return made


def _chain(node: ast.Match) -> list[ast.stmt]:
    if not all(_is_plain(case.pattern) for case in node.cases):
        known = ast.Attribute(ast.Name("_pto", ast.Load()), "known", ast.Load())
        call = ast.copy_location(ast.Call(known, [node.subject], []), node.subject)
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
    made = ast.If(ast.copy_location(test, where), body, _cases(name, rest))
    return [ast.fix_missing_locations(ast.copy_location(made, where))]


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
    found: list[ast.expr] = []
    if isinstance(pattern, ast.MatchValue):
        found = [ast.Compare(subject, [ast.Eq()], [pattern.value])]
    elif isinstance(pattern, ast.MatchSingleton):
        found = [ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])]
    elif isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _tests(pattern.pattern, subject)
    elif isinstance(pattern, ast.MatchOr):
        each = [_tests(p, subject) for p in pattern.patterns]
        if all(each):
            parts = [t[0] if len(t) == 1 else ast.BoolOp(ast.And(), t) for t in each]
            found = [ast.BoolOp(ast.Or(), parts)]
    elif isinstance(pattern, ast.MatchSequence):
        kinds = ast.Tuple([ast.Name("tuple", ast.Load()), ast.Name("list", ast.Load())], ast.Load())
        is_one = ast.Call(ast.Name("isinstance", ast.Load()), [subject, kinds], [])
        length = ast.Call(ast.Name("len", ast.Load()), [subject], [])
        count = ast.Constant(len(pattern.patterns))
        found = [is_one, ast.Compare(length, [ast.Eq()], [count])]
        for n, inner in enumerate(pattern.patterns):
            found += _tests(inner, _item(subject, n))
    for each in found:
        ast.fix_missing_locations(ast.copy_location(each, pattern))
    return found


def _captures(pattern: ast.pattern, subject: ast.expr) -> list[ast.stmt]:
    """The assignments of a pattern that has matched."""
    if isinstance(pattern, ast.MatchSequence):
        inner = enumerate(pattern.patterns)
        return [each for n, p in inner for each in _captures(p, _item(subject, n))]
    if not isinstance(pattern, ast.MatchAs):
        return []
    found = [] if pattern.pattern is None else _captures(pattern.pattern, subject)
    if pattern.name is not None:
        made = ast.Assign([ast.Name(pattern.name, ast.Store())], subject)
        found.append(ast.fix_missing_locations(ast.copy_location(made, pattern)))
    return found


def _item(subject: ast.expr, n: int) -> ast.expr:
    return ast.copy_location(ast.Subscript(subject, ast.Constant(n), ast.Load()), subject)
