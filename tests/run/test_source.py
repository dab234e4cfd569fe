"""The source of `pto/run`: one assignment a line, and how much of the compiled engine is typed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

RUN = Path(__file__).parents[2] / "pto" / "run"
FILES = sorted(RUN.rglob("*.py"))
# Uses of `Any` in run/jit: a value that the type checker does not check. It may only fall.
ANY = 427


def _parallel(path: Path) -> list[str]:
    """The assignments of a file that bind more than two targets to as many expressions."""
    tuples = [
        (node, node.targets[0], node.value)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign)
    ]
    return [
        f"{path.relative_to(RUN)}:{node.lineno}"
        for node, target, value in tuples
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) > 2
    ]


def test_an_assignment_binds_two_targets_at_most() -> None:
    assert not [place for path in FILES for place in _parallel(path)]


def test_the_count_of_any_only_falls() -> None:
    texts = [path.read_text() for path in FILES if "jit" in path.relative_to(RUN).parts]
    count = sum(len(re.findall(r"\bAny\b", text)) for text in texts)
    assert count <= ANY, f"run/jit has {count} uses of Any, {count - ANY} more than before"
    assert count == ANY, f"run/jit has {count} uses of Any: lower ANY to it"
