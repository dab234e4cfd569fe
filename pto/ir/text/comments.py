"""Comments in a program that is printed again: each stays with its operation.

A comment of its own line comes before the next operation, or at the end of the block it is in; one
at the end of a line stays beside the operation that begins there. Blank lines between operations
are kept, as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pto.ir.graph import Module, Operation, Span
from pto.ir.text.aliases import restored
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module

# Strings are passed over: `"//"` is no comment in one.
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//[^\n]*)|([{}])|(\n[ \t]*\n)')

# MLIR's printer adds such a comment to a block label; our output has no labels.
_PREDECESSORS = re.compile(r"// (\d+ preds|pred|no predecessors)\b")


@dataclass(frozen=True, slots=True)
class _Remark:
    at: int
    text: str  # empty: a blank line
    depth: int  # braces open around it


class Comments:
    """The comments of a text, taken in order."""

    def __init__(self, module: Module) -> None:
        text = module.source.text
        self._waiting = _found(text)[::-1]
        self._text = text
        self._shift = 0 if module.op.where else 1  # a module that the text does not write

    def before(self, op: Operation) -> list[str]:
        """Comments on lines of their own between the previous operation and this one."""
        where = op.where
        if not isinstance(where, Span):
            return []
        out: list[str] = []
        while self._waiting and self._waiting[-1].at < where.start:
            out.append(self._waiting.pop().text)
        return _tidy(out)

    def beside(self, op: Operation) -> str:
        """The comment at the end of the line on which an operation begins."""
        where = op.where
        if not isinstance(where, Span) or not self._waiting or not self._waiting[-1].text:
            return ""
        if self._text.find("\n", where.start, self._waiting[-1].at) >= 0:
            return ""
        return self._waiting.pop().text

    def inside(self, depth: int) -> list[str]:
        """The remaining comments before the brace that closes a block."""
        out: list[str] = []
        while self._waiting and self._waiting[-1].depth + self._shift >= depth:
            out.append(self._waiting.pop().text)
        while out and not out[-1]:
            out.pop()
        return _tidy(out)

    def rest(self) -> list[str]:
        return [remark.text for remark in reversed(self._waiting) if remark.text]


def formatted(text: str, file: str = "<text>") -> str:
    """A program in the stable form, with its comments."""
    module = parse(text, file)
    comments = Comments(module)
    printed = restored(text, file, print_module(module, remarks=comments).lstrip("\n"))
    return printed + "".join(f"{line}\n" for line in comments.rest())


def _tidy(lines: list[str]) -> list[str]:
    """No two blank lines one after another."""
    return [line for n, line in enumerate(lines) if line or n + 1 == len(lines) or lines[n + 1]]


def _found(text: str) -> list[_Remark]:
    depth = 0
    out: list[_Remark] = []
    pos = 0
    while token := _TOKEN.search(text, pos):
        pos = token.end() - bool(token[3])  # the newline may begin another blank line
        if token[2]:
            depth += 1 if token[2] == "{" else -1
        elif (token[1] or token[3]) and not _PREDECESSORS.match(token[1] or ""):
            out.append(_Remark(token.start(), (token[1] or "").rstrip(), depth))
    return out
