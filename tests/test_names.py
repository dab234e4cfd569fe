"""Rows own what operations are: outside `pto/isa` their names are not known.

What a layer wants to know of an operation is a trait, an operand or the body of its row
(`isa/row/traits.py`); where it makes one, it imports the row. The ceiling may only fall.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pto.isa.row.instr import Instr
from pto.isa.table import rows

CEILING = 63
ROOT = Path(__file__).parents[1] / "pto"
NAMES = {name for row in rows() for name in (row.name, *row.aliases)}
MNEMONICS = {name.partition(".")[2] for name in NAMES}
DIALECTS = tuple({row.family.dialect for row in rows()})
# words that can mean nothing else, wherever they stand: `load` and `select` can
SURE = NAMES | {name.removeprefix("pto.") for name in NAMES if name[:4] == "pto." and "_" in name}
SHORT = MNEMONICS - SURE
# what takes the name of an operation, and what usually holds an operation or a row
TAKES_A_NAME = {"lookup", "emit", "append", "make", "call", "Operation"}
HOLDERS = {"op", "row", "user", "maker", "owner", "made", "loop", "last", "around", "inner"}
SHOWS_TITLES = {"cli/isa.py", "view/instruction.py", "view/reference.py"}  # documentation

Found = tuple[str, int, str]  # file, line, what stands there


@cache
def _files() -> list[tuple[str, ast.Module]]:
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    named = [(name, path) for name, path in paths.items() if not name.startswith("isa/")]
    return [(name, ast.parse(path.read_text())) for name, path in named]


def _docstrings(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(id(body[0].value))
    return found


def _is_name(node: ast.AST) -> bool:
    """`op.name`, `case.row.mnemonic`, `(op.name)`: the name of an operation, by who has it."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("name", "mnemonic"):
        return False
    holder = node.value
    if node.attr == "mnemonic":
        return True
    word = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
    return word in HOLDERS


def _texts(node: ast.AST) -> list[str]:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names of operations that stand in strings of a file: whole, built, or without a dialect."""
    docstrings = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if id(node) not in docstrings and words and all(w in SURE for w in words):
                yield from ((node.lineno, word) for word in words)
        elif isinstance(node, ast.Call) and node.args:
            word = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if word in TAKES_A_NAME:
                texts = [t for t in _texts(node.args[0]) if t in SHORT]
                yield from ((node.lineno, t) for t in texts)
                if isinstance(node.args[0], ast.JoinedStr):
                    text = ast.unparse(node.args[0]).lstrip("f'")
                    yield from [(node.lineno, text)] if text.startswith(DIALECTS) else []
        elif isinstance(node, ast.Compare) and any(map(_is_name, [node.left, *node.comparators])):
            for side in (node.left, *node.comparators):
                yield from ((node.lineno, t) for t in _texts(side) if t in SHORT)


def matches_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Operations told by a part of their name, or by the title of their family."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            by_end = node.func.attr in ("startswith", "endswith") and _is_name(node.func.value)
            by_pattern = getattr(node.func.value, "id", "") == "re"
            if by_end or (by_pattern and any(map(_is_name, node.args))):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            if _is_name(node.comparators[0]):
                yield node.lineno, ast.unparse(node)
        elif getattr(node, "attr", "") == "name" and getattr(node.value, "attr", "") == "family":
            yield node.lineno, ast.unparse(node)


def test_names_of_operations_outside_isa_only_become_fewer():
    found = [(file, *each) for file, tree in _files() for each in names_in(tree)]
    assert len(found) <= CEILING, "\n".join(f"{f}:{line}: {name}" for f, line, name in found)


def test_no_operation_is_told_by_a_part_of_its_name_or_its_family_title():
    found = [
        (file, *each)
        for file, tree in _files()
        if file not in SHOWS_TITLES
        for each in matches_in(tree)
    ]
    assert not found, "\n".join(f"{f}:{line}: {text}" for f, line, text in found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('if op.name == "scf.for": pass', 1),
        ('_LOOPS = ("scf.for", "scf.while")', 2),
        ('_FLAGS = ("set_flag", "wait_flag")', 2),
        ('_OPS = "pto.tadd pto.tsub".split()', 2),
        ('call("tadd", a, b)', 1),
        ('emit(f"pto.pset_b{bits}")', 1),
        ('if row.mnemonic in ("tadd", "tsub"): pass', 2),
        ('raise fail("PTO-X", "write isa.tadd(dst, a, b)")', 0),
        ('"""scf.for"""', 0),
        ('x.select("select")', 0),
    ],
)
def test_what_counts_as_a_name(text: str, count: int):
    assert len(list(names_in(ast.parse(text)))) == count


@pytest.mark.parametrize(
    "text",
    [
        'op.name.startswith("pto.tpush")',
        'case.row.name.endswith("_aic")',
        '"mad_mx" in row.name',
        're.search("_b8$", row.name)',
        'row.family.name == "load"',
    ],
)
def test_what_counts_as_a_match(text: str):
    assert len(list(matches_in(ast.parse(text)))) == 1


def test_traits_of_a_family_reach_its_rows_and_rows_add_their_own():
    def row(name: str) -> Instr:
        return next(r for r in rows() if r.name == name)

    assert row("arith.addi").traits.pure and row("arith.addi").traits.operator == "+"
    assert row("pto.alloc_tile").traits.names_only and row("pto.alloc_tile").traits.by_hand
    assert not row("pto.tadd").traits.pure
