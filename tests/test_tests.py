"""Tests can fail: each one reaches an assertion, and none asserts only in a loop that may be empty.

Names stand for functions: a call of any function of the tests that asserts counts as an assertion.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HOME = Path(__file__).parent
# Calls that fail a test where something is not as it should be.
_CHECKS = {"raises", "warns", "fail", "assert_array_equal", "assert_outcomes", "fnmatch_lines"}


@cache
def functions() -> list[tuple[str, ast.FunctionDef]]:
    """Every function of the tests, with the file it stands in."""
    return [
        (str(path.relative_to(HOME)), node)
        for path in sorted(HOME.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def names(node: ast.AST) -> set[str]:
    """Names and attributes inside: functions that are called, or handed on to be."""
    inside = list(ast.walk(node))
    plain = {n.id for n in inside if isinstance(n, ast.Name)}
    return plain | {n.attr for n in inside if isinstance(n, ast.Attribute)}


@cache
def asserting() -> set[str]:
    """Names of functions that assert, raise, or call one that does."""
    own = [(f.name, names(f), f) for _, f in functions()]
    found = _CHECKS | {
        name
        for name, _, f in own
        if any(isinstance(n, ast.Assert | ast.Raise) for n in ast.walk(f))
    }
    while more := {name for name, used, _ in own if used & found} - found:
        found |= more
    return found


def outside_loops(node: ast.AST) -> Iterator[ast.AST]:
    """Everything inside but the bodies of loops over anything but a literal."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For) and _may_be_empty(child.iter):
            continue
        yield child
        yield from outside_loops(child)


def _may_be_empty(iterable: ast.expr) -> bool:
    """A glob or a filter of files: a folder that moves leaves nothing to loop over."""
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("glob", "rglob", "iterdir")
        for n in ast.walk(iterable)
    )


def cases() -> list[tuple[str, ast.FunctionDef]]:
    return [(path, f) for path, f in functions() if f.name.startswith("test_")]


def test_there_are_tests() -> None:
    assert len(cases()) > 2_000


def test_every_test_reaches_an_assertion() -> None:
    without = [
        f"{path}::{f.name}"
        for path, f in cases()
        if not any(isinstance(n, ast.Assert) for n in ast.walk(f))
        and not names(f) & (asserting() - {f.name})
    ]
    assert without == []


def test_no_test_asserts_only_in_a_loop_over_files() -> None:
    vacuous = [
        f"{path}::{f.name}"
        for path, f in cases()
        if not any(isinstance(n, ast.Assert) for n in outside_loops(f))
        and any(isinstance(n, ast.For) and _may_be_empty(n.iter) for n in ast.walk(f))
    ]
    assert vacuous == []
