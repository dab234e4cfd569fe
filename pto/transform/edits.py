"""Inserts lines into a program: into its graph, to test them, and into its text, to keep them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pto.ir.copied import same
from pto.ir.graph import Module, Operation, Span
from pto.ir.text.lexer import Tokens
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module


@dataclass(frozen=True, slots=True)
class Edit:
    """One operation, as text, right before or right after another."""

    anchor: Operation
    after: bool
    text: str


def apply(edits: Sequence[Edit]) -> list[Operation]:
    """Insert the edits one after the other; returns the new operations, for removal."""
    inserted: list[Operation] = []
    for edit in edits:
        block, op = edit.anchor.home, _parsed(edit.text)
        block.insert(block.ops.index(edit.anchor) + edit.after, op)
        inserted.append(op)
    return inserted


def take_out(inserted: Sequence[Operation]) -> None:
    for op in inserted:
        op.erase()


@contextmanager
def applied(edits: Sequence[Edit]) -> Generator[None]:
    inserted = apply(edits)
    try:
        yield
    finally:
        take_out(inserted)


def _parsed(text: str) -> Operation:
    module = parse(f"func.func @f() {{\n{text}\nreturn\n}}")
    op = next(f for f in module.functions()).regions[0].block.ops[0]
    op.erase()
    return op


# ---- text


def text_of(module: Module, edits: Sequence[Edit], source: str) -> str:
    """The text of an edited module: its source with further lines, if that is equivalent."""
    text = _with_lines(edits, source)
    if text is not None and same(parse(text).op, module.op):
        return text
    return print_module(module)


def _with_lines(edits: Sequence[Edit], source: str) -> str | None:
    """The source with further lines; None if an operation shares a line with another."""
    lines = source.split("\n")
    tokens = Tokens("", source)
    before: dict[int, list[str]] = {}  # by the number of a line, from 0
    for edit in edits:
        where = edit.anchor.where
        if not isinstance(where, Span):
            return None
        first = source.count("\n", 0, where.start)
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        if edit.after:
            last = _last_line(tokens, source, edit.anchor, where.start)
            before.setdefault(last + 1, []).insert(0, indent + edit.text)
        else:
            before.setdefault(first, []).append(indent + edit.text)
    out: list[str] = []
    for number, line in enumerate(lines):
        out += [*before.get(number, ()), line]
    return "\n".join(out)


def _last_line(tokens: Tokens, source: str, op: Operation, start: int) -> int:
    """The last line of an operation: before the next one begins, or the braces around it close."""
    following = [
        start_behind.where.start
        for start_behind in _behind(op)
        if isinstance(start_behind.where, Span)
    ]
    limit = min(
        (start_behind for start_behind in following if start_behind > start), default=len(source)
    )
    limit = source.rfind("\n", 0, limit) + 1 if following else limit
    at = next(n for n in range(len(tokens.ends)) if tokens.start(n) == start)
    depth, end = 0, tokens.ends[at]
    for token, stop in zip(tokens.texts[at:], tokens.ends[at:], strict=True):
        depth += (token == "{") - (token == "}")
        if depth < 0 or stop > limit:
            break
        end = stop
    return source.count("\n", 0, end)


def _behind(op: Operation) -> list[Operation]:
    return op.home.ops[op.home.ops.index(op) + 1 :]
